//! Views of single sections against a plain stack for each thread: the list and the tree of `print`, and the graph.
//! Sections that have not ended are in no statistic.

use std::{collections::BTreeMap, fs::File, io::Read as _, path::Path};

use anyhow::{Context as _, Result};
use nntrace_common::{hidl_calls, mark};
use nntrace_tests::{
    child::Child,
    profiler::Profiler,
    snapshot,
    trace::{self, Random},
};
use nntrace_user::{
    export::dot,
    model::{
        causality::Questions,
        section_filter::{Hidden, SectionFilter},
    },
    replay::{self, Options, Replayed, TimeRange},
    report::{number_format, section_list, tables},
};
use ruzstd::decoding::StreamingDecoder;

/// Section of a plain stack.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Section {
    tid: u32,
    name: String,
    begin: u64,
    end: Option<u64>,
    parent: Option<usize>,
}

/// Open section: its number, if it has a layer and a phase; `None` also for one that a switch has replaced.
type Open = Option<usize>;

/// Returns every section with a layer and a phase of a trace in ftrace's format, in the order of their begins.
fn plain(text: &str) -> Result<Vec<Section>> {
    let mut sections: Vec<Section> = Vec::new();
    let mut stacks: BTreeMap<u32, Vec<Open>> = BTreeMap::new();
    for line in text.lines() {
        let Some((head, payload)) = line.split_once(": tracing_mark_write: ") else { continue };
        let (task, _) = head.split_once(" [").or_else(|| head.split_once(" (")).context(head.to_owned())?;
        let task = task.split(" (").next().unwrap_or(task).trim();
        let tid: u32 = task.rsplit('-').next().context(task.to_owned())?.trim().parse()?;
        let (seconds, fraction) =
            head.rsplit(' ').next().and_then(|time| time.split_once('.')).context(head.to_owned())?;
        let time = seconds.parse::<u64>()? * 1_000_000_000 + format!("{fraction:0<9}").parse::<u64>()?;
        let stack = stacks.entry(tid).or_default();
        if let Some(text) = payload.strip_prefix("B|") {
            let text = text.split_once('|').map_or("", |(_, text)| text);
            let begin = mark::begin(payload.as_bytes());
            let is_switch = text.starts_with("[SW]");
            let is_marked = begin.label.is_tagged()
                || hidl_calls::is_interface_call(text.as_bytes())
                    && hidl_calls::meaning(text.as_bytes()).label.is_tagged();
            if is_switch {
                if let Some(number) = stack.pop().flatten() {
                    sections[number].end = Some(time);
                }
                stack.push(None);
            }
            let name = String::from_utf8_lossy(mark::name(payload.as_bytes(), begin.name_at)).into_owned();
            let number = is_marked.then(|| {
                let parent = stack.iter().rev().find_map(|open| *open);
                sections.push(Section { tid, name, begin: time, end: None, parent });
                sections.len() - 1
            });
            stack.push(number);
        } else if payload.starts_with('E')
            && let Some(Some(number)) = stack.pop()
        {
            sections[number].end = Some(time);
        }
    }
    Ok(sections)
}

/// Where a line of the list and of the tree has the begin, the thread and the duration of its section.
const HEAD: std::ops::Range<usize> = 0..35;
/// Where the name begins, after the indentation.
const NAME: usize = 43;

/// Returns what a line says before the layer and the phase.
fn head(section: &Section) -> String {
    let Section { tid, begin, end, .. } = section;
    let duration = end.map_or_else(|| "not ended".into(), |end| number_format::duration_ns(end - begin));
    format!("{:>7}.{:09} {tid:>7} {duration:>9}", begin / 1_000_000_000, begin % 1_000_000_000)
}

/// Returns the depth of a line of the tree, and its text after the indentation.
fn indented(line: &str) -> (usize, &str) {
    let text = line.get(NAME..).unwrap_or_default();
    let name = text.trim_start();
    ((text.len() - name.len()) / 2, name)
}

