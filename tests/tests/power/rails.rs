//! Power rails on the command line, with trees of sysfs whose sensors go on while the program runs.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{binaries, live, profiler::Profiler, recording, surroundings};
use nntrace_user::{
    model::rails::RailKind,
    report::snapshot::{RailRow, Snapshot},
};

fn run(arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new(binaries::profiler()?);
    surroundings::set(command.args(arguments)).output().context("nntrace-bpf does not start")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn write(root: &Path, files: &[(&str, &str)]) -> Result<()> {
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().context("no folder")?)?;
        fs::write(path, text)?;
    }
    Ok(())
}

const ENERGY: &str = "class/powercap/intel-rapl:0/energy_uj";
/// Range of the counter, uJ: it wraps while the tests run.
const RANGE: u64 = 2_000_000;
/// Energy of a step of the counter, uJ.
const STEP: u64 = 5_000;

/// Creates a tree with a counter that wraps, a monitor of constant power, and a rail that cannot be read.
fn board() -> Result<tempfile::TempDir> {
    let root = tempfile::tempdir()?;
    write(
        root.path(),
        &[
            ("class/powercap/intel-rapl:0/name", "package-0\n"),
            ("class/powercap/intel-rapl:0/max_energy_range_uj", &RANGE.to_string()),
            (ENERGY, "0\n"),
            ("class/powercap/intel-rapl:0:0/name", "core\n"),
            ("class/powercap/intel-rapl:0:0/energy_uj", "\n"),
            ("class/hwmon/hwmon3/name", "ina226\n"),
            ("class/hwmon/hwmon3/label", "VDD_CPU\n"),
            ("class/hwmon/hwmon3/power1_input", "1500000\n"),
        ],
    )?;
    Ok(root)
}

/// Runs `work` while the counter goes on by a step each 2 ms, and returns its result and the steps.
fn while_it_counts<T>(root: &Path, work: impl FnOnce() -> Result<T>) -> Result<(T, u64)> {
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        let counter = scope.spawn(|| {
            let mut steps = 0;
            while !ends.load(Ordering::Relaxed) {
                steps += 1;
                // In one move, as the kernel's files are never half written.
                let next = root.join("next");
                if fs::write(&next, (steps * STEP % RANGE).to_string()).is_ok() {
                    let _ = fs::rename(next, root.join(ENERGY));
                }
                thread::sleep(Duration::from_millis(2));
            }
            steps
        });
        let result = work();
        ends.store(true, Ordering::Relaxed);
        let steps = counter.join().map_err(|_| anyhow::anyhow!("the counter panicked"))?;
        Ok((result?, steps))
    })
}

/// Checks the rails of a run of the board whose counter made this many steps.
fn check(snapshot: &Snapshot, steps: u64) -> Result<()> {
    let rails = snapshot.rails.as_ref().context("no rails")?;
    println!("{rails:#?}");
    let [monitor, package] = &rails.rails[..] else { anyhow::bail!("{} rails", rails.rails.len()) };
    ensure!((monitor.path().as_str(), monitor.kind) == ("hwmon/ina226/VDD_CPU", RailKind::Sampled));
    ensure!((package.path().as_str(), package.kind) == ("powercap/intel-rapl/package-0", RailKind::Counter));
    let begin_and_end = |rail: &RailRow| {
        let (begin, end) = (snapshot.window.begin_ns, snapshot.window.end_ns);
        rail.begin_ns >= begin && rail.end_ns >= end && rail.end_ns < end + 1_000_000_000
    };
    ensure!(begin_and_end(monitor) && begin_and_end(package), "not read at the ends of the window");
    let expected = 1.5 * (monitor.end_ns - monitor.begin_ns) as f64;
    ensure!((monitor.energy_nj as f64 - expected).abs() <= 1.0, "1.5 W make {expected} nJ");
    ensure!(monitor.readings > 3 && monitor.failed == 0 && monitor.gaps == 0);
    let all = i64::try_from(steps * STEP * 1_000)?;
    ensure!(package.energy_nj > all / 2 && package.energy_nj <= all, "of {all} nJ");
    ensure!(package.wraps > 0 && package.gaps == 0 && package.failed == 0);
    let [core] = &rails.unreadable[..] else { anyhow::bail!("{} unreadable rails", rails.unreadable.len()) };
    ensure!(core.rail == "powercap/intel-rapl/package-0/core" && core.reason.contains("energy_uj"));
    Ok(())
}

