//! Exports of runs, read by programs of their kinds: Chrome's JSON and the text of ftrace beside what is known of a run, and
//! hostile names in every format.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use nntrace_tests::{
    child::{Child, Ended},
    duckdb::{DuckDb, Row},
    fixtures::fixture,
    perfetto::Importer,
    pprof,
    profiler::Profiler,
    snapshot, trace, wheels,
};
use nntrace_user::report::snapshot::Snapshot;
use serde_json::Value;
use tempfile::TempDir;

/// Folder with the exports of a run.
struct Exports {
    folder: TempDir,
    run: PathBuf,
}

impl Exports {
    fn of(run: &Path) -> Result<Self> {
        Ok(Self { folder: tempfile::tempdir()?, run: run.to_owned() })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file by `export`, or by `replay`.
    fn write(&self, subcommand: &str, name: &str) -> Result<Vec<u8>> {
        let path = self.path(name);
        let mut profiler = Profiler::new()?.args([subcommand, "-o"]).args([&path, &self.run]);
        Child::run(profiler.command())?.expect_code(0)?;
        Ok(fs::read(&path)?)
    }

    fn export(&self, name: &str) -> Result<Vec<u8>> {
        self.write("export", name)
    }

    fn snapshot(run: &Path) -> Result<Snapshot> {
        let mut profiler = Profiler::new()?.args(["replay", "--json"]).args([run]);
        let mut snapshot = snapshot::read(&Child::run(profiler.command())?.expect_code(0)?.stdout)?;
        snapshot.source.files.clear();
        Ok(snapshot)
    }
}

/// Errors of the importer, and what it left out.
const LOST: &str = "SELECT name, value FROM stats WHERE value > 0 AND (
    severity IN ('error', 'data_loss') OR name GLOB '*skipped*' OR name GLOB '*error*' OR name GLOB 'flow_*'
    OR name GLOB '*without*' OR name GLOB '*mismatch*')";

/// Returns queries about what is drawn; arguments have a prefix by the format.
fn queries(prefix: &str) -> Vec<String> {
    // Large numbers are texts in one of the formats.
    let argument = |key: &str| format!("CAST(extract_arg(slice.arg_set_id, '{prefix}.{key}') AS TEXT)");
    let arguments =
        ["layer_phase", "class", "iteration", "account", "setup_ns", "handle", "flow_anchor", "mark"];
    let arguments: Vec<String> =
        arguments.iter().zip(0..).map(|(key, number)| format!("{} AS a{number}", argument(key))).collect();
    let arguments = arguments.join(", ");
    vec![
        LOST.to_owned(),
        format!(
            "SELECT tid, slice.ts AS ts, slice.dur AS dur, slice.depth AS depth, slice.name AS name,
               coalesce(slice.category, '') AS category, {arguments}
             FROM slice JOIN thread_track ON slice.track_id = thread_track.id JOIN thread USING (utid)
             ORDER BY 1, 2, 4, 3 DESC, 5"
        ),
        "SELECT sent.ts AS sent, sent.name AS a, taken.ts AS taken, taken.name AS b FROM flow
         JOIN slice AS sent ON sent.id = slice_out JOIN slice AS taken ON taken.id = slice_in ORDER BY 1, 2, 3, 4"
            .into(),
        "SELECT replace(track.name, ' value', '') AS name, ts, CAST(value AS INT) AS value
         FROM counter JOIN track ON track.id = track_id WHERE track.name GLOB 'cluster *' ORDER BY 1, 2"
            .into(),
        // Of a process with a track of its own the main thread is known, too.
        "SELECT pid, tid, thread.name AS thread, process.name AS process FROM thread JOIN process USING (upid)
         WHERE pid NOT IN (0, 4194304) AND thread.name IS NOT NULL ORDER BY 1, 2"
            .into(),
    ]
}

fn rows(importer: &Importer, path: &Path, prefix: &str) -> Result<Vec<Vec<Row>>> {
    let queries = queries(prefix);
    let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
    importer.rows(path, &queries)
}