/// Checks that each line of the tree is below that of its section's parent, in any order of siblings.
fn assert_tree(tree: &str, expected: &[Section]) {
    let mut found = Vec::new();
    let mut above: Vec<&str> = Vec::new();
    for line in tree.lines() {
        let (depth, name) = indented(line);
        above.truncate(depth);
        // What another thread caused has no parent on its own.
        let is_nested = !name.ends_with("(handed over)") && !name.ends_with("(thread created)");
        found.push((line[HEAD].to_owned(), above.last().filter(|_| is_nested).map(|&head| head.to_owned())));
        above.push(&line[HEAD]);
    }
    let parent = |section: &Section| section.parent.map(|parent| head(&expected[parent]));
    let mut expected: Vec<_> = expected.iter().map(|section| (head(section), parent(section))).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

fn replay_file(path: &Path, questions: Questions) -> Result<Replayed> {
    Ok(replay::replay(&Options { files: vec![path.to_owned()], questions, ..Options::default() })?)
}

/// Compares all views of the single sections of a file with those of plain stacks; returns the number of open ones.
fn assert_as_plain(path: &Path, text: &str) -> Result<usize> {
    let replayed = replay_file(path, Questions { graph: true, ..Questions::default() })?;
    let expected = plain(text)?;
    let open = expected.iter().filter(|section| section.end.is_none()).count();
    let marks = replayed.marks();
    let (all, mut hidden) = (SectionFilter::default(), Hidden::default());
    let list = section_list::list(marks, &all, &mut hidden);
    let tree = section_list::tree(marks, &all, &mut hidden);
    let graph = dot::render(&replayed.findings());
    assert_eq!(hidden, Hidden::default());
    for (view, what) in [(&*list, "not ended"), (&*tree, "not ended"), (graph.as_str(), "has not ended")] {
        assert_eq!(view.matches(what).count(), open);
    }
    assert_eq!(list.lines().count(), expected.len());
    for (line, expected) in list.lines().zip(&expected) {
        assert_eq!(line[HEAD], head(expected));
        assert!(indented(line).1.starts_with(&expected.name), "not {}: {line}", expected.name);
    }
    assert_tree(&tree, &expected);
    Ok(open)
}

#[test]
fn sections_of_the_reference_s_trace_end_in_every_view() -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/nnapi/omr1.trace.txt.zst");
    let mut bytes = Vec::new();
    StreamingDecoder::new(File::open(&path)?)?.read_to_end(&mut bytes)?;
    assert_eq!(assert_as_plain(&path, &String::from_utf8_lossy(&bytes))?, 2);
    Ok(())
}

#[test]
fn sections_of_random_traces_end_in_every_view() -> Result<()> {
    for seed in 1..40 {
        let mut random = Random::new(seed);
        let (mut now, mut depths, mut text) = (0, [0_u32; 3], String::new());
        for _ in 0..600 {
            now += 1_000 + random.below(5_000);
            let tid = random.below(3) as u32;
            let mut payload = trace::payload(&mut random);
            let depth = &mut depths[tid as usize];
            // Sections beyond the depth of the stacks are not kept, but counted.
            if *depth > 40 {
                payload = "E|1".into();
            }
            *depth = if payload.starts_with('B') {
                *depth + 1 + u32::from(payload.contains("[SW]"))
            } else {
                depth.saturating_sub(1)
            };
            text += &(trace::line(now, 10 + tid, 1, &payload) + "\n");
        }
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), &text)?;
        assert_as_plain(file.path(), &text).with_context(|| format!("seed {seed}"))?;
    }
    Ok(())
}