#[test]
fn rails_are_measured_beside_the_model_and_stay_in_the_recording() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let (board, out) = (board()?, tempfile::tempdir()?);
    let root = board.path().display().to_string();
    let folder = out.path().join("run");
    let options = ["--marks", "none", "--duration", "3s", "--interval", "200ms", "--rails", "20ms"];
    let (ran, steps) = while_it_counts(board.path(), || {
        let profiler = Profiler::new()?.args(["record", "-o"]).args([&folder]);
        profiler.args(options).args(["--rails-from", &root]).run()
    })?;
    let live = &ran.snapshot;
    check(live, steps)?;
    let replayed = recording::replay(&folder, &[])?;
    ensure!(replayed.rails == live.rails, "the recording has other rails");
    let folder = folder.display().to_string();
    let table = text(&run(&["replay", &folder, "--table", "summary"])?.stdout);
    ensure!(table.contains("measured rails, power sampled each 20.0 ms"), "{table}");
    ensure!(table.contains("hwmon/ina226/VDD_CPU") && table.contains("1.50 W"), "{table}");
    let info = text(&run(&["info", &folder])?.stdout);
    ensure!(info.contains("rail         powercap/intel-rapl/package-0 (counter)"), "{info}");

    let (model, fitted) =
        (out.path().join("board.toml"), out.path().join("fitted.toml").display().to_string());
    // One price for all running time, whether or not the host has frequencies.
    let template = text(&run(&["energy-model", "init"])?.stdout).replace("# unit =", "unit =");
    let (before, rows) = template.split_once("opps = [").context("no frequencies")?;
    let (_, after) = rows.split_once(']').context("no end of the frequencies")?;
    fs::write(&model, format!("{before}opps = [{{ mhz = 1000, cluster = 0, core = 0 }}]{after}"))?;
    let model = model.display().to_string();
    let fit = |rail: &str| run(&["energy-model", "fit", &folder, "--model", &model, "--rail", rail]);
    let none = fit("VDD_GPU")?;
    ensure!(none.status.code() == Some(1), "{none:?}");
    let reason = text(&none.stderr);
    ensure!(
        reason.contains("no rail is called \"VDD_GPU\"; those that were measured: hwmon/ina226/VDD_CPU, "),
        "{reason}"
    );
    let printed = fit("VDD_CPU")?;
    let comments = text(&printed.stdout);
    println!("{comments}{}", text(&printed.stderr));
    ensure!(comments.starts_with("# Fitted to the rail hwmon/ina226/VDD_CPU (sampled).\n"));
    // Power that never changes is explained to the last digit.
    ensure!(comments.contains("residuals ") && comments.contains(", of 1.50 W in the mean"));
    let residuals = out.path().join("residuals.csv");
    let files = ["-o", &fitted, "--residuals", &residuals.display().to_string()].map(str::to_owned);
    let fit =
        ["energy-model", "fit", &folder, "--model", &model, "--rail", "ina226/VDD_CPU"].map(str::to_owned);
    let all: Vec<&str> = fit.iter().chain(&files).map(String::as_str).collect();
    let written = run(&all)?;
    ensure!(written.status.success(), "{}", text(&written.stderr));
    ensure!(run(&all)?.status.code() == Some(1), "files were replaced");
    ensure!(text(&fs::read(&fitted)?) == comments, "the file has another model");
    ensure!(run(&["energy-model", "check", &fitted])?.status.success());
    let rows = fs::read_to_string(residuals)?;
    for row in rows.lines().skip(1) {
        let residual: f64 = row.rsplit(',').next().unwrap_or_default().parse()?;
        ensure!(residual.abs() < 0.03, "{row}");
    }
    ensure!(rows.lines().count() > 5, "{rows}");
    Ok(())
}

#[test]
fn a_host_without_rails_is_told_where_they_were_looked_for() -> Result<()> {
    let empty = tempfile::tempdir()?;
    let root = empty.path().display().to_string();
    for arguments in [
        &["energy-model", "rails", "--rails-from", &root][..],
        &["--rails", "50ms", "--rails-from", &root, "--duration", "1s"],
    ] {
        let output = run(arguments)?;
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let reason = text(&output.stderr);
        for folder in ["class/hwmon", "bus/iio/devices", "class/powercap"] {
            assert!(reason.contains(&format!("{root}/{folder}")), "{reason}");
        }
    }
    assert_eq!(run(&["--rails", "often"])?.status.code(), Some(2));
    Ok(())
}

#[test]
fn rails_are_listed_without_privileges() -> Result<()> {
    let board = board()?;
    let output = run(&["energy-model", "rails", "--rails-from", &board.path().display().to_string()])?;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let list = text(&output.stdout);
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(
        lines[..2],
        ["hwmon/ina226/VDD_CPU           sampled", "powercap/intel-rapl/package-0  counter"]
    );
    assert!(lines[2].starts_with("rail powercap/intel-rapl/package-0/core cannot be read: "), "{list}");
    Ok(())
}

#[test]
fn without_rails_a_run_is_as_ever() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let (empty, out) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let root = empty.path().display().to_string();
    for (options, line) in [
        (&["--rails-from", &root][..], "rails        none on this host"),
        (&["--rails", "off"], "rails        not measured"),
    ] {
        let folder = out.path().join(options[0].trim_start_matches('-'));
        let profiler = Profiler::new()?.args(["record", "-o"]).args([&folder]);
        let ran = profiler.args(["--marks", "none", "--duration", "300ms"]).args(options).run()?;
        assert_eq!(ran.snapshot.rails, None);
        let info = text(&run(&["info", &folder.display().to_string()])?.stdout);
        assert!(info.lines().any(|found| found == line), "{info}");
        assert_eq!(recording::replay(&folder, &[])?.rails, None);
    }
    Ok(())
}
