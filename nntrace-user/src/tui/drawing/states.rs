//! Shares of the states of threads, in words.

use crate::report::{
    number_format,
    snapshot::{StatesRow, UsageRow},
};

/// Times of a thread by state, ns.
pub(crate) struct StateTimes {
    pub(crate) on_cpu: u64,
    pub(crate) runnable: u64,
    pub(crate) asleep: u64,
    pub(crate) unknown: u64,
}

impl From<&StatesRow> for StateTimes {
    fn from(row: &StatesRow) -> Self {
        Self {
            on_cpu: row.on_cpu_ns,
            runnable: row.runnable_ns,
            asleep: row.sleeping_ns.saturating_add(row.uninterruptible_ns),
            unknown: row.unknown_ns,
        }
    }
}

impl From<&UsageRow> for StateTimes {
    fn from(row: &UsageRow) -> Self {
        Self {
            on_cpu: row.on_cpu_ns,
            runnable: row.runnable_ns,
            asleep: row.sleeping_ns.saturating_add(row.uninterruptible_ns),
            unknown: row.unknown_ns,
        }
    }
}

impl StateTimes {
    /// Returns the shares of the states that occurred: `on CPU 40%, runnable 60%`; nothing if none did.
    pub(crate) fn shares(&self) -> String {
        let states = [
            ("on CPU", self.on_cpu),
            ("runnable", self.runnable),
            ("asleep", self.asleep),
            ("unknown", self.unknown),
        ];
        let whole = states.iter().fold(0, |sum: u64, (_, ns)| sum.saturating_add(*ns));
        let share = |&(name, ns): &(&str, u64)| format!("{name} {}", number_format::percent(ns, whole));
        let parts: Vec<String> = states.iter().filter(|(_, ns)| *ns > 0).map(share).collect();
        parts.join(", ")
    }
}
