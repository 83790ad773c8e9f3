//! Text of traces and of made-up scripts, read again.

use std::fs;

use nntrace_common::{
    frequency_limits::{CoolingRecord, LimitRecord, device},
    record::{PowerRecord, Record, RecordKind},
};

use super::{Collector, SharedCollector, Systrace, observer, push_escaped};
use crate::{
    emit::Script,
    model::causality::Questions,
    replay::{self, Options, Replayed},
    report::snapshot::Snapshot,
};

fn options(text: &[u8]) -> (tempfile::NamedTempFile, Options) {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    let questions = Questions { hand_overs: true, ..Questions::default() };
    let options = Options { files: vec![file.path().to_owned()], questions, ..Options::default() };
    (file, options)
}

/// Writes the text of a trace again; returns its results, too.
fn exported(text: &str) -> (String, Replayed) {
    let (_file, options) = options(text.as_bytes());
    let collector = SharedCollector::default();
    let mut start = || {
        collector.replace(Collector::default());
        observer(&collector)
    };
    let replayed = replay::replay_with_observer(&options, &mut start).unwrap();
    let (script, power) = collector.take().script(&replayed.findings()).unwrap();
    assert_eq!(script.notes(), [""; 0]);
    let mut text = Systrace::new(Vec::new(), &script);
    power.visit(|time, lines| text.lines(time, lines)).unwrap();
    (String::from_utf8(text.finish().unwrap()).unwrap(), replayed)
}

/// Returns results without what is of a file, and without sections that have no layer and phase.
fn results(replayed: &Replayed) -> Snapshot {
    let mut snapshot = Snapshot::of(&replayed.findings());
    snapshot.source.files.clear();
    snapshot.notes.clear();
    snapshot.diagnostics.clear();
    snapshot.overhead.marks = 0;
    snapshot
}

fn line(us: u64, thread: &str, cpu: u32, event: &str) -> String {
    format!("  {thread} [{cpu:03}] ...1. 1.{us:06}: {event}\n")
}

fn mark(us: u64, thread: &str, mark: &str) -> String {
    line(us, thread, 0, &format!("tracing_mark_write: {mark}"))
}

const APP: &str = "app-20 (   20)";

/// Threads whose ids are in the opposite order hand work over within one microsecond.
#[test]
fn marks_of_threads_at_one_time_stay_in_their_order() {
    const SENDER: &str = "sender-22 (   20)";
    let text = [
        mark(0, SENDER, "B|20|[NN_LR_PE]infer#acct=a"),
        mark(10, SENDER, "I|20|nn.send#h=1"),
        mark(10, APP, "I|20|nn.recv#h=1"),
        mark(10, APP, "B|20|[NN_LD_PE]drv"),
        mark(50, APP, "E|20"),
        mark(60, SENDER, "E|20"),
    ]
    .concat();
    let (again, replayed) = exported(&text);
    let expected = results(&replayed);
    assert!(expected.accounts.len() == 1 && expected.accounts[0].count == 2, "{:?}", expected.accounts);
    let (_file, options) = options(again.as_bytes());
    assert_eq!(results(&replay::replay(&options).unwrap()), expected, "{again}");
}

/// A name that no section ended with is known from its start alone.
#[test]
fn a_section_that_has_not_ended_has_its_name() {
    let text = [
        mark(1, APP, "B|20|[NN_LA_PO]app"),
        mark(2, APP, "E|20"),
        mark(3, APP, "B|20|[SUB][NN_LC_PP]open"),
        mark(4, APP, "B|20|[NN_LR_PE]run"),
        mark(5, APP, "E|20"),
        mark(6, APP, "B|20|[SUB][NN_LR_PC]last"),
    ];
    let (written, _) = exported(&text.concat());
    assert!(written.contains("B|20|[SUB][NN_LR_PC]last\n"), "{written}");
    assert!(written.contains("B|20|[SUB][NN_LC_PP]open\n") && !written.contains('?'), "{written}");
}

/// One after the other, without anything that shows the end of the first thread.
#[test]
fn sections_of_one_thread_id_stay_with_their_processes() {
    const OTHER: &str = "other-20 (   30)";
    let text = [
        mark(1, APP, "B|20|[NN_LA_PO]app"),
        mark(2, APP, "E|20"),
        mark(3, OTHER, "B|30|[NN_LR_PE]run"),
        mark(5, OTHER, "E|30"),
        mark(6, OTHER, "B|30|[NN_LR_PE]open"),
    ];
    let (written, replayed) = exported(&text.concat());
    let (_file, options) = options(written.as_bytes());
    let again = replay::replay(&options).unwrap();
    let rows = |replayed: &Replayed| {
        let rows = results(replayed).phases.into_iter().map(|row| (row.pid, row.layer, row.total_ns));
        rows.collect::<Vec<_>>()
    };
    assert_eq!(rows(&again), rows(&replayed), "{written}");
    assert_eq!(rows(&again).len(), 2);
    assert!(
        written.contains("(     30) [000] .... 1.000006000: tracing_mark_write: B|30|[NN_LR_PE]open\n"),
        "{written}"
    );
}

