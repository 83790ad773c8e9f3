//! Options of measuring: what is traced, and how.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result, bail};
use clap::{ValueEnum, error::ErrorKind};
use log::LevelFilter;
use nntrace_common::perf_counters::MAX_COUNTERS;
use nntrace_user::{
    caller::RunAs,
    live::{
        driver_calls::DriverSelection,
        engine_probes::EngineOptions,
        express::ExpressLane,
        hooks::Hooks,
        host_readers::HostReaders,
        kernel::DEFAULT_RING_BYTES,
        perf_events::PerfEvent,
        rails::{RailReader, SYSFS},
        session::MarkSource,
        target::SymbolSpec,
    },
};

use super::{
    EngineSelection, HostOptions, Results,
    engine_options::Level as EngineLevel,
    help_headings::{LIMITS, MARKS, OUTPUT, POWER, TARGET},
    listen_options::ListenOptions,
    usage,
    values::{duration, memory, period, process},
    without_rails,
};
use crate::logging;

/// A live run: its target and its options.
#[derive(Debug, clap::Args)]
pub struct Live {
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

    /// Time between two updates; with text output, print a table this often
    ///
    /// The live view, --json-lines, --otlp and recordings are updated each second by default. Without a terminal one table is
    /// printed, at the end, unless this option is given.
    #[arg(short, long, value_name = "TIME", value_parser = period, help_heading = TARGET, hide_short_help = true)]
    pub interval: Option<Duration>,

    /// Where marks come from
    #[arg(long, value_enum, default_value_t = Marks::Auto, help_heading = MARKS, hide_short_help = true)]
    pub marks: Marks,

    /// Thread data to record
    #[arg(long, value_enum, default_value_t = Level::Marks, help_heading = MARKS, hide_short_help = true)]
    pub level: Level,

    /// Count performance events by section: cycles, instructions, cache-misses and others, separated by commas
    ///
    /// Six at most, by the names that `perf list` has, or rNNN, the number of an event of this CPU in hexadecimal; `:u` at the
    /// end counts in programs only, `:k` in the kernel only. Each mark and each context switch of the host takes longer.
    /// Sections are probed then, without the express lane, whose marks reach no kernel code.
    #[arg(long, value_name = "EVENTS", value_delimiter = ',', help_heading = MARKS, hide_short_help = true)]
    pub counters: Vec<PerfEvent>,

    /// Function that writes marks
    ///
    /// Its arguments follow `=`: buf | buf,len | this,buf | this,buf,len
    #[arg(long = "symbol", value_name = "NAME[=LAYOUT]", help_heading = MARKS, hide_short_help = true)]
    pub symbols: Vec<SymbolSpec>,

    /// Search this file for mark functions too, though no target maps it yet
    #[arg(long = "lib", value_name = "PATH", help_heading = MARKS, hide_short_help = true)]
    pub libraries: Vec<PathBuf>,

    /// Engines.
    #[command(flatten)]
    pub engines: EngineSelection,

    /// Calls of NPU and GPU drivers: auto, off, or a device
    ///
    /// Each `ioctl` on such a device is a section of the driver layer. By default those of known devices
    /// (/dev/accel/*, /dev/dri/renderD* and others), only while a target has one open, as tracing them makes every
    /// system call on the machine take longer. A device is a path; may be given several times.
    #[arg(long, value_name = "DEVICE", help_heading = MARKS, hide_short_help = true)]
    pub driver_calls: Vec<OsString>,

    /// Probe leading nops even where that kills forked children
    ///
    /// On some kernels, as Linux 6.18 on x86-64, forked children that go on without exec crash at their next mark where
    /// the leading nop of a function is probed. By default the probe is placed after it there.
    #[arg(long, help_heading = MARKS, hide_short_help = true)]
    pub fast_probes: bool,

    /// Process that is a driver
    #[arg(long = "driver", value_name = "PID", value_parser = process, help_heading = MARKS, hide_short_help = true)]
    pub drivers: Vec<u32>,

    /// Output.
    #[command(flatten)]
    pub results: Results,

    /// Write one snapshot a line to stdout, each interval and at the end
    #[arg(long, conflicts_with_all = ["json", "table", "timeline"], help_heading = OUTPUT, hide_short_help = true)]
    pub json_lines: bool,

    /// Serving of metrics.
    #[command(flatten)]
    pub metrics: ListenOptions,

    /// The host.
    #[command(flatten)]
    pub host: HostOptions,

    /// Compare the totals of the CPUs with the kernel's own
    ///
    /// Those of cpuidle and of cpufreq/stats. Exits with 3 when one differs by more than the kernel's way of counting
    /// explains.
    #[arg(long, help_heading = POWER, hide_short_help = true)]
    pub verify: bool,

