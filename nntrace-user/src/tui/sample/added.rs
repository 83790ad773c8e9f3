//! Times that came since the snapshot before.

use std::collections::HashMap;

use nntrace_common::layer::{Layer, Phase};

use crate::report::snapshot::{FunctionRow, Snapshot, ThreadRow};

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
    pub(in crate::tui) fn all(rows: &[ThreadRow]) -> impl Iterator<Item = Self> {
        let mut seen: HashMap<(u32, u32), usize> = HashMap::with_capacity(rows.len());
        rows.iter().map(move |&ThreadRow { pid, tid, .. }| {
            let count = seen.entry((pid, tid)).or_default();
            *count += 1;
            Self { pid, tid, earlier: *count - 1 }
        })
    }
}

/// Times that came since the snapshot before; nothing for the first one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Added {
    /// Exclusive time of each function, ns.
    pub functions: Vec<u64>,
    /// Time on a CPU of each thread, ns.
    pub threads: Vec<u64>,
    /// Length of the interval, ns.
    pub interval_ns: u64,
}

impl Added {
    /// Returns what came after an earlier snapshot.
    pub(in crate::tui) fn since(before: &Snapshot, now: &Snapshot) -> Self {
        Self {
            functions: functions(before, now),
            threads: threads(before, now),
            interval_ns: now.window.length_ns().saturating_sub(before.window.length_ns()),
        }
    }
}

fn functions(before: &Snapshot, now: &Snapshot) -> Vec<u64> {
    let key = |row: &FunctionRow| (row.pid, row.layer, row.phase);
    let earlier: HashMap<((u32, Layer, Phase), &str), u64> =
        before.functions.iter().map(|row| ((key(row), row.name.as_str()), row.exclusive_ns)).collect();
    let added = |row: &FunctionRow| {
        let before = earlier.get(&(key(row), row.name.as_str())).copied().unwrap_or(0);
        // The sum of the smallest functions may lose one that has grown.
        row.exclusive_ns.saturating_sub(before)
    };
    now.functions.iter().map(added).collect()
}

fn threads(before: &Snapshot, now: &Snapshot) -> Vec<u64> {
    let times = |snapshot: &Snapshot| -> Vec<(ThreadKey, u64)> {
        let rows = ThreadKey::all(&snapshot.threads).zip(&snapshot.threads);
        rows.map(|(key, row)| (key, row.on_cpu_ns)).collect()
    };
    let earlier: HashMap<ThreadKey, u64> = times(before).into_iter().collect();
    let added = |(key, ns): (ThreadKey, u64)| ns.saturating_sub(earlier.get(&key).copied().unwrap_or(0));
    times(now).into_iter().map(added).collect()
}
