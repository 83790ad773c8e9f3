//! Runs of this program that another run of it has started.

use std::{
    future,
    os::unix::process::ExitStatusExt as _,
    process::{Child, ExitStatus},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
use nix::{
    sys::{
        signal::{Signal, kill},
        wait::{Id, WaitPidFlag, waitid},
    },
    unistd::Pid,
};
use tokio::sync::oneshot;

use crate::signals::EndSignals;

/// How a run ended.
pub struct Ended {
    status: ExitStatus,
    /// Whether a signal to this process asked for it.
    pub is_interrupted: bool,
    /// Whether it was ended because it took too long.
    pub is_too_long: bool,
}

impl Ended {
    /// Returns its exit status, as a shell has it after a signal.
    pub fn code(&self) -> i32 {
        self.status.code().or_else(|| self.status.signal().map(|signal| 128 + signal)).unwrap_or(1)
    }
}

/// Waits for a process. Signals that ask this one to end are passed on to it; after `limit`, if there is one, it is asked to end.
pub async fn wait(mut child: Child, end: &mut EndSignals, limit: Option<Duration>) -> Result<Ended> {
    let pid = Pid::from_raw(i32::try_from(child.id()).context("no process id")?);
    let (sender, mut ended) = oneshot::channel();
    // It stays a zombie, so that its id cannot be reused before a signal is passed on.
    let has_ended = move || {
        while waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) == Err(nix::Error::EINTR) {}
        let _ = sender.send(());
    };
    let waiter =
        thread::Builder::new().name("wait".into()).spawn(has_ended).context("cannot start a thread")?;
    let (mut is_interrupted, mut is_too_long) = (false, false);
    let late = async {
        match limit {
            Some(limit) => tokio::time::sleep(limit).await,
            None => future::pending().await,
        }
    };
    tokio::pin!(late);
    loop {
        tokio::select! {
            biased;
            _ = &mut ended => break,
            () = end.recv() => is_interrupted = true,
            () = &mut late, if !is_too_long => is_too_long = true,
        }
        // One that has ended needs no signal.
        let _ = kill(pid, Signal::SIGTERM);
    }
    let _ = waiter.join();
    let status = child.wait().context("cannot wait for the run")?;
    Ok(Ended { status, is_interrupted, is_too_long })
}
