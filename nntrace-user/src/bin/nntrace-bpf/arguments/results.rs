//! Options of the output, and of questions about causes.

use std::path::{Path, PathBuf};

use nntrace_user::{
    export::html::Shown,
    model::{causality::Questions, limits::Limits},
    replay::TimeRange,
    report::power::PowerTable,
};

use super::{
    help_headings::{CAUSES, LIMITS, OUTPUT},
    output_file::{EXPECTED, OutputFile, OutputKind, output_file},
    values::{duration_ns, share, table_memory, time_range},
};
use crate::otlp::Endpoint;

/// Output.
#[derive(Debug, Default, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Results {
    /// Write one snapshot at the end: to FILE, or to stdout
    ///
    /// To stdout with `-` or without FILE.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-",
          help_heading = OUTPUT)]
    pub json: Option<PathBuf>,

    /// Write FILE at the end; its extension sets the format: .json, .html ..
    ///
    /// Formats: .json (the snapshot), .csv (the tables of power states, or the one of
    /// --table), .svg (a picture of power states over time), .dot (marked sections and their causes, for Graphviz), .folded
    /// (stacks, for flame graphs), .pb.gz (a profile for pprof), .prom (metrics for Prometheus), .html (a report with a swimlane, for a
    /// browser), .pftrace or .perfetto-trace (a trace for Perfetto). May be given several times.
    #[arg(short, long = "output", value_name = "FILE", value_parser = output_file, help_heading = OUTPUT)]
    pub outputs: Vec<OutputFile>,

    /// Send metrics, and of a recording its sections as spans, to a receiver of OpenTelemetry
    ///
    /// By OTLP over HTTP, such as <http://127.0.0.1:4318>. Live: metrics at each interval and at the end; a receiver that is
    /// slow or gone delays nothing, and what it did not take is counted. `replay` of a recording sends metrics and spans, and
    /// exits with 1 when the receiver did not take all of them. `OTEL_EXPORTER_OTLP_TIMEOUT`, `OTEL_SERVICE_NAME` and
    /// `OTEL_RESOURCE_ATTRIBUTES` count.
    #[arg(long, value_name = "URL", help_heading = OUTPUT, hide_short_help = true)]
    pub otlp: Option<Endpoint>,

    /// Time that the swimlane of .html shows, in seconds as `print` shows them, such as 2084.02..2084.45
    ///
    /// Default: the whole run. Either end may be left out. It shows the 100,000 longest sections of that time, and says
    /// how many it leaves out.
    #[arg(long, value_name = "FROM..TO", value_parser = time_range, help_heading = OUTPUT, hide_short_help = true)]
    pub swimlane: Option<TimeRange>,

    /// Hide sections shorter than this, such as 1us, in the swimlanes of .html and .pftrace
    #[arg(long, value_name = "TIME", value_parser = duration_ns, help_heading = OUTPUT, hide_short_help = true)]
    pub min_span: Option<u64>,

    /// Replace files that exist
    #[arg(long, help_heading = OUTPUT, hide_short_help = true)]
    pub force: bool,

    /// Print a table at the end
    #[arg(long, value_enum, conflicts_with = "json", help_heading = OUTPUT)]
    pub table: Option<Table>,

    /// Form of --table idle, freq or cluster
    #[arg(long, value_enum, requires = "table", default_value_t = Format::Text,
          help_heading = OUTPUT, hide_short_help = true)]
    pub format: Format,

    /// Compare --table idle, freq or cluster with this earlier run
    ///
    /// A snapshot in JSON, a recording, or a trace.
    #[arg(long, value_name = "FILE", requires = "table", help_heading = OUTPUT, hide_short_help = true)]
    pub baseline: Option<PathBuf>,

    /// Draw the states of clusters and CPUs over time at the end
    ///
    /// As wide as the terminal.
    #[arg(long, conflicts_with = "json", help_heading = OUTPUT, hide_short_help = true)]
    pub timeline: bool,

    /// With --table nnapi: totals, not self-times
    #[arg(long, requires = "table", help_heading = OUTPUT, hide_short_help = true)]
    pub total_times: bool,

    /// With --table nnapi: the average of one execution
    #[arg(long, requires = "table", help_heading = OUTPUT, hide_short_help = true)]
    pub per_execution: bool,

    /// Split the time of each thread, layer and phase by function
    #[arg(long, help_heading = OUTPUT, hide_short_help = true)]
    pub detail: bool,

    /// Memory for the tables of results
    ///
    /// Names, threads, processes, counters, hand-overs, iterations: such as 64M. Beyond, the smallest rows are summed as
    /// (others), the oldest forgotten, and counted. Default: a sixteenth of the host's, from 32M to 512M.
    #[arg(long, value_name = "SIZE", value_parser = table_memory, help_heading = LIMITS, hide_short_help = true)]
    pub memory: Option<u64>,

    /// Whether nothing is shown while the run goes on, or of what was recorded.
    #[arg(skip)]
    pub is_quiet: bool,

    /// Causes of work.
    #[command(flatten)]
    pub causes: Causes,
}

/// Questions about the causes of work: iterations, attributes, missing time.
#[derive(Debug, Default, clap::Args)]
pub struct Causes {
    /// Number the calls of this function: each is an iteration
    ///
    /// By default sections that carry `#iter=` are the iterations.
    #[arg(long, value_name = "FUNCTION", help_heading = CAUSES, hide_short_help = true)]
    pub iteration_root: Option<String>,

    /// Show this number of the slowest iterations of each function
    ///
    /// By wall time, with the functions in them: in the snapshot, `--table iterations` and `-o FILE.html`. Every iteration is in
    /// `export -o FOLDER.parquet`.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=10_000), help_heading = CAUSES, hide_short_help = true)]
    pub slowest: Option<u32>,

