//! Options of measuring: what is traced, and how.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::error::ErrorKind;
use log::LevelFilter;
use nntrace_user::live::{kernel::DEFAULT_RING_BYTES, session::MarkSource, target::SymbolSpec};

use super::{
    Machine, Results,
    values::{duration, memory},
};
use crate::logging;

/// What to trace, and how.
#[derive(Debug, clap::Args)]
pub struct Live {
    /// Process to trace, with its children; may be given several times
    #[arg(short, long = "pid", value_name = "PID")]
    pub pids: Vec<u32>,

    /// Trace all processes of this name; `*` and `?` stand for anything
    #[arg(long = "comm", value_name = "NAME")]
    pub comms: Vec<String>,

    /// Where results go
    #[command(flatten)]
    pub results: Results,

    /// Write one snapshot a line to stdout, each interval and at the end
    #[arg(long, conflicts_with_all = ["json", "table", "timeline"])]
    pub json_lines: bool,

    /// End after this time, such as 500ms, 10s, 5m; a bare number is seconds
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,

    /// Time between two updates
    #[arg(short, long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    pub interval: Duration,

    /// Where marks come from
    #[arg(long, value_enum, default_value_t = Marks::Auto)]
    pub marks: Marks,

    /// What is recorded of threads
    #[arg(long, value_enum, default_value_t = Level::Marks)]
    pub level: Level,

    /// Function that writes marks; its arguments after `=`: buf | buf,len | this,buf | this,buf,len
    #[arg(long = "symbol", value_name = "NAME[=LAYOUT]")]
    pub symbols: Vec<SymbolSpec>,

    /// Search this file for mark functions too, though no target maps it yet
    #[arg(long = "lib", value_name = "PATH")]
    pub libraries: Vec<PathBuf>,

    /// Probe the nop that a function begins with also on kernels, as Linux 6.18 on x86-64, where forked children that go
    /// on without exec then die of their next mark
    #[arg(long)]
    pub fast_probes: bool,

    /// This process is a driver
    #[arg(long = "driver", value_name = "PID")]
    pub drivers: Vec<u32>,

    /// What the machine is
    #[command(flatten)]
    pub machine: Machine,

    /// Compare the totals of the CPUs with the kernel's own (cpuidle, cpufreq/stats); exit with 3 when one differs by
    /// more than the kernel's way of counting explains
    #[arg(long)]
    pub verify: bool,

    /// Size of each CPU's ring of records, KiB
    #[arg(long, value_name = "KIB", default_value_t = DEFAULT_RING_BYTES / 1024,
          value_parser = clap::value_parser!(u32).range(4..=1_048_576))]
    pub ring_size: u32,

    /// Memory of the tables of threads, totals, names and paths, such as 16M; by itself 1/64 of the machine's, from 4M to
    /// 64M
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub map_memory: Option<u64>,

    /// Log to stderr what is done, by the kernel programs too; twice for more. In the interface lines are notes.
    /// `NNTRACE_LOG` sets a level as well: off, error, warn, info (-v), debug (-vv), trace
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,

    /// Command to start and trace, held until the probes are in place; under sudo it runs as the caller
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Where marks come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Marks {
    /// The best source there is: probes on functions
    Auto,
    /// Probes on functions
    Uprobe,
    /// What targets write to `trace_marker`, at the system call
    Syscall,
    /// No marks: power states only
    None,
}

/// What is recorded of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Level {
    /// Their marks
    Marks,
    /// When they ran, waited for a CPU and slept, too: each context switch of the machine costs half a microsecond more
    Sched,
}

impl Live {
    /// The functions to probe.
    #[must_use]
    pub fn symbols(&self) -> Vec<SymbolSpec> {
        if self.symbols.is_empty() { SymbolSpec::known() } else { self.symbols.clone() }
    }

    /// The level of the log.
    ///
    /// # Errors
    /// When the variable of the environment names none.
    pub fn log_level(&self) -> Result<LevelFilter, clap::Error> {
        let variable = std::env::var_os(logging::VARIABLE);
        logging::level(self.verbose, variable.as_ref().map(|value| value.to_string_lossy()).as_deref())
            .map_err(|text| clap::Error::raw(ErrorKind::InvalidValue, format!("{text}\n")))
    }

    /// Where marks come from.
    #[must_use]
    pub fn mark_source(&self) -> MarkSource {
        match self.marks {
            Marks::Auto | Marks::Uprobe => MarkSource::Functions,
            Marks::Syscall => MarkSource::Writes,
            Marks::None => MarkSource::None,
        }
    }

    /// What is traced, in a few words.
    #[must_use]
    pub fn target(&self) -> String {
        let mut parts: Vec<String> = self.pids.iter().map(|pid| format!("pid {pid}")).collect();
        parts.extend(self.comms.iter().cloned());
        parts.extend(self.command.first().map(|program| {
            let path = PathBuf::from(program);
            path.file_name().unwrap_or(program).to_string_lossy().into_owned()
        }));
        if parts.is_empty() { "CPUs only".into() } else { parts.join(", ") }
    }
}
