//! `nntrace-bpf replay --speed`: the states of a recording at the times at which the run had them.

use std::{
    ops::ControlFlow,
    path::Path,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use nntrace_user::{
    record::{self, ReadError, ReplayOptions},
    report::snapshot::Snapshot,
};
use tokio::{sync::mpsc, time::sleep_until};

use super::replay::health;
use crate::{output::Output, signals::EndSignals};

/// State of a run, and the time that the run had lasted then.
struct State {
    elapsed: Duration,
    snapshot: Snapshot,
}

/// Thread that reads the states.
type Reader = JoinHandle<Result<(), ReadError>>;

/// Shows the states of a recording one after the other, this many times as fast as the run was.
pub async fn show(folder: &Path, options: ReplayOptions, times: f64, output: &mut Output) -> Result<()> {
    let mut end = EndSignals::catch()?;
    let on_screen = matches!(output, Output::Screen(_));
    let (mut states, reader) = read(folder, options, on_screen)?;
    let begun = Instant::now();
    let mut last = None;
    while let Some(State { elapsed, snapshot }) = states.recv().await {
        tokio::select! {
            () = sleep_until((begun + elapsed.div_f64(times)).into()) => {}
            left = output.until_left() => return left,
            () = end.recv() => return Ok(()),
        }
        let shown = health(&snapshot, None);
        last = on_screen.then(|| snapshot.clone());
        if output.update(snapshot, shown)?.is_break() {
            return Ok(());
        }
    }
    let read = reader.join().map_err(|_| anyhow::anyhow!("the reader of the recording has ended early"))?;
    read?;
    if let Some(snapshot) = last {
        let shown = health(&snapshot, Some("replay; q quits"));
        let _ = output.update(snapshot, shown)?;
        tokio::select! {
            left = output.until_left() => return left,
            () = end.recv() => {}
        }
    }
    Ok(())
}

/// Starts a thread that reads the states, one ahead of what is shown.
fn read(folder: &Path, options: ReplayOptions, on_screen: bool) -> Result<(mpsc::Receiver<State>, Reader)> {
    let (sender, receiver) = mpsc::channel(1);
    let folder = folder.to_owned();
    let reader = thread::Builder::new().name("nntrace-replay".into()).spawn(move || {
        record::play(&folder, &options, |recorded| {
            let elapsed = Duration::from_nanos(recorded.elapsed_ns());
            let findings = recorded.findings();
            let snapshot = Snapshot::of(&findings);
            let snapshot = if on_screen {
                snapshot.with_function_details(&findings).with_recent_activity(&findings)
            } else {
                snapshot
            };
            let state = State { elapsed, snapshot };
            // Nobody receives any more when the user has left.
            if sender.blocking_send(state).is_ok() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })
    });
    Ok((receiver, reader.context("cannot start a thread")?))
}
