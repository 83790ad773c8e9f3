//! Arguments of `nntrace-bpf doctor`.

use super::help_headings::OUTPUT;

/// Checks what a run can measure on this machine.
#[derive(Debug, clap::Args)]
pub struct Doctor {
    /// As JSON
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
}
