//! Options of statistics of sections.

use std::path::PathBuf;

use nntrace_user::{analyze::path::Path, model::section_statistics::Property, report::section_statistics};

use super::{
    SectionOptions,
    help_headings::{LIMITS, OUTPUT},
    values::{duration_ns, table_memory},
};

/// Sums up the sections of a recording.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[derive(Debug, clap::Args)]
pub struct Report {
    /// Folder of the recording; with --handoff or --overhead also a trace
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,

    /// Split hand-overs between threads and processes: dispatch, receipt, start, end, finish
    ///
    /// Shortest, median, 95th percentile and longest of each part, by the layers on both sides, phase and function, the first one
    /// shown separately. `-` is a part that no mark shows both ends of.
    #[arg(long, conflicts_with_all = ["by", "sort", "SectionOptions"], help_heading = OUTPUT)]
    pub handoff: bool,

    /// Find idle CPUs while work that was handed over waits for its start
    ///
    /// By cluster, from the first start of work to its last end. Work waits for the clusters that the thread which takes it ran on,
    /// where context switches show these, else for any.
    #[arg(long, conflicts_with_all = ["by", "sort", "SectionOptions", "handoff"], help_heading = OUTPUT)]
    pub overhead: bool,

    /// Latency and rate of work from the first of these functions to the last, as in 'capture>infer>show'
    ///
    /// From the begin of a section of the first one to the end of one of the last, over what it calls and the work that it hands over
    /// to other threads and processes, whatever lies between two of the functions; and from each function to the next.
    #[arg(long, value_name = "A>B..", conflicts_with_all = ["by", "sort", "SectionOptions", "handoff", "overhead"],
          help_heading = OUTPUT)]
    pub path: Option<Path>,

    /// Latency of the path that is allowed, such as 33ms: what takes longer is counted as missed [default: its period, if it has one]
    #[arg(long, value_name = "TIME", requires = "path", value_parser = duration_ns, help_heading = OUTPUT)]
    pub deadline: Option<u64>,

    /// Choice of sections.
    #[command(flatten)]
    pub sections: SectionOptions,

    /// Sum by these properties, in this order: any of pid, thread, layer, phase and function
    ///
    /// Without `function`, details are left out and parts of executions add to these, as in the table of layers and phases.
    #[arg(long, value_enum, value_name = "PROPERTY,..", value_delimiter = ',',
          default_values_t = [By::Pid, By::Layer, By::Phase, By::Function], hide_default_value = true,
          help_heading = OUTPUT)]
    pub by: Vec<By>,

    /// Order of the rows: the largest first, except by name or in the order of --by
    #[arg(long, value_enum, default_value_t = Sort::Total, help_heading = OUTPUT)]
    pub sort: Sort,

    /// As CSV
    #[arg(long, conflicts_with = "json", help_heading = OUTPUT)]
    pub csv: bool,

    /// As JSON
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,

    /// Memory of the table, such as 64M
    ///
    /// Rows that there is no room for are summed as `(others)`, the smallest first. Default: as for `replay`.
    #[arg(long, value_name = "SIZE", value_parser = table_memory, help_heading = LIMITS)]
    pub memory: Option<u64>,
}

/// Property of sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// Process
    Pid,
    /// Thread
    Thread,
    /// Layer
    Layer,
    /// Phase
    Phase,
    /// Function
    Function,
}

impl By {
    /// Returns the property.
    pub const fn property(self) -> Property {
        match self {
            Self::Pid => Property::Process,
            Self::Thread => Property::Thread,
            Self::Layer => Property::Layer,
            Self::Phase => Property::Phase,
            Self::Function => Property::Function,
        }
    }
}

/// Order of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Sort {
    /// Total
    Total,
    /// Exclusive time
    #[value(name = "self", alias = "exclusive")]
    Exclusive,
    /// Number of sections
    Count,
    /// Shortest
    Min,
    /// Mean
    Mean,
    /// Median
    P50,
    /// 95th percentile
    P95,
    /// 99th percentile
    P99,
    /// Longest
    Max,
    /// Standard deviation
    Sd,
    /// Relative standard deviation
    Rsd,
    /// Name of the function
    Name,
    /// Properties of --by
    By,
}

impl Sort {
    /// Returns the order.
    pub const fn order(self) -> section_statistics::SortBy {
        use section_statistics::SortBy;
        match self {
            Self::Total => SortBy::Total,
            Self::Exclusive => SortBy::Exclusive,
            Self::Count => SortBy::Count,
            Self::Min => SortBy::Min,
            Self::Mean => SortBy::Mean,
            Self::P50 => SortBy::P50,
            Self::P95 => SortBy::P95,
            Self::P99 => SortBy::P99,
            Self::Max => SortBy::Max,
            Self::Sd => SortBy::Deviation,
            Self::Rsd => SortBy::RelativeDeviation,
            Self::Name => SortBy::Name,
            Self::By => SortBy::Properties,
        }
    }
}
