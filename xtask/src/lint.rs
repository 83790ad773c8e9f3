//! Static checks of the code.

use std::{env::consts::ARCH, process::Command};

use anyhow::{Result, bail};

use crate::{
    run::{cargo, command, on_path, run, target_dir},
    setup,
};

/// Arguments for all packages but the kernel programs, which compile for another target.
const USER_SPACE: [&str; 3] = ["--workspace", "--exclude", "nntrace-ebpf"];

/// Runs all checks, and fails at the end if any failed.
pub fn run_all() -> Result<()> {
    let toolchain = setup::lint()?;
    let endian = if cfg!(target_endian = "big") { "big" } else { "little" };

    let mut format = cargo("fmt");
    format.args(["--all", "--check"]);
    let mut clippy = cargo("clippy");
    clippy.args(USER_SPACE).args(["--all-targets", "--features", "nntrace-fuzz/libfuzzer"]);
    clippy.args(["--", "--deny=warnings"]);
    let (mut bpf_clippy, _) = toolchain.cargo("clippy", ARCH, endian, &target_dir()?);
    bpf_clippy.args(["--no-deps", "--", "--deny=warnings"]);
    let mut doc = cargo("doc");
    doc.args(USER_SPACE).args(["--no-deps", "--document-private-items"]).env("RUSTDOCFLAGS", "-Dwarnings");

    let mut checks = vec![
        ("format", format),
        ("lints", clippy),
        ("lints of the kernel programs", bpf_clippy),
        ("documentation", doc),
    ];
    checks.extend(installed("spelling", "typos", &[]));
    // Advisories are left out: they are fetched, and change without the code changing.
    checks.extend(installed("dependencies", "cargo-deny", &["check", "licenses", "bans", "sources"]));

    let mut failed = Vec::new();
    for (subject, mut check) in checks {
        println!("checking   {subject}");
        if let Err(error) = run(&mut check) {
            println!("failed     {subject}: {error:#}");
            failed.push(subject);
        }
    }
    if !failed.is_empty() {
        bail!("these checks failed: {}", failed.join(", "));
    }
    Ok(())
}

/// Returns a check whose program takes minutes to install, if the program is installed.
fn installed(subject: &'static str, program: &str, args: &[&str]) -> Option<(&'static str, Command)> {
    if !on_path(program) {
        println!("skipped    {subject}: {program} is not installed (optional)");
        return None;
    }
    let mut check = command(program);
    check.args(args);
    Some((subject, check))
}
