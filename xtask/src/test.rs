//! All tests of the workspace.

use std::process::Command;

use anyhow::Result;

use crate::{
    engines, itt,
    run::{as_root, cargo, command, is_root, run},
    setup,
};

/// Compiles as the user and runs the tests, which load kernel programs, as root.
pub fn run_all(args: &[String]) -> Result<()> {
    setup::all()?;
    setup::tests()?;
    engines::for_tests();
    // The live tests call the binaries, which `cargo test` alone would not build.
    run(cargo("build").arg("--quiet"))?;
    itt::beside("debug")?;
    run(live()?.args(["--workspace", "--exclude", "nntrace-ebpf"]).args(args))
}

/// Returns a `cargo test` command whose tests run as root. A live test that cannot run is a failed test.
pub fn live() -> Result<Command> {
    let mut test = cargo("test");
    test.env("NNTRACE_LIVE", "required");
    if !is_root()? {
        as_root(command("true"))?;
        test.args(["--config", r#"target."cfg(all())".runner = ["sudo", "-E", "--"]"#]);
    }
    Ok(test)
}
