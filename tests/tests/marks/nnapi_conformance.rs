//! Replay against the NNAPI systrace parser: its own tests, its output for a hundred traces, and two of its sample
//! traces.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use nntrace_common::{diagnostic::DiagnosticKind, hidl_calls};
use nntrace_tests::{results, snapshot};
use nntrace_user::{
    replay::{self, Options},
    report::{
        nnapi,
        snapshot::{ReportRow, Snapshot, TimesByLayer},
    },
};
use serde::Deserialize;

/// Cells of a table by `<layer>_<phase>`; zeros are left out.
type Cells = BTreeMap<String, i64>;

#[derive(Deserialize)]
struct Vectors {
    upstream: Vec<Upstream>,
    names: Vec<(String, Option<String>, String)>,
    oracle: Vec<Oracle>,
}

#[derive(Deserialize)]
struct Upstream {
    id: String,
    threads: BTreeMap<String, Thread>,
    /// Label, time, thread, payload.
    events: Vec<(String, u64, u32, String)>,
    expect: Expect,
}

#[derive(Deserialize)]
struct Thread {
    role: String,
}

#[derive(Deserialize)]
struct Expect {
    error: Option<serde_json::Value>,
    #[serde(default)]
    full_total: Cells,
    #[serde(default)]
    full_self: Cells,
}

#[derive(Deserialize)]
struct Oracle {
    id: String,
    /// Time (us), thread, process, payload.
    events: Vec<(u64, u32, serde_json::Value, String)>,
    #[serde(default)]
    options: BTreeMap<String, bool>,
    reference: Reference,
}

#[derive(Deserialize)]
struct Reference {
    runs: Vec<Run>,
    error: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Run {
    starting_mark: String,
    execution_counts: BTreeMap<String, u64>,
    total_us: Cells,
    self_us: Cells,
}

/// Table of a report, in the units of the vectors.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Table {
    starting_mark: String,
    executions: BTreeMap<String, u64>,
    total_us: Cells,
    self_us: Cells,
}

#[derive(Deserialize)]
struct Ours {
    id: String,
    reports: Vec<Table>,
    diagnostics: BTreeMap<String, u64>,
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/nnapi").join(name)
}

fn vectors() -> Result<Vectors> {
    Ok(serde_json::from_slice(&std::fs::read(fixture("vectors.json"))?)?)
}

fn replay_file(path: &Path, drivers: &[u32]) -> Result<Snapshot> {
    let options = Options {
        files: vec![path.to_owned()],
        drivers: drivers.iter().copied().collect(),
        ..Options::default()
    };
    snapshot::of(&replay::replay(&options)?.findings())
}

fn replay_text(text: &str, drivers: &[u32]) -> Result<Snapshot> {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), text)?;
    replay_file(file.path(), drivers)
}

fn cells(times: &TimesByLayer, unit: i64) -> Cells {
    results::cells(times).map(|(cell, ns)| (cell, ns / unit)).collect()
}

fn table(row: &ReportRow) -> Table {
    let executions = [("PO", row.executions.po), ("PWU", row.executions.pwu), ("PBM", row.executions.pbm)];
    Table {
        starting_mark: row.starting_mark.clone(),
        executions: counted(executions.into_iter().map(|(phase, count)| (phase.to_owned(), count))),
        total_us: cells(&row.total_ns, 1_000),
        self_us: cells(&row.self_ns, 1_000),
    }
}

fn counted(counts: impl IntoIterator<Item = (String, u64)>) -> BTreeMap<String, u64> {
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// Whether a report has any content: the parser prints an empty one for an empty trace, we print none.
fn says_something(table: &Table) -> bool {
    !(table.starting_mark.is_empty() && table.total_us.is_empty())
}

fn trace_of(oracle: &Oracle) -> String {
    let mut text = String::from("# tracer: nop\n");
    for (us, tid, tgid, payload) in &oracle.events {
        let tgid = tgid.as_str().map_or_else(|| tgid.to_string(), str::to_owned);
        let process =
            if oracle.options.contains_key("old") { String::new() } else { format!(" ({tgid:>5})") };
        let (seconds, micros) = (us / 1_000_000, us % 1_000_000);
        let _ = writeln!(
            text,
            "          nn-app-{tid}{process} [000] ...1 {seconds}.{micros:06}: tracing_mark_write: {payload}"
        );
    }
    text
}

/// Returns the cases that are documented as different.
fn documented() -> Result<BTreeSet<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../nntrace-user/docs/nnapi.md");
    let text = std::fs::read_to_string(path)?;
    let rows = text.lines().filter(|line| line.starts_with("| ") && line.matches(" | ").count() == 2);
    let cells = rows.filter_map(|row| row.rsplit(" | ").next());
    Ok(cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(|id| format!("oracle/{id}")).collect())
}

