//! Capabilities of the kernel side: programs are loaded and attached as in a run.

use std::{
    collections::BTreeMap,
    env,
    time::{Duration, Instant},
};

use super::{Finding, fixes};
use crate::live::{
    clock,
    kernel::{ENOUGH_FILES, Kernel, KernelError, KernelOptions, has_uprobes, rings::RingBuffers},
    privilege,
    target::entry_offset,
    tracefs,
};

/// The kernel side as a run loads it, or the reason why it cannot.
pub(super) struct KernelSide {
    loaded: Result<(Kernel, RingBuffers), KernelError>,
    took: Duration,
}

impl KernelSide {
    pub(super) fn load() -> Self {
        let begin = Instant::now();
        let loaded = Kernel::load(KernelOptions { is_recorded: true, ..KernelOptions::default() });
        Self { loaded, took: begin.elapsed() }
    }

    pub(super) fn programs(&mut self) -> Finding {
        match &self.loaded {
            Ok(_) => Finding::present(format!("loaded in {} ms", self.took.as_millis())),
            Err(KernelError::Privilege(_)) => Finding::unknown("not tried: privileges are missing"),
            Err(error @ KernelError::Descriptors { .. }) => {
                Finding::absent(error.to_string(), vec![format!("ulimit -n {ENOUGH_FILES}")])
            }
            Err(error) => Finding::absent(privilege::causes(error), Vec::new()),
        }
    }

    /// Probes the entry point of this program, where its other processes pass unseen.
    pub(super) fn uprobes(&mut self) -> Finding {
        self.with(|kernel| {
            if !has_uprobes() {
                return Finding::absent(KernelError::NoUprobes.to_string(), Vec::new());
            }
            let path = match env::current_exe() {
                Ok(path) => path,
                Err(error) => {
                    return Finding::unknown(format!("not tried: this program's file is not known: {error}"));
                }
            };
            let offset = match entry_offset(&path) {
                Ok(offset) => offset,
                Err(error) => return Finding::unknown(format!("not tried: {error}")),
            };
            match kernel.while_probed(&path, offset, || ()) {
                Ok(()) => Finding::present("a function of this program was probed"),
                Err(error) => refused(&error),
            }
        })
    }

    pub(super) fn child_processes(&mut self) -> Finding {
        self.with(|kernel| match kernel.attach_process_events() {
            Ok(true) => {
                Finding::present("attached to sched_process_fork, sched_process_exec and sched_process_exit")
            }
            Ok(false) => Finding::partial(
                format!("execs and exits are seen, forks are not: {}", tracefs::lacking()),
                fixes::tracefs(),
            ),
            Err(error) => refused(&error),
        })
    }

    pub(super) fn scheduling(&mut self) -> Finding {
        self.with(|kernel| match kernel.attach_scheduling() {
            Ok(()) => {
                Finding::present("attached to sched_switch, sched_waking, sched_wakeup and sched_wakeup_new")
            }
            Err(error) => refused(&error),
        })
    }

    pub(super) fn trace_marker(&mut self) -> Finding {
        self.with(|kernel| match kernel.attach_writes() {
            Ok(()) => Finding::present("writes to trace_marker are told from others"),
            Err(error) => refused(&error),
        })
    }

    pub(super) fn power(&mut self) -> Finding {
        self.with(|kernel| {
            let attached =
                kernel.start_cpus(clock::now(), &BTreeMap::new()).and_then(|()| kernel.attach_power());
            match attached {
                Ok(()) => Finding::present("attached to cpu_idle and cpu_frequency"),
                Err(error) => refused(&error),
            }
        })
    }

    pub(super) fn evidence(&mut self) -> Finding {
        self.with(|kernel| match kernel.attach_evidence(clock::now()) {
            Ok(events) if events.is_empty() => {
                Finding::absent("this kernel has none of these events", Vec::new())
            }
            Ok(events) => Finding::present(format!("attached to {}", events.join(", "))),
            Err(error) => refused(&error),
        })
    }

    fn with(&mut self, check: impl FnOnce(&mut Kernel) -> Finding) -> Finding {
        match &mut self.loaded {
            Ok((kernel, _)) => check(kernel),
            Err(_) => Finding::unknown("not tried: the kernel programs are not loaded"),
        }
    }
}

/// Returns the finding of what the kernel refuses.
fn refused(error: &KernelError) -> Finding {
    let fixes = match error {
        KernelError::Privilege(_) => fixes::privileges(),
        _ if tracefs::mount_point().is_none() => fixes::tracefs(),
        _ => Vec::new(),
    };
    Finding::absent(privilege::causes(error), fixes)
}
