//! Exports that are replayed: results are those of what was exported.

use std::{io::Write as _, path::Path};

use proptest::prelude::*;
use ruzstd::decoding::StreamingDecoder;

use super::{APP, DRIVER, WORKER, exported, exported_recording, line, mark, recorded};
use crate::{
    model::{Findings, causality::Questions},
    record::{self, ReplayOptions},
    replay::{Options, replay},
    report::snapshot::{Loss, Snapshot},
};

/// Returns the results of a trace that an export has, with hand-overs.
fn results(bytes: &[u8]) -> Snapshot {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let questions = Questions { hand_overs: true, ..Questions::default() };
    let options = Options { files: vec![file.path().to_owned()], questions, ..Options::default() };
    exported_results(&replay(&options).unwrap().findings())
}

/// Returns the results that an export has. By design it has no diagnostics of marks that do not fit together, no context
/// switches, and no counts of events or of losses, only when they were; and notes are about a file.
fn exported_results(findings: &Findings<'_>) -> Snapshot {
    let mut snapshot = Snapshot::of(findings);
    snapshot.source.files.clear();
    snapshot.notes.clear();
    snapshot.diagnostics.clear();
    snapshot.threads.clear();
    (snapshot.overhead.marks, snapshot.overhead.power_events) = (0, 0);
    snapshot.loss = Loss::default();
    snapshot
}

/// Asserts that exports of a trace, and of a recording of what it shows, have the results of both; returns them.
#[track_caller]
fn assert_same(text: &str) -> Snapshot {
    let expected = results(text.as_bytes());
    let found = results(&exported(text));
    assert_equal(text, &expected, &found);
    let recording = recorded(text);
    let options = ReplayOptions { with_hand_overs: true, ..ReplayOptions::default() };
    let run = record::replay(recording.path(), &options).unwrap();
    assert_equal(text, &exported_results(&run.findings()), &results(&exported_recording(recording.path())));
    found
}

#[track_caller]
fn assert_equal(text: &str, expected: &Snapshot, found: &Snapshot) {
    let parts = |snapshot: &Snapshot| serde_json::to_value(snapshot).unwrap().as_object().unwrap().clone();
    let (mine, other) = (parts(expected), parts(found));
    for (key, value) in &mine {
        let text = &text[text.len().saturating_sub(3_000)..];
        assert!(other.get(key) == Some(value), "{key}: {:?}, not {value} of\n{text}", other.get(key));
    }
    assert_eq!(found, expected);
}

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(name);
    let bytes = std::fs::read(&path).unwrap();
    if Path::new(name).extension().is_some_and(|end| end == "zst") {
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

#[test]
fn attributes_instants_counters_and_hotplug() {
    let text = [
        line(0, "<idle>-0 (-----)", 0, "cpu_idle: state=4294967295 cpu_id=0"),
        line(0, "<idle>-0 (-----)", 1, "cpu_frequency: state=500000 cpu_id=1"),
        mark(1, APP, "B|20|[NN_LA_PE]run#iter=7#acct=foo#img file=a.png#img-file=b.png"),
        mark(2, APP, "I|20|nn.send#h=3"),
        mark(3, WORKER, "I|20|nn.recv#h=3"),
        mark(4, WORKER, "B|20|[NN_LC_PCO]conv"),
        mark(5, WORKER, "C|20|queue|4"),
        mark(6, WORKER, "S|20|job|1"),
        mark(6, WORKER, "B|20|[SUB][NN_LC_PI]late"),
        mark(7, WORKER, "E|20"),
        mark(8, WORKER, "E|20"),
        mark(8, WORKER, "F|20|job|1"),
        mark(9, DRIVER, "B|7|HIDL::IPreparedModel::execute::server"),
        mark(10, DRIVER, "B|7|[NN_LD_PE]drive"),
        mark(11, DRIVER, "E|7"),
        mark(11, DRIVER, "E|7"),
        mark(12, DRIVER, "B|7|HIDL::IExecutionCallback::notify::client"),
        mark(13, DRIVER, "E|7"),
        line(14, "<idle>-0 (-----)", 0, "cpuhp_enter: cpu: 0001 target: 0 step: 87 (takedown_cpu)"),
        line(15, "<idle>-0 (-----)", 0, "cpuhp_exit: cpu: 0001 state: 86 step: 87 ret: 0"),
        mark(16, APP, "B|20|[SW][NN_LA_PR]show"),
        mark(17, APP, "E|20"),
        mark(18, APP, "E|20"),
        mark(19, APP, "B|20|[NN_LA_PO]never ended"),
        mark(20, APP, "B|20|[NN_LR_PC]in it"),
        mark(21, APP, "E|20"),
        mark(22, APP, "B|20|[SUB][NN_LC_PP]never ended either"),
        mark(23, APP, "B|20|[NN_LC_PT]in that"),
        mark(24, APP, "E|20"),
        line(25, "<idle>-0 (-----)", 0, "cpu_idle: state=1 cpu_id=0"),
    ];
    let found = assert_same(&text.concat());
    assert!(!found.counters.is_empty() && found.hand_over_split.is_some() && found.cpus[1].offline_ns > 0);
}

/// The section that takes the work ends another one, which is not around it.
#[test]
fn work_that_a_switch_takes() {
    let text = [
        mark(1, APP, "B|20|[NN_LA_PE]run#h=3"),
        mark(2, WORKER, "B|20|[NN_LR_PE]part"),
        mark(3, WORKER, "B|20|[NN_LC_PCO]conv"),
        mark(4, WORKER, "B|20|[SW][NN_LC_PCO]relu#h=3"),
        mark(6, WORKER, "E|20"),
        mark(7, WORKER, "E|20"),
        mark(9, APP, "E|20"),
    ];
    let split = assert_same(&text.concat()).hand_over_split.unwrap();
    let taken = split.pairs.iter().find(|pair| pair.name.as_deref() == Some("relu"));
    let execution = taken.and_then(|pair| pair.execution.as_ref()).map(|times| times.sum_ns);
    assert_eq!(execution, Some(2_000), "{split:?}");
}

/// Marks that threads write. Sections without a tag, and what a switch leaves open, are in no export, so that a
/// receipt in one is taken to last longer.
const MARKS: [&str; 10] = [
    "B|20|[NN_LA_PE]a#iter=1",
    "B|20|[NN_LR_PE]b#acct=x",
    "B|20|[NN_LR_PC]c",
    "B|20|[SUB][NN_LD_PE]e",
    "I|20|nn.send#h=1",
    "I|20|nn.recv#h=1",
    "C|20|counter|5",
    "E|20",
    "E|20",
    "E|20",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_marks(steps in prop::collection::vec((1..4_u64, 0..3_usize, 0..MARKS.len()), 1..40)) {
        let mut now = 2;
        let mut text = mark(0, APP, "B|20|[NN_LR_PE]first") + &mark(1, APP, "E|20");
        let threads = [APP, WORKER, "other-22 (   20)"];
        let mut open = [0_u32; 3];
        for (pause, thread, which) in steps {
            now += pause;
            match MARKS[which].as_bytes()[0] {
                b'B' => open[thread] += 1,
                // An end without a begin is in no export.
                b'E' if open[thread] == 0 => continue,
                b'E' => open[thread] -= 1,
                _ => {}
            }
            text += &mark(now, threads[thread], MARKS[which]);
        }
        // Of a section that has not ended the attributes are not known.
        for (thread, open) in threads.into_iter().zip(open) {
            for _ in 0..open {
                now += 1;
                text += &mark(now, thread, "E|20");
            }
        }
        let _ = assert_same(&text);
    }
}
