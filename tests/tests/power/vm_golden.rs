//! Recordings of real arm64 kernels: replaying them gives the reviewed results, byte for byte, and those of a sweep
//! by other code, to the nanosecond.
//!
//! `cargo xtask vm --bless` makes the recordings, and stores the results of replaying them in the VM.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use flate2::read::GzDecoder;
use nntrace_tests::{recorded, trace};
use nntrace_user::{model::Topology, replay::Options, report::snapshot::Snapshot};

fn machines() -> Result<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/vm");
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut folders = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    folders.retain(|path| path.is_dir());
    folders.sort();
    Ok(folders)
}

/// Recording, its host, and the reviewed results.
struct Golden {
    text: String,
    topology: Topology,
    reviewed: String,
}

impl Golden {
    fn read(folder: &Path) -> Result<Self> {
        let mut text = String::new();
        GzDecoder::new(fs::File::open(folder.join("trace.txt.gz"))?).read_to_string(&mut text)?;
        let described = fs::read_to_string(folder.join("topology.toml"))?;
        let topology = Topology::from_toml("topology.toml", &described)?;
        let reviewed = fs::read_to_string(folder.join("replayed.json")).context("replayed.json")?;
        Ok(Self { text, topology, reviewed })
    }
}

fn json(snapshot: &Snapshot) -> Result<String> {
    Ok(serde_json::to_string_pretty(snapshot)? + "\n")
}

#[test]
fn recordings_of_real_kernels_replay_to_what_was_reviewed() -> Result<()> {
    let machines = machines()?;
    assert!(!machines.is_empty(), "no recording is there");
    for folder in machines {
        let Golden { text, topology, reviewed } =
            Golden::read(&folder).with_context(|| folder.display().to_string())?;
        let now = json(&recorded::assert_replayed(&text, &topology)?)?;
        assert!(
            now == reviewed,
            "{}: replayed.json is not what replaying gives now:\n{now}",
            folder.display()
        );
    }
    Ok(())
}

#[test]
fn one_event_one_microsecond_later_is_another_result() -> Result<()> {
    for folder in machines()? {
        let Golden { text, topology, reviewed } =
            Golden::read(&folder).with_context(|| folder.display().to_string())?;
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let events = (0..lines.len()).filter(|&at| lines[at].contains(" cpu_idle: "));
        let middle = *events.clone().collect::<Vec<_>>().get(events.count() / 2).context("no event")?;
        lines[middle] = later(&lines[middle]).context("an event without a time")?;
        let options = Options { topology: Some(topology), ..Options::default() };
        let now = json(&trace::replay_with(&(lines.join("\n") + "\n"), &options)?)?;
        assert!(now != reviewed, "{}: line {} may be later", folder.display(), middle + 1);
    }
    Ok(())
}

/// Returns the line of an event (`TASK [CPU] FLAGS SECONDS.MICROSECONDS: NAME: ...`), one microsecond later.
fn later(line: &str) -> Option<String> {
    let end = line.find(": ")?;
    let start = line[..end].rfind(' ')? + 1;
    let (seconds, fraction) = line[start..end].split_once('.')?;
    let micros = seconds.parse::<u64>().ok()? * 1_000_000 + fraction.parse::<u64>().ok()? + 1;
    let (before, after) = (&line[..start], &line[end..]);
    Some(format!("{before}{}.{:06}{after}", micros / 1_000_000, micros % 1_000_000))
}
