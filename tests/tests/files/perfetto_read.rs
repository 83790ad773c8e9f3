//! Traces of Perfetto that are read: of its own recorder and SDK as its importer reads them, and exports of this program with the
//! results of what was exported.

use std::{collections::BTreeMap, fs, io::Write as _, path::Path};

use anyhow::{Context as _, Result};
use flate2::{Compression, write::GzEncoder};
use nntrace_tests::{
    child::{Child, Ended},
    duckdb::{number, text},
    fixtures::fixture,
    live,
    perfetto::Importer,
    profiler::Profiler,
    recording::Recording,
};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::{Value, json};

fn run(arguments: &[&str], run: &Path) -> Result<Ended> {
    let mut profiler = Profiler::new()?.args(arguments).args([run]);
    Child::run(profiler.command())?.expect_code(0)
}

/// Returns the results of a trace, without its name.
fn results_of(trace: &Path) -> Result<Value> {
    let mut results: Value = serde_json::from_slice(&run(&["replay", "--handoff", "--json"], trace)?.stdout)?;
    results["source"].as_object_mut().context("no source")?.remove("files");
    Ok(results)
}

/// `recorder.py` in `tests/perfetto` makes both files, the trace by Perfetto's official schema.
#[test]
fn a_trace_in_the_forms_of_the_recorder_is_its_text() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let expected = results_of(&fixture("perfetto/recorder.txt"))?;
    assert_eq!(expected["loss"]["dropped_by_cpu"], json!({"1": 1}));
    let trace = fs::read(fixture("perfetto/recorder.pftrace"))?;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&trace)?;
    let gzip = gzip.finish()?;
    let zstd = compress_to_vec(&trace[..], CompressionLevel::Fastest);
    let file = folder.path().join("trace");
    for content in [&trace, &gzip, &zstd] {
        fs::write(&file, content)?;
        assert_eq!(results_of(&file)?, expected);
    }
    // The last packet has nothing but clocks.
    for (content, reason) in [(&trace[..trace.len() - 3], "bytes of a packet"), (&gzip[..gzip.len() - 9], "")]
    {
        fs::write(&file, content)?;
        let cut = results_of(&file)?;
        for key in ["cpus", "clusters", "counters", "accounts"] {
            assert_eq!(cut[key], expected[key], "{key}");
        }
        let mut notes = cut["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
        assert!(notes.any(|note| note.contains("read only in part") && note.contains(reason)), "{cut}");
    }
    Ok(())
}

#[test]
fn a_trace_of_perfetto_s_own_recorder_is_read_as_by_its_importer() -> Result<()> {
    let Some(importer) = Importer::find()? else { return Ok(()) };
    let trace = fixture("perfetto/sdk.pftrace");
    let query = "SELECT name, count(*) AS count, sum(dur) AS ns, min(ts) AS begin FROM slice WHERE dur > 0 GROUP BY 1";
    let rows = importer.rows(&trace, &[query])?.pop().context("one result")?;
    let mut expected: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for row in &rows {
        expected.insert(text(row, "name").to_owned(), (number(row, "count"), number(row, "ns")));
    }
    let results = results_of(&trace)?;
    let mut found: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut begin = u64::MAX;
    let sections = run(&["print", "--json-lines"], &trace)?.stdout;
    for section in serde_json::Deserializer::from_slice(&sections).into_iter::<Value>() {
        let section = section?;
        let [layer, phase, name] = ["layer", "phase", "name"].map(|key| section[key].as_str().unwrap_or("?"));
        let sums = found.entry(format!("[NN_{layer}_{phase}]{name}")).or_default();
        sums.0 += 1;
        sums.1 += section["duration_ns"].as_u64().context("a section that had not ended")?;
        begin = begin.min(section["begin_ns"].as_u64().context("no begin")?);
    }
    for row in results["tracks"].as_array().context("no tracks")? {
        if let (Some(name @ "job"), Some(count), Some(ns)) =
            (row["name"].as_str(), row["slices"].as_u64(), row["slices_ns"].as_u64())
        {
            found.insert(name.to_owned(), (count, ns));
        }
    }
    assert_eq!(found, expected);
    assert_eq!(found.values().map(|(count, _)| count).sum::<u64>(), 11);
    assert_eq!(Some(begin), rows.iter().map(|row| number(row, "begin")).min());
    assert_eq!(results["loss"]["records_dropped"], 0);
    let counter = &results["counters"][0];
    assert_eq!(
        (&counter["name"], &counter["count"], &counter["last"]),
        (&json!("queue"), &json!(3), &json!(2))
    );
    Ok(())
}

