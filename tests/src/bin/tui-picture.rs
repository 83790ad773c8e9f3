//! Renders the terminal interface on the example network, as SVG: `tui-picture FILE`.
//!
//! The profiler runs as it does for anybody, in a terminal of its own; the picture is made of that terminal's cells.

use std::{env, fs};

use anyhow::{Context as _, Result};
use nntrace_tests::{binaries, picture, tmux::Tmux};

fn main() -> Result<()> {
    let file = env::args_os().nth(1).context("usage: tui-picture FILE")?;
    let terminal = Tmux::start(picture::COLUMNS, picture::ROWS)?;
    let (profiler, workload) = (binaries::profiler()?, binaries::workload()?);
    terminal.line(&format!(
        "clear; {} --interval 500ms -- {} --seconds 8 --quiet",
        profiler.display(),
        workload.display()
    ))?;
    terminal.wait_for("some seconds of the network", |screen| {
        screen.contains("Execution") && screen.contains("0:00:06")
    })?;
    let screen = picture::screen(terminal.coloured_screen()?.as_bytes(), picture::ROWS, picture::COLUMNS);
    let title = "nntrace-bpf on the example network: time by layer and phase";
    fs::write(&file, picture::svg(&screen, title)).with_context(|| file.display().to_string())?;
    terminal.key("q")
}
