//! Options of replaying trace files.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use nntrace_user::replay::TimeRange;

use super::{
    HostOptions, Results,
    help_headings::{MARKS, TARGET},
    values::time_range,
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
    #[arg(long = "driver", value_name = "PID", help_heading = MARKS)]
    pub drivers: Vec<u32>,

    /// The host.
    #[command(flatten)]
    pub host: HostOptions,
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
