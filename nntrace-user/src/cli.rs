//! The command line.

mod values;

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{CommandFactory as _, Parser};
use nntrace_user::{
    live::{kernel::DEFAULT_RING_BYTES, session::MarkSource, target::SymbolSpec},
    model::{Topology, causality::Questions, energy::EnergyModel, topology::ClusterDescription},
    replay::TimeRange,
    report::power::PowerTable,
};
use values::{cluster, duration, file, output_file, share, time_range};

use crate::{energy_command, machine};

/// Shows in which layer and phase of the neural-network stack the time goes, and what the CPUs did meanwhile.
///
/// With a terminal on stdout it shows a live view, otherwise a table each interval. It ends when the target ends; with
/// `-- COMMAND` it exits with the command's status.
#[derive(Debug, Parser)]
#[command(name = "nntrace-bpf", version, max_term_width = 100, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// Something else than tracing live
    #[command(subcommand)]
    pub action: Option<Action>,

    /// What to trace, and how
    #[command(flatten)]
    pub live: Live,
}

/// Something else than tracing live.
#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// Shows what trace files hold: the same tables, views and snapshot as live, without privileges
    ///
    /// Reads the text of ftrace, `trace-cmd report`, systrace (HTML too), atrace and Perfetto's systrace export, and
    /// `trace.dat` as `trace-cmd record` writes it, plain or packed by gzip or zstd. Exits with 0 when it could
    /// show something, and what could not be read is counted; with 1 when a file cannot be opened or holds no event; with 2
    /// when the command line is wrong.
    Replay(Box<Replay>),
    /// Shows every marked section of trace files, one a line
    ///
    /// When it began (s), its thread, how long it took, layer and phase, name, and the iteration and account that it
    /// belongs to.
    Print(Print),
    /// Describes this machine in TOML, for --topology: clusters, frequency policies, idle states
    Topology(ShowTopology),
    /// Makes and checks energy models, the files that --energy-model takes
    #[command(subcommand)]
    EnergyModel(EnergyModelAction),
    /// Prints what a shell needs to complete this command's options
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Prints the manual page, for `man`
    Man,
}

/// What to do about energy models.
#[derive(Debug, clap::Subcommand)]
pub enum EnergyModelAction {
    /// Writes a model of this machine to fill in: its clusters, frequencies and idle states, and the powers that the
    /// kernel knows
    Init {
        /// The file, which must end in .toml; stdout without one
        file: Option<PathBuf>,
        /// Replace the file if it exists
        #[arg(long)]
        force: bool,
    },
    /// Shows what is understood of a model, or what is wrong with it
    Check {
        /// The file
        #[arg(value_name = "FILE", value_parser = file(energy_command::read))]
        model: EnergyModel,
    },
}

/// Describes this machine.
#[derive(Debug, clap::Args)]
pub struct ShowTopology {
    /// Write to this file instead of stdout
    pub file: Option<PathBuf>,

    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,
}

/// Shows sections.
#[derive(Debug, clap::Args)]
pub struct Print {
    /// Trace files; `-` is standard input. Several are merged by time
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// As a tree: below each section what it contains, hands over, and what threads that it creates do
    #[arg(long)]
    pub tree: bool,

    /// Look at this time only, in seconds of the trace, such as 2084.02..2084.45; either end may be left out
    #[arg(long, value_name = "FROM..TO", value_parser = time_range)]
    pub time_range: Option<TimeRange>,

    /// Number the occurrences of this function: each is an iteration
    #[arg(long, value_name = "FUNCTION")]
    pub iteration_root: Option<String>,
}

/// What the user says of the machine.
#[derive(Debug, Default, clap::Args)]
pub struct Machine {
    /// Description of the machine in TOML, as `nntrace-bpf topology` writes it
    #[arg(long, value_name = "FILE", value_parser = file(machine::read))]
    pub topology: Option<Topology>,

    /// CPUs that form a cluster, such as `big=4-7`; CPUs in none form one called `other`
    #[arg(long = "cluster", value_name = "NAME=CPUS", value_parser = cluster)]
    pub clusters: Vec<ClusterDescription>,

    /// What CPUs and clusters cost in each state: an energy model, of idlestat's form or (.toml) of ours; `nntrace-bpf
    /// energy-model init` writes one to fill in
    #[arg(long, value_name = "FILE", value_parser = file(energy_command::read))]
    pub energy_model: Option<EnergyModel>,
}

