//! Requirements of emulating, and their packages.

use std::{fs, path::Path};

use anyhow::{Result, bail};

use crate::{
    apt,
    arch::Arch,
    run::{as_root, command, on_path, quietly},
};

/// Release of Debian whose QEMU is too old.
const OLD: &str = "bookworm";
const BACKPORTS: &str = "/etc/apt/sources.list.d/nntrace-backports.sources";

/// Returns the required programs, and the packages of Debian that contain them.
fn needed(arch: Arch) -> Vec<(String, Vec<String>)> {
    let mut needed = vec![(format!("qemu-system-{arch}"), vec![emulator(arch).to_owned()])];
    let (debian, triple) = (arch.debian(), arch.name().replace('_', "-"));
    if arch == Arch::Aarch64 {
        needed.extend(
            ["dtc", "fdtput", "fdtoverlay"]
                .map(|it| (it.to_owned(), vec!["device-tree-compiler".to_owned()])),
        );
    }
    let (gcc, gxx) = (arch.gnu("gcc"), arch.gnu("g++"));
    if arch.is_host() {
        needed.push((gcc, vec!["gcc".into(), "libc6-dev".into()]));
        needed.push((gxx, vec!["g++".into()]));
    } else {
        let libc = format!("libc6-dev-{debian}-cross");
        needed.push((gcc, vec![format!("gcc-{triple}-linux-gnu"), libc]));
        needed.push((gxx, vec![format!("g++-{triple}-linux-gnu")]));
    }
    needed.push(("xz".into(), vec!["xz-utils".into()]));
    needed
}

const fn emulator(arch: Arch) -> &'static str {
    match arch {
        Arch::Aarch64 => "qemu-system-arm",
        Arch::X86_64 => "qemu-system-x86",
    }
}

/// Returns the packages of the missing programs.
fn missing(arch: Arch) -> (Vec<String>, Vec<String>) {
    let missing = needed(arch).into_iter().filter(|(program, _)| !on_path(program));
    let (programs, packages): (Vec<String>, Vec<Vec<String>>) = missing.unzip();
    let mut packages = packages.concat();
    packages.dedup();
    (programs, packages)
}

/// Checks whether everything is there; the error names what is missing, and the packages.
pub fn check(arch: Arch) -> Result<()> {
    let (programs, packages) = missing(arch);
    if programs.is_empty() {
        return Ok(());
    }
    bail!(
        "{} not found; run: cargo xtask setup --vm, or install the packages {} (QEMU 10 or newer{})",
        programs.join(", "),
        packages.join(" "),
        if is_old() { ", in Debian 12 from bookworm-backports" } else { "" }
    )
}

/// Installs the missing packages for both architectures.
pub fn install() -> Result<()> {
    for arch in Arch::ALL {
        let (_, packages) = missing(arch);
        let (emulator, others): (Vec<&str>, Vec<&str>) =
            packages.iter().map(String::as_str).partition(|package| *package == emulator(arch));
        if !others.is_empty() {
            apt::install(&others)?;
        }
        match (emulator.is_empty(), is_old()) {
            (true, _) => {}
            (false, false) => apt::install(&emulator)?,
            (false, true) => {
                backports()?;
                apt::install_from(Some(&format!("{OLD}-backports")), &emulator)?;
            }
        }
        println!("found      what virtual machines for {arch} need");
    }
    Ok(())
}

/// Whether this is the release of Debian whose QEMU is too old, and conflicts with newer parts of itself.
fn is_old() -> bool {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    text.lines().any(|line| line == format!("VERSION_CODENAME={OLD}"))
}

/// Adds the newer packages for that release to apt's sources, from which packages are taken only on request.
fn backports() -> Result<()> {
    if quietly(command("apt-cache").arg("policy"))?.contains(&format!("{OLD}-backports")) {
        return Ok(());
    }
    let mirror = crate::debian::mirror();
    let text = format!(
        "Types: deb\nURIs: {mirror}/debian\nSuites: {OLD}-backports\nComponents: main\nSigned-By: {}\n",
        crate::debian::KEYRING
    );
    quietly(&mut written(BACKPORTS, &text)?)?;
    println!("added      {BACKPORTS}");
    quietly(&mut apt::update()?)?;
    Ok(())
}

/// Returns the command that writes a file as root.
fn written(path: &str, text: &str) -> Result<std::process::Command> {
    let draft = crate::debian::cache()?.join(Path::new(path).file_name().unwrap_or_default());
    fs::create_dir_all(crate::debian::cache()?)?;
    fs::write(&draft, text)?;
    let mut install = command("install");
    install.args(["-m", "644"]).arg(draft).arg(path);
    as_root(install)
}
