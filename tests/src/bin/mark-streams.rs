//! Writes the marks of a file, with lines `<thread number> <payload>`, those of each thread in their order.

use std::{collections::BTreeMap, ffi::CString, process::ExitCode, thread};

use anyhow::{Context as _, Result};
use nntrace_common::emit::tracing_mark_write;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mark-streams: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let path = std::env::args_os().nth(1).context("the file is missing")?;
    let mut streams: BTreeMap<u32, Vec<CString>> = BTreeMap::new();
    for line in std::fs::read_to_string(path)?.lines() {
        let (thread, payload) = line.split_once(' ').context("a line has a thread and a payload")?;
        streams.entry(thread.parse()?).or_default().push(CString::new(payload)?);
    }
    thread::scope(|scope| {
        for stream in streams.values() {
            scope.spawn(|| stream.iter().for_each(|payload| tracing_mark_write(payload.as_ptr().cast())));
        }
    });
    Ok(())
}
