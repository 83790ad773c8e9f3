//! Traces in Chrome's form, read as JSON; the end-to-end tests have Perfetto's importer.

use std::{borrow::Cow, cell::RefCell, fs, io, rc::Rc};

use serde_json::{Value as Json, json};

use super::{Encode, Encoder, Flow, Format, Label, ThreadTrack, Value};
use crate::{
    export::swimlane::{Clocks, Counters, Events, Format as _, SharedEvents, Written, observer},
    replay::{self, Options},
};

/// Exports the text of a trace.
fn exported(text: &str) -> Json {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    let events: SharedEvents<Format, Vec<u8>> = Rc::new(RefCell::new(None));
    let mut start = || {
        events.replace(Some(Events::by_end(Vec::new(), None, 0)));
        observer(&events)
    };
    let mut options = Options { files: vec![file.path().to_owned()], with_steps: true, ..Options::default() };
    options.questions.hand_overs = true;
    let replayed = replay::replay_with_observer(&options, &mut start).unwrap();
    let findings = replayed.findings();
    let counters = Counters::of(&findings, replayed.timelines(), false);
    let written = events.take().unwrap().finish(&findings, &counters).unwrap();
    let Written { out: body, threads, .. } = written;
    let clocks = Clocks { monotonic_ns: 1, boottime_ns: 2, realtime_ns: u64::MAX };
    let mut out = Vec::new();
    Format::write_head(&mut out, &findings, Some(&clocks), &threads, &counters).unwrap();
    out.extend(body);
    Format::write_tail(&mut out, &findings, Some(&clocks), &threads, &counters).unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn line(us: u64, thread: &str, event: &str) -> String {
    format!("  {thread} [000] ...1. 1.{us:06}: {event}\n")
}

#[test]
fn a_trace_has_slices_flows_counters_and_descriptions() {
    let (app, worker) = ("app-20 (   20)", "worker-21 (   20)");
    let text = [
        line(0, "<idle>-0 (-----)", "cpu_frequency: state=500000 cpu_id=0"),
        line(0, "<idle>-0 (-----)", "cpu_idle: state=4294967295 cpu_id=0"),
        line(1, app, "tracing_mark_write: B|20|[NN_LR_PE]run#iter=7"),
        line(1, app, "tracing_mark_write: B|20|[NN_LR_PCO]nothing"),
        line(1, app, "tracing_mark_write: E|20"),
        line(2, app, "tracing_mark_write: I|20|nn.send#h=5"),
        line(3, worker, "tracing_mark_write: I|20|nn.recv#h=5"),
        line(4, worker, "tracing_mark_write: B|20|[NN_LC_PE]work"),
        line(5, worker, "tracing_mark_write: E|20"),
        line(6, app, "tracing_mark_write: E|20"),
        line(9, app, "tracing_mark_write: B|20|[NN_LR_PE]never ended"),
    ];
    let trace = exported(&text.concat());
    assert_eq!(trace["displayTimeUnit"], "ns");
    assert_eq!(trace["otherData"]["clock_realtime_ns"], "18446744073709551615");
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |kinds: &str| -> Vec<Json> {
        let events = events.iter().filter(|event| kinds.contains(event["ph"].as_str().unwrap()));
        let fields = ["ph", "tid", "ts", "name", "id"];
        events.map(|event| fields.iter().map(|field| event[field].clone()).collect()).collect()
    };
    // The order of threads in the file means nothing.
    let mut slices = of("BE");
    slices.sort_by_key(|event| event[1].as_u64());
    assert_eq!(
        slices,
        [
            json!(["B", 20, 1_000_001.0, "run", null]),
            json!(["B", 20, 1_000_001.0, "nothing", null]),
            json!(["E", 20, 1_000_001.0, null, null]),
            json!(["E", 20, 1_000_006.0, null, null]),
            json!(["B", 20, 1_000_009.0, "never ended", null]),
            json!(["B", 21, 1_000_003.0, "setup", null]),
            json!(["E", 21, 1_000_004.0, null, null]),
            json!(["B", 21, 1_000_004.0, "work", null]),
            json!(["E", 21, 1_000_005.0, null, null]),
        ]
    );
    // The importer binds a flow to what began last on its track.
    assert_eq!(
        of("sf"),
        [json!(["f", 21, 1_000_003.0, "hand_over", 1]), json!(["s", 20, 1_000_002.0, "hand_over", 1])]
    );
    let run = events.iter().find(|event| event["name"] == "run").unwrap();
    assert_eq!(
        (&run["cat"], &run["args"]),
        (&json!("LR,PE"), &json!({"layer_phase": "LR_PE", "iteration": 7}))
    );
    let counters = events.iter().filter(|event| event["ph"] == "C");
    let counters: Vec<_> = counters.map(|event| (&event["name"], &event["args"])).collect();
    assert_eq!(counters[0], (&json!("cluster all frequency"), &json!({"value": 500_000})));
    assert!(counters.contains(&(&json!("cluster all idle state"), &json!({"value": 0}))), "{counters:?}");
    // Names of threads are those of context switches, which it has none of.
    let ranks = events.iter().filter(|event| event["ph"] == "M");
    let ranks: Vec<Json> =
        ranks.map(|event| json!([event["pid"], event["tid"], event["name"], event["args"]])).collect();
    assert_eq!(
        ranks,
        [
            json!([20, null, "process_name", {"name": "app"}]),
            json!([20, null, "process_sort_index", {"sort_index": 0}]),
            json!([20, 20, "thread_sort_index", {"sort_index": 0}]),
            json!([20, 21, "thread_sort_index", {"sort_index": 1}]),
            json!([4_194_304, null, "process_name", {"name": "clusters"}]),
            json!([4_194_304, null, "process_sort_index", {"sort_index": 1}]),
        ]
    );
}

#[test]
fn a_trace_without_sections_is_json() {
    let trace = exported(&line(0, "<idle>-0 (-----)", "cpu_idle: state=4294967295 cpu_id=0"));
    assert!(trace["traceEvents"].as_array().unwrap().iter().all(|event| event["pid"] == 4_194_304));
}

#[test]
fn texts_numbers_and_times_are_exact() {
    let name = "\0\u{1b}\"\\\n</script>\u{202e}\u{1f980}";
    let label = Label {
        name: Cow::Borrowed(name),
        categories: &["LR", "PE"],
        arguments: vec![
            ("attribute.a".into(), Value::Text(name.into())),
            ("handle".into(), Value::Number(u64::MAX)),
            ("iteration".into(), Value::Number((1 << 53) - 1)),
        ],
        flows: vec![Flow::Begin(3), Flow::End(4)],
    };
    let mut encoder = Encoder::new(Vec::new(), None);
    let track = ThreadTrack { pid: 7, tid: 8, lane: 2 };
    encoder.further_track(track);
    encoder.begin(4_000_000_000_057, track, &label);
    encoder.end(4_000_000_000_058, track);
    let text = String::from_utf8(encoder.finish().unwrap()).unwrap();
    assert!(text.contains("\"ts\":4000000000.057,"), "{text}");
    let events: Json = serde_json::from_str(&format!("[{text} null]")).unwrap();
    let begin = &events[1];
    assert_eq!(begin["name"], name);
    let args = json!({"attribute.a": name, "handle": u64::MAX.to_string(), "iteration": (1_u64 << 53) - 1});
    assert_eq!((&begin["args"], &begin["cat"]), (&args, &json!("LR,PE")));
    let tids: Vec<&Json> = events.as_array().unwrap().iter().map(|event| &event["tid"]).collect();
    let tid = json!(2 << 22 | 8);
    assert_eq!(tids[..5], [&tid; 5]);
    assert_eq!((&events[2]["ph"], &events[3]["bp"]), (&json!("s"), &json!("e")));
}

#[test]
fn a_full_disk_is_an_error() {
    let mut room = [0; 16];
    let mut encoder = Encoder::new(&mut room[..], None);
    encoder.end(1, ThreadTrack::own(7, 8));
    encoder.end(2, ThreadTrack::own(7, 8));
    assert_eq!(encoder.finish().unwrap_err().kind(), io::ErrorKind::WriteZero);
}