/// Where results go.
#[derive(Debug, Default, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Results {
    /// Write one snapshot at the end: to FILE, or to stdout with `-` or without FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,

    /// Write results to FILE at the end, of the kind that its name ends in: .json (the snapshot), .csv (the tables of
    /// power states, or the one of --table), .svg (a picture of power states over time), .dot (marked sections and what caused
    /// them, for Graphviz). May be given several times
    #[arg(short, long = "output", value_name = "FILE", value_parser = output_file)]
    pub outputs: Vec<OutputFile>,

    /// Replace files that exist
    #[arg(long)]
    pub force: bool,

    /// Print this table at the end
    #[arg(long, value_enum, conflicts_with = "json")]
    pub table: Option<Table>,

    /// With --table idle, freq or cluster: print it as this
    #[arg(long, value_enum, requires = "table", default_value_t = Format::Text)]
    pub format: Format,

    /// With --table idle, freq or cluster: show what changed since this run, a snapshot in JSON or a trace
    #[arg(long, value_name = "FILE", requires = "table")]
    pub baseline: Option<PathBuf>,

    /// Draw at the end what clusters and CPUs did over time, as wide as the terminal
    #[arg(long, conflicts_with = "json")]
    pub timeline: bool,

    /// With --table nnapi: totals, not self-times
    #[arg(long, requires = "table")]
    pub total_times: bool,

    /// With --table nnapi: the average of one execution
    #[arg(long, requires = "table")]
    pub per_execution: bool,

    /// Tell also, for each thread, what functions the time of a layer and phase is made of
    #[arg(long)]
    pub detail: bool,

    /// What is asked about the causes of work
    #[command(flatten)]
    pub causes: Causes,
}

/// What is asked about the causes of work: iterations, attributes, what is missing.
#[derive(Debug, Default, clap::Args)]
pub struct Causes {
    /// Number the occurrences of this function: each is an iteration. Without it, those that carry `#iter=` are
    #[arg(long, value_name = "FUNCTION")]
    pub iteration_root: Option<String>,

    /// Tell the time by the values of this attribute, such as img for marks with `#img=...`
    #[arg(long, value_name = "KEY")]
    pub by: Option<String>,

    /// Tell whether this function takes now more, now less time because of how often it calls others, or because of how
    /// long each call takes
    #[arg(long, value_name = "FUNCTION")]
    pub explain: Option<String>,

    /// Tell what no marked section covers: of iterations or, where there are none, of outermost sections
    #[arg(long)]
    pub missing: bool,

    /// Exit with 3 when a larger share of the time of any iterations (or else outermost sections) is missing, such as 5%
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub max_missing: Option<f64>,
}

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Table {
    /// Time by layer and phase, and what the CPUs did
    Summary,
    /// The reports of the NNAPI systrace parser, in its layout
    Nnapi,
    /// Idle states of clusters and CPUs: times, and how long single stays were
    Idle,
    /// Frequencies of clusters and CPUs: requested and effective
    Freq,
    /// What the CPUs of each cluster did together, and how many ran at once
    Cluster,
    /// Every iteration, with what was done in it
    Iterations,
}

impl Table {
    /// Which table of power states it is; `None` for one of marks.
    #[must_use]
    pub const fn of_power(self) -> Option<PowerTable> {
        match self {
            Self::Summary | Self::Nnapi | Self::Iterations => None,
            Self::Idle => Some(PowerTable::Idle),
            Self::Freq => Some(PowerTable::Frequency),
            Self::Cluster => Some(PowerTable::Cluster),
        }
    }
}

/// What a table is printed as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// For programs: a header line, one row for each state, ns and kHz
    Csv,
}

/// A file of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    /// What it holds.
    pub kind: OutputKind,
    /// Where it is.
    pub path: PathBuf,
}

/// What a file of results holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// The snapshot.
    Json,
    /// Tables of power states.
    Csv,
    /// Power states over time.
    Svg,
    /// Sections and their causes.
    Dot,
}

impl Results {
    /// What the definition of the command line cannot say by itself.
    ///
    /// # Errors
    /// When an option is for another table.
    pub fn check(&self) -> Result<(), clap::Error> {
        let of_power = self.table.and_then(Table::of_power).is_some();
        if of_power || (self.format == Format::Text && self.baseline.is_none()) {
            return Ok(());
        }
        let option = if self.baseline.is_some() { "--baseline" } else { "--format csv" };
        let message = format!("{option} is for --table idle, freq and cluster");
        Err(Cli::command().error(clap::error::ErrorKind::ArgumentConflict, message))
    }

