//! Options of the question why executions were slow.

use nntrace_user::analyze::why::{Options, Share};

use super::{GraphQuestion, help_headings::TARGET};

/// Splits by cause why some executions were slow.
#[derive(Debug, clap::Args)]
pub struct Why {
    /// Function whose executions are compared, such as infer or `LR_PE:infer`
    ///
    /// By default the one that takes most time, of those whose sections are iterations (#iter= in marks) if there are any. It has
    /// to have ended five times.
    #[arg(long, value_name = "FUNCTION", help_heading = TARGET)]
    pub of: Option<String>,

    /// Share of the executions that are slow: one at least
    ///
    /// They are compared with the typical ones, the fifth of all around the median.
    #[arg(long, value_name = "SHARE", default_value = "10%", help_heading = TARGET)]
    pub slowest: Share,

    /// The run.
    #[command(flatten)]
    pub question: GraphQuestion,
}

impl Why {
    /// Returns the options of the question.
    pub fn options(&self) -> Options {
        Options { function: self.of.clone(), slowest: self.slowest }
    }
}
