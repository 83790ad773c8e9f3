//! Spans and metrics of a recording for a receiver of OpenTelemetry.

use std::{ops::ControlFlow, path::Path};

use anyhow::{Context as _, Result};
use nntrace_user::{
    export::{
        ThreadName,
        metrics::Metrics,
        otlp::{self, SpanCounts, Spans},
    },
    model::plurals::one_or_many,
    record::{OrderedSections, Recorded},
    report::snapshot::Snapshot,
};

use crate::{
    otlp::{Endpoint, Sender, program_name, resource},
    stderr,
};

/// Sends the sections of a recording as spans, and its sums as metrics; returns whether the receiver took all of them.
pub(super) fn send(
    endpoint: &Endpoint,
    folder: &Path,
    recorded: &Recorded,
    snapshot: &Snapshot,
) -> Result<bool> {
    let run = recorded.run();
    let service = program_name(&run.command).unwrap_or_else(|| "nntrace".into());
    let resource = resource(service, run.host_name.clone());
    let number = recorded.number().context(
        "the number of the recording cannot be read, and ids of spans are made of it: record the run again",
    )?;
    let sections = OrderedSections::open(folder)?;
    let named = sections.threads().all().iter();
    let threads: Vec<ThreadName> = named
        .map(|thread| ThreadName { pid: thread.pid, tid: thread.tid, name: thread.name.clone() })
        .collect();
    let findings = recorded.findings();
    let clocks = run.clocks;
    let mut spans =
        Spans::new(&findings, &resource, number, (clocks.monotonic_ns, clocks.realtime_ns), &threads);
    // What is damaged is among the notes of the replay, here and below.
    if spans.wants_all_before() {
        let _ = sections.visit_by_thread(|section, _| {
            spans.see(section);
            ControlFlow::Continue(())
        });
    }
    spans.begin();
    let mut sender = Sender::start(endpoint)?;
    let _ = sections.visit_by_thread(|section, _| {
        if let Some(request) = spans.take(section) {
            sender.send(request);
        }
        ControlFlow::Continue(())
    });
    let (last, counts) = spans.finish();
    if let Some(request) = last {
        sender.send(request);
    }
    let real_time = |time| clocks.real_time(time).unwrap_or(0);
    let (begin, end) = (real_time(snapshot.window.begin_ns), real_time(snapshot.window.end_ns));
    sender.send(otlp::metrics(&Metrics::of(&findings, snapshot), &resource, begin, end));
    let is_whole = sender.finish();
    tell_left_out(counts);
    Ok(is_whole)
}

/// Says what there are no spans and links for.
fn tell_left_out(counts: SpanCounts) {
    for (count, one, many) in [
        (
            counts.open,
            "section had not ended: there is no span of it",
            "sections had not ended: there are no spans of them",
        ),
        (
            counts.undated,
            "section is from before 1970, by a clock that was set wrong: there is no span of it",
            "sections are from before 1970, by a clock that was set wrong: there are no spans of them",
        ),
        (
            counts.hand_overs_left_out,
            "hand-over has no link, as no section is known at one of its ends",
            "hand-overs have no link, as no section is known at one of their ends",
        ),
    ] {
        if count > 0 {
            stderr::message(format_args!("{count} {}", one_or_many(count, one, many)));
        }
    }
}