    /// Measured energy of power rails: auto, off, or the time between two samples of power
    ///
    /// By default all rails that the host has sensors for (hwmon, IIO, power caps) are read at the ends of the run and at each
    /// interval; where a sensor gives power and not energy, also each 100ms, or less often where that takes more than a
    /// hundredth of the time. With a time, a host without rails is an error.
    #[arg(long, value_name = "auto|off|TIME", value_parser = rails, default_value = "auto", help_heading = POWER,
          hide_short_help = true)]
    pub rails: Rails,

    /// Report how busy accelerators and GPUs are, from driver counters: auto or off
    ///
    /// Reads device-wide counters and the devices that processes have open: at the start, the end and every 250 ms, less often
    /// if a reading takes more than 2.5 ms; and at the start and the end how long devices had which frequency. Does nothing on hosts
    /// without such devices.
    #[arg(long, value_name = "auto|off", default_value = "auto", help_heading = POWER, hide_short_help = true)]
    pub device_usage: DeviceUsage,

    /// Where sysfs is mounted, for rails and device usage
    #[arg(long, value_name = "FOLDER", default_value = SYSFS, help_heading = POWER, hide_short_help = true)]
    pub rails_from: PathBuf,

    /// Size of each CPU's ring of records, KiB
    #[arg(long, value_name = "KIB", default_value_t = DEFAULT_RING_BYTES / 1024,
          value_parser = clap::value_parser!(u32).range(4..=1_048_576), help_heading = LIMITS, hide_short_help = true)]
    pub ring_size: u32,

    /// Memory of the kernel's tables of threads, totals, names and paths
    ///
    /// Such as 16M. Default: 1/64 of the host's, from 4M to 64M.
    #[arg(long, value_name = "SIZE", value_parser = memory, help_heading = LIMITS, hide_short_help = true)]
    pub map_memory: Option<u64>,

    /// Log to stderr, kernel programs included; -vv for more
    ///
    /// While the terminal interface runs, the lines are among its notes. `NNTRACE_LOG` sets a level as well: off, error,
    /// warn, info (-v), debug (-vv), trace.
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,

    /// Command to start and trace
    ///
    /// It is held until the probes are in place; under sudo it runs as the caller.
    #[arg(last = true, value_name = "COMMAND", help_heading = TARGET, hide_short_help = true)]
    pub command: Vec<OsString>,
}

/// Source of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Marks {
    /// The best there is: by the express lane where a program has it, else by probes on functions
    Auto,
    /// The same, with notes on where the express lane is not possible
    Express,
    /// Probes on functions only
    Uprobe,
    /// Writes to `trace_marker`, at the system call
    Syscall,
    /// No marks: power states only
    None,
}

/// Thread data to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Level {
    /// Their marks
    Marks,
    /// When they ran, waited for a CPU and slept, too: each context switch of the host costs half a microsecond more
    Sched,
}

/// Use of the host's power rails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rails {
    /// Those that there are.
    Auto,
    /// None.
    Off,
    /// There must be some; power is sampled with this period.
    Sampled(Duration),
}

/// Whether device usage is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeviceUsage {
    /// Where there are such devices.
    Auto,
    /// Never.
    Off,
}

/// Time between two updates where none is asked for.
const UPDATE: Duration = Duration::from_secs(1);

/// `auto`, `off`, or a time.
fn rails(text: &str) -> Result<Rails, String> {
    match text {
        "auto" => Ok(Rails::Auto),
        "off" => Ok(Rails::Off),
        time => period(time).map(Rails::Sampled).map_err(|_| {
            "expected auto, off, or the time between two samples of power, such as 20ms, and 1ms at least"
                .to_owned()
        }),
    }
}

