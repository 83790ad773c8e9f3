//! The text of ftrace, as `trace` and `trace-cmd report` have it.

use std::fmt::Write as _;

use super::{Kind, Trace};

/// Writes a trace, with the processes of the threads or without.
#[must_use]
pub fn write(trace: &Trace, has_processes: bool) -> String {
    let mut text = String::from("# tracer: nop\n#\n");
    for event in &trace.events {
        let description = event.kind.description();
        let name = if matches!(event.kind, Kind::Mark(_)) { "tracing_mark_write" } else { description.name };
        let process = match trace.thread(event.tid) {
            _ if !has_processes => String::new(),
            None => " (-----)".into(),
            Some(thread) => format!(" ({:5})", thread.pid),
        };
        let (seconds, ns) = (event.time / 1_000_000_000, event.time % 1_000_000_000);
        let task = if event.tid == 0 { "<idle>" } else { trace.name(event.tid) };
        let _ = writeln!(
            text,
            "{task:>16}-{}{process} [{:03}] d..1. {seconds}.{ns:09}: {name}: {}",
            event.tid, event.cpu, description.text
        );
    }
    text
}
