//! Recordings of every version of the format that there was: they stay readable for good.
//!
//! The recordings in `fixtures/recording-vN`, and the results of them in `fixtures/recording-vN.json`, are never made again.
//! They are joined by those of new versions, and stay what they are: what somebody recorded years ago is like them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context as _, Result, ensure};
use flate2::Crc;
use nntrace_tests::{binaries, surroundings};
use serde_json::Value;
use tempfile::TempDir;

/// Recordings, by the names of their folders.
const RECORDINGS: [&str; 2] = ["recording-v1", "recording-v1.1"];

/// Bytes of the header of a file, and the places of major and minor version in it.
const HEADER: usize = 32;
const MAJOR: usize = 8;
const MINOR: usize = 10;

fn fixtures() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
}

/// Replays a recording from the folder that it is in: where that is, is not in the results then.
fn replay(folder: &Path, name: &str) -> Result<Output> {
    let mut profiler = Command::new(binaries::profiler()?);
    let replay = profiler.current_dir(folder).args(["replay", name, "--json", "--slowest", "10000"]);
    Ok(surroundings::set(replay).output()?)
}

fn results(folder: &Path, name: &str) -> Result<Value> {
    let output = replay(folder, name)?;
    ensure!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Takes away what later versions of the snapshot have beside the keys of this one.
fn as_old_as(old: &Value, new: &mut Value) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            new.retain(|key, _| old.contains_key(key));
            for (key, value) in new.iter_mut() {
                as_old_as(&old[key], value);
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            old.iter().zip(new).for_each(|(old, new)| as_old_as(old, new));
        }
        _ => {}
    }
}

/// Iterations were rows by themselves, as the slowest are now: takes these in their place.
fn with_single_iterations(results: &mut Value) {
    let mut singles = Vec::new();
    for root in results["iterations"].as_array().into_iter().flatten() {
        for single in root["slowest"].as_array().into_iter().flatten() {
            let mut single = single.clone();
            (single["pid"], single["name"], single["open"]) =
                (root["pid"].clone(), root["name"].clone(), 0.into());
            singles.push(single);
        }
    }
    singles.sort_by_key(|row| (row["pid"].as_u64(), row["name"].to_string(), row["iter"].as_u64()));
    results["iterations"] = singles.into();
}

/// Takes the resources of iterations out of results: sums of times by process, function and kind.
fn take_iteration_usage(results: &mut Value) -> BTreeMap<(u64, String, String), u64> {
    let mut sums = BTreeMap::new();
    let usage = results.get_mut("usage").and_then(Value::as_object_mut);
    let rows = usage.and_then(|usage| usage.remove("iterations")).unwrap_or_default();
    for row in rows.as_array().into_iter().flatten().filter_map(Value::as_object) {
        let times = row.iter().filter(|(key, _)| key.ends_with("_ns"));
        for (key, ns) in times.filter_map(|(key, ns)| Some((key, ns.as_u64()?))) {
            let of = (row["pid"].as_u64().unwrap_or(0), row["name"].to_string(), key.clone());
            *sums.entry(of).or_default() += ns;
        }
    }
    sums
}

/// Copies a recording, with one byte of the header of each file as it is in another version.
fn of_version(name: &str, at: usize, number: u8) -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join(name))?;
    for file in files(&fixtures().join(name))? {
        let mut content = fs::read(&file)?;
        content[at] = number;
        let mut checksum = Crc::new();
        checksum.update(&content[..HEADER - 4]);
        content[HEADER - 4..HEADER].copy_from_slice(&checksum.sum().to_le_bytes());
        fs::write(folder.path().join(name).join(file.file_name().context("a file has a name")?), content)?;
    }
    Ok(folder)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    ensure!(files.len() > 2, "{} is no recording", folder.display());
    Ok(files)
}

#[test]
fn every_version_gives_the_results_that_it_gave() -> Result<()> {
    for name in RECORDINGS {
        let mut old: Value = serde_json::from_slice(&fs::read(fixtures().join(format!("{name}.json")))?)?;
        let mut new = results(fixtures(), name)?;
        with_single_iterations(&mut new);
        let [of_old, of_new] = [&mut old, &mut new].map(take_iteration_usage);
        // Version 1 was before there were any.
        assert!(of_old.is_empty() || of_old == of_new, "{name}: {of_old:?} is now {of_new:?}");
        as_old_as(&old, &mut new);
        // The one that replays.
        old["tool"]["version"] = new["tool"]["version"].clone();
        let [old, new] = [old, new].map(|results| format!("{results:#}"));
        let differs = old.lines().zip(new.lines()).position(|(old, new)| old != new);
        let line = |text: &str| text.lines().nth(differs.unwrap_or(0)).unwrap_or_default().to_owned();
        assert!(old == new, "{name}: {} is now {}, line {differs:?}", line(&old), line(&new));
    }
    Ok(())
}

#[test]
fn limits_of_frequencies_are_read_since_version_1_1() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("run.systrace");
    let mut profiler = Command::new(binaries::profiler()?);
    profiler.arg("export").arg(fixtures().join("recording-v1.1")).arg("-o").arg(&trace);
    ensure!(profiler.status()?.success());
    let trace = fs::read_to_string(trace)?;
    let events = trace.lines().filter_map(|line| line.split("d..1 ").nth(1)?.split_once(": "));
    let limits = events.map(|(_, event)| event).filter(|event| {
        ["cpu_frequency_limits", "cdev_update"].contains(&event.split(':').next().unwrap_or_default())
    });
    // Read at the begin: nothing changed afterwards.
    assert_eq!(
        limits.collect::<Vec<_>>(),
        [
            "cpu_frequency_limits: min=300000 max=1200000 cpu_id=0",
            "cdev_update: type=thermal-cpufreq-0 target=2"
        ]
    );
    Ok(())
}

#[test]
fn a_newer_major_version_is_refused_with_both_versions() -> Result<()> {
    let name = RECORDINGS[0];
    let newer = of_version(name, MAJOR, 99)?;
    let output = replay(newer.path(), name)?;
    let text = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("run.nnt: its format is 99.0, and this nntrace-bpf reads 1.2"), "{text}");
    assert!(output.stdout.is_empty());
    Ok(())
}

#[test]
fn a_newer_minor_version_is_read() -> Result<()> {
    let name = RECORDINGS[0];
    let newer = of_version(name, MINOR, 99)?;
    assert_eq!(results(newer.path(), name)?, results(fixtures(), name)?);
    Ok(())
}
