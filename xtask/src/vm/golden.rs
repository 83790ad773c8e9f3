//! Kept results of runs, and comparison with other runs.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use flate2::{Compression, GzBuilder};

use crate::vm::{features, machine::SERIAL};

/// Files of the guest that must be equal in two runs.
const COMPARED: [&str; 5] = ["snapshot.json", "trace.txt", "replayed.json", "facts.json", SERIAL];

/// Checks that two runs gave the same bytes.
pub fn assert_same(folder: &Path, again: &Path) -> Result<()> {
    for name in COMPARED {
        // A filter may leave some of them out.
        let (one, other) = (fs::read(folder.join(name)).ok(), fs::read(again.join(name)).ok());
        ensure!(
            one == other,
            "two runs differ in {name}; compare {} and {}",
            folder.display(),
            again.display()
        );
        if one.is_some() {
            println!("same       {}: {name}", folder.file_name().unwrap_or_default().display());
        }
    }
    Ok(())
}

/// Keeps the recording of a kernel's runs among the fixtures, with the results of replaying it there, and writes the
/// table of kernels.
pub fn keep(folders: &[PathBuf], name: &str) -> Result<()> {
    const TRACE: &str = "trace.txt";
    let fixture = fixtures().join(name);
    fs::create_dir_all(&fixture)?;
    let folder = folders.iter().find(|folder| folder.join(TRACE).exists());
    let folder = folder.context("nothing was recorded: the check is `golden`")?;
    let file = File::create(fixture.join("trace.txt.gz"))?;
    let mut packed = GzBuilder::new().write(file, Compression::best());
    packed.write_all(&fs::read(folder.join(TRACE))?)?;
    packed.finish()?;
    for file in ["topology.toml", "replayed.json", "facts.json"] {
        fs::copy(folder.join(file), fixture.join(file)).context(file)?;
    }
    let mut checks = String::new();
    for folder in folders {
        let serial = fs::read(folder.join(SERIAL))?;
        checks += &features::checks(&String::from_utf8_lossy(&serial));
    }
    fs::write(fixture.join(features::CHECKS), checks)?;
    features::write(&fixtures())
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/vm")
}