    /// What is asked about the causes of work, for the model.
    #[must_use]
    pub fn questions(&self) -> Questions {
        let Causes { iteration_root, by, explain, missing, max_missing } = &self.causes;
        Questions {
            iteration_root: iteration_root.clone(),
            by: by.clone(),
            explain: explain.clone(),
            missing: *missing || max_missing.is_some(),
            graph: self.outputs.iter().any(|output| output.kind == OutputKind::Dot),
        }
    }

    /// Whether what CPUs and clusters do has to be kept in its order.
    #[must_use]
    pub fn wants_steps(&self) -> bool {
        self.timeline || self.outputs.iter().any(|output| output.kind == OutputKind::Svg)
    }
}

/// Replays trace files.
#[derive(Debug, clap::Args)]
pub struct Replay {
    /// Trace files; `-` is standard input. Several are merged by time
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Where results go
    #[command(flatten)]
    pub results: Results,

    /// Look at this time only, in seconds of the trace, such as 2084.02..2084.45; either end may be left out
    #[arg(long, value_name = "FROM..TO", value_parser = time_range)]
    pub time_range: Option<TimeRange>,

    /// This process is a driver
    #[arg(long = "driver", value_name = "PID")]
    pub drivers: Vec<u32>,

    /// What the machine is
    #[command(flatten)]
    pub machine: Machine,
}

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

    /// Probe behind a function's leading nop: slower, but on Linux 6.18 children of probed programs that fork and
    /// go on without exec would die of their next mark otherwise
    #[arg(long)]
    pub plain_probes: bool,

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

#[cfg(test)]
mod tests {
    use nntrace_user::model::topology::Domain;

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
        assert!(duration("0").is_err());
        assert!(duration("fast").is_err());
    }

    #[test]
    fn json_takes_its_file_with_an_equals_sign_only() {
        let cli = parse(&["--json", "--", "app", "--json=x"]);
        assert_eq!(cli.results.json, Some(PathBuf::from("-")));
        assert_eq!(cli.command, ["app", "--json=x"]);
        assert_eq!(parse(&["--json=out.json"]).results.json, Some(PathBuf::from("out.json")));
    }

    #[test]
    fn files_of_results_are_of_the_kind_that_their_names_end_in() {
        let cli = parse(&["-o", "a.svg", "-o", "b/c.csv", "--output=d.json"]);
        let kinds: Vec<_> = cli.results.outputs.iter().map(|output| output.kind).collect();
        assert_eq!(kinds, [OutputKind::Svg, OutputKind::Csv, OutputKind::Json]);
        assert!(cli.results.wants_steps());
        assert!(Cli::try_parse_from(["nntrace-bpf", "-o", "results"]).is_err());
    }

    #[test]
    fn options_of_power_tables_are_for_these_only() {
        assert!(parse(&["--table", "idle", "--format", "csv"]).results.check().is_ok());
        assert!(parse(&["--table", "cluster", "--baseline", "x"]).results.check().is_ok());
        assert!(parse(&["--table", "nnapi", "--format", "csv"]).results.check().is_err());
        assert!(parse(&["--table", "summary", "--baseline", "x"]).results.check().is_err());
        assert!(Cli::try_parse_from(["nntrace-bpf", "--baseline", "x"]).is_err());
    }

    #[test]
    fn ranges_are_seconds_to_the_nanosecond() {
        let range = |begin, end| Ok(TimeRange { begin, end });
        assert_eq!(time_range("2.5..3"), range(2_500_000_000, 3_000_000_000));
        assert_eq!(time_range("1.000000001.."), range(1_000_000_001, u64::MAX));
        assert_eq!(time_range("..2"), range(0, 2_000_000_000));
        for wrong in ["", "1", "3..2", "a..b", "1.0000000001..2", "-1..2", "99999999999999..", "1...2"] {
            assert!(time_range(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn clusters_are_named_lists() {
        assert_eq!(
            cluster("big=4-6").unwrap(),
            ClusterDescription { name: "big".into(), cpus: vec![4, 5, 6], domain: Domain::Both }
        );
        assert!(cluster("big").is_err());
        assert!(cluster("=1").is_err());
        assert!(cluster("big=").is_err());
    }

    #[test]
    fn the_help_is_as_reviewed() {
        insta::assert_snapshot!(Cli::command().term_width(100).render_long_help());
    }
}
