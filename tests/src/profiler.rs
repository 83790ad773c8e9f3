//! Running `nntrace-bpf`.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use nntrace_user::report::snapshot::Snapshot;
use tempfile::TempDir;

use crate::{
    binaries,
    child::{Child, Ended},
    results::Results as _,
    snapshot,
    wait::PATIENCE,
};

/// Builder of an invocation of `nntrace-bpf`.
pub struct Profiler {
    command: Command,
    folder: TempDir,
    limit: Duration,
}

/// Results of a run.
#[derive(Debug)]
pub struct Run {
    /// Last snapshot; it has passed [`Results::check`](crate::results::Results::check).
    pub snapshot: Snapshot,
    /// Exit status and output of the program.
    pub ended: Ended,
}

impl Profiler {
    /// Creates an invocation without any argument.
    ///
    /// # Errors
    /// When the program was not built.
    pub fn new() -> Result<Self> {
        Ok(Self {
            command: Command::new(binaries::profiler()?),
            folder: tempfile::tempdir()?,
            limit: PATIENCE,
        })
    }

    /// Creates an invocation with an empty folder in the place of this one, for it and the commands that it launches.
    ///
    /// # Errors
    /// When the program was not built.
    pub fn without(folder: &str) -> Result<Self> {
        let mut profiler = Self::new()?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", "mount -t tmpfs tmpfs \"$0\" && exec \"$@\"", folder]);
        command.arg(profiler.command.get_program());
        for (name, value) in profiler.command.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        profiler.command = command;
        Ok(profiler)
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs it as sudo does for a user, who owns the folder of its results.
    ///
    /// # Errors
    /// When the folder cannot be given to him.
    pub fn called_by(self, uid: u32, gid: u32) -> Result<Self> {
        chown(self.folder.path(), Some(uid), Some(gid))?;
        Ok(self.env("SUDO_UID", &uid.to_string()).env("SUDO_GID", &gid.to_string()))
    }

    /// Returns the folder of its results, which are gone with this builder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Allows more time than [`PATIENCE`].
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Returns the command as it is, for tests of failures.
    #[must_use]
    pub fn command(&mut self) -> &mut Command {
        &mut self.command
    }

    /// Runs the profiler to its end, without a command to launch.
    ///
    /// # Errors
    /// When it does not end in time, or writes no valid snapshot.
    pub fn run(mut self) -> Result<Run> {
        let file = self.json_file();
        self.finish(&file)
    }

    /// Launches a command under the profiler, and waits for the end of both.
    ///
    /// # Errors
    /// When it does not end in time, or writes no valid snapshot.
    pub fn launch<A: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = A>) -> Result<Run> {
        let file = self.json_file();
        self.command.arg("--").args(words);
        self.finish(&file)
    }

    /// Starts the profiler, and waits until its probes are in place.
    ///
    /// # Errors
    /// When it does not get that far.
    pub fn attach(mut self) -> Result<Attached> {
        // One snapshot when everything is in place, one at the end, and none in between.
        self.command.args(["--json-lines", "--interval", "1h"]);
        let child = Child::start(&mut self.command)?;
        child.lines(1)?;
        Ok(Attached { child })
    }

    fn json_file(&mut self) -> PathBuf {
        let file = self.folder.path().join("snapshot.json");
        let mut argument = std::ffi::OsString::from("--json=");
        argument.push(&file);
        self.command.arg(argument);
        file
    }

    fn finish(&mut self, file: &PathBuf) -> Result<Run> {
        let ended = Child::start(&mut self.command)?.wait_for(self.limit)?;
        let written = fs::read(file).unwrap_or_default();
        run(&written, ended)
    }
}

/// Profiler with its probes in place.
pub struct Attached {
    child: Child,
}

impl Attached {
    /// Returns the process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Sends a signal to the profiler.
    ///
    /// # Errors
    /// When it has ended.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.child.signal(signal)
    }

    /// Waits for its end, whatever it wrote.
    ///
    /// # Errors
    /// When it does not end in time.
    pub fn ended(self) -> Result<Ended> {
        self.child.wait()
    }

    /// Waits for its end and returns its last snapshot.
    ///
    /// # Errors
    /// When it does not end in time, or writes no valid snapshot at the end.
    pub fn finish(self) -> Result<Run> {
        let ended = self.ended()?;
        let lines: Vec<&[u8]> = ended.stdout.split(|&byte| byte == b'\n').collect();
        // Nothing follows the last line; the first came when the probes were in place.
        let last = if lines.len() > 2 { lines[lines.len() - 2] } else { &[] };
        let last = last.to_vec();
        run(&last, ended)
    }
}

fn run(snapshot: &[u8], ended: Ended) -> Result<Run> {
    let about = || format!("it ended by {} with stderr:\n{}", ended.status, ended.stderr);
    let snapshot = snapshot::read(snapshot).with_context(about)?;
    snapshot.check().with_context(about)?;
    Ok(Run { snapshot, ended })
}
