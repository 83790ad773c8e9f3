//! Comparison of recordings: as their snapshots compare, with energy by a model and of rails.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{
    child::{Child, Ended},
    live,
    profiler::Profiler,
};
use serde_json::Value;

const SLOW_RUNS: &str = env!("CARGO_BIN_EXE_slow-runs");
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/recording-v1");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/energy/dynamiq.toml");

/// Runs the program in a folder.
fn run(folder: &Path, words: &[&str]) -> Result<Ended> {
    let mut profiler = Profiler::new()?.args(words);
    Child::run(profiler.command().current_dir(folder))
}

/// Writes the snapshot of a recording by `replay`.
fn snapshot(recording: &Path, to: &Path) -> Result<()> {
    let mut json = std::ffi::OsString::from("--json=");
    json.push(to);
    let mut profiler = Profiler::new()?.args(["replay"]).args([recording]).args([json]);
    Child::run(profiler.command())?.expect_code(0).map(drop)
}

/// Creates a board whose monitor shows constant power.
fn board(folder: &Path) -> Result<PathBuf> {
    let board = folder.join("sysfs");
    let monitor = board.join("class/hwmon/hwmon3");
    fs::create_dir_all(&monitor)?;
    for (file, text) in [("name", "ina226\n"), ("label", "VDD_CPU\n"), ("power1_input", "1500000\n")] {
        fs::write(monitor.join(file), text)?;
    }
    Ok(board)
}

/// Creates a model of this host in which a CPU that runs takes 1 W, whatever its frequency, and all else nothing.
fn model(folder: &Path) -> Result<PathBuf> {
    let template =
        run(folder, &["energy-model", "init"])?.expect_code(0)?.text().replace("# unit =", "unit =");
    let mut model = String::new();
    for (number, part) in template.split("opps = [").enumerate() {
        let rest = if number == 0 { part } else { part.split_once(']').context("no end of frequencies")?.1 };
        model += if number == 0 { "" } else { "opps = [{ mhz = 1000, cluster = 0, core = 1000 }]" };
        model += rest;
    }
    let path = folder.join("board.toml");
    fs::write(&path, model)?;
    Ok(path)
}

#[test]
fn recordings_compare_as_their_snapshots_do() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (board, model) = (board(folder.path())?, model(folder.path())?);
    // Made in turns, as the documentation says.
    for number in ["0", "1"] {
        for (side, cause) in [("before", "calls"), ("after", "cold")] {
            let recording = folder.path().join(side).join(number);
            fs::create_dir_all(folder.path().join(side))?;
            let profiler = Profiler::new()?.args(["record", "-o"]).args([&recording]);
            let profiler =
                profiler.args(["--level", "sched", "--rails", "20ms", "--rails-from"]).args([&board]);
            profiler.args(["--energy-model"]).args([&model]).launch([SLOW_RUNS, cause])?;
            let snapshots = folder.path().join("snapshots").join(side);
            fs::create_dir_all(&snapshots)?;
            snapshot(&recording, &snapshots.join(number).with_extension("json"))?;
        }
    }
    let forms =
        [&["--json"][..], &["--all"], &["--all", "--per", "second", "--fail-if", "LR_PE.energy < -1%"]];
    for form in forms {
        let words = [&["diff", "before", "after"], form].concat();
        let of_recordings = run(folder.path(), &words)?;
        let of_snapshots = run(&folder.path().join("snapshots"), &words)?;
        let named = of_snapshots.text().replace(".json", "");
        ensure!(of_recordings.text() == named, "{}\n{named}", of_recordings.text());
        ensure!(of_recordings.code() == of_snapshots.code(), "{words:?}");
    }

    let diff: Value =
        serde_json::from_slice(&run(folder.path(), &["diff", "before", "after", "--json"])?.stdout)?;
    let metrics = diff["metrics"].as_array().context("no figures")?;
    let median = |name: &str, side: &str| {
        let row = metrics.iter().find(|row| row["name"] == name);
        row.and_then(|row| row[side]["median"].as_f64()).with_context(|| format!("no {name}"))
    };
    for side in ["before", "after"] {
        // The monitor never changes, and what runs takes 1 W of the model.
        let power = median("rail.hwmon/ina226/VDD_CPU.power", side)?;
        ensure!((power - 1.5).abs() < 1e-6, "{power} W");
        // On a host without frequencies no time has a state that has a price: all energy is in the range.
        let (least, most) = (median("LR_PE.energy.min", side)?, median("LR_PE.energy.max", side)?);
        ensure!(0.0 < most && least <= most, "{side}: {least} to {most}");
        ensure!(median("energy.max", side)? >= most, "a phase takes more than everything");
    }
    // Calls of the convolution are of one side only.
    let conv = "LC_PCO.energy.max";
    ensure!(median(conv, "before")? > 0.0 && median(conv, "after")? == 0.0, "{diff}");
    let tripped = run(folder.path(), &["diff", "before", "after", "--fail-if", "LC_PCO.energy.max < -99%"])?;
    tripped.expect_code(3)?;
    let other =
        run(folder.path(), &["diff", "before", "after", "--energy-model", MODEL])?.expect_code(0)?.text();
    ensure!(other.contains("energy "), "{other}");
    Ok(())
}

#[test]
fn a_kept_recording_is_a_run_of_its_own_host() -> Result<()> {
    let folder = tempfile::tempdir()?;
    snapshot(Path::new(FIXTURE), &folder.path().join("run.json"))?;
    let text = run(folder.path(), &["diff", FIXTURE, "run.json", "--all"])?.expect_code(0)?.text();
    let changes = text
        .lines()
        .filter(|line| line.starts_with("  ") && !line.contains("0%") && !line.contains("0.00pp"));
    // Of what is nothing in both, nothing is said; everything else is the same.
    let changes: Vec<&str> = changes.filter(|line| !line.contains(" 0 ")).collect();
    ensure!(text.contains("LR_PE.mean") && changes.is_empty(), "{changes:?}\n{text}");
    // What a report sums up is no snapshot.
    let mut profiler = Profiler::new()?.args(["report", FIXTURE, "--json"]);
    fs::write(folder.path().join("report.json"), Child::run(profiler.command())?.expect_code(0)?.stdout)?;
    let cut = folder.path().join("cut");
    fs::create_dir(&cut)?;
    for entry in fs::read_dir(FIXTURE)? {
        let (name, bytes) = {
            let entry = entry?;
            (entry.file_name(), fs::read(entry.path())?)
        };
        fs::write(cut.join(name), &bytes[..bytes.len().min(40)])?;
    }
    for (words, code, expected) in [
        (
            &[FIXTURE, "run.json", "--cluster", "big=0"][..],
            1,
            "recording-v1 is a recording, which has its own host",
        ),
        (&[FIXTURE, "report.json"], 1, "report.json is JSON, but no snapshot of --json"),
        (&["cut", "run.json"], 1, "cannot use the recording cut"),
    ] {
        let ended = run(folder.path(), &[&["diff"], words].concat())?.expect_code(code)?;
        ensure!(ended.stderr.contains(expected) && ended.stdout.is_empty(), "{words:?}: {}", ended.stderr);
    }
    Ok(())
}