#[test]
fn the_parsers_own_tests_hold() -> Result<()> {
    for vector in vectors()?.upstream {
        let mut text = String::new();
        for (_, time, tid, payload) in &vector.events {
            let (seconds, ns) = (time / 1_000_000_000, time % 1_000_000_000);
            let _ = writeln!(
                text,
                " t-{tid} ({tid}) [000] ...1 {seconds}.{ns:09}: tracing_mark_write: {payload}"
            );
        }
        let drivers: Vec<u32> = vector
            .threads
            .iter()
            .filter(|(_, thread)| thread.role == "driver")
            .map(|(tid, _)| tid.parse())
            .collect::<Result<_, _>>()?;
        let snapshot = replay_text(&text, &drivers).with_context(|| vector.id.clone())?;
        if vector.expect.error.is_some() {
            ensure!(
                snapshot.diagnostics.iter().any(|odd| odd.kind == DiagnosticKind::BadNesting),
                "{}",
                vector.id
            );
            continue;
        }
        let [report] = &snapshot.reports[..] else { panic!("{}: {:?}", vector.id, snapshot.reports) };
        assert_eq!(cells(&report.total_ns, 1), vector.expect.full_total, "{}", vector.id);
        assert_eq!(cells(&report.self_ns, 1), vector.expect.full_self, "{}", vector.id);
        assert!(snapshot.diagnostics.is_empty(), "{}: {:?}", vector.id, snapshot.diagnostics);
    }
    Ok(())
}

#[test]
fn names_of_interface_calls_mean_what_the_parser_takes_them_for() -> Result<()> {
    for (name, layer, phase) in vectors()?.names {
        let ours = match hidl_calls::meaning(name.as_bytes()).label.tag() {
            Some(tag) => (tag.layer().code().to_owned(), tag.phase().code().to_owned()),
            None => ("LX".to_owned(), String::new()),
        };
        match layer.as_deref() {
            // The contract's repair.
            _ if name.contains("configureExecutionBurst") => assert_eq!(ours.1, "PC", "{name}"),
            // The parser fails on the former; to us they are unknown.
            None | Some("LX") => assert_eq!(ours.0, "LX", "{name}"),
            Some(layer) => assert_eq!(ours, (layer.to_owned(), phase), "{name}"),
        }
    }
    Ok(())
}

#[test]
fn every_difference_to_the_parser_is_documented_and_as_reviewed() -> Result<()> {
    let documented = documented()?;
    let ours: Vec<Ours> = serde_json::from_slice(&std::fs::read(fixture("ours.json"))?)?;
    let ours: BTreeMap<String, Ours> = ours.into_iter().map(|case| (case.id.clone(), case)).collect();
    let mut differing = BTreeSet::new();
    for oracle in vectors()?.oracle {
        let id = oracle.id.clone();
        let reports = match replay_text(&trace_of(&oracle), &[]) {
            Ok(snapshot) => snapshot,
            Err(_) if oracle.events.is_empty() => continue,
            Err(error) => return Err(error.context(id)),
        };
        let tables: Vec<Table> = reports.reports.iter().map(table).collect();
        let theirs: Vec<Table> = oracle
            .reference
            .runs
            .into_iter()
            .map(|run| Table {
                starting_mark: run.starting_mark,
                executions: counted(run.execution_counts),
                total_us: run.total_us,
                self_us: run.self_us,
            })
            .collect();
        let said = |tables: &[Table]| tables.iter().filter(|table| says_something(table)).count();
        let same = oracle.reference.error.is_none()
            && said(&tables) == said(&theirs)
            && tables.iter().filter(|t| says_something(t)).eq(theirs.iter().filter(|t| says_something(t)));
        let reviewed = ours.get(&id);
        // With equal totals there may still be differences by phase of the application; such cases are documented,
        // too.
        if same && reviewed.is_none() {
            continue;
        }
        let reviewed = reviewed.with_context(|| format!("{id} differs from the parser: {tables:?}"))?;
        assert_eq!(tables, reviewed.reports, "{id}");
        let odd = counted(reports.diagnostics.iter().map(|odd| (odd.kind.name().to_owned(), odd.count)));
        assert_eq!(odd, reviewed.diagnostics, "{id}");
        differing.insert(id);
    }
    assert_eq!(differing, documented);
    Ok(())
}

#[test]
fn the_sample_trace_prints_the_reference_to_the_last_digit() -> Result<()> {
    let snapshot = replay_file(&fixture("omr1.trace.txt.zst"), &[])?;
    let text = nnapi::render(&snapshot.reports, nnapi::Options::default());
    assert_eq!(&*text, std::fs::read_to_string(fixture("golden_omr1.txt"))?);
    Ok(())
}

#[test]
fn an_incomplete_trace_gives_its_complete_reports_and_the_rest_of_the_last() -> Result<()> {
    #[derive(Deserialize)]
    struct Expected {
        total_ns: TimesByLayer,
        self_ns: TimesByLayer,
    }
    let snapshot = replay_file(&fixture("omr1_incomplete.trace.txt.zst"), &[])?;
    let expected: Vec<Expected> =
        serde_json::from_slice(&std::fs::read(fixture("omr1_incomplete.expected.json"))?)?;
    let (complete, last) = snapshot.reports.split_at(20);
    assert_eq!(expected.len(), complete.len());
    for (number, (report, expected)) in complete.iter().zip(&expected).enumerate() {
        assert_eq!(report.total_ns, expected.total_ns, "{number}");
        assert_eq!(report.self_ns, expected.self_ns, "{number}");
        assert_eq!(report.open_sections, 0, "{number}");
    }
    let [last] = last else { panic!("{} reports", snapshot.reports.len()) };
    assert_eq!((last.starting_mark.as_str(), last.open_sections), ("B|13531|[NN_LA_PO]resnet_quantized", 2));
    assert!(snapshot.diagnostics.iter().any(|odd| odd.kind == DiagnosticKind::OpenAtEnd && odd.count == 2));
    Ok(())
}
