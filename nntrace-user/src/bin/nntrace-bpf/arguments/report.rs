//! Options of statistics of sections.

use std::path::PathBuf;

use nntrace_user::{model::section_statistics::Property, report::section_statistics};

use super::{
    SectionOptions,
    help_headings::{LIMITS, OUTPUT},
    values::table_memory,
};

/// Sums up the sections of a recording.
#[derive(Debug, clap::Args)]
pub struct Report {
    /// Folder of the recording; with --handoff also a trace
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,

    /// Split hand-overs between threads and processes: dispatch, receipt, start, end, finish
    ///
    /// Shortest, median, 95th percentile and longest of each part, by the layers on both sides, phase and function, the first one
    /// by itself. `-` is a part that no mark shows both ends of.
    #[arg(long, conflicts_with_all = ["by", "sort", "SectionOptions"], help_heading = OUTPUT)]
    pub handoff: bool,

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
    /// Rows that there is no room for are summed as `(others)`, the smallest first. By itself that of a replay.
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
