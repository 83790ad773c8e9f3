//! Options about results: where they go, as what, and what is asked.

use std::path::PathBuf;

use clap::CommandFactory as _;
use nntrace_user::{
    model::{causality::Questions, limits::Limits},
    report::power::PowerTable,
};

use super::{
    Cli,
    values::{output_file, share, table_memory},
};

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

    /// Memory for the tables of results: names, threads, processes, counters, hand-overs, iterations, such as 64M. Beyond,
    /// the smallest rows are summed as (others), the oldest forgotten, and counted. Without it: a sixteenth of the machine's,
    /// from 32M to 512M
    #[arg(long, value_name = "SIZE", value_parser = table_memory)]
    pub memory: Option<u64>,

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
    /// How large tables may become.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits::of_memory(self.memory.unwrap_or_else(machine_memory))
    }

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

/// The default for a machine like this one, bytes.
pub fn machine_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
    let total = total.and_then(|kib| kib.trim().parse::<u64>().ok());
    total.map_or(Limits::DEFAULT, |kib| Limits::default_memory(kib * 1024))
}
