//! Arguments of a question about a run, which is recorded first if needed.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::Parser as _;

use super::{
    Action, Cli, EngineSelection, HostOptions, Level, OutputFile, OutputKind, Record,
    help_headings::{LIMITS, MARKS, OUTPUT, TARGET},
    live::Marks,
    values::{duration, process, table_memory},
};

/// Run: files, or targets that are recorded first.
#[derive(Debug, clap::Args)]
pub struct FreshRun {
    /// Folder of a recording, or trace files; `-` is standard input. Several files are merged by time
    #[arg(value_name = "FILE", required_unless_present_any = ["pids", "comms", "command"],
          conflicts_with_all = ["pids", "comms", "command", "duration", "keep", "force"])]
    pub files: Vec<PathBuf>,

    /// Trace this process and its children
    ///
    /// May be given several times.
    #[arg(short, long = "pid", value_name = "PID", value_parser = process, help_heading = TARGET)]
    pub pids: Vec<u32>,

    /// Trace all processes of this name; `*` and `?` stand for anything
    #[arg(long = "comm", value_name = "NAME", help_heading = TARGET)]
    pub comms: Vec<String>,

    /// End after this time: 500ms, 10s, 5m; a bare number is seconds
    #[arg(short, long, value_name = "TIME", value_parser = duration, help_heading = TARGET)]
    pub duration: Option<Duration>,

    /// Engines.
    #[command(flatten)]
    pub engines: EngineSelection,

    /// Where marks come from
    #[arg(long, value_enum, default_value_t = Marks::Auto, conflicts_with = "files", help_heading = MARKS, hide_short_help = true)]
    pub marks: Marks,

    /// Search this file for mark functions too, though no target maps it yet
    #[arg(long = "lib", value_name = "PATH", help_heading = MARKS, hide_short_help = true)]
    pub libraries: Vec<PathBuf>,

    /// Keep the recording in this folder, which must be new or empty
    ///
    /// By default it is removed when the page is written.
    #[arg(short = 'o', long = "output", value_name = "FOLDER", help_heading = OUTPUT)]
    pub keep: Option<PathBuf>,

    /// Replace a recording that is in the folder
    #[arg(long, requires = "keep", help_heading = OUTPUT, hide_short_help = true)]
    pub force: bool,

    /// As JSON
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,

    /// The host.
    #[command(flatten)]
    pub host: HostOptions,

    /// Memory for sections, hand-overs and context switches, such as 1G
    #[arg(long, value_name = "SIZE", value_parser = table_memory, help_heading = LIMITS, hide_short_help = true)]
    pub memory: Option<u64>,

    /// Command to start and trace
    ///
    /// It is held until the probes are in place; under sudo it runs as the caller.
    #[arg(last = true, value_name = "COMMAND", help_heading = TARGET)]
    pub command: Vec<OsString>,
}

impl FreshRun {
    /// Whether a run is recorded first.
    pub const fn is_live(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the processes that are traced, in words; `None` where there is a command, or files.
    pub fn processes(&self) -> Option<String> {
        let ids = self.pids.iter().map(|pid| format!("process {pid}"));
        let all: Vec<String> = ids.chain(self.comms.iter().map(|name| format!("processes {name}"))).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// Returns the arguments of recording the run to a folder.
    ///
    /// # Errors
    /// When `record` takes no folder of that name.
    pub fn record(&self, folder: PathBuf, level: Level) -> Result<Box<Record>, clap::Error> {
        // Everything else keeps the defaults of `record`.
        let Some(Action::Record(mut record)) = Cli::try_parse_from(["nntrace-bpf", "record"])?.action else {
            unreachable!("`record` is parsed as such");
        };
        let live = &mut record.live;
        live.pids.clone_from(&self.pids);
        live.comms.clone_from(&self.comms);
        live.duration = self.duration;
        live.marks = self.marks;
        live.engines = self.engines.clone();
        live.libraries.clone_from(&self.libraries);
        live.host = self.host.clone();
        live.command.clone_from(&self.command);
        live.level = level;
        live.results.outputs = vec![OutputFile { kind: OutputKind::Recording, path: folder }];
        live.results.force = self.force;
        live.results.memory = self.memory;
        live.results.is_quiet = true;
        Ok(record)
    }
}
