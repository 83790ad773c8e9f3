//! Checks that any trace of Perfetto is read, and that an export of it reads back to the same results.

use std::{cell::RefCell, rc::Rc};

use nntrace_user::{
    export::{
        perfetto,
        swimlane::{self, Counters, Events, Format as _, SharedEvents},
    },
    model::causality::Questions,
    replay::{self, Options},
    report::snapshot::{Loss, Snapshot},
};

use crate::replay::{adds_up, file};

/// First byte of such a trace: the key of a packet.
const PACKET: u8 = 0x0a;

/// Checks one input.
///
/// # Panics
/// When times do not add up, or when an export of an export has other results. Also when a file cannot be created.
pub fn check(data: &[u8]) {
    if data.first() != Some(&PACKET) {
        return;
    }
    let Some((_, first)) = exported(data) else { return };
    // The first export lacks what is in none, such as sections without a layer and a phase; it is whole itself.
    let Some((expected, second)) = exported(&first) else { return };
    let (found, _) = exported(&second).expect("the export of an export is none");
    assert_eq!(found, expected, "the second export is not the first one");
}

/// Replays a trace; returns its results, and an export.
fn exported(data: &[u8]) -> Option<(Snapshot, Vec<u8>)> {
    let (_file, path) = file(data).expect("files can be made in memory");
    let questions = Questions { hand_overs: true, ..Questions::default() };
    let options = Options { files: vec![path], questions, ..Options::default() };
    let events: SharedEvents<perfetto::Format, Vec<u8>> = Rc::new(RefCell::new(None));
    let mut start = || {
        events.replace(Some(Events::by_end(Vec::new(), None, 0)));
        swimlane::observer(&events)
    };
    let replayed = replay::replay_with_observer(&options, &mut start).ok()?;
    let findings = replayed.findings();
    let counters = Counters::of(&findings, None, false);
    let written = events.take()?.finish(&findings, &counters).expect("memory takes everything");
    let mut trace = Vec::new();
    perfetto::Format::write_head(&mut trace, &findings, None, &written.threads, &counters)
        .expect("memory takes everything");
    trace.extend(written.out);
    let snapshot = Snapshot::of(&findings);
    adds_up(&snapshot);
    Some((results(snapshot), trace))
}

/// Returns the results that an export has: `docs/perfetto.md` names what it has not.
fn results(mut snapshot: Snapshot) -> Snapshot {
    snapshot.source.files.clear();
    snapshot.notes.clear();
    snapshot.diagnostics.clear();
    snapshot.threads.clear();
    (snapshot.overhead.marks, snapshot.overhead.power_events) = (0, 0);
    snapshot.loss = Loss::default();
    snapshot
}
