//! Comparison of runs by the command: forms, thresholds, exit statuses, and what is refused.

use std::{fmt::Write as _, fs, path::Path};

use anyhow::{Context as _, Result};
use nntrace_tests::{
    child::{Child, Ended},
    power::Event,
    profiler::Profiler,
    trace::{self, Random},
};
use serde_json::Value;
use tempfile::TempDir;

/// Folder with two groups of runs: in the later ones, the driver takes 5 % longer.
struct Runs(TempDir);

impl Runs {
    fn new(runs: u64) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut random = Random::new(3);
        for (side, percent) in [("before", 100), ("after", 105)] {
            fs::create_dir(folder.path().join(side))?;
            for run in 0..runs {
                let name = format!("{side}/{run}.txt");
                fs::write(folder.path().join(&name), text(percent, &mut random))?;
            }
        }
        let runs = Self(folder);
        for side in ["before", "after"] {
            for entry in fs::read_dir(runs.path().join(side))? {
                let trace = entry?.path();
                let mut json = std::ffi::OsString::from("--json=");
                json.push(trace.with_extension("json"));
                let mut profiler = Profiler::new()?;
                Child::run(profiler.command().arg("replay").arg(&trace).arg(json))?.expect_code(0)?;
            }
        }
        Ok(runs)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn diff(&self, arguments: &[&str]) -> Result<Ended> {
        let mut profiler = Profiler::new()?;
        Child::run(profiler.command().arg("diff").args(arguments).current_dir(self.path()))
    }
}

/// Returns a trace of ten executions, with noise of 2 % from run to run.
fn text(percent: u64, random: &mut Random) -> String {
    let mut text = String::new();
    let mut now = 1_000_000_000;
    let mut line = |ns: u64, payload: &str| {
        now += ns;
        let _ = writeln!(text, "{}", trace::line(now, 7, 7, payload));
    };
    // About normal, of a deviation of 2 % of the mean.
    let mut factor = || 1_000 + (0..12).map(|_| random.below(21)).sum::<u64>() - 120;
    let (runtime, driver, copy) = (300 * factor(), 2_000 * factor() / 100 * percent, 100 * factor());
    line(0, "B|7|[NN_LA_PO]case");
    for _ in 0..10 {
        line(1_000, "B|7|[NN_LA_PE]run");
        line(5_000, "B|7|[NN_LR_PE]compute");
        line(runtime, "B|7|[NN_LD_PE]execute");
        line(driver, "E|7");
        line(1_000, "B|7|[NN_LC_PE]copy");
        line(copy, "E|7");
        line(1_000, "E|7");
        line(1_000, "E|7");
    }
    line(1_000, "E|7");
    let mut idle = |ns, state| {
        let _ = writeln!(text, "{}", trace::power_line(ns, 0, Event::Idle(state)));
    };
    idle(1_000_000_001, 1);
    idle(1_000_300_000, u32::MAX);
    text
}

#[test]
fn a_slower_phase_is_found_named_and_trips_the_gate() -> Result<()> {
    let runs = Runs::new(10)?;
    let files = ["-o", "d.md", "-o", "d.xml", "-o", "d.json"];
    let gate = ["before", "after", "--fail-if", "worse", "--fail-if", "LC_PE.mean > +50%"];
    let ended = runs.diff(&[&gate[..], &files].concat())?.expect_code(3)?;
    let text = ended.text();
    assert!(text.contains("worse: LD_PE.mean +"), "{text}");
    assert!(text.contains("exceeded: worse: LD_PE.mean +"), "{text}");
    assert!(text.contains("not exceeded: LC_PE.mean > +50%"), "{text}");
    assert!(!text.contains("worse: LC_PE") && !text.contains("worse: LR_PE.exclusive_mean"), "{text}");
    assert!(ended.stderr.contains("10 entries of before are skipped"), "{}", ended.stderr);

    let read = |name: &str| fs::read_to_string(runs.path().join(name)).context(name.to_owned());
    assert!(read("d.md")?.contains("| `LD_PE.mean` |"));
    let junit = read("d.xml")?;
    let document = roxmltree::Document::parse(&junit)?;
    let failed = document.descendants().filter(|node| node.has_tag_name("failure"));
    let names = failed.filter_map(|node| node.parent()?.attribute("name")).collect::<Vec<_>>();
    assert!(names.contains(&"worse") && names.contains(&"LD_PE") && !names.contains(&"LC_PE"), "{names:?}");
    let json: Value = serde_json::from_str(&read("d.json")?)?;
    let shown: Value = serde_json::from_slice(&runs.diff(&[&gate[..], &["--json"]].concat())?.stdout)?;
    assert_eq!(json, shown);
    assert_eq!(json["before"].as_array().context("runs")?.len(), 10);

    // The same runs by their names, and against themselves.
    let mut words: Vec<String> = (0..10).map(|run| format!("before/{run}.json")).collect();
    words.push("--to".into());
    words.extend((0..10).map(|run| format!("after/{run}.txt")));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let text = runs.diff(&words)?.expect_code(0)?.text();
    assert!(text.contains("worse: LD_PE.mean +"), "{text}");
    let text = runs.diff(&["before", "before", "--fail-if", "worse"])?.expect_code(0)?.text();
    assert!(text.contains("no change found"), "{text}");
    Ok(())
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_reason() -> Result<()> {
    let runs = Runs::new(1)?;
    let text = runs.diff(&["before/0.json", "after/0.txt"])?.expect_code(0)?.text();
    assert!(text.contains("one run of each side is not enough for a verdict"), "{text}");
    let tripped = runs.diff(&["before/0.json", "after/0.json", "--fail-if", "LD_PE.mean > +100ns"])?;
    tripped.expect_code(3)?;

    let snapshot = fs::read_to_string(runs.path().join("before/0.json"))?;
    fs::write(runs.path().join("newer.json"), snapshot.replacen("\"version\":1", "\"version\":7", 1))?;
    fs::write(runs.path().join("other.json"), "{\"a\": 1}")?;
    fs::create_dir(runs.path().join("empty"))?;
    for (words, code, expected) in [
        (&["before/0.json", "newer.json"][..], 1, "newer.json is a snapshot of version 7"),
        (&["before/0.json", "other.json"], 1, "other.json is JSON, but no snapshot of --json"),
        (&["before/0.json", "none.json"], 1, "cannot open none.json"),
        (&["before/0.json", "empty"], 1, "empty is no recording, and has no recording and no .json in it"),
        (&["before/0.json", "after/0.json", "--fail-if", "worse"], 1, "one run of each side"),
        (&["before/0.json", "after/0.json", "--fail-if", "LX.p9 > 5"], 1, "no run has a figure LX.p9"),
        (&["before/0.json", "after/0.json", "--fail-if", "cpu0.idle > 5ms"], 1, "cpu0.idle is a share"),
        (&["before/0.json", "after/0.json", "--fail-if", "LD_PE.mean >"], 2, "at character 13: expected"),
        (&["before/0.json", "after/0.json", "-o", "x.txt"], 2, "ends in .json, .md or .xml"),
        (&["before/0.json", "after/0.json", "--confidence", "100%"], 2, "below 100%"),
        (&["before/0.json"], 2, "only before/0.json is named: add the other one"),
        (&["a", "b", "c"], 2, "3 runs are named"),
    ] {
        let ended = runs.diff(words)?.expect_code(code)?;
        assert!(ended.stderr.contains(expected), "{words:?}: {}", ended.stderr);
        assert!(ended.stdout.is_empty(), "{words:?}: {}", ended.text());
    }
    Ok(())
}
