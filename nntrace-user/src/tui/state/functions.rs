//! The functions view: its rows in order, how they are sorted, and which are shown.

use nntrace_common::layer::Tag;

use super::Sample;
use super::phases::PhaseKey;
use super::table::{Column, Table};
use crate::report::snapshot::FunctionRow;

/// Identity of a function from one snapshot to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FunctionKey {
    /// Layer, phase and process.
    pub phase: PhaseKey,
    /// Name.
    pub name: String,
}

impl FunctionKey {
    fn of(row: &FunctionRow) -> Self {
        Self { phase: phase(row), name: row.name.clone() }
    }
}

fn phase(row: &FunctionRow) -> PhaseKey {
    PhaseKey { pid: row.pid, layer: row.layer, phase: row.phase }
}

/// The columns that rows can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FunctionSort {
    /// Exclusive time.
    Exclusive,
    /// Exclusive time since the snapshot before.
    Now,
    /// Number of calls.
    Count,
    /// Median.
    P50,
    /// 99th percentile.
    P99,
    /// Longest.
    Max,
    /// The order of the snapshot: process, layer, phase, name.
    Name,
}

impl Column for FunctionSort {
    const ALL: &'static [Self] =
        &[Self::Exclusive, Self::Now, Self::Count, Self::P50, Self::P99, Self::Max, Self::Name];

    fn value(self, sample: &Sample, index: usize) -> Option<u64> {
        let row = &sample.snapshot.functions[index];
        match self {
            Self::Exclusive => Some(row.exclusive_ns),
            Self::Now => sample.added.functions.get(index).copied(),
            Self::Count => Some(row.count),
            Self::P50 => row.of_sections(row.p50_ns),
            Self::P99 => row.of_sections(row.p99_ns),
            Self::Max => row.of_sections(row.max_ns),
            Self::Name => None,
        }
    }
}

/// The state of the functions view.
#[derive(Clone, Debug, Default)]
pub(crate) struct Functions {
    /// The functions that are shown.
    pub table: Table<FunctionKey, FunctionSort>,
    /// The only layer and phase whose functions are shown.
    pub of: Option<PhaseKey>,
    /// Part of the names that are shown.
    pub text: String,
    /// Whether keys are letters of `text`.
    pub is_typing: bool,
    /// Whether the selected function takes the whole view.
    pub is_open: bool,
}

impl Functions {
    /// Takes over a new snapshot, another order or another choice of functions.
    pub(super) fn refresh(&mut self, sample: &Sample) {
        let rows = &sample.snapshot.functions;
        let text = self.text.to_lowercase();
        let is_shown = |row: &FunctionRow| {
            self.of.is_none_or(|of| of == phase(row))
                && (text.is_empty() || row.name.to_lowercase().contains(&text))
        };
        self.table.arrange(sample, (0..rows.len()).filter(|&row| is_shown(&rows[row])));
        self.table.identify(|row| FunctionKey::of(&rows[row]));
        self.is_open &= self.table.selected().is_some();
    }

    /// Selects a function by its process, its layer and phase as written, and its name; returns whether it is among those that are
    /// shown. Where it is accounted under another layer or phase, its name decides.
    pub(crate) fn select(&mut self, pid: u32, tag: Tag, name: &str) -> bool {
        let keys = self.table.list.keys();
        let is_named = |key: &FunctionKey| key.phase.pid == pid && key.name == name;
        let is_same = |key: &FunctionKey| is_named(key) && Tag::new(key.phase.layer, key.phase.phase) == tag;
        let found = keys.iter().position(is_same).or_else(|| keys.iter().position(is_named));
        if let Some(at) = found {
            self.table.list.select(at);
        }
        found.is_some()
    }

    /// Whether functions may be left out.
    #[must_use]
    pub(crate) fn is_filtered(&self) -> bool {
        self.of.is_some() || !self.text.is_empty()
    }

    /// Shows all functions.
    pub(crate) fn show_all(&mut self) {
        self.of = None;
        self.text.clear();
        self.is_typing = false;
    }
}