const WORKER: &str = "a worker)-21 (   20)";

#[test]
fn a_trace_has_the_same_results_again() {
    let text = [
        line(0, "<idle>-0 (-----)", 0, "cpu_idle: state=4294967295 cpu_id=0"),
        line(0, "<idle>-0 (-----)", 1, "cpu_frequency: state=500000 cpu_id=1"),
        mark(1, APP, "B|20|[NN_LA_PE]run|now#iter=7#acct=foo#img file=a.png"),
        mark(2, APP, "I|20|nn.send#h=3"),
        mark(3, WORKER, "I|20|nn.recv#h=3"),
        mark(4, WORKER, "B|20|[NN_LC_PCO]conv"),
        mark(5, WORKER, "C|20|queue|4"),
        mark(6, WORKER, "S|20|job|1"),
        mark(6, WORKER, "B|20|[SUB][NN_LC_PI]late"),
        mark(7, WORKER, "E|20"),
        mark(8, WORKER, "E|20"),
        mark(8, WORKER, "F|20|job|1"),
        line(9, "<idle>-0 (-----)", 0, "cpuhp_enter: cpu: 0001 target:   0 step:  87 (takedown_cpu)"),
        line(9, "<idle>-0 (-----)", 0, "cpuhp_exit:  cpu: 0001  state:  86 step:  87 ret: 0"),
        line(10, "<idle>-0 (-----)", 1, "cpuhp_enter: cpu: 0001 target: 238 step: 147 (sched_cpu_starting)"),
        mark(16, APP, "B|20|[SW][NN_LA_PR]show"),
        mark(17, APP, "E|20"),
        mark(18, APP, "E|20"),
        mark(19, APP, "B|20|[NN_LA_PO]never ended"),
        mark(20, APP, "B|20|[NN_LR_PC]in it"),
        mark(21, APP, "E|20"),
        line(25, "<idle>-0 (-----)", 0, "cpu_idle: state=1 cpu_id=0"),
    ];
    let (written, replayed) = exported(&text.concat());
    let times: Vec<&str> = written.lines().filter_map(|line| line.split("] ").nth(1)).collect();
    assert!(
        times.len() >= 19 && times.is_sorted_by_key(|line| line.split_ascii_whitespace().nth(1)),
        "{written}"
    );
    let (_file, options) = options(written.as_bytes());
    let again = replay::replay(&options).unwrap();
    let (expected, found) = (results(&replayed), results(&again));
    assert_eq!(expected.loss, found.loss);
    let parts = |snapshot: &Snapshot| serde_json::to_value(snapshot).unwrap().as_object().unwrap().clone();
    for (key, value) in parts(&expected) {
        assert_eq!(parts(&found)[&key], value, "{key} of\n{written}");
    }
    assert_eq!(exported(&written).0, written);
}

#[test]
fn losses_stay_where_they_were() {
    let script = Script::default();
    let mut text = Systrace::new(Vec::new(), &script);
    let kind = RecordKind::Idle as u32;
    text.power(&Record::Idle(PowerRecord { kind, cpu: 1, time: 5, state: 2, lost: 0 }));
    text.power(&Record::Lost { cpu: 1, time: 5 });
    let text = String::from_utf8(text.finish().unwrap()).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let idle = "          <idle>-0       (-------) [001] d..1 0.000000005: cpu_idle: state=2 cpu_id=1";
    assert_eq!(lines, [idle, "CPU:1 [LOST EVENTS]"]);
}

#[test]
fn limits_of_frequencies_are_the_events_that_they_were() {
    let script = Script::default();
    let mut text = Systrace::new(Vec::new(), &script);
    let kind = RecordKind::FrequencyLimit as u32;
    let limit = LimitRecord { kind, cpu: 4, time: 5, min_khz: 600_000, max_khz: 1_200_000 };
    text.power(&Record::FrequencyLimit(limit));
    let kind = RecordKind::Cooling as u32;
    let device = device(b"thermal-cpufreq-1");
    text.power(&Record::Cooling(CoolingRecord { kind, device, time: 6, state: 3 }));
    let text = String::from_utf8(text.finish().unwrap()).unwrap();
    let lines: Vec<&str> = text.lines().filter_map(|line| line.split("d..1 ").nth(1)).collect();
    assert_eq!(
        lines,
        [
            "0.000000005: cpu_frequency_limits: min=600000 max=1200000 cpu_id=4",
            "0.000000006: cdev_update: type=thermal-cpufreq-1 target=3"
        ]
    );
}

#[test]
fn texts_do_not_end_lines() {
    let mut line = Vec::new();
    push_escaped(b"a\nb\r\0\xff\\n", &mut line);
    assert_eq!(line, b"a\\nb\\r\\0\xff\\n");
}
