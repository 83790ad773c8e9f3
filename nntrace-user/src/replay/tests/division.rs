//! However the work is divided, and wherever chunks end, a replay has the same results.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use proptest::prelude::*;
use tempfile::NamedTempFile;

use crate::{
    model::limits::Limits,
    replay::{Options, TimeRange, batches::Division, run::replay_divided},
    report::snapshot::Snapshot,
};

/// Division as before there were any: one thread, and chunks that short texts are not divided by.
const WHOLE: Division = Division { parsers: 0, chunk: 1 << 20 };

/// Returns everything that a replay results in, or its error.
fn results(options: &Options, division: Division) -> String {
    match replay_divided(options, division) {
        Err(error) => error.to_string(),
        Ok(replayed) => {
            let snapshot = serde_json::to_string_pretty(&Snapshot::of(&replayed.findings())).unwrap();
            format!("{snapshot}\n{:?}", replayed.timelines())
        }
    }
}

fn file(text: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text).unwrap();
    file
}

fn options(files: &[&Path]) -> Options {
    let files = files.iter().map(|&path| path.to_owned()).collect();
    Options { files, with_steps: true, ..Options::default() }
}

/// Returns the files below a directory.
fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn recorded_traces_and_what_is_no_trace() {
    let mut all = Vec::new();
    for directory in ["tests/fixtures", "tests/fuzz/corpus/replay"] {
        files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(directory), &mut all);
    }
    let mut traces = 0;
    for path in all {
        let options = options(&[&path]);
        let whole = results(&options, WHOLE);
        traces += usize::from(whole.starts_with('{'));
        for (parsers, chunk) in [(0, 97), (1, 4_001), (2, 1_009), (4, 13)] {
            // Small chunks of much text take long.
            let chunk = if fs::metadata(&path).unwrap().len() > 20_000 { chunk * 50 } else { chunk };
            let divided = results(&options, Division { parsers, chunk });
            assert!(divided == whole, "{} with {parsers} parsers of {chunk} bytes", path.display());
        }
    }
    assert!(traces > 20, "{traces} traces");
}

#[test]
fn a_visitor_that_stops_ends_the_threads() {
    // Out of order at the begin: the first pass stops, with all batches on their way.
    let line = "a-1 [000] 5.0: cpu_idle: state=1 cpu_id=0\n";
    let text = format!("{line}a-1 [000] 4.0: cpu_idle: state=0 cpu_id=0\n{}", line.repeat(5_000));
    let file = file(text.as_bytes());
    let options = options(&[file.path()]);
    assert_eq!(results(&options, Division { parsers: 3, chunk: 50 }), results(&options, WHOLE));
}

#[test]
fn lines_have_their_numbers_and_an_error_comes_last() {
    let mut text = "a-1 [000] 5.0: cpu_idle: state=1 cpu_id=0\n".repeat(700);
    text.insert_str(text.len() / 2 + 20, "\n\nno trace\n");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(text.as_bytes()).unwrap();
    let mut packed = packed.finish().unwrap();
    packed.truncate(packed.len() - 9);
    let file = file(&packed);
    let options = options(&[file.path()]);
    for parsers in 0..4 {
        let snapshot = results(&options, Division { parsers, chunk: 300 });
        assert!(snapshot.contains(":353: no trace"), "{snapshot}");
        assert!(snapshot.contains("read only in part: the compressed data is damaged after"), "{snapshot}");
    }
}

/// Returns a line as it may be in a trace, in time or not.
fn line() -> impl Strategy<Value = String> {
    let head = (1_u32..6, prop::sample::select(vec!["a", "b c", "<...>", "x [1]"]), 0_u32..3);
    let event = prop_oneof![
        3 => prop::sample::select(vec![
            "tracing_mark_write: B|5|[NN_LR_PE]f", "tracing_mark_write: B|5|[NN_LC_PCO]g#x=1",
            "tracing_mark_write: E|5", "tracing_mark_write: E", "tracing_mark_write: C|5|n|7",
            "tracing_mark_write: S|5|s|1", "tracing_mark_write: F|5|s|1", "print: hello",
            "tracing_mark_write: nntrace_start", "tracing_mark_write: nntrace_end",
        ])
        .prop_map(str::to_owned),
        2 => (0_u32..3, 0_u32..3).prop_map(|(state, cpu)| format!("cpu_idle: state={state} cpu_id={cpu}")),
        1 => (0_u32..3).prop_map(|cpu| format!("cpu_idle: state=4294967295 cpu_id={cpu}")),
        1 => (1_u32..4, 0_u32..3).prop_map(|(khz, cpu)| format!("cpu_frequency: state={khz}00 cpu_id={cpu}")),
        1 => (1_u32..6, 1_u32..6).prop_map(|(prev, next)| {
            format!("sched_switch: prev_comm=a prev_pid={prev} prev_prio=120 prev_state=S ==> \
                     next_comm=b c next_pid={next} next_prio=120")
        }),
    ];
    prop_oneof![
        12 => (head, 0_u64..40, event).prop_map(|((tid, comm, cpu), us, event)| {
            format!("{comm:>16}-{tid} [00{cpu}] d..1 7.0000{us:02}: {event}")
        }),
        2 => prop::sample::select(vec![
            "", "# tracer: nop", "# entries-in-buffer/entries-written: 4/9   #P:4", "clusterA:", "\tcore0", "\t\tcpu1",
            "no trace", "a-1 [000] 12345: x", "CPU:1 [LOST 3 EVENTS]", "CPU:0 [LOST EVENTS]",
            "##### CPU 2 buffer started ####", "<html>", "<script class=\"trace-data\">", "</script>",
        ])
        .prop_map(str::to_owned),
        1 => (0_usize..3).prop_map(|more| "y".repeat(crate::replay::lines::LONGEST_LINE - 1 + more)),
    ]
}

/// Returns a text of lines, mostly in order of time.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let lines = prop::collection::vec((line(), prop::sample::select(vec!["\n", "\r\n"])), 0..120);
    (lines, 0_u8..4, any::<bool>()).prop_map(|(mut lines, order, ends)| {
        if order > 0 {
            // What has no time keeps its place only roughly.
            lines.sort_by_key(|(line, _)| line.split_once(" 7.0000").map(|(_, rest)| rest[..2].to_owned()));
        }
        let mut text: String = lines.iter().flat_map(|(line, end)| [line.as_str(), end]).collect();
        if !ends {
            text.pop();
        }
        text.into_bytes()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn any_text_in_any_chunks(
        texts in prop::collection::vec(text(), 1..3),
        parsers in 0_usize..5,
        chunk in prop_oneof![3 => 1_usize..300, 1 => 300_usize..9_000],
        range in prop::option::of((0_u64..20, 0_u64..40)),
    ) {
        let files: Vec<_> = texts.iter().map(|text| file(text)).collect();
        let paths: Vec<_> = files.iter().map(NamedTempFile::path).collect();
        let us = |us| 7_000_000_000 + us * 1_000;
        let range = range.map(|(begin, length)| TimeRange { begin: us(begin), end: us(begin + length) });
        let options = Options { range, limits: Limits::default(), ..options(&paths) };
        let divided = results(&options, Division { parsers, chunk });
        prop_assert_eq!(divided, results(&options, WHOLE));
    }
}
