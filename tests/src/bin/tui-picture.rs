//! Renders the views of the terminal interface on the example network, as SVG: `tui-picture FOLDER`.
//!
//! The profiler runs as it does for anybody, in a terminal of its own; the pictures are made of that terminal's cells.

use std::{env, fs, path::PathBuf};

use anyhow::{Context as _, Result};
use nntrace_tests::{binaries, picture, tmux::Tmux};

fn main() -> Result<()> {
    let folder = PathBuf::from(env::args_os().nth(1).context("usage: tui-picture FOLDER")?);
    let terminal = Tmux::start(picture::COLUMNS, picture::ROWS)?;
    let (profiler, workload) = (binaries::profiler()?, binaries::workload()?);
    let [options, of_workload] = picture::ARGUMENTS;
    terminal.line(&format!(
        "clear; {} {options} -- {} {of_workload} 12",
        profiler.display(),
        workload.display()
    ))?;
    terminal.wait_for("some seconds of the network", |screen| {
        screen.contains("Execution") && screen.contains("0:00:06")
    })?;
    for view in picture::VIEWS {
        let screen = view.show(&terminal)?;
        let file = folder.join(view.file);
        let title = format!("nntrace-bpf on the example network: {}", view.title);
        fs::write(&file, picture::svg(&screen, &title)).with_context(|| file.display().to_string())?;
    }
    terminal.key("q")
}
