//! Options that choose sections.

use nntrace_common::layer::{Layer, Phase};
use nntrace_user::{
    model::{name_pattern::NamePattern, section_filter::SectionFilter},
    replay::TimeRange,
};

use super::{
    help_headings::SECTIONS,
    values::{duration_ns, layer, phase, task, time_range},
};

/// Choice of sections; those that it hides are counted on stderr.
#[derive(Debug, clap::Args)]
pub struct SectionOptions {
    /// Only this thread; may be given several times
    #[arg(long = "tid", value_name = "TID", value_parser = task, help_heading = SECTIONS)]
    pub tids: Vec<u32>,

    /// Only sections of this name; `*` and `?` stand for anything; may be given several times
    #[arg(long = "name", value_name = "PATTERN", help_heading = SECTIONS)]
    pub names: Vec<NamePattern>,

    /// Only this layer, such as LR or Runtime; may be given several times
    #[arg(long = "layer", value_name = "LAYER", value_parser = layer, help_heading = SECTIONS)]
    pub layers: Vec<Layer>,

    /// Only this phase, such as PE or Execution; may be given several times
    #[arg(long = "phase", value_name = "PHASE", value_parser = phase, help_heading = SECTIONS)]
    pub phases: Vec<Phase>,

    /// Only this time, in seconds as `print` shows them, such as 2084.02..2084.45; either end may be left out
    #[arg(long = "time", alias = "time-range", value_name = "FROM..TO", value_parser = time_range,
          help_heading = SECTIONS)]
    pub range: Option<TimeRange>,

    /// Only sections of at least this duration, such as 1ms
    #[arg(long = "min", value_name = "TIME", value_parser = duration_ns, help_heading = SECTIONS)]
    pub least: Option<u64>,
}

impl SectionOptions {
    /// Returns the choice.
    pub fn filter(&self) -> SectionFilter {
        SectionFilter {
            tids: self.tids.clone(),
            names: self.names.clone(),
            layers: self.layers.clone(),
            phases: self.phases.clone(),
            range: self.range.map(|range| (range.begin, range.end)),
            least_ns: self.least.unwrap_or(0),
        }
    }
}
