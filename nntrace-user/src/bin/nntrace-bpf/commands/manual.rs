//! Descriptions of the command for other programs: completions for shells, the manual page, the schema of its JSON.

use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory as _;
use clap_complete::Shell;
use nntrace_user::report::snapshot::Snapshot;

use crate::{arguments::Cli, output};

/// Prints what a shell needs to complete options.
pub fn completions(shell: Shell) -> Result<ExitCode> {
    let mut text = Vec::new();
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    clap_complete::generate(shell, &mut command, name, &mut text);
    output::write_stdout(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page of the command; its subcommands have theirs in `--help`.
pub fn page() -> Result<ExitCode> {
    let mut text = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut text)?;
    output::write_stdout(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the JSON Schema of snapshots.
pub fn schema() -> Result<ExitCode> {
    output::write_stdout(Snapshot::json_schema().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