/// Sections without length, instants on a thread and on a track, hand-overs, one of them taken too early, and an open end.
const BARRIERS: [(u64, u32, &str); 16] = [
    (1_000, 20, "B|20|[NN_LR_PE]run#iter=1#acct=who"),
    (1_500, 20, "B|20|[NN_LR_PCO]barrier"),
    (1_500, 20, "E|20"),
    (1_501, 20, "I|20|fence"),
    (1_502, 20, "N|20|barriers|reached"),
    (2_000, 20, "I|20|nn.send#h=1"),
    (2_400, 21, "I|20|nn.recv#h=1"),
    (2_900, 21, "B|20|[NN_LC_PE]work"),
    (2_900, 21, "B|20|[NN_LC_PE]empty"),
    (2_900, 21, "E|20"),
    (3_057, 21, "E|20"),
    (4_000, 21, "I|20|nn.recv#h=2"),
    (4_100, 20, "I|20|nn.send#h=2"),
    (4_289, 20, "E|20"),
    (5_000, 21, "B|20|[NN_LC_PE]open"),
    (5_100, 21, "I|20|at the end"),
];

#[test]
fn what_has_no_length_shows() -> Result<()> {
    let Some(importer) = Importer::find()? else { return Ok(()) };
    let source = tempfile::tempdir()?;
    let run = source.path().join("barriers.txt");
    let lines = BARRIERS.iter().map(|(time, tid, payload)| trace::line(*time, *tid, 20, payload) + "\n");
    fs::write(&run, lines.collect::<String>())?;
    let exports = Exports::of(&run)?;
    let expected = assert_same_swimlanes(&importer, &exports)?;
    let slices = expected[1].iter().map(|row| (&row["name"], &row["dur"], &row["ts"]));
    let slices: BTreeSet<String> = slices.map(|(name, dur, ts)| format!("{name} {dur} {ts}")).collect();
    for shown in [
        "\"barrier\" 0 1500",
        "\"empty\" 0 2900",
        "\"fence\" 0 1501",
        "\"barriers|reached\" 0 1502",
        "\"run\" 3289 1000",
        "\"setup\" 500 2400",
        "\"work\" 157 2900",
        "\"open\" -1 5000",
    ] {
        assert!(slices.contains(shown), "{shown} in {slices:?}");
    }
    assert_eq!(expected[2].len(), 2, "{:?}", expected[2]);
    Ok(())
}

/// Checks that both exports of swimlanes show the same; returns it.
fn assert_same_swimlanes(importer: &Importer, exports: &Exports) -> Result<Vec<Vec<Row>>> {
    let name = exports.run.display();
    exports.export("run.pftrace")?;
    let chrome = exports.export("run.trace.json")?;
    assert!(chrome == exports.export("again.trace.json")?, "{name}: two exports differ");
    let _: Value = serde_json::from_slice(&chrome)?;
    let expected = rows(importer, &exports.path("run.pftrace"), "debug")?;
    let found = rows(importer, &exports.path("run.trace.json"), "args")?;
    for (expected, found) in expected.iter().zip(&found) {
        let differs = expected.iter().zip(found).find(|(expected, found)| expected != found);
        assert!(differs.is_none() && expected.len() == found.len(), "{name}: {differs:?}");
    }
    // Nothing is lost.
    assert!(found[0].is_empty(), "{name}: {:?}", found[0]);
    Ok(expected)
}

#[test]
fn chrome_has_what_perfetto_has() -> Result<()> {
    let Some(importer) = Importer::find()? else { return Ok(()) };
    for (name, least) in [
        ("recording-v1", [500, 20, 2]),
        ("nnapi/omr1.trace.txt.zst", [4_000, 0, 0]),
        ("power/three_cpus.txt", [0, 0, 5]),
    ] {
        let found = assert_same_swimlanes(&importer, &Exports::of(&fixture(name))?)?;
        // There is something of each kind.
        for (rows, least) in found[1..4].iter().zip(least) {
            assert!(rows.len() >= least, "{name}: {} < {least}", rows.len());
        }
    }
    Ok(())
}

