//! The threads view: its rows in order, and how they are sorted.

use std::collections::HashMap;

use super::Sample;
use super::table::{Column, Table};
use crate::report::snapshot::{Snapshot, ThreadRow};

/// Identity of a thread from one snapshot to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ThreadKey {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Number of earlier threads that had the same id.
    pub earlier: usize,
}

impl ThreadKey {
    /// Returns the keys of all rows.
    pub(super) fn all(rows: &[ThreadRow]) -> impl Iterator<Item = Self> {
        let mut seen: HashMap<(u32, u32), usize> = HashMap::with_capacity(rows.len());
        rows.iter().map(move |&ThreadRow { pid, tid, .. }| {
            let count = seen.entry((pid, tid)).or_default();
            *count += 1;
            Self { pid, tid, earlier: *count - 1 }
        })
    }
}

/// The columns that threads can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadSort {
    /// Time on a CPU.
    OnCpu,
    /// Time on a CPU since the snapshot before.
    Now,
    /// Time waiting for a CPU.
    Runnable,
    /// Time asleep.
    Asleep,
    /// The order of the snapshot: process, thread.
    Id,
}

impl Column for ThreadSort {
    const ALL: &'static [Self] = &[Self::OnCpu, Self::Now, Self::Runnable, Self::Asleep, Self::Id];

    fn value(self, sample: &Sample, index: usize) -> Option<u64> {
        let row = &sample.snapshot.threads[index];
        match self {
            Self::OnCpu => Some(row.on_cpu_ns),
            Self::Now => sample.added.threads.get(index).copied(),
            Self::Runnable => Some(row.runnable_ns),
            Self::Asleep => Some(row.asleep_ns()),
            Self::Id => None,
        }
    }
}

/// The state of the threads view.
pub(crate) type Threads = Table<ThreadKey, ThreadSort>;

impl Threads {
    /// Takes over a new snapshot, or a new order.
    pub(super) fn refresh(&mut self, sample: &Sample) {
        let rows = &sample.snapshot.threads;
        let keys: Vec<ThreadKey> = ThreadKey::all(rows).collect();
        self.arrange(sample, 0..rows.len());
        self.identify(|row| keys[row]);
    }

    /// The selected thread.
    #[must_use]
    pub(crate) fn row<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a ThreadRow> {
        snapshot.threads.get(self.selected()?)
    }
}
