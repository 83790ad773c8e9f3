//! The command line.

mod bench;
mod calls;
mod diff;
mod doctor;
mod engine_options;
mod engines;
mod explain;
mod export;
mod fresh_run;
mod graph_question;
mod help_headings;
mod host_options;
mod info;
mod listen_options;
mod live;
mod output_file;
mod pack;
mod placement;
mod print;
mod record;
mod replay;
mod report;
mod results;
mod section_options;
mod values;
mod what_if;
mod why;

use std::{
    path::{Path, PathBuf},
    slice,
};

pub use bench::Bench;
pub use calls::Calls;
use clap::{Parser, error::ErrorKind};
pub use diff::{Diff, DiffForm, Divisor};
pub use doctor::Doctor;
pub use engine_options::EngineSelection;
pub use engines::Engines;
pub use explain::Explain;
pub use export::{Export, ExportOutput};
pub use fresh_run::FreshRun;
pub use graph_question::GraphQuestion;
pub use host_options::HostOptions;
pub use info::Info;
pub use live::{Level, Live};
use nntrace_user::{
    live::rails::{RailReader, SYSFS},
    model::energy::EnergyModel,
};
pub use output_file::{OutputFile, OutputKind};
pub use pack::{Pack, Unpack};
pub use placement::Where;
pub use print::{Group, Print};
pub use record::Record;
pub use replay::{EmitTo, Replay};
pub use report::Report;
pub use results::{Causes, Format, Results, Table, default_memory};
pub use section_options::SectionOptions;
use values::file;
pub use what_if::WhatIf;
pub use why::Why;

/// Creates the error of a command line that asks for what cannot be; the exit status is that of a wrong command line.
pub fn usage(message: String) -> anyhow::Error {
    clap::Error::raw(ErrorKind::ArgumentConflict, message).into()
}

/// Returns the text on a host without power rails: where they were looked for.
pub fn without_rails(sysfs: &Path) -> String {
    let [hwmon, iio, powercap] = RailReader::folders(sysfs).map(|folder| folder.display().to_string());
    format!(
        "this host has no power rails that are measured: neither energy nor power was found in {hwmon}, {iio} and \
         {powercap}; where such a sensor is built in, load its driver; a run without --rails needs none"
    )
}

/// Shows where the time of a neural network goes, by layer and phase, and what the CPUs did.
///
/// With a terminal on stdout it shows a live view, otherwise a table at the end. It ends when the target ends; with
/// `-- COMMAND` it exits with the command's status.
#[derive(Debug, Parser)]
#[command(
    name = "nntrace-bpf",
    bin_name = "nntrace-bpf",
    version,
    max_term_width = 100,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// Subcommand; without one, a live run.
    #[command(subcommand)]
    pub action: Option<Action>,

    /// Live run.
    #[command(flatten)]
    pub live: Live,
}