/// Returns a trace of four iterations of 90 ms, and a fifth that has not ended.
fn loop_without_its_end() -> String {
    let mut text = String::new();
    let mut mark = |ms: u64, payload: &str| text += &(trace::line(ms * 1_000_000, 1, 1, payload) + "\n");
    for iteration in 0..5 {
        let begin = 1_000 + iteration * 100;
        mark(begin, &format!("B|1|[NN_LA_PE]frame#iter={iteration}#acct=foo#img=a"));
        mark(begin + 10, "B|1|[NN_LR_PE]step");
        mark(begin + 40, "E|1");
        mark(begin + 41, "S|1|load|7");
        if iteration < 4 {
            mark(begin + 60, "F|1|load|7");
            mark(begin + 90, "E|1");
        }
    }
    text
}

fn replay_text(text: &str, range: Option<TimeRange>) -> Result<Replayed> {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), text)?;
    let questions =
        Questions { by: Some("img".into()), explain: Some("frame".into()), ..Questions::default() };
    Ok(replay::replay(&Options {
        files: vec![file.path().to_owned()],
        questions,
        range,
        ..Options::default()
    })?)
}

/// An open section is in no count, mean or extreme of anything, whether the recording or `--time-range` ends there.
#[test]
fn what_has_not_ended_is_open_and_in_no_statistic() -> Result<()> {
    let text = loop_without_its_end();
    let cut = TimeRange { begin: 1_000_000_000, end: 1_350_000_000 };
    for (range, whole) in [(None, 4), (Some(cut), 3)] {
        let snapshot = snapshot::of(&replay_text(&text, range)?.findings())?;
        let of_frames = |count: u64| count * 90_000_000;
        let [frames] = &snapshot.iterations[..] else { panic!("{:?}", snapshot.iterations) };
        assert_eq!((frames.count, frames.open, frames.total_ns), (whole, 1, of_frames(whole)), "{frames:?}");
        let times = [frames.mean_ns, frames.min_ns, frames.p50_ns, frames.p99_ns, frames.max_ns];
        assert_eq!(times, [Some(90_000_000); 5]);
        assert_eq!((frames.wall_ns, frames.missing_ns), (of_frames(whole), whole * 60_000_000));
        let step = &frames.functions.iter().find(|row| row.site.name == "step").unwrap();
        assert_eq!((step.count, step.total_ns), (whole, whole * 30_000_000));
        let slowest: Vec<_> =
            frames.slowest.iter().map(|row| (row.iter, row.total_ns, row.missing_ns)).collect();
        assert_eq!(slowest, (0..whole).map(|iter| (iter, 90_000_000, 60_000_000)).collect::<Vec<_>>());
        let table = tables::render(&snapshot);
        let line = table.lines().find(|line| line.contains("  frame ") && line.contains("not ended"));
        let line = line.with_context(|| table.clone())?;
        let words: Vec<&str> = line.split_whitespace().take(2).collect();
        assert_eq!(words, ["frame", whole.to_string().as_str()]);
        assert_eq!(line.matches("90.0 ms").count(), 4, "{line}");
        let table = tables::iterations(&snapshot);
        assert!(table.contains(&format!("frame: {whole} iterations, mean 90.0 ms")), "{table}");
        assert!(table.contains("(and 1 not ended)") && !table.contains(&format!("frame {whole}")), "{table}");
        let function = |name: &str| snapshot.functions.iter().find(|row| row.name == name).unwrap().clone();
        assert_eq!((function("frame").count, function("frame").total_ns), (whole, of_frames(whole)));
        let missing = &snapshot.missing[0];
        assert_eq!((missing.count, missing.total_ns), (whole, of_frames(whole)));
        let explanation = snapshot.explanation.as_ref().unwrap();
        assert_eq!(explanation.count, whole);
        assert!((explanation.mean_ns - 90e6).abs() < 1.0, "{}", explanation.mean_ns);
        let group = snapshot.groups.iter().find(|row| row.site.name == "frame").unwrap();
        assert_eq!((group.count, group.total_ns), (whole, of_frames(whole)));
        let account = snapshot.accounts.iter().find(|row| row.account.as_deref() == Some("foo")).unwrap();
        let of_frame = account.functions.iter().find(|row| row.site.name == "frame").unwrap();
        assert_eq!((of_frame.count, of_frame.exclusive_ns), (whole, whole * 60_000_000));
        assert_eq!(snapshot.reports[0].executions.po, whole);
        let slices = &snapshot.tracks[0];
        assert_eq!((slices.slices, slices.open, slices.slices_ns), (whole, 1, whole * 19_000_000));
    }
    Ok(())
}

