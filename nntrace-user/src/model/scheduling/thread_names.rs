//! Threads by the names that they are shown with.

use super::{CpuSet, Scheduling, StateTimes};
use crate::model::{
    plurals::one_or_many,
    run_facts::{Loss, Window},
};

/// One thread of the window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamedThread {
    /// Process; the thread's own id where it is not known.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Its name where that is known, else the process's.
    pub comm: String,
    /// How long it was in each state.
    pub times: StateTimes,
    /// CPUs that it ran on.
    pub cpus: CpuSet,
}

impl Scheduling {
    /// Events that did not come though nothing was lost, in words.
    #[must_use]
    pub(crate) fn note_on_missing(&self, loss: &Loss) -> Option<String> {
        let missing = self.missing();
        (missing > 0 && loss.records_dropped == 0).then(|| {
            let (one, many) =
                ("context switch or wake-up of a thread was", "context switches or wake-ups of threads were");
            format!(
                "{missing} {} not shown by the kernel, as later ones prove: what threads did in between is unknown",
                one_or_many(missing, one, many)
            )
        })
    }

    /// The threads for which `name`, by the thread's id and as far as it is known its process, has the process and the
    /// name to show. Sorted by process, thread and begin.
    #[must_use]
    pub(crate) fn named_threads(
        &self,
        window: &Window,
        name: impl Fn(u32, Option<u32>) -> Option<(u32, String)>,
    ) -> Vec<NamedThread> {
        let threads = self.threads(window.begin_ns, window.end_ns);
        let named = threads.into_iter().filter(|thread| thread.times.total() > 0).filter_map(|thread| {
            let (pid, comm) = name(thread.tid, thread.pid)?;
            Some(NamedThread { pid, tid: thread.tid, comm, times: thread.times, cpus: thread.cpus })
        });
        let mut named: Vec<NamedThread> = named.collect();
        // Stable: those of one id stay in the order of their begins.
        named.sort_by_key(|thread| (thread.pid, thread.tid));
        named
    }
}
