//! nntrace-bpf, attached while something else is measured.

use anyhow::{Context, Result};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::{
    bench::{child::Running, release},
    run::command,
};

/// Profiler with its probes in place.
pub struct Profiler(Running);

/// Snapshot of the profiler.
pub struct Snapshot(Value);

impl Profiler {
    /// Starts the profiler, and returns when it measures.
    pub fn attach(args: &[&str]) -> Result<(Self, Snapshot)> {
        let mut profiler = command(release("nntrace-bpf")?);
        // Only two lines: one when everything is in place, and one at the end.
        profiler.args(["--json-lines", "--interval", "1h"]).args(args);
        let mut profiler = Running::start(&mut profiler)?;
        let first = Snapshot::parse(&profiler.line()?)?;
        Ok((Self(profiler), first))
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// Ends the profiler; returns its snapshot.
    pub fn end(self) -> Result<Snapshot> {
        Snapshot::parse(&self.0.end(Signal::SIGTERM)?)
    }
}

impl Snapshot {
    /// Parses the profiler's output.
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).map(Self).context("the profiler's snapshot is no JSON")
    }

    /// Returns a number in the snapshot, such as `/overhead/marks`.
    pub fn number(&self, pointer: &str) -> Result<f64> {
        let number = self.0.pointer(pointer).and_then(Value::as_f64);
        number.with_context(|| format!("the profiler's snapshot has no number {pointer}"))
    }

    /// Returns the length of the measurement, s.
    pub fn seconds(&self) -> Result<f64> {
        Ok((self.number("/window/end_ns")? - self.number("/window/begin_ns")?) / 1e9)
    }
}