#[test]
fn the_text_of_ftrace_has_the_totals_of_the_run() -> Result<()> {
    for (name, least) in
        [("recording-v1", 500), ("nnapi/omr1.trace.txt.zst", 4_000), ("power/three_cpus.txt", 0)]
    {
        let exports = Exports::of(&fixture(name))?;
        let text = exports.export("run.systrace")?;
        assert!(text == exports.export("again.systrace")?, "{name}: two exports differ");
        let of_run = Exports::snapshot(&exports.run)?;
        let of_text = Exports::snapshot(&exports.path("run.systrace"))?;
        assert_eq!(of_text.phases, of_run.phases, "{name}");
        assert_eq!(of_text.functions, of_run.functions, "{name}");
        assert_eq!(of_text.iterations, of_run.iterations, "{name}");
        assert_eq!(of_text.accounts, of_run.accounts, "{name}");
        assert_eq!(of_text.hand_overs, of_run.hand_overs, "{name}");
        assert_eq!(of_text.overhead.power_events, of_run.overhead.power_events, "{name}");
        let window = |of: &Snapshot| (of.window.begin_ns, of.window.end_ns);
        assert_eq!(window(&of_text), window(&of_run), "{name}");
        // The text has no place for the state of a CPU without events.
        let running = |of: &Snapshot| -> Vec<(u32, u64)> {
            let known = of.cpus.iter().filter(|cpu| {
                of_text.cpus.iter().any(|in_text| in_text.cpu == cpu.cpu && in_text.unknown_ns == 0)
            });
            known.map(|cpu| (cpu.cpu, cpu.running.iter().map(|row| row.ns).sum())).collect()
        };
        assert_eq!(running(&of_text), running(&of_run), "{name}");
        let text = String::from_utf8(text)?;
        let times = text.lines().filter_map(|line| line.split_once("] .... ")?.1.split(':').next());
        let times: Vec<&str> = times.collect();
        assert!(times.is_sorted_by_key(|time| time.parse::<f64>().unwrap_or(f64::NAN)), "{name}");
        let begins = text.lines().filter(|line| line.contains("tracing_mark_write: B|")).count();
        assert!(begins >= least, "{name}: {begins}");
        let Some(importer) = Importer::find()? else { continue };
        let found = importer.rows(
            &exports.path("run.systrace"),
            &[
                LOST,
                "SELECT count(*) AS count FROM slice",
                "SELECT count(*) AS count FROM slice WHERE dur % 1000 > 0",
            ],
        )?;
        assert!(found[0].is_empty(), "{name}: {:?}", found[0]);
        assert!(
            found[1][0]["count"].as_u64().is_some_and(|count| count >= begins as u64),
            "{name}: {found:?}"
        );
    }
    Ok(())
}

#[test]
fn files_of_results_are_those_of_a_replay() -> Result<()> {
    for name in ["recording-v1", "power/three_cpus.txt"] {
        let exports = Exports::of(&fixture(name))?;
        for kind in ["json", "csv", "svg", "dot", "folded", "pb.gz", "prom", "html"] {
            // A graph needs the begin of every section, which this recording has not.
            if kind == "dot" && name == "recording-v1" {
                continue;
            }
            let exported = exports.export(&format!("exported.{kind}"))?;
            assert!(exported == exports.write("replay", &format!("replayed.{kind}"))?, "{name}: {kind}");
            assert!(!exported.is_empty() || kind == "folded", "{name}: {kind}");
        }
        for (output, option) in
            [("a.json", "--min-span=1us"), ("a.dot", "--board=b7"), ("a.systrace", "--run=1")]
        {
            let path = exports.path(output);
            let mut profiler = Profiler::new()?.args(["export", option, "-o"]).args([&path, &exports.run]);
            let ended = Child::run(profiler.command())?;
            assert!(
                ended.code() != Some(0) && ended.stderr.contains(option.split('=').next().unwrap_or(option))
            );
            assert!(!path.exists());
        }
    }
    Ok(())
}

/// Names of the hostile trace, as they are; the last one is after all others.
fn hostile_names() -> Vec<String> {
    let acts =
        String::from_utf8_lossy(b"\x1b]52;c;ZXZpbA\x07\xe2\x80\xae\xe2\x80\xa8\x7f\xff\xfe").into_owned();
    vec![
        "</script><script>ran = 1</script>".into(),
        "<img src=x onerror=ran=1><!-- --><b>&lt;\"'`${ran = 1}".into(),
        acts,
        "__proto__".into(),
        "{script}{data}{style}".into(),
        // As much of a name as marks have.
        "n".repeat(256),
        "case</script><script>ran=1</script>".into(),
    ]
}

fn texts(rows: &[Row], column: &str) -> BTreeSet<String> {
    rows.iter().filter_map(|row| Some(row.get(column)?.as_str()?.to_owned())).collect()
}

/// Draws a graph; returns the number of its nodes, and their texts.
fn drawn(graph: &Path) -> Result<(usize, String)> {
    let mut dot = Command::new("dot");
    let ended: Ended =
        Child::run(dot.args(["-Tsvg"]).arg(graph)).context("dot, of Debian's package graphviz")?;
    let ended = ended.expect_code(0)?;
    let svg = String::from_utf8(ended.stdout)?;
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
    let picture = roxmltree::Document::parse_with_options(&svg, options)?;
    let nodes = picture.descendants().filter(|node| node.attribute("class") == Some("node")).count();
    let texts = picture.descendants().filter(|node| node.tag_name().name() == "text");
    let texts: Vec<&str> = texts.filter_map(|node| node.text()).collect();
    Ok((nodes, texts.join("\n")))
}

