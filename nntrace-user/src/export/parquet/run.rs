//! The table of facts about the run: one row.

use std::{collections::BTreeMap, path::Path};

use serde::Serialize;

use super::{
    ExportError, Label, Run,
    schema::{RUN, VERSION},
    table::{Table, Value},
};
use crate::report::snapshot::{Clock, MarksSeen, Snapshot};

/// Facts that a recording has about its run.
#[derive(Clone, Copy, Debug)]
pub struct RecordedRun<'a> {
    /// Version of the program that recorded it.
    pub tool: &'a str,
    /// Command that was launched; empty without one.
    pub command: &'a [String],
    /// Arguments of the recorder.
    pub arguments: &'a [String],
    /// Variables of the environment, as far as they were recorded.
    pub environment: &'a BTreeMap<String, String>,
    /// Exit status of the command, once it has ended.
    pub exit_status: Option<i32>,
    /// `CLOCK_MONOTONIC`, ns, at the instant when all clocks were read.
    pub monotonic_ns: u64,
    /// `CLOCK_BOOTTIME`, ns, at that instant.
    pub boottime_ns: u64,
    /// `CLOCK_REALTIME`, ns since 1970, at that instant.
    pub realtime_ns: u64,
}

impl RecordedRun<'_> {
    /// Returns a time of the run as time since 1970, ns; `None` before that.
    fn real(&self, time: u64) -> Option<u64> {
        let real = i128::from(self.realtime_ns) - i128::from(self.monotonic_ns) + i128::from(time);
        u64::try_from(real).ok()
    }
}

/// Writes the table.
pub(super) fn write(
    folder: &Path,
    label: &Label,
    run: &Run<'_>,
    snapshot: &Snapshot,
) -> Result<(), ExportError> {
    let Snapshot { host, window, source, overhead, loss, .. } = snapshot;
    let recorded = run.recorded.as_ref();
    let clock = match window.clock {
        Clock::Monotonic => "monotonic",
        Clock::Trace => "trace",
    };
    let marks_seen = match source.marks {
        MarksSeen::Uprobe => "uprobe",
        MarksSeen::Syscall => "syscall",
        MarksSeen::Trace => "trace",
        MarksSeen::None => "none",
    };
    let command = recorded.map(|run| run.command).filter(|command| !command.is_empty()).map(json);
    let arguments = recorded.map(|run| json(run.arguments));
    let environment = recorded.map(|run| json(run.environment));
    let hand_overs = snapshot.hand_overs.unwrap_or_default();
    let (files, notes) = (json(&source.files), json(&snapshot.notes));
    let (incomplete, left_out) = (json(&loss.incomplete), json(&loss.summed));
    let mut table = Table::create(folder, &RUN, label)?;
    table.push(&[
        VERSION.into(),
        env!("CARGO_PKG_VERSION").into(),
        recorded.map(|run| run.tool).into(),
        if recorded.is_some() { "recording" } else { "trace" }.into(),
        Value::Text(&files),
        marks_seen.into(),
        Value::Text(&host.kernel),
        Value::Text(&host.machine),
        host.cpus.into(),
        clock.into(),
        window.begin_ns.into(),
        window.end_ns.into(),
        recorded.map(|run| run.monotonic_ns).into(),
        recorded.map(|run| run.boottime_ns).into(),
        recorded.map(|run| run.realtime_ns).into(),
        recorded.and_then(|run| run.real(window.begin_ns)).into(),
        command.as_deref().into(),
        arguments.as_deref().into(),
        environment.as_deref().into(),
        recorded.and_then(|run| u32::try_from(run.exit_status?).ok()).into(),
        overhead.marks.into(),
        overhead.power_events.into(),
        loss.records_dropped.into(),
        Value::Text(&incomplete),
        Value::Text(&left_out),
        run.timelines.and_then(super::intervals::resolution).into(),
        hand_overs.sent.into(),
        hand_overs.received.into(),
        hand_overs.unmatched.into(),
        Value::Text(&notes),
    ])?;
    table.finish().map(drop)
}

/// Returns a value as JSON: a column has no lists.
fn json(value: &(impl Serialize + ?Sized)) -> String {
    // Lists and maps of texts and numbers always have a form in JSON.
    serde_json::to_string(value).unwrap_or_default()
}
