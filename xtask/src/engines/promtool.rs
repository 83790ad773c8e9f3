//! promtool, Prometheus's own checker of metrics, from Debian's package.

use std::{
    fs::{self, File, Permissions},
    io,
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use anyhow::{Context as _, Result, ensure};

use super::folder;
use crate::{arch::Arch, debian::Debian};

/// Package that it is in.
const PACKAGE: &str = "prometheus";
/// Its place in the package.
const PROGRAM: &str = "usr/bin/promtool";

/// Fetches it, if it is missing.
pub fn fetch() -> Result<()> {
    let place = folder()?.join("promtool");
    if place.exists() {
        return Ok(());
    }
    // It is in its place when it is whole.
    let unfinished = place.with_extension("new");
    let package = format!("{PACKAGE}:{}", Arch::host()?.debian());
    Debian::open()?.download(&package)?.files(|path, content| {
        if path == Path::new(PROGRAM) {
            let mut copy = File::create(&unfinished).with_context(|| unfinished.display().to_string())?;
            io::copy(content, &mut copy).with_context(|| unfinished.display().to_string())?;
            copy.set_permissions(Permissions::from_mode(0o755))?;
        }
        Ok(())
    })?;
    ensure!(unfinished.exists(), "{package} has no {PROGRAM} any more");
    fs::rename(&unfinished, &place).with_context(|| place.display().to_string())
}
