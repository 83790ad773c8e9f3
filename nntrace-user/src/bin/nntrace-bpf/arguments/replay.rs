//! Options of replaying trace files.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use nix::sys::signal::Signal;
use nntrace_user::{emit::Speed, replay::TimeRange};

use super::{
    HostOptions, Results,
    help_headings::{EMIT, MARKS, TARGET},
    values::{duration, start_signal, task, time_range},
};

/// Replays trace files.
#[derive(Debug, clap::Args)]
pub struct Replay {
    /// Trace files; `-` is standard input. Several are merged by time
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Output.
    #[command(flatten)]
    pub results: Results,

    /// Look at this time only, in seconds of the trace: 2084.02..2084.45
    ///
    /// Either end may be left out.
    #[arg(long, value_name = "FROM..TO", value_parser = time_range, help_heading = TARGET)]
    pub time_range: Option<TimeRange>,

    /// Process that is a driver
    #[arg(long = "driver", value_name = "PID", value_parser = task, help_heading = MARKS)]
    pub drivers: Vec<u32>,

    /// The host.
    #[command(flatten)]
    pub host: HostOptions,

    /// Show a recording as the run was: 1x as fast, 2x twice as fast, 0.5x half as fast
    ///
    /// By default the end is shown at once. With --emit it is the speed of the marks, by default 1x; max does not wait at all.
    #[arg(long, value_name = "SPEED", help_heading = TARGET)]
    pub speed: Option<Speed>,

    /// Options of writing the marks of a recording once more.
    #[command(flatten)]
    pub emit: Emit,
}

/// Options of showing a run, and groups of them; the others need `--table`. To clap, a group in which an option has a default
/// is never given: those of results are named one by one.
const NOT_WITH_EMIT: [&str; 12] = [
    "json",
    "outputs",
    "otlp",
    "force",
    "table",
    "timeline",
    "detail",
    "memory",
    "Causes",
    "HostOptions",
    "time_range",
    "drivers",
];

/// Options of writing the marks of a recording once more.
#[derive(Debug, clap::Args)]
pub struct Emit {
    /// Write the marks of a recording again instead of showing them
    ///
    /// Processes and threads as in the recorded run call `tracing_mark_write` with the same texts at the same times, for
    /// any consumer: `nntrace-bpf -- nntrace-bpf replay --emit DIR`. Neither the model nor the accelerator is needed.
    #[arg(long = "emit", conflicts_with_all = NOT_WITH_EMIT, help_heading = EMIT)]
    pub is_wanted: bool,

    /// Where to write: to the function that profilers probe, or to ftrace's file
    #[arg(long, value_enum, default_value_t = EmitTo::Function, requires = "is_wanted", help_heading = EMIT)]
    pub to: EmitTo,

    /// Wait this long before the first mark: time to attach
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "is_wanted", help_heading = EMIT)]
    pub wait: Option<Duration>,

    /// Wait for this signal before the first mark, such as SIGUSR1
    #[arg(long, value_name = "SIGNAL", value_parser = start_signal, conflicts_with = "wait", requires = "is_wanted",
          help_heading = EMIT)]
    pub start_on: Option<Signal>,
}

/// Consumer of the marks of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum EmitTo {
    /// Calls of `tracing_mark_write` in this program
    Function,
    /// tracefs' file of this name
    TraceMarker,
}

impl Replay {
    /// `--json -` is `--json=-`, where `arguments` say that and there is another file to read; else `-` is the trace, and
    /// the snapshot goes to stdout all the same.
    pub fn settle_json(&mut self, arguments: impl IntoIterator<Item = OsString>) {
        let arguments: Vec<OsString> =
            arguments.into_iter().take_while(|argument| argument != "--").collect();
        let is_json = arguments.windows(2).any(|pair| pair[0] == "--json" && pair[1] == "-");
        if is_json
            && self.files.len() > 1
            && let Some(place) = self.files.iter().position(|file| file == Path::new("-"))
        {
            self.files.remove(place);
        }
    }
}