impl Live {
    /// Returns the time between two updates.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.interval.unwrap_or(UPDATE)
    }

    /// Finds what the host measures beside events.
    ///
    /// # Errors
    /// When rails are asked for, and there are none.
    pub fn host_readers(&self) -> Result<HostReaders> {
        let devices = (self.device_usage == DeviceUsage::Auto).then_some(&*self.rails_from);
        Ok(HostReaders::new(self.rails()?, devices))
    }

    /// Finds the rails whose energy is measured; none where it is not.
    fn rails(&self) -> Result<Option<RailReader>> {
        let period = match self.rails {
            Rails::Off => return Ok(None),
            Rails::Auto => None,
            Rails::Sampled(period) => Some(period),
        };
        let found = RailReader::find(&self.rails_from, period);
        if period.is_some() && found.count() == 0 {
            bail!(without_rails(&self.rails_from));
        }
        Ok(Some(found))
    }

    /// The drivers whose calls are sections.
    #[must_use]
    pub fn driver_selection(&self) -> DriverSelection {
        let devices = || self.driver_calls.iter().filter(|word| *word != "auto" && *word != "off");
        if self.marks == Marks::None || self.driver_calls.iter().any(|word| word == "off") {
            DriverSelection::None
        } else if devices().next().is_some() {
            DriverSelection::Devices(devices().map(PathBuf::from).collect())
        } else {
            DriverSelection::Opened
        }
    }

    /// The functions to probe.
    #[must_use]
    pub fn symbols(&self) -> Vec<SymbolSpec> {
        if self.symbols.is_empty() { SymbolSpec::known() } else { self.symbols.clone() }
    }

    /// Prepares the hooks for operators of the command, which runs as `user`; without hooks, returns the reason.
    ///
    /// # Errors
    /// When hooks are demanded, and there can be none.
    pub fn hooks(&self, user: Option<&RunAs>) -> Result<Result<Hooks, String>> {
        let Some(program) = self.command.first() else {
            return Ok(Err("they would need probes in a process that already runs".to_owned()));
        };
        if !self.engines.wants_hooks()
            || self.mark_source() != MarkSource::Functions
            || self.express_lane() == ExpressLane::Never
        {
            return Ok(Err("these options allow no hooks".to_owned()));
        }
        let hooks = Hooks::prepare(program, user);
        if self.engines.hooks {
            return Ok(Ok(hooks.context("--hooks is impossible here; leave it out")?));
        }
        Ok(hooks.map_err(|error| error.to_string()).inspect_err(|reason| log::info!("no hooks: {reason}")))
    }

    /// The engines to probe, or to hook: none where functions are not the source of marks.
    #[must_use]
    pub fn engines(&self, hooks: Result<Hooks, String>) -> EngineOptions {
        if self.mark_source() == MarkSource::Functions {
            self.engines.options(hooks)
        } else {
            EngineOptions::default()
        }
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

    /// The source of marks.
    #[must_use]
    pub fn mark_source(&self) -> MarkSource {
        match self.marks {
            Marks::Auto | Marks::Express | Marks::Uprobe => MarkSource::Functions,
            Marks::Syscall => MarkSource::Writes,
            Marks::None => MarkSource::None,
        }
    }

    /// The use of the express lane.
    #[must_use]
    pub fn express_lane(&self) -> ExpressLane {
        match self.marks {
            Marks::Auto if self.counters.is_empty() => ExpressLane::Auto,
            Marks::Express => ExpressLane::Wanted,
            Marks::Auto | Marks::Uprobe | Marks::Syscall | Marks::None => ExpressLane::Never,
        }
    }

    /// Refuses options that exclude each other.
    ///
    /// # Errors
    /// When there are such.
    pub fn check(&self) -> Result<()> {
        self.check_counters()?;
        self.check_hooks()?;
        self.metrics.check()
    }

    /// Checks that the events can be counted.
    ///
    /// # Errors
    /// When there are too many, or the source of marks leaves nothing to count.
    fn check_counters(&self) -> Result<()> {
        let message = match self.marks {
            _ if self.counters.is_empty() => return Ok(()),
            Marks::Express => {
                "--counters cannot be used with --marks express: no kernel code runs at the marks of the express lane, \
                 which could read them; leave out --marks"
            }
            Marks::None => {
                "--counters is about sections, of which --marks none takes none; leave out --marks"
            }
            _ if self.counters.len() > MAX_COUNTERS => {
                return Err(usage(format!(
                    "--counters takes {MAX_COUNTERS} events at once, found {}; leave some out",
                    self.counters.len()
                )));
            }
            _ => return Ok(()),
        };
        Err(usage(message.to_owned()))
    }

    /// Checks that there is something to hook, and that it can be marked.
    ///
    /// # Errors
    /// When there is no command, no engine, or no express lane.
    fn check_hooks(&self) -> Result<()> {
        let message = match self.marks {
            _ if !self.engines.hooks => return Ok(()),
            _ if self.command.is_empty() => {
                "--hooks is for a command that nntrace-bpf starts, as in `nntrace-bpf --hooks -- COMMAND`; a process that \
                 runs is probed with --engine-level op"
            }
            Marks::Uprobe | Marks::Syscall | Marks::None => {
                "--hooks marks operators by the express lane, which --marks auto and express have; leave out --marks"
            }
            Marks::Auto | Marks::Express if !self.counters.is_empty() => {
                "--hooks cannot be used with --counters: no kernel code runs at its marks, which could read them; leave out \
                 --hooks, and give --engine-level op"
            }
            _ if self.engines.engine_level == Some(EngineLevel::Run) => {
                "--hooks is for operators, which --engine-level run leaves out; leave out one of them"
            }
            _ if self.engines.is_none() => {
                "--hooks is about engines, and --engine none takes none; leave out one of them"
            }
            Marks::Auto | Marks::Express => return Ok(()),
        };
        Err(usage(message.to_owned()))
    }

    /// Whether tasks that libraries show by ITT are wanted: unless no engine is, as the library that makes marks of them
    /// is probed as any other.
    #[must_use]
    pub fn collects_itt(&self) -> bool {
        self.mark_source() == MarkSource::Functions && self.symbols.is_empty() && !self.engines.is_none()
    }

    /// The target, in a few words.
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
