//! `nntrace-bpf calls`: the calls of a recording.

use std::process::ExitCode;

use anyhow::{Result, bail};
use nntrace_user::{
    record,
    report::{call_list, terminal_text::Text},
};

use super::recording_folder;
use crate::{arguments::Calls, output, stderr};

/// Prints the calls of a recording; returns the exit status.
pub fn run(cli: &Calls) -> Result<ExitCode> {
    recording_folder::check(&cli.folder, "`calls`")?;
    let calls = record::calls(&cli.folder)?;
    if calls.definitions().next().is_none() {
        calls.notes().iter().for_each(stderr::message);
        bail!(
            "{} has no calls: record some with --call, such as nntrace-bpf record -o DIR --call \
             'libc.so.6:open(str,i32)->i32' -- COMMAND",
            cli.folder.display()
        );
    }
    if cli.json {
        let mut lines = Vec::new();
        let mut failed = None;
        calls.visit(|definition, call| match call_list::json(definition, call) {
            Ok(line) => lines.extend(line),
            Err(error) => failed = Some(error),
        });
        failed.map_or(Ok(()), Err)?;
        output::write_stdout(&lines)?;
    } else {
        let mut text = Text::new();
        calls.visit(|definition, call| call_list::add_line(&mut text, definition, call));
        output::print(&text)?;
    }
    calls.notes().iter().for_each(stderr::message);
    Ok(ExitCode::SUCCESS)
}
