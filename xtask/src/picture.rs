//! The pictures in the documentation, from real runs: the terminal interface, a report in HTML, and a trace in Perfetto.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::{
    engines,
    run::{as_root, cargo, command, run, target_dir},
    setup,
};

/// Folder of the documentation.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../nntrace-user/docs");
/// Script that takes the pictures in a browser.
const IN_BROWSER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/browser/pictures.cjs");

/// Sets up, builds, and renders the pictures from runs on the example network.
pub fn render() -> Result<()> {
    setup::all()?;
    setup::tests()?;
    let user_interface = engines::perfetto()?;
    run(cargo("build").arg("--quiet"))?;
    let programs = target_dir()?.join("debug");
    let mut screen = command(programs.join("tui-picture"));
    screen.arg(FOLDER);
    run(&mut as_root(screen)?)?;

    let recording = record(&programs)?;
    let mut in_browser = command("node");
    in_browser.arg(IN_BROWSER).arg(programs.join("nntrace-bpf")).arg(&recording);
    run(in_browser.arg(user_interface).arg(FOLDER))
}

/// Records some seconds of the network; returns the folder of the recording.
fn record(programs: &Path) -> Result<PathBuf> {
    let folder = target_dir()?.join("pictures");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let recording = folder.join("run");
    let mut profiler = command(programs.join("nntrace-bpf"));
    profiler.args(["record", "--force", "-o"]).arg(&recording).arg("--");
    profiler.arg(programs.join("nntrace-workload")).args(["--quiet", "--seconds", "3"]);
    run(&mut as_root(profiler)?)?;
    Ok(recording)
}
