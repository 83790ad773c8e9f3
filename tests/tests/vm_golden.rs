//! Recordings of real arm64 kernels: replaying them gives what was reviewed, byte for byte, and what a sweep by other code
//! gives, to the nanosecond.
//!
//! `cargo xtask vm --bless` makes the recordings, and writes what replaying them gave in the machine.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use flate2::read::GzDecoder;
use nntrace_tests::recorded::{self, Recorded};
use nntrace_user::model::Topology;

fn machines() -> Result<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/vm");
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut folders = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    folders.retain(|path| path.is_dir());
    folders.sort();
    Ok(folders)
}

#[test]
fn recordings_of_real_kernels_replay_to_what_was_reviewed() -> Result<()> {
    let machines = machines()?;
    assert!(!machines.is_empty(), "no recording is there");
    for folder in machines {
        let mut text = String::new();
        GzDecoder::new(fs::File::open(folder.join("trace.txt.gz"))?).read_to_string(&mut text)?;
        let described = fs::read_to_string(folder.join("topology.toml"))?;
        let topology = Topology::from_toml("topology.toml", &described)?;
        let snapshot = recorded::assert_replayed(&Recorded { text, topology })
            .with_context(|| folder.display().to_string())?;
        let json = serde_json::to_string_pretty(&snapshot)? + "\n";
        let file = folder.join("replayed.json");
        let reviewed = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        assert!(json == reviewed, "{} is not what replaying gives now, which is:\n{json}", file.display());
    }
    Ok(())
}
