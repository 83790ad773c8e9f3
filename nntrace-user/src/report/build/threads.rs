//! The threads, as rows.

use crate::{
    model::{
        findings::Findings,
        scheduling::{NamedThread, StateTimes},
    },
    report::snapshot::ThreadRow,
};

impl Findings<'_> {
    pub(super) fn thread_rows(&self) -> Vec<ThreadRow> {
        let row = |thread: &NamedThread| {
            let StateTimes { on_cpu, runnable, sleeping, uninterruptible, unknown } = thread.times;
            ThreadRow {
                pid: thread.pid,
                tid: thread.tid,
                comm: thread.comm.clone(),
                on_cpu_ns: on_cpu,
                runnable_ns: runnable,
                sleeping_ns: sleeping,
                uninterruptible_ns: uninterruptible,
                unknown_ns: unknown,
            }
        };
        self.run.threads.iter().map(row).collect()
    }
}
