//! Exports that are replayed: results are those of what was exported.

use std::{io::Write as _, path::Path};

use proptest::prelude::*;
use ruzstd::decoding::StreamingDecoder;

use super::exported;
use crate::{
    model::causality::Questions,
    replay::{Options, replay},
    report::snapshot::Snapshot,
};

/// Returns the results of a trace that an export has, with hand-overs. By design it has no diagnostics of marks that do not
/// fit together, no context switches, and no counts of lines; and notes are about a file.
fn results(bytes: &[u8]) -> Snapshot {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let questions = Questions { hand_overs: true, ..Questions::default() };
    let options = Options { files: vec![file.path().to_owned()], questions, ..Options::default() };
    let mut snapshot = Snapshot::of(&replay(&options).unwrap().findings());
    snapshot.source.files.clear();
    snapshot.notes.clear();
    snapshot.diagnostics.clear();
    snapshot.threads.clear();
    (snapshot.overhead.marks, snapshot.overhead.power_events) = (0, 0);
    (snapshot.loss.records_produced, snapshot.loss.records_drained) = (0, 0);
    snapshot
}

#[track_caller]
fn assert_same(text: &str) -> Snapshot {
    let expected = results(text.as_bytes());
    let found = results(&exported(text));
    let parts = |snapshot: &Snapshot| serde_json::to_value(snapshot).unwrap().as_object().unwrap().clone();
    let (mine, other) = (parts(&expected), parts(&found));
    for (key, value) in &mine {
        assert_eq!(other.get(key), Some(value), "{key}");
    }
    assert_eq!(found, expected);
    found
}

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(name);
    let bytes = std::fs::read(&path).unwrap();
    if name.ends_with(".zst") {
        let mut text = Vec::new();
        std::io::copy(&mut StreamingDecoder::new(&*bytes).unwrap(), &mut text).unwrap();
        return String::from_utf8(text).unwrap();
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn marks_of_a_real_application() {
    for name in ["nnapi/omr1.trace.txt.zst", "nnapi/omr1_incomplete.trace.txt.zst"] {
        assert!(!assert_same(&fixture(name)).phases.is_empty());
    }
}

#[test]
fn events_of_real_cpus() {
    for name in
        ["power/juno.txt.zst", "power/three_cpus.txt", "power/silent_cluster.txt", "power/one_frequency.txt"]
    {
        assert!(!assert_same(&fixture(name)).cpus.is_empty(), "{name}");
    }
}

#[test]
fn losses_and_windows() {
    for name in [
        "power/dropped.txt",
        "power/overwritten.txt",
        "power/notes_example.txt",
        "power/unsorted_two_cpus.txt",
    ] {
        let _ = assert_same(&fixture(name));
    }
}

fn line(us: u64, task: &str, pid: u32, event: &str) -> String {
    super::line(us, task, pid, event)
}
