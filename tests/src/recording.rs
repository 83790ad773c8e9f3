//! Recordings that tests make.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use nntrace_user::report::snapshot::Snapshot;
use tempfile::TempDir;

use crate::{
    child::Child,
    profiler::{Profiler, Run},
    snapshot,
};

/// Recording, and the results of the run that it was made of.
pub struct Recording {
    folder: TempDir,
    /// Run.
    pub run: Run,
}

impl Recording {
    /// Records a command with these options.
    ///
    /// # Errors
    /// When the profiler or the command fails.
    pub fn of<A: AsRef<std::ffi::OsStr>>(
        options: &[&str],
        command: impl IntoIterator<Item = A>,
    ) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let profiler = Profiler::new()?.args(["record", "-o"]).args([folder.path().join("run")]);
        let run = profiler.args(options).launch(command)?;
        Ok(Self { folder, run })
    }

    /// Records the CPUs only, with these options.
    ///
    /// # Errors
    /// When the profiler fails.
    pub fn of_cpus(options: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let profiler = Profiler::new()?.args(["record", "-o"]).args([folder.path().join("run")]);
        let run = profiler.args(["--marks", "none"]).args(options).run()?;
        Ok(Self { folder, run })
    }

    /// Returns the folder of the recording.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("run")
    }
}

/// Replays a recording by the program, and returns its snapshot.
///
/// # Errors
/// When that fails.
pub fn replay(folder: &Path, options: &[&str]) -> Result<Snapshot> {
    let mut profiler = Profiler::new()?.args(["replay", "--json"]).args(options).args([folder]);
    snapshot::read(&Child::run(profiler.command())?.expect_code(0)?.stdout)
}

/// Checks that a replay has the snapshot of the run, byte for byte but for where records came from and what measuring cost.
///
/// # Errors
/// With the first difference.
pub fn expect_same(live: &Snapshot, replayed: &Snapshot) -> Result<()> {
    let Snapshot { source, overhead, .. } = live.clone();
    let replayed = Snapshot { source, overhead, ..replayed.clone() };
    expect_equal(&serde_json::to_string(live)?, &serde_json::to_string(&replayed)?)
}

/// Checks that a text about a recording is the expected one, byte for byte.
///
/// # Errors
/// With the first difference.
pub fn expect_equal(expected: &str, found: &str) -> Result<()> {
    let place = expected.bytes().zip(found.bytes()).take_while(|(expected, found)| expected == found).count();
    let around = |text: &str| {
        let part = &text.as_bytes()[place.saturating_sub(200)..text.len().min(place + 100)];
        String::from_utf8_lossy(part).into_owned()
    };
    ensure!(expected == found, "expected: {}\nfound:    {}", around(expected), around(found));
    Ok(())
}

/// Returns the names of a recording's files, sorted.
///
/// # Errors
/// When the folder cannot be read.
pub fn files(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<Result<Vec<String>>>()?;
    names.sort_unstable();
    Ok(names)
}
