//! Arguments of explaining a run.

use nntrace_user::analyze::why::{Options, Share};

use super::{FreshRun, help_headings::TARGET};

/// Explains a run on one page.
#[derive(Debug, clap::Args)]
pub struct Explain {
    /// The run.
    #[command(flatten)]
    pub run: FreshRun,

    /// Function whose slowest executions are explained, such as infer or `LR_PE:infer`
    ///
    /// By default the one that takes most time, of those whose sections are iterations (#iter= in marks) if there are any.
    #[arg(long, value_name = "FUNCTION", help_heading = TARGET)]
    pub of: Option<String>,

    /// Share of the executions that are slow: one at least
    #[arg(long, value_name = "SHARE", default_value = "10%", help_heading = TARGET)]
    pub slowest: Share,
}

impl Explain {
    /// Returns the question why executions were slow.
    pub fn why(&self) -> Options {
        Options { function: self.of.clone(), slowest: self.slowest }
    }
}
