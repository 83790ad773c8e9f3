//! Programs for tests of the express lane (`tests/native/express-*.c`), and what profilers say of them.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command,
};

use anyhow::{Context as _, Result};
use nntrace_user::report::snapshot::Snapshot;

use crate::{
    child::{Child, Ended},
    native::Program,
    profiler::{Attached, Profiler},
};

/// Size of the rings of probed marks (KiB) in which none is lost though two threads write marks all the time.
pub const AMPLE: [&str; 2] = ["--ring-size", "65536"];

/// Running `express-steps.c`, which writes marks on request.
pub struct Steps {
    child: Child,
    asked: usize,
    program: Program,
}

impl Steps {
    /// Builds and starts it.
    ///
    /// # Errors
    /// When there is no compiler, or it refuses.
    pub fn start() -> Result<Self> {
        let program = Program::build("express-steps.c")?;
        let child = Child::start(&mut Command::new(program.path()))?;
        Ok(Self { child, asked: 0, program })
    }

    /// Returns the path of the program.
    #[must_use]
    pub fn program(&self) -> &Path {
        self.program.path()
    }

    /// Returns the process id, as an argument.
    #[must_use]
    pub fn pid(&self) -> String {
        self.child.pid().to_string()
    }

    /// Starts a profiler of it, and waits until its probes are in place.
    ///
    /// # Errors
    /// When it does not get that far.
    pub fn profile(&self, options: &[&str]) -> Result<Attached> {
        Profiler::new()?.args(["--pid", &self.pid()]).args(options).attach()
    }

    /// Makes a request; [`Steps::answer`] is to follow.
    ///
    /// # Errors
    /// When the program has ended.
    pub fn request(&mut self, request: &str) -> Result<()> {
        self.asked += 1;
        self.child.send_line(request)
    }

    /// Waits for the answer to the last request.
    ///
    /// # Errors
    /// When the program ends instead, or does not answer in time.
    pub fn answer(&mut self) -> Result<u64> {
        let answer = self.child.lines(self.asked)?.pop().context("there is one answer at least")?;
        answer.parse().with_context(|| format!("no number: {answer}"))
    }

    /// Makes a request, and waits for its answer.
    ///
    /// # Errors
    /// When the program ends instead, or does not answer in time.
    pub fn ask(&mut self, request: &str) -> Result<u64> {
        self.request(request)?;
        self.answer()
    }

    /// Has the main thread write marks until it has a lane; returns the number of its sections.
    ///
    /// # Errors
    /// When it gets none in time.
    pub fn get_lane(&mut self) -> Result<u64> {
        Ok(self.ask("run 100")? + self.ask("await 1")?)
    }
}

/// Lets all users run a program.
///
/// # Errors
/// When its folder's permissions cannot be changed.
pub fn let_all_run(program: &Program) -> Result<()> {
    let folder = program.path().parent().context("a program is in a folder")?;
    Ok(fs::set_permissions(folder, Permissions::from_mode(0o755))?)
}

/// Returns the count of sections of this name, in all processes.
#[must_use]
pub fn sections(snapshot: &Snapshot, name: &str) -> u64 {
    snapshot.functions.iter().filter(|row| row.name == name).map(|row| row.count).sum()
}

/// Returns the count of instants of this name, in all processes.
#[must_use]
pub fn instants(snapshot: &Snapshot, name: &str) -> u64 {
    snapshot.tracks.iter().filter(|row| row.name == name).map(|row| row.instants).sum()
}

/// Returns the sum of the numbers that a program has printed, one on each line.
///
/// # Errors
/// When a line is no number.
pub fn sum_of_lines(ended: &Ended) -> Result<u64> {
    let text = ended.text();
    let number = |line: &str| line.parse::<u64>().with_context(|| format!("no number: {line}"));
    text.lines().map(number).sum()
}