    /// Split times by the values of this attribute
    ///
    /// Such as img for marks with `#img=...`.
    #[arg(long, value_name = "KEY", help_heading = CAUSES, hide_short_help = true)]
    pub by: Option<String>,

    /// Explain why the time of this function varies
    ///
    /// Because of how often it calls others, or because of how long each call takes.
    #[arg(long, value_name = "FUNCTION", help_heading = CAUSES, hide_short_help = true)]
    pub explain: Option<String>,

    /// Show the time that no marked section covers
    ///
    /// In iterations or, where there are none, in outermost sections.
    #[arg(long, help_heading = CAUSES, hide_short_help = true)]
    pub missing: bool,

    /// Split hand-overs between threads and processes: dispatch, receipt, start, end, finish
    ///
    /// From marks with handles, the marks of both sides of interface calls, binder transactions in traces, and asynchronous
    /// calls. As a table, and as `hand_over_split` of the snapshot.
    #[arg(long, help_heading = CAUSES, hide_short_help = true)]
    pub handoff: bool,

    /// Find idle CPUs while work that was handed over waits for its start
    ///
    /// By cluster, from the first start of work to its last end: as a table at the end, and as `dispatch_overhead` of the snapshot.
    /// With `--level sched`, work waits for the clusters that the thread which takes it runs on; without, for any.
    #[arg(long, help_heading = CAUSES, hide_short_help = true)]
    pub overhead: bool,

    /// Exit with 3 when a larger share of time is missing, such as 5%
    ///
    /// A share of the time of any iterations, or else of outermost sections.
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = CAUSES, hide_short_help = true)]
    pub max_missing: Option<f64>,
}

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Table {
    /// Time by layer and phase, and the states of the CPUs
    Summary,
    /// The reports of the NNAPI systrace parser, in its layout
    Nnapi,
    /// Idle states of clusters and CPUs: times, and how long single stays were
    Idle,
    /// Frequencies of clusters and CPUs: requested and effective
    Freq,
    /// States of clusters, and how many of their CPUs ran at once
    Cluster,
    /// Iterations by function, and the slowest of them
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

/// Form of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// For programs: a header line, one row for each state, ns and kHz
    Csv,
}

impl Results {
    /// How large tables may become.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits::of_memory(self.memory.unwrap_or_else(default_memory))
    }

    /// The folder of a recording.
    #[must_use]
    pub fn recording(&self) -> Option<&Path> {
        let mut outputs = self.outputs.iter();
        outputs.find(|output| output.kind == OutputKind::Recording).map(|output| output.path.as_path())
    }

    /// Returns what a swimlane shows.
    #[must_use]
    pub fn swimlane(&self) -> Shown {
        let range = self.swimlane.map(|range| (range.begin, range.end));
        Shown { range, least_ns: self.min_span.unwrap_or(0) }
    }

    /// The files of results, without a recording.
    pub fn files(&self) -> impl Iterator<Item = &OutputFile> {
        self.outputs.iter().filter(|output| output.kind != OutputKind::Recording)
    }

    /// Checks rules that the definition of the command line cannot express.
    ///
    /// # Errors
    /// When an option is for another table, or a file of results is of no kind that is known.
    pub fn check(&self, records: bool) -> Result<(), clap::Error> {
        let recordings = self.outputs.len() - self.files().count();
        if let Some(folder) = self.recording().filter(|_| recordings > usize::from(records)) {
            let folder = folder.display();
            let message = if records {
                format!(
                    "one run has one recording, and {folder} is not the only name without a known ending: {EXPECTED}"
                )
            } else {
                format!("invalid value '{folder}' for '--output <FILE>': {EXPECTED}; `record` writes folders")
            };
            return Err(clap::Error::raw(clap::error::ErrorKind::ValueValidation, message));
        }
        let of_power = self.table.and_then(Table::of_power).is_some();
        if of_power || (self.format == Format::Text && self.baseline.is_none()) {
            return Ok(());
        }
        let option = if self.baseline.is_some() { "--baseline" } else { "--format csv" };
        let message = format!("{option} is for --table idle, freq and cluster");
        Err(clap::Error::raw(clap::error::ErrorKind::ArgumentConflict, message))
    }

    /// The questions about causes, for the model.
    #[must_use]
    pub fn questions(&self) -> Questions {
        let Causes { iteration_root, slowest, by, explain, missing, handoff, overhead, max_missing } =
            &self.causes;
        Questions {
            iteration_root: iteration_root.clone(),
            by: by.clone(),
            explain: explain.clone(),
            missing: *missing || max_missing.is_some(),
            graph: self.wants(OutputKind::Dot),
            hand_overs: *handoff || *overhead || self.wants_swimlane() || self.otlp.is_some(),
            slowest: *slowest,
            every_iteration: self.wants(OutputKind::Pprof),
        }
    }

    /// Whether timelines are needed.
    #[must_use]
    pub fn wants_steps(&self) -> bool {
        self.timeline || self.causes.overhead || self.wants(OutputKind::Svg) || self.wants_swimlane()
    }

    /// Whether a file with a swimlane is to be written.
    fn wants_swimlane(&self) -> bool {
        self.wants(OutputKind::Html) || self.wants(OutputKind::Perfetto)
    }

    /// Whether a file of this kind is to be written.
    #[must_use]
    pub fn wants(&self, kind: OutputKind) -> bool {
        self.outputs.iter().any(|output| output.kind == kind)
    }
}

/// Default memory of tables on this host, bytes.
pub fn default_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
    let total = total.and_then(|kib| kib.trim().parse::<u64>().ok());
    total.map_or(Limits::DEFAULT, |kib| Limits::default_memory(kib * 1024))
}