/// Returns the results of a run that its export has; `docs/perfetto.md` lists the others.
fn exported_results(run: &Path) -> Result<Value> {
    let mut results = results_of(run)?;
    for key in ["diagnostics", "evidence", "notes", "overhead", "threads", "usage", "verify"] {
        results.as_object_mut().context("no object")?.remove(key);
    }
    for (part, keys) in [
        ("loss", &["records_drained", "records_produced"][..]),
        ("source", &["engines", "express", "marks"]),
        ("window", &["clock"]),
    ] {
        let part = results[part].as_object_mut().context("no part of the results")?;
        part.retain(|key, _| !keys.contains(&key.as_str()));
    }
    for row in results["missing"].as_array_mut().into_iter().flatten() {
        row.as_object_mut().context("no row")?.remove("states");
    }
    Ok(results)
}

/// Exports a recording, and asserts that the export has its results; returns them.
fn assert_reads_back(recording: &Path) -> Result<Value> {
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("run.pftrace");
    let mut profiler = Profiler::new()?.args(["export", "-o"]).args([&trace]).args([recording]);
    Child::run(profiler.command())?.expect_code(0)?;
    let (mut expected, found) = (exported_results(recording)?, exported_results(&trace)?);
    // A trace without power events has no CPUs. That is so where all of them were busy in a window of milliseconds.
    if found["clusters"] == json!([]) {
        let clusters = expected["clusters"].as_array().into_iter().flatten();
        assert!(clusters.clone().all(|cluster| cluster["idle"] == json!([])), "{expected}");
        for key in ["cpus", "clusters"] {
            expected[key] = found[key].clone();
        }
        expected["host"]["cpus"] = found["host"]["cpus"].clone();
    }
    let parts = |results: &Value| results.as_object().cloned().context("no object");
    let found_parts = parts(&found)?;
    for (key, value) in &parts(&expected)? {
        assert_eq!(found_parts.get(key), Some(value), "{key}");
    }
    assert_eq!(found, expected);
    Ok(expected)
}

#[test]
fn an_export_of_an_old_recording_has_its_results() -> Result<()> {
    let results = assert_reads_back(&fixture("recording-v1"))?;
    assert!(results["phases"].as_array().is_some_and(|phases| !phases.is_empty()));
    Ok(())
}

#[test]
fn an_export_of_the_example_network_has_the_results_of_its_recording() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let network = nntrace_tests::binaries::profile_dir()?.join("nntrace-workload");
    let command = [network.as_os_str(), "--quiet".as_ref(), "--seconds".as_ref(), "2".as_ref()];
    let recording = Recording::of(&["--causes"], command)?;
    let results = assert_reads_back(&recording.path())?;
    assert!(results["phases"].as_array().is_some_and(|phases| phases.len() > 5));
    assert!(results["cpus"].as_array().is_some_and(|cpus| cpus.len() > 1));
    Ok(())
}

/// Work by other threads on behalf of an account, instants, and marks of every form.
#[test]
fn exports_of_live_recordings_have_their_results() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    for (program, what) in [("job-queue", "hand_over_split"), ("mark-forms", "phases")] {
        let program = nntrace_tests::binaries::profile_dir()?.join(program);
        let results = assert_reads_back(&Recording::of(&["--causes"], [program])?.path())?;
        assert!(!results[what].is_null(), "{what}");
    }
    Ok(())
}
