use std::fs;

use super::*;
use crate::{
    analyze::path::{collect::Step, find::Finder},
    model::causality::{
        Questions,
        hand_overs::{HandOver, Moment, Source},
    },
    replay::{self, Options},
};

/// Mark of a thread of process 20 at a time, us.
fn mark(us: u64, tid: u32, text: &str) -> String {
    format!("  app-{tid} (   20) [000] ...1. 1.{us:06}: tracing_mark_write: {text}\n")
}

fn report(text: &str, path: &str, deadline: Option<u64>) -> Result<PathReport, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    let collector = PathCollector::new(path.parse().unwrap(), 1 << 20);
    let mut options = Options { files: vec![file.path().to_owned()], ..Options::default() };
    options.questions = Questions { hand_overs: true, ..Questions::default() };
    let run = replay::replay_with_observer(&options, &mut || collector.observer()).unwrap();
    PathReport::new(&collector, &run.findings(), deadline)
}

/// A frame that begins at a time: captured on one thread, inferred on another one by way of a third, shown on the first one.
/// Its infer takes so long, us.
fn frame(at: u64, number: u64, infer: u64) -> String {
    let done = at + 30 + infer;
    [
        mark(at, 1, "B|20|[NN_LA_PI]capture"),
        mark(at + 5, 1, &format!("I|20|nn.send#h={number}1")),
        mark(at + 10, 1, "E|20"),
        mark(at + 15, 2, &format!("B|20|[NN_LR_PI]queue#h={number}1")),
        mark(at + 16, 2, &format!("I|20|nn.send#h={number}2")),
        mark(at + 18, 2, "E|20"),
        mark(at + 30, 3, &format!("B|20|[NN_LR_PE]infer#h={number}2")),
        mark(done - 1, 3, &format!("I|20|nn.send#h={number}3")),
        mark(done, 3, "E|20"),
        mark(done + 5, 1, &format!("B|20|[NN_LA_PO]show#h={number}3")),
        mark(done + 9, 1, "E|20"),
    ]
    .concat()
}

#[test]
fn work_is_followed_over_functions_that_the_path_leaves_out() {
    // Latencies: 30 + infer + 9 us.
    let text: String =
        [20, 40, 20, 61, 20].iter().zip(0..).map(|(infer, at)| frame(1_000 * at, at, *infer)).collect();
    let report = report(&text, "capture > infer>show", None).unwrap();
    let found = serde_json::to_value(&report).unwrap();
    let times = |us: [u64; 5]| {
        let [min, p50, p95, p99, max] = us.map(|us| 1_000 * us);
        serde_json::json!({ "min_ns": min, "p50_ns": p50, "p95_ns": p95, "p99_ns": p99, "max_ns": max })
    };
    let expected = serde_json::json!({
        "path": "capture>infer>show",
        "begun": 5,
        "completed": 5,
        "latency": times([59, 59, 100, 100, 100]),
        // Five in 4,059 us.
        "rate_uhz": 1_231_830_500,
        "period_ns": 1_000_000,
        "deadline_ns": 1_000_000,
        "deadline_is_inferred": true,
        "missed": 0,
        "steps": [
            { "function": "capture", "next": "infer", "count": 5, "times": times([30; 5]) },
            { "function": "infer", "next": "show", "count": 5, "times": times([25, 25, 66, 66, 66]) },
            { "function": "show", "next": null, "count": 5, "times": times([4; 5]) },
        ],
        "evidence": ["handle"],
    });
    assert_eq!(found, expected);
    assert_eq!(report.csv().unwrap().lines().count(), 5);
    insta::assert_snapshot!(report.text());
}

#[test]
fn what_is_late_or_never_ends_has_missed_its_deadline() {
    let mut text: String =
        [20, 61, 20].iter().zip(0..).map(|(infer, at)| frame(1_000 * at, at, *infer)).collect();
    text += &mark(3_000, 1, "B|20|[NN_LA_PI]capture");
    text += &mark(3_010, 1, "E|20");
    // The window ends here: it still has time by a deadline of 70 us, and by one of 60 us it has not.
    text += &mark(3_065, 1, "I|20|end");
    let missed = |us: u64| {
        let report = report(&text, "capture>show", Some(1_000 * us)).unwrap();
        let found = serde_json::to_value(&report).unwrap();
        (found["begun"].clone(), found["completed"].clone(), found["missed"].clone())
    };
    assert_eq!(missed(70), (4.into(), 3.into(), 1.into()));
    assert_eq!(missed(60), (4.into(), 3.into(), 2.into()));
    assert_eq!(missed(101), (4.into(), 3.into(), 0.into()));
}

#[test]
fn what_a_function_calls_follows_from_it() {
    let text = [
        mark(0, 1, "B|20|[NN_LA_PO]outer"),
        mark(1, 1, "B|20|[NN_LR_PE]outer"),
        mark(2, 1, "B|20|[NN_LC_PCO]inner"),
        mark(4, 1, "E|20"),
        mark(5, 1, "E|20"),
        mark(6, 1, "B|20|[NN_LC_PCO]inner"),
        mark(9, 1, "E|20"),
        mark(10, 1, "E|20"),
    ];
    let found = report(&text.concat(), "outer>outer>inner", None).unwrap();
    let found = serde_json::to_value(&found).unwrap();
    // The inner one of both begins a walk of its own, which has no other in it.
    assert_eq!((&found["begun"], &found["completed"]), (&2.into(), &1.into()));
    assert_eq!(found["latency"]["max_ns"], 4_000);
    assert_eq!(found["evidence"], serde_json::json!([]));
}

#[test]
fn names_may_have_angle_brackets() {
    for (text, names) in [
        ("run<f<A>, 3> > show", &["run<f<A>, 3>", "show"][..]),
        (r"a-\>b>c", &["a->b", "c"]),
        (r"operator\<>x", &["operator<", "x"]),
        (r"a\b>c\\", &[r"a\b", r"c\"]),
    ] {
        let path: Path = text.parse().unwrap();
        assert_eq!(path.0, names, "{text}");
        assert_eq!(path.to_string().parse::<Path>().unwrap(), path, "{path}");
    }
}

#[test]
fn a_function_without_a_section_is_named() {
    let error = report(&frame(0, 1, 20), "capture>nothing", None).unwrap_err();
    assert!(error.contains("function nothing"), "{error}");
    for wrong in ["", "a", "a>", ">b", "a>>b", &["x"; 33].join(">")] {
        assert!(wrong.parse::<Path>().is_err(), "{wrong}");
    }
}

#[test]
fn work_that_goes_in_circles_is_looked_at_once() {
    let at = |tid, time| Some(Moment { pid: 1, tid, time, sequence: 0 });
    let back_and_forth = (0..100_u64).map(|time| HandOver {
        dispatch: at((time % 2) as u32, time),
        receive: at((time + 1) as u32 % 2, time),
        start: Some(0.into()),
        end: Some(100.into()),
        ..HandOver::new(Source::Handle)
    });
    let first = Step { begin: 0.into(), end: 100.into(), place: 0 };
    let last = Step { begin: 50.into(), end: 60.into(), place: 1 };
    let steps = [(0, vec![first]), (1, vec![last])].into_iter().collect();
    let walks = Finder::new(steps, back_and_forth).walks(2);
    assert_eq!(walks.len(), 1);
    assert_eq!(walks[0].steps, [(0, 100), (50, 60)]);
}