/// A subcommand.
#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// Explains a run on one page: where the time went, and why the slowest were slow
    ///
    /// `explain -- COMMAND` records the command with context switches, `explain --pid PID -d 10s` a process that runs, `explain RUN`
    /// takes a recording or trace files, without privileges. The page has how often the work of the run ended and how long it took, the ten
    /// functions with the most time, the causes of the slowest executions, the CPUs that it ran on, energy where a model is given,
    /// and the commands that show more. With `-- COMMAND` it exits with the command's status.
    Explain(Box<Explain>),
    /// Shows where each operator of a model ran, and what fell back to the CPU
    ///
    /// `where -- COMMAND` records the command with the operators of its engine, `where --pid PID -d 10s` a running process; `where RUN`
    /// reads a recording or trace files, without privileges. By provider or delegate, the page has the operators and the parts of the
    /// graph with their time, the calls of drivers in them, the changes from one place to another, and the costliest operators. With
    /// `-- COMMAND` it exits with the command's status.
    Where(Box<Where>),
    /// Shows a recording or trace files in the same tables, views and snapshots
    ///
    /// No privileges are needed. Reads the folders that `record` writes, the text of ftrace, `trace-cmd report`, systrace (HTML too), atrace and Perfetto's systrace export, and
    /// `trace.dat` as `trace-cmd record` writes it, plain or packed by gzip or zstd. Exits with 0 when it could
    /// show something, and what could not be read is counted; with 1 when a file cannot be opened or holds no event; with 2
    /// when the command line is wrong.
    Replay(Box<Replay>),
    /// Records a run to a folder, to look at it later, elsewhere and without privileges
    ///
    /// Takes the targets and options of a live run, and shows the same view. `replay` makes of the recording whatever a live
    /// run can show.
    Record(Box<Record>),
    /// Prints the marked sections of a recording or of trace files, one a line
    ///
    /// When it began (s), its thread, how long it took, layer and phase, name, and its attributes; of traces, the iteration
    /// and account that it belongs to. They are in the order in which they began.
    Print(Print),
    /// Sums up the sections of a recording: how many, how long, and how much that varies
    ///
    /// For each function, or by any choice of process, thread, layer, phase and function: count, total and exclusive time,
    /// minimum, percentiles, maximum, standard deviation (sd) and the same as a share of the mean (rsd).
    Report(Box<Report>),
    /// Runs a command several times, for `diff`
    ///
    /// `bench -o before -- COMMAND`, then with the change `bench -o after -- COMMAND`, then `diff before after`. Takes the options of a live run;
    /// writes the snapshot of each run to the folder. If the command fails, that run is discarded and the series stops; the exit status is
    /// the command's. Ctrl-C stops the series too, with exit status 130.
    Bench(Box<Bench>),
    /// Compares runs: whether a change made it worse
    ///
    /// One run before and one after, or better several of each: `diff before/ after/`, `diff before/*.json --to after/*.json`.
    /// By layer and phase, function, states of CPUs and clusters, and energy: the change of the median, its interval, and a verdict where there
    /// are enough runs. With --fail-if, exits with 3 when a condition holds.
    Diff(Box<Diff>),
    /// Predicts a run with other speeds: what to speed up first
    ///
    /// `what-if run --speed driver=2x`: from sections, hand-overs and context switches, recomputed timings. Makespan, latency and
    /// throughput of iterations, the curve of gains and its bound, the critical path, and what all that assumes. No
    /// privileges are needed.
    WhatIf(Box<WhatIf>),
    /// Explains slow executions, split by cause
    ///
    /// `why run --of infer`: the slowest executions of a function against the typical ones. Their difference in ns, by more calls,
    /// more work, lower frequencies, other clusters, waits for a CPU and who had it, idle states, locks, hand-overs, first runs. The
    /// parts add up to the difference. No privileges are needed.
    Why(Box<Why>),
    /// Describes what is in a recording: its run, its host, its files, its losses
    ///
    /// With --check, whether it is whole; with --compare, how this machine differs.
    Info(Info),
    /// Prints the calls of a recording, one a line, in the order of their begins
    ///
    /// When it began (s), its thread, how long it took, the function, its arguments and its result: those of the functions
    /// that `record --call` named. No privileges are needed.
    Calls(Calls),
    /// Packs a recording in one file, with the files that its run used
    ///
    /// The executable, its libraries, models and other files that were opened, each content once, with a map from their paths
    /// to their copies. Devices and files of the kernel are never packed. Names on stderr what has changed since the recording,
    /// what is gone, and what may hold a secret.
    Pack(Pack),
    /// Unpacks what `pack` has written
    ///
    /// To a folder that is new or empty, and is a recording afterwards. A pack that is damaged, or has anything in it that a
    /// pack does not have, is refused, and leaves nothing.
    Unpack(Unpack),
    /// Writes a recording, or traces, for other programs: swimlanes, tables for queries
    ///
    /// A trace for Perfetto has sections, events of CPUs, states of clusters, and flows for hand-overs. Tables are of Apache
    /// Parquet, one file a table: sections, states of CPUs and clusters over time, iterations, hand-overs, totals, facts about
    /// the run. DuckDB, Spark, ClickHouse, pandas and others read the tables of a thousand boards as one. No privileges are
    /// needed.
    Export(Box<Export>),

    /// Shows which engines programs contain, and which of their functions a run would probe
    ///
    /// In files, in the files that processes map, or, without either, which engines are known. No privileges are needed for
    /// files.
    Engines(Engines),
    /// Checks what a run can measure on this machine, and how to get the rest
    ///
    /// Loads and attaches the kernel programs for a moment, as a run does, and looks at tracefs, BTF, idle states, frequencies,
    /// clusters, counters and power rails: for each whether it is present, why not, and the command that provides it. Exits with 0 when
    /// live runs work here, with 1 when they do not.
    Doctor(Doctor),
    /// Describes this host in TOML, for --topology
    ///
    /// Clusters, frequency policies, idle states.
    Topology(ShowTopology),
    /// Makes and checks energy models, for --energy-model
    #[command(subcommand)]
    EnergyModel(EnergyModelAction),
    /// Prints completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Prints a manual page, for `man`
    Man {
        /// Subcommand that the page is about; without one, the command and its options
        subcommand: Vec<String>,
        /// Print the subcommands that have a page, one per line; the empty line is the command itself
        #[arg(long, conflicts_with = "subcommand")]
        list: bool,
    },
    /// Prints the JSON Schema of what --json writes: every key with its meaning and unit
    Schema,
}

