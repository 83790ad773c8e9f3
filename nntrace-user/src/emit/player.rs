//! Processes of a run that is played: a child for each recorded one.

use std::{fmt, io, thread, time::Duration};

use nix::{
    libc,
    sys::{
        prctl,
        signal::Signal,
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{ForkResult, Pid, fork},
};

use super::{
    error::EmitError,
    outlet::{Outlet, OutletKind},
    pace::{Pace, Speed},
    script::{ProcessScript, Script},
    shared::{Counter, Shared},
    thread::{Stage, play as play_thread},
};
use crate::model::plurals::{counted, one_or_many};

/// Time from the start of the player to the first mark, for the processes to be there.
const LEAD: Duration = Duration::from_millis(50);
/// Time by which a process is started before its first step.
const AHEAD: Duration = Duration::from_millis(20);
/// Slack of the timers of a process, ns: by default they come by 50 us too late.
const TIMER_SLACK: u64 = 1;

/// Outcome of a run that was played.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// Processes.
    pub processes: usize,
    /// Threads.
    pub threads: usize,
    /// Marks that were written.
    pub marks: u64,
    /// Delays of the marks, ns: the median, the 99th percentile, the largest. `None` if nothing waited.
    pub delays: Option<[u64; 3]>,
    /// Failures, as texts.
    pub failures: Vec<String>,
}

/// Plays a script: returns when all its processes have ended.
///
/// The calling process must have one thread, as it makes children.
///
/// # Errors
/// When the outlet cannot be opened, or a process not be started.
pub fn play(script: &Script, speed: Speed, outlet: OutletKind) -> Result<Played, EmitError> {
    let outlet = Outlet::open(outlet)?;
    let shared = Shared::new(script.gates).map_err(EmitError::Memory)?;
    let pace = Pace::starting(script.begin, speed, LEAD);
    let mut children = Children::default();
    for process in &script.processes {
        pace.sleep_until_before(process.begin, AHEAD);
        children.reap(Some(WaitPidFlag::WNOHANG));
        let stage = Stage { script, pace, outlet: &outlet, shared: &shared, name: process.name.as_deref() };
        children.start(process, &stage)?;
    }
    children.reap(None);
    let mut failures = children.failures;
    for (counter, text) in [
        (Counter::Refused, "marks were refused by trace_marker: is tracing off, or its file gone?"),
        (Counter::ThreadsMissing, "threads could not be started, and their marks were not written"),
        (Counter::OutOfOrder, "marks came before one of another thread that they should have come after"),
    ] {
        let count = shared.count(counter);
        failures.extend((count > 0).then(|| format!("{count} {text}")));
    }
    let delays = [0.5, 0.99, 1.0].map(|share| shared.delay(share));
    let (processes, threads) = script.size();
    Ok(Played {
        processes,
        threads,
        marks: shared.count(Counter::Marks),
        delays: if let [Some(median), Some(most), Some(largest)] = delays {
            Some([median, most, largest])
        } else {
            None
        },
        failures,
    })
}

/// Processes that run.
#[derive(Default)]
struct Children {
    running: Vec<(Pid, u32)>,
    failures: Vec<String>,
}

impl Children {
    fn start(&mut self, process: &ProcessScript, stage: &Stage<'_>) -> Result<(), EmitError> {
        let player = nix::unistd::getpid();
        // SAFETY: this process has one thread, so that nothing is locked in the child.
        let forked = unsafe { fork() };
        match forked {
            Ok(ForkResult::Child) => {
                act(process, stage, player);
                // SAFETY: it ends this process, whose threads have ended, without what its parent has to do at its own end.
                unsafe { libc::_exit(0) }
            }
            Ok(ForkResult::Parent { child }) => {
                self.running.push((child, process.pid));
                Ok(())
            }
            Err(errno) => Err(EmitError::Process { pid: process.pid, reason: io::Error::from(errno) }),
        }
    }

    /// Takes the children that have ended; without a flag, waits for each of them.
    fn reap(&mut self, flag: Option<WaitPidFlag>) {
        let Self { running, failures } = self;
        running.retain(|&(child, pid)| match waitpid(child, flag) {
            Ok(WaitStatus::StillAlive) => true,
            Ok(WaitStatus::Exited(_, 0)) | Err(_) => false,
            Ok(status) => {
                failures
                    .push(format!("the process for the recorded process {pid} was ended early: {status:?}"));
                false
            }
        });
    }
}

/// Plays a process in this one.
fn act(process: &ProcessScript, stage: &Stage<'_>, player: Pid) {
    // Without these the run is less exact, or goes on for a while when the player was killed.
    let _ = prctl::set_timerslack(TIMER_SLACK);
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    if nix::unistd::getppid() == player {
        thread::scope(|scope| play_thread(stage, scope, process.main));
    }
}

impl fmt::Display for Played {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { processes, threads, marks, delays, .. } = self;
        let (marks, threads) = (counted(*marks, "mark"), counted(*threads as u64, "thread"));
        let in_processes = one_or_many(*processes as u64, "process", "processes");
        write!(formatter, "wrote {marks} in {processes} {in_processes} with {threads}")?;
        if let Some([median, most, largest]) = delays {
            let us = |ns: &u64| ns.div_ceil(1_000);
            write!(
                formatter,
                "; late by {} us (median), {} us (99 of 100), {} us (the latest)",
                us(median),
                us(most),
                us(largest)
            )?;
        }
        Ok(())
    }
}
