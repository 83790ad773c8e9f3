//! Permission and turn of a test to use the kernel.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use anyhow::{Context as _, Result, bail};

use crate::{binaries, bpf::is_not_gone};

/// Variable that makes a live test fail if it cannot run and this is `required`.
const VARIABLE: &str = "NNTRACE_LIVE";

/// Use of the kernel's tracing, and of the CPUs for load: by one test alone, or by those that [share](enter_shared) it,
/// over all test programs.
#[must_use = "the next test starts when this is dropped"]
pub struct Live {
    /// Lock, released with this value.
    _lock: File,
}

/// Begins a live test that needs the machine for itself, as it measures time, looks at what concerns all processes, or
/// changes that: waits until no other one runs. `None` when this host or user cannot run any.
///
/// # Errors
/// When it cannot run, but `NNTRACE_LIVE=required` demands it.
pub fn enter() -> Result<Option<Live>> {
    enter_by(File::lock)
}

/// Begins a live test as [`enter`] does, but one that may run beside others which begin with this, as it looks only at
/// processes of its own.
///
/// # Errors
/// When it cannot run, but `NNTRACE_LIVE=required` demands it.
pub fn enter_shared() -> Result<Option<Live>> {
    enter_by(File::lock_shared)
}

fn enter_by(lock: impl FnOnce(&File) -> io::Result<()>) -> Result<Option<Live>> {
    match lacking() {
        None => take_turn(lock).map(Some),
        Some(reason) if is_required() => {
            bail!("{VARIABLE}=required, but this live test cannot run: {reason}")
        }
        Some(reason) => {
            eprintln!("skipped, a live test cannot run here: {reason}");
            Ok(None)
        }
    }
}

/// Whether a live test that cannot run is a failed one.
#[must_use]
pub fn is_required() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| value == "required")
}

/// Whether the kernel describes its types. If so, everything that depends on that has to work.
#[must_use]
pub fn has_btf() -> bool {
    Path::new("/sys/kernel/btf/vmlinux").exists()
}

/// Whether this kernel has programs that wait for the page of a text: Linux 6.0.
///
/// # Errors
/// When the kernel's release cannot be read.
pub fn waits_for_pages() -> Result<bool> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let major = release.split('.').next().and_then(|number| number.parse::<u32>().ok());
    Ok(major.context("no version")? >= 6)
}

/// Returns the reason why no live test can run here; `None` when they can.
fn lacking() -> Option<String> {
    if !nix::unistd::Uid::effective().is_root() {
        return Some("it needs root".into());
    }
    // Asks the kernel itself, not the code under test: a failure of that is a failed test.
    match aya::programs::loaded_programs().find(is_not_gone) {
        Some(Err(error)) => Some(format!("the kernel refuses BPF: {error}")),
        Some(Ok(_)) | None => None,
    }
}

fn take_turn(lock: impl FnOnce(&File) -> io::Result<()>) -> Result<Live> {
    let path = binaries::profile_dir()?.join("nntrace-tests.lock");
    let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    lock(&file).with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(Live { _lock: file })
}
