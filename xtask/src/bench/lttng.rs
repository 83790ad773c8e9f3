//! LTTng-UST, recording a tracepoint with a text into a buffer that overwrites its oldest events.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use crate::{
    apt,
    bench::child::Running,
    run::{command, on_path, quietly, target_dir},
};

/// Packages of Debian.
const PACKAGES: [&str; 2] = ["lttng-tools", "liblttng-ust-dev"];
/// Source of the program, from the workspace's root.
const SOURCE: &str = "xtask/src/bench/lttng.c";
/// Name of the session.
const SESSION: &str = "nntrace-bench";
/// Time limit for starting the daemon and the recording.
const PATIENCE: Duration = Duration::from_secs(30);

/// Installs it, if possible. Without it, it is not measured.
pub fn install() {
    if !is_installed()
        && let Err(error) = apt::install(&PACKAGES)
    {
        println!("missing    LTTng-UST: {error:#}");
    }
}

/// Whether there is all that it takes.
pub fn is_installed() -> bool {
    on_path("lttng-sessiond") && build().is_ok()
}

/// Program whose tracepoint is recorded; the recording ends with this value.
pub struct Recorded {
    program: Running,
    _session: Session,
}

impl Recorded {
    /// Starts the daemon, a session and the program.
    pub fn start() -> Result<Self> {
        let session = Session::start()?;
        let mut recorded = Self { program: Running::start(&mut command(build()?))?, _session: session };
        let begin = Instant::now();
        while recorded.program.ask::<u32, 1>("recorded")? == [0] {
            ensure!(begin.elapsed() < PATIENCE, "LTTng does not record after {} s", PATIENCE.as_secs());
            thread::sleep(Duration::from_millis(10));
        }
        Ok(recorded)
    }

    /// Writes this many marks; returns ns per mark.
    pub fn round(&mut self, marks: u32) -> Result<f64> {
        self.program.ask(&format!("marks {marks}")).map(|[ns, _]: [f64; 2]| ns)
    }
}

/// Daemon of our own, with a session that records the tracepoint.
struct Session {
    daemon: Option<Running>,
    home: PathBuf,
}

impl Session {
    fn start() -> Result<Self> {
        let home = target_dir()?.join("bench/lttng");
        fs::create_dir_all(&home).with_context(|| format!("cannot make {}", home.display()))?;
        let mut daemon = command("lttng-sessiond");
        // Without tracing of the kernel, whose modules are not needed.
        daemon.args(["--no-kernel", "--quiet"]).env("LTTNG_HOME", &home).stderr(Stdio::null());
        let session = Self { daemon: Some(Running::start(&mut daemon)?), home };
        let begin = Instant::now();
        while quietly(session.lttng().arg("list")).is_err() {
            ensure!(begin.elapsed() < PATIENCE, "lttng-sessiond does not answer; is another one at work?");
            thread::sleep(Duration::from_millis(50));
        }
        let event = format!("--session={SESSION}");
        for words in [
            // A snapshot's buffers overwrite their oldest events, and nothing is written to a file.
            &["create", SESSION, "--snapshot"][..],
            &["enable-event", "--userspace", &event, "nntrace_bench:mark"],
            &["start", SESSION],
        ] {
            quietly(session.lttng().args(words))?;
        }
        Ok(session)
    }

    fn lttng(&self) -> Command {
        let mut lttng = command("lttng");
        lttng.env("LTTNG_HOME", &self.home);
        lttng
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Err(error) = quietly(self.lttng().args(["destroy", SESSION])) {
            eprintln!("LTTng's session is left: {error:#}");
        }
        if let Some(Err(error)) = self.daemon.take().map(|daemon| daemon.end(Signal::SIGTERM)) {
            eprintln!("LTTng's daemon did not end well: {error:#}");
        }
    }
}

/// Compiles the program.
fn build() -> Result<PathBuf> {
    let program = target_dir()?.join("bench/lttng-marks");
    let mut cc = command("cc");
    cc.args(["-std=gnu11", "-O2", "-I", "xtask/src/bench", SOURCE, "-o"]).arg(&program);
    quietly(cc.args(["-llttng-ust", "-llttng-ust-common"]))?;
    Ok(program)
}
