//! The programs under test.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

/// Returns the path of `nntrace-bpf`, as cargo built it beside the tests.
///
/// # Errors
/// When it was not built.
pub fn profiler() -> Result<PathBuf> {
    built("nntrace-bpf")
}

/// Returns the path of `nntrace-workload`, as cargo built it beside the tests.
///
/// # Errors
/// When it was not built.
pub fn workload() -> Result<PathBuf> {
    built("nntrace-workload")
}

/// Returns the path of one of the programs that tests start.
///
/// # Errors
/// When it was not built.
pub fn helper(name: &str) -> Result<PathBuf> {
    built(name)
}

/// Where cargo puts the programs of the profile that this test or program was built with.
///
/// # Errors
/// When this program is not where cargo puts such.
pub fn profile_dir() -> Result<PathBuf> {
    let own = std::env::current_exe().context("the path of this program is not known")?;
    let folder = own.parent();
    let folder = if folder.is_some_and(|folder| folder.ends_with("deps")) {
        folder.and_then(Path::parent)
    } else {
        folder
    };
    folder.map(Path::to_owned).with_context(|| format!("{} is not in target/*/", own.display()))
}

fn built(name: &str) -> Result<PathBuf> {
    let path = profile_dir()?.join(name);
    ensure!(path.is_file(), "{} is missing: run `cargo build` first", path.display());
    Ok(path)
}
