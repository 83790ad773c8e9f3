//! Options of comparing runs.

use std::path::PathBuf;

use nntrace_user::analyze::diff::{Per, Threshold};

use super::{
    HostOptions,
    help_headings::{OUTPUT, TARGET},
    values::confidence,
};

/// Compares runs.
#[derive(Debug, clap::Args)]
pub struct Diff {
    /// Run before and run after; with --to, the runs before
    ///
    /// Snapshots in JSON, recordings, traces, or folders with several snapshots or recordings.
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,

    /// Runs after: diff before/*.json --to after/*.json
    #[arg(long, value_name = "RUN", num_args = 1.., help_heading = TARGET)]
    pub to: Vec<PathBuf>,

    /// The host of traces, and the energy model of traces and recordings.
    #[command(flatten)]
    pub host: HostOptions,

    /// Exit with 3 when this holds, such as `LR_PE.p99 > +5%` or `cluster.big.energy > 2J`; may be given several times
    ///
    /// A figure, a comparison (>, >=, <, <=) and a value: with a sign a change (+5%, -3%, +200us, +2pp), without one the
    /// value after (10ms, 40%, 0.5J). It is of the medians, however many runs there are. In the name, * stands for any text. The word
    /// `worse` stands for any figure that is worse by the verdict.
    #[arg(long = "fail-if", value_name = "CONDITION", help_heading = OUTPUT)]
    pub thresholds: Vec<Threshold>,

    /// Confidence of intervals; what is left of 100% is the probability of any false alarm
    #[arg(long, value_name = "SHARE", value_parser = confidence, default_value = "95%", help_heading = OUTPUT)]
    pub confidence: f64,

    /// Divide sums by this; default: executions where every run has some, else seconds
    #[arg(long, value_enum, help_heading = OUTPUT)]
    pub per: Option<Divisor>,

    /// Show every figure, also those without a change
    #[arg(long, conflicts_with = "json", help_heading = OUTPUT)]
    pub all: bool,

    /// As JSON
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,

    /// Write FILE: .json, .md (a summary for a pull request) or .xml (JUnit); may be given several times
    #[arg(short, long = "output", value_name = "FILE", value_parser = diff_file, help_heading = OUTPUT)]
    pub outputs: Vec<DiffFile>,

    /// Replace files that exist
    #[arg(long, help_heading = OUTPUT)]
    pub force: bool,
}

/// Divisor of sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Divisor {
    /// Executions of the application
    Execution,
    /// Seconds of the window
    Second,
    /// Nothing: every run did the same work
    Run,
}

impl Divisor {
    /// Returns the divisor.
    pub const fn per(self) -> Per {
        match self {
            Self::Execution => Per::Execution,
            Self::Second => Per::Second,
            Self::Run => Per::Run,
        }
    }
}

/// File of a comparison.
#[derive(Clone, Debug)]
pub struct DiffFile {
    /// Form.
    pub form: DiffForm,
    /// Path.
    pub path: PathBuf,
}

/// Form of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffForm {
    /// JSON.
    Json,
    /// Markdown.
    Markdown,
    /// JUnit XML.
    Junit,
}

fn diff_file(text: &str) -> Result<DiffFile, String> {
    let path = PathBuf::from(text);
    let form = match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => DiffForm::Json,
        Some("md") => DiffForm::Markdown,
        Some("xml") => DiffForm::Junit,
        _ => return Err("expected a file name that ends in .json, .md or .xml".into()),
    };
    Ok(DiffFile { form, path })
}