/// Actions on energy models.
#[derive(Debug, clap::Subcommand)]
pub enum EnergyModelAction {
    /// Writes a model of this host to fill in: its clusters, frequencies and idle states, and the powers that the kernel
    /// knows
    Init {
        /// The file, which must end in .toml; stdout without one
        file: Option<PathBuf>,
        /// Replace the file if it exists
        #[arg(long)]
        force: bool,
    },
    /// Shows how a model is understood, or its errors
    Check {
        /// The file
        #[arg(value_name = "FILE", value_parser = file(host_options::read_energy_model))]
        model: EnergyModel,
    },
    /// Fits the powers of a model to the measured energy of a power rail
    ///
    /// By the intervals between the states of a recording of the host, better some dozens with different loads: non-negative least
    /// squares. Prints the fitted model, with how well it fits as comments. Powers that the intervals do not determine stay as
    /// they are, and are named. The rail should feed what the model prices, and nothing else.
    Fit {
        /// Folder of the recording
        #[arg(value_name = "RECORDING")]
        folder: PathBuf,
        /// Model to begin with, which must state a unit
        #[arg(long, value_name = "FILE", value_parser = file(host_options::read_energy_model))]
        model: EnergyModel,
        /// Rail, as `VDD_CPU` or `ina226/VDD_CPU`
        #[arg(long, value_name = "NAME")]
        rail: String,
        /// Write the fitted model to this file, which must end in .toml
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Write what was measured and what was fitted in each interval to this file, as CSV
        #[arg(long, value_name = "FILE")]
        residuals: Option<PathBuf>,
        /// Replace files that exist
        #[arg(long)]
        force: bool,
    },
    /// Lists the power rails whose energy this host measures, with what they read now
    Rails {
        /// Where sysfs is mounted
        #[arg(long, value_name = "FOLDER", default_value = SYSFS)]
        rails_from: PathBuf,
    },
}

/// Describes this host.
#[derive(Debug, clap::Args)]
pub struct ShowTopology {
    /// Write to this file instead of stdout
    pub file: Option<PathBuf>,

    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,
}

impl Action {
    /// Whether it reads nothing but files, which others may have made, and writes nothing but results: no kernel, no
    /// process.
    pub fn reads_only_files(&self) -> bool {
        match self {
            Self::Record(_)
            | Self::Bench(_)
            | Self::Engines(_)
            | Self::Doctor(_)
            | Self::Topology(_)
            | Self::EnergyModel(EnergyModelAction::Init { .. } | EnergyModelAction::Rails { .. }) => false,
            Self::Replay(arguments) => {
                !(arguments.emit.is_wanted && arguments.emit.to == EmitTo::TraceMarker)
            }
            _ => !self.fresh_run().is_some_and(FreshRun::is_live),
        }
    }

    /// Returns the run that is recorded first, unless it is there already; `None` for a subcommand without one.
    pub fn fresh_run(&self) -> Option<&FreshRun> {
        match self {
            Self::Explain(arguments) => Some(&arguments.run),
            Self::Where(arguments) => Some(&arguments.run),
            _ => None,
        }
    }

    /// Returns the files and folders that are read as recordings or traces.
    pub fn inputs(&self) -> impl Iterator<Item = &PathBuf> + Clone {
        let (files, more): (&[PathBuf], &[PathBuf]) = match self {
            Self::Replay(arguments) => (&arguments.files, &[]),
            Self::Print(arguments) => (&arguments.files, &[]),
            Self::Export(arguments) => (&arguments.files, &[]),
            Self::Diff(arguments) => (&arguments.runs, &arguments.to),
            Self::WhatIf(arguments) => (&arguments.question.files, &[]),
            Self::Why(arguments) => (&arguments.question.files, &[]),
            Self::Pack(arguments) => (slice::from_ref(&arguments.folder), &[]),
            Self::EnergyModel(EnergyModelAction::Fit { folder, .. }) => (slice::from_ref(folder), &[]),
            Self::Report(arguments) => (slice::from_ref(&arguments.folder), &[]),
            Self::Info(arguments) => (slice::from_ref(&arguments.folder), &[]),
            Self::Calls(arguments) => (slice::from_ref(&arguments.folder), &[]),
            _ => (self.fresh_run().map_or(&[], |run| &run.files), &[]),
        };
        files.iter().chain(more)
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, time::Duration};

