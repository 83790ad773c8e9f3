//! Arguments of the question where operators ran.

use super::FreshRun;

/// Shows where operators ran.
#[derive(Debug, clap::Args)]
#[command(mut_arg("engine_level", |argument| argument.default_value("op")))]
pub struct Where {
    /// The run.
    #[command(flatten)]
    pub run: FreshRun,
}
