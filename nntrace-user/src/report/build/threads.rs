//! What threads did, as rows.

use crate::{
    model::scheduling::{Scheduling, StateTimes},
    report::snapshot::{Loss, ThreadRow, Window},
};

/// What the rows do not show by themselves: events that did not come though nothing was lost.
#[must_use]
pub(crate) fn note_on_missing(scheduling: &Scheduling, loss: &Loss) -> Option<String> {
    let missing = scheduling.missing();
    (missing > 0 && loss.records_dropped == 0).then(|| {
        format!(
            "{missing} context switches or wake-ups of threads were not shown by the kernel, as the next ones of the same \
             threads prove: what these did since the ones before is unknown"
        )
    })
}

/// A row for each thread of which `name` tells, by its id and as far as it is known its process, the process and the name
/// to show. Sorted by process, thread and begin.
#[must_use]
pub(crate) fn threads(
    scheduling: &Scheduling,
    window: &Window,
    name: impl Fn(u32, Option<u32>) -> Option<(u32, String)>,
) -> Vec<ThreadRow> {
    let threads = scheduling.threads(window.begin_ns, window.end_ns);
    let rows = threads.into_iter().filter(|thread| thread.times.total() > 0).filter_map(|thread| {
        let (pid, comm) = name(thread.tid, thread.pid)?;
        let StateTimes { on_cpu, runnable, sleeping, uninterruptible, unknown } = thread.times;
        Some(ThreadRow {
            pid,
            tid: thread.tid,
            comm,
            on_cpu_ns: on_cpu,
            runnable_ns: runnable,
            sleeping_ns: sleeping,
            uninterruptible_ns: uninterruptible,
            unknown_ns: unknown,
        })
    });
    let mut rows: Vec<ThreadRow> = rows.collect();
    // Stable: those of one id stay in the order of their begins.
    rows.sort_by_key(|row| (row.pid, row.tid));
    rows
}