/// In a window that begins in the middle, sections that ended before are not around anything.
#[test]
fn what_ended_before_the_window_is_around_nothing_in_it() -> Result<()> {
    let mut text = String::new();
    let mut mark = |ms: u64, payload: &str| text += &(trace::line(ms * 1_000_000, 1, 1, payload) + "\n");
    mark(1_000, "B|1|[NN_LA_PE]outer#acct=kept");
    mark(1_010, "B|1|[NN_LA_PE]over#acct=gone#img=b");
    mark(1_020, "E|1");
    mark(1_100, "B|1|[NN_LR_PE]inner");
    mark(1_200, "E|1");
    mark(1_300, "E|1");
    let range = TimeRange { begin: 1_050_000_000, end: 2_000_000_000 };
    let snapshot = snapshot::of(&replay_text(&text, Some(range))?.findings())?;
    let named: Vec<_> =
        snapshot.accounts.iter().map(|row| (row.account.as_deref(), row.exclusive_ns)).collect();
    assert_eq!(named, [(Some("kept"), 250_000_000)]);
    Ok(())
}

/// Trace in which one section contains another one, and a third one does not end.
const NESTED: &str = "\
    app-7 ( 5) [000] .... 1.000000: tracing_mark_write: B|5|[NN_LR_PE]outer#img=a\n\
    app-7 ( 5) [000] .... 1.000100: tracing_mark_write: B|5|[NN_LC_PCO]inner\n\
    app-7 ( 5) [000] .... 1.000400: tracing_mark_write: E|5\n\
    app-7 ( 5) [000] .... 1.001000: tracing_mark_write: E|5\n\
    app-8 ( 5) [001] .... 1.002000: tracing_mark_write: B|5|[NN_LR_PE]endless\n";

#[test]
fn lines_of_json_have_one_shape_and_all_figures() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("trace.txt");
    std::fs::write(&trace, NESTED)?;
    let lines = |file: &Path, options: &[&str]| -> Result<Vec<serde_json::Value>> {
        let mut profiler = Profiler::new()?.args(["print", "--json-lines"]).args([file]).args(options);
        let text = Child::run(profiler.command())?.expect_code(0)?.stdout;
        Ok(serde_json::Deserializer::from_slice(&text).into_iter().collect::<Result<_, _>>()?)
    };
    let printed = lines(&trace, &[])?;
    let keys = |line: &serde_json::Value| -> Vec<String> {
        line.as_object().into_iter().flat_map(|line| line.keys().cloned()).collect()
    };
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recording-v1");
    let recorded = lines(&run, &[])?;
    assert!(printed.iter().chain(&recorded).all(|line| keys(line) == keys(&printed[0])));
    assert_eq!(
        printed[0],
        serde_json::json!({
            "pid": 5, "tid": 7, "thread": null, "begin_ns": 1_000_000_000, "end_ns": 1_001_000_000,
            "duration_ns": 1_000_000, "own_ns": 1_000_000, "exclusive_ns": 700_000, "depth": 0, "layer": "LR", "phase": "PE",
            "class": "section", "name": "outer", "attributes": {"img": "a"},
        })
    );
    let figures = ["name", "own_ns", "exclusive_ns", "depth"].map(|key| &printed[1][key]);
    assert_eq!(serde_json::json!(figures), serde_json::json!(["inner", 300_000, 300_000, 1]));
    assert_eq!((&printed[2]["name"], &printed[2]["end_ns"]), (&"endless".into(), &serde_json::Value::Null));
    assert_eq!(printed.len(), 3);
    assert_eq!(lines(&trace, &["--name", "inner"])?.len(), 1);
    Ok(())
}
