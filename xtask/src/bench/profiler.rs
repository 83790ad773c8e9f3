//! nntrace-bpf, attached while something else is measured.

use anyhow::{Context, Result};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::{
    bench::{child::Running, release},
    run::command,
};

/// The profiler, with its probes in place.
pub struct Profiler(Running);

/// What the profiler found.
pub struct Snapshot(Value);

impl Profiler {
    /// Starts it, and returns when it measures.
    pub fn attach(args: &[&str]) -> Result<(Self, Snapshot)> {
        let mut profiler = command(release("nntrace-bpf")?);
        // Two lines only: one when everything is in place, and one at the end.
        profiler.args(["--json-lines", "--interval", "1h"]).args(args);
        let mut profiler = Running::start(&mut profiler)?;
        let first = Snapshot::parse(&profiler.line()?)?;
        Ok((Self(profiler), first))
    }

    /// Ends it; returns what it found.
    pub fn end(self) -> Result<Snapshot> {
        Snapshot::parse(&self.0.end(Signal::SIGTERM)?)
    }
}

impl Snapshot {
    /// Reads what the profiler printed.
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).map(Self).context("the profiler's snapshot is no JSON")
    }

    /// A number in it, such as `/overhead/marks`.
    pub fn number(&self, pointer: &str) -> Result<f64> {
        let number = self.0.pointer(pointer).and_then(Value::as_f64);
        number.with_context(|| format!("the profiler's snapshot has no number {pointer}"))
    }

    /// How long it measured, s.
    pub fn seconds(&self) -> Result<f64> {
        Ok((self.number("/window/end_ns")? - self.number("/window/begin_ns")?) / 1e9)
    }
}
