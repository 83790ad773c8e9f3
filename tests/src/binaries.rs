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

/// Returns the folder of the programs of the profile that this test was built with.
///
/// # Errors
/// When this program is not in cargo's folder for tests.
pub fn profile_dir() -> Result<PathBuf> {
    let test = std::env::current_exe().context("cannot tell where this test is")?;
    let profile = test.parent().and_then(Path::parent);
    profile.map(Path::to_owned).with_context(|| format!("{} is not in target/*/deps", test.display()))
}

fn built(name: &str) -> Result<PathBuf> {
    let path = profile_dir()?.join(name);
    ensure!(path.is_file(), "{} is missing: run `cargo build` first", path.display());
    Ok(path)
}
