//! Packages of Debian.

use std::process::Command;

use anyhow::{Result, bail};

use crate::run::{as_root, on_path, quietly};

/// Installs the missing packages; fetches the package lists only when it fails without them.
pub fn install(packages: &[&str]) -> Result<()> {
    install_from(None, packages)
}

/// Like [`install`], from a release that is not the system's own.
pub fn install_from(release: Option<&str>, packages: &[&str]) -> Result<()> {
    if !on_path("apt-get") {
        bail!("there is no apt-get to install {}", packages.join(" "));
    }
    let mut words = vec!["install", "--yes", "--no-install-recommends"];
    words.extend(release.into_iter().flat_map(|release| ["--target-release", release]));
    let mut install = apt_get(&words, packages)?;
    println!("installing {} (apt)", packages.join(", "));
    if quietly(&mut install).is_err() {
        quietly(&mut update()?)?;
        quietly(&mut install)?;
    }
    println!("installed  {}", packages.join(", "));
    Ok(())
}

/// Returns the command that fetches the package lists.
pub fn update() -> Result<Command> {
    apt_get(&["update"], &[])
}

/// Returns an `apt-get` command as root, without questions, which waits for other runs of it.
fn apt_get(words: &[&str], packages: &[&str]) -> Result<Command> {
    let mut apt = Command::new("env");
    apt.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet", "-o", "DPkg::Lock::Timeout=300"]);
    apt.args(words).args(packages);
    as_root(apt)
}