    use clap::CommandFactory as _;

    use super::*;

    fn parse(arguments: &[&str]) -> Live {
        Cli::try_parse_from([&["nntrace-bpf"], arguments].concat()).unwrap().live
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_are_human_and_bare_numbers_are_seconds() {
        assert_eq!(parse(&["--duration", "500ms"]).duration, Some(Duration::from_millis(500)));
        assert_eq!(parse(&["-d", "1.5"]).duration, Some(Duration::from_millis(1_500)));
        for wrong in ["0", "fast"] {
            assert!(Cli::try_parse_from(["nntrace-bpf", "--duration", wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn json_takes_its_file_with_an_equals_sign_only() {
        let cli = parse(&["--json", "--", "app", "--json=x"]);
        assert_eq!(cli.results.json, Some(PathBuf::from("-")));
        assert_eq!(cli.command, ["app", "--json=x"]);
        assert_eq!(parse(&["--json=out.json"]).results.json, Some(PathBuf::from("out.json")));
    }

    #[test]
    fn json_and_a_dash_are_no_trace_unless_there_is_no_other() {
        let files = |arguments: &[&str]| {
            let arguments = [&["nntrace-bpf", "replay"], arguments].concat();
            let Ok(Cli { action: Some(Action::Replay(mut replay)), .. }) = Cli::try_parse_from(&arguments)
            else {
                panic!("{arguments:?}");
            };
            replay.settle_json(arguments.iter().map(OsString::from));
            assert_eq!(replay.results.json, Some(PathBuf::from("-")));
            replay.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(files(&["a.txt", "--json", "-"]), ["a.txt"]);
        assert_eq!(files(&["--json", "-", "a.txt"]), ["a.txt"]);
        assert_eq!(files(&["--json", "-"]), ["-"]);
        assert_eq!(files(&["-", "a.txt", "--json"]), ["-", "a.txt"]);
        assert_eq!(files(&["a.txt", "--json=-", "-"]), ["a.txt", "-"]);
    }

    #[test]
    fn files_of_results_are_of_the_kind_that_their_names_end_in() {
        let cli = parse(&["-o", "a.svg", "-o", "b/c.csv", "--output=d.json"]);
        let kinds: Vec<_> = cli.results.outputs.iter().map(|output| output.kind).collect();
        assert_eq!(kinds, [OutputKind::Svg, OutputKind::Csv, OutputKind::Json]);
        assert!(cli.results.wants_steps());
        assert!(parse(&["-o", "results"]).results.check(false).is_err());
    }

    #[test]
    fn a_recording_has_one_folder() {
        let record = |arguments: &[&str]| {
            let arguments = [&["nntrace-bpf", "record"], arguments].concat();
            let Ok(Cli { action: Some(Action::Record(record)), .. }) = Cli::try_parse_from(arguments) else {
                panic!("no recording");
            };
            record.live.results
        };
        let one = record(&["-o", "a.csv", "-o", "run", "--pid", "1"]);
        assert!(one.check(true).is_ok());
        assert_eq!(one.recording(), Some(Path::new("run")));
        assert_eq!(one.files().count(), 1);
        assert!(record(&["-o", "run", "-o", "other"]).check(true).is_err());
    }

    #[test]
    fn options_of_power_tables_are_for_these_only() {
        assert!(parse(&["--table", "idle", "--format", "csv"]).results.check(false).is_ok());
        assert!(parse(&["--table", "cluster", "--baseline", "x"]).results.check(false).is_ok());
        assert!(parse(&["--table", "nnapi", "--format", "csv"]).results.check(false).is_err());
        assert!(parse(&["--table", "summary", "--baseline", "x"]).results.check(false).is_err());
        assert!(Cli::try_parse_from(["nntrace-bpf", "--baseline", "x"]).is_err());
    }

    #[test]
    fn the_short_help_is_one_screen() {
        let help = Cli::command().term_width(100).render_help().to_string();
        // Twenty of them are the subcommands.
        assert!(help.lines().count() < 45, "{help}");
    }

    #[test]
    fn the_help_is_as_reviewed() {
        insta::assert_snapshot!(Cli::command().term_width(100).render_long_help());
    }
}
