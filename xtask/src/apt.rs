//! Debian's packages.

use std::process::Command;

use anyhow::{Result, bail};

use crate::run::{as_root, on_path, quietly};

/// Installs what is not installed; fetches the lists of packages only when it does not work without.
pub fn install(packages: &[&str]) -> Result<()> {
    if !on_path("apt-get") {
        bail!("there is no apt-get to install {}", packages.join(" "));
    }
    let mut install = apt_get(&["install", "--yes", "--no-install-recommends"], packages)?;
    println!("installing {} (apt)", packages.join(", "));
    if quietly(&mut install).is_err() {
        quietly(&mut apt_get(&["update"], &[])?)?;
        quietly(&mut install)?;
    }
    println!("installed  {}", packages.join(", "));
    Ok(())
}

/// `apt-get` as root, asking nothing and waiting for other runs of it.
fn apt_get(words: &[&str], packages: &[&str]) -> Result<Command> {
    let mut apt = Command::new("env");
    apt.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet", "-o", "DPkg::Lock::Timeout=300"]);
    apt.args(words).args(packages);
    as_root(apt)
}
