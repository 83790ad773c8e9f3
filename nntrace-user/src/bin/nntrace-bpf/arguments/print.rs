//! Options of printing sections.

use std::path::PathBuf;

use super::{
    SectionOptions,
    help_headings::{CAUSES, OUTPUT},
};

/// Prints sections.
#[derive(Debug, clap::Args)]
pub struct Print {
    /// Trace files, or the folder of one recording; `-` is standard input. Several files are merged by time
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Choice of sections.
    #[command(flatten)]
    pub sections: SectionOptions,

    /// One thread after the other, or all of them merged
    #[arg(long, value_enum, help_heading = OUTPUT)]
    pub group: Option<Group>,

    /// As a tree: below each section what it contains
    ///
    /// Of a recording, one thread after the other; with `--group none`, sections are only indented. Of traces, also what a
    /// section hands over, and what threads that it creates do.
    #[arg(long, help_heading = OUTPUT)]
    pub tree: bool,

    /// One JSON object a line
    #[arg(long, conflicts_with_all = ["tree", "group"], help_heading = OUTPUT)]
    pub json_lines: bool,

    /// Print the command line that was recorded, and nothing else
    #[arg(long, conflicts_with_all = ["tree", "group", "json_lines"], help_heading = OUTPUT)]
    pub command: bool,

    /// Number the occurrences of this function in traces: each is an iteration
    #[arg(long, value_name = "FUNCTION", help_heading = CAUSES)]
    pub iteration_root: Option<String>,
}

/// Order of sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Group {
    /// All threads merged
    None,
    /// One thread after the other
    Thread,
}