#[test]
fn hostile_names_break_no_format() -> Result<()> {
    let source = tempfile::tempdir()?;
    let run = source.path().join("hostile.txt");
    fs::write(&run, trace::hostile())?;
    let exports = Exports::of(&run)?;
    let names = hostile_names();
    let expected: BTreeSet<String> = names.iter().cloned().collect();

    // The snapshot, by serde; the text of ftrace, by a replay.
    let json: Value = serde_json::from_slice(&exports.export("run.json")?)?;
    let functions = json["functions"].as_array().context("functions")?;
    let found: BTreeSet<String> =
        functions.iter().filter_map(|row| Some(row["name"].as_str()?.to_owned())).collect();
    assert!(found == expected, "the snapshot");
    exports.export("run.systrace")?;
    let again = Exports::snapshot(&exports.path("run.systrace"))?;
    let found: BTreeSet<String> = again.functions.iter().map(|row| row.name.clone()).collect();
    assert!(found == expected, "the text of ftrace");

    // Chrome's JSON, by serde; and both swimlanes, by Perfetto's importer.
    let chrome: Value = serde_json::from_slice(&exports.export("run.trace.json")?)?;
    let events = chrome["traceEvents"].as_array().context("events")?.iter();
    let found = events.filter(|event| event["ph"] == "B").filter_map(|event| event["name"].as_str());
    assert!(found.map(str::to_owned).collect::<BTreeSet<_>>() == expected, "Chrome's JSON");
    exports.export("run.pftrace")?;
    if let Some(importer) = Importer::find()? {
        // Not the text: for the importer it ends where a script in a page would.
        for name in ["run.pftrace", "run.trace.json"] {
            let rows =
                importer.rows(&exports.path(name), &[LOST, "SELECT name, dur FROM slice WHERE dur > 0"])?;
            assert!(rows[0].is_empty() && rows[1].len() == names.len(), "{name}: {:?}", rows[0]);
        }
    }

    // Tables, by DuckDB; those of power states, by the crate `csv`.
    let tables = exports.path("run.parquet");
    let mut profiler = Profiler::new()?.args(["export", "--board=b7", "-o"]).args([&tables, &exports.run]);
    Child::run(profiler.command())?.expect_code(0)?;
    if let Some(engine) = DuckDb::in_folder(exports.folder.path())? {
        let rows = engine.rows("SELECT DISTINCT name FROM 'run.parquet/spans.parquet'")?;
        assert!(texts(&rows, "name") == expected, "Parquet");
    }
    let csv = exports.export("run.csv")?;
    assert!(csv::Reader::from_reader(&*csv).records().all(|row| row.is_ok()));

    // A graph, by Graphviz, whose picture a parser of XML reads; another picture, by the latter alone.
    exports.export("run.dot")?;
    let (nodes, texts) = drawn(&exports.path("run.dot"))?;
    assert_eq!(nodes, names.len());
    for name in [&names[0], &names[1], &names[3], &names[4], &names[6]] {
        assert!(texts.contains(name.as_str()), "{name} in {}", &texts[..texts.len().min(3_000)]);
    }
    let svg = String::from_utf8(exports.export("run.svg")?)?;
    roxmltree::Document::parse(&svg)?;

    // Stacks: all but the last word of a line is the stack.
    let folded = String::from_utf8(exports.export("run.folded")?)?;
    assert_eq!(folded.lines().count(), names.len());
    assert!(
        folded.lines().all(|line| line.rsplit_once(' ').is_some_and(|(_, ns)| ns.parse::<u64>().is_ok()))
    );
    exports.export("run.pb.gz")?;
    if let Some(profile) = pprof::decoded(&exports.path("run.pb.gz"))? {
        let stacks: Vec<String> = profile.samples.into_iter().map(|sample| sample.stack.join("\n")).collect();
        assert_eq!(stacks.len(), names.len());
        assert!(stacks.iter().any(|stack| stack.contains(&names[0])), "{stacks:?}");
    }
    exports.export("run.prom")?;
    if let Some(promtool) = wheels::promtool()? {
        let mut command = Command::new(promtool);
        command.args(["check", "metrics"]).stdin(fs::File::open(exports.path("run.prom"))?);
        let checked = command.output()?;
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    }
    Ok(())
}
