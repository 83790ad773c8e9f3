//! `nntrace-bpf replay --emit`: the marks of a recording, written once more.

use std::{process::ExitCode, thread};

use anyhow::{Context as _, Result};
use nix::sys::signal::{SigSet, Signal};
use nntrace_user::emit::{self, OutletKind, Script, Speed};

use super::recording_folder;
use crate::{
    arguments::{EmitTo, Replay, usage},
    stderr,
};

/// Writes the marks of a recording; returns the exit status.
pub fn run(cli: &Replay) -> Result<ExitCode> {
    let [folder] = &cli.files[..] else {
        return Err(usage("--emit writes the marks of one recording: name its folder alone".into()));
    };
    recording_folder::check(folder, "--emit")?;
    // From here on the signal waits until it is waited for.
    if let Some(signal) = cli.emit.start_on {
        SigSet::from(signal).thread_block().context("cannot wait for a signal")?;
    }
    let script = Script::of(folder)?;
    script.notes().iter().for_each(stderr::message);
    if let Some(wait) = cli.emit.wait {
        thread::sleep(wait);
    }
    if let Some(signal) = cli.emit.start_on {
        wait_for(signal)?;
    }
    let outlet = match cli.emit.to {
        EmitTo::Function => OutletKind::Function,
        EmitTo::TraceMarker => OutletKind::TraceMarker,
    };
    let played = emit::play(&script, cli.speed.unwrap_or(Speed::Times(1.0)), outlet)?;
    played.failures.iter().for_each(stderr::message);
    stderr::message(&played);
    Ok(if played.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Waits for a signal, which is blocked.
fn wait_for(signal: Signal) -> Result<()> {
    let signals = SigSet::from(signal);
    signals.wait().with_context(|| format!("cannot wait for {signal}"))?;
    signals.thread_unblock().with_context(|| format!("cannot let {signal} through again"))
}
