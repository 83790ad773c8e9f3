//! The functions view: its rows in order, how they are sorted, and which are shown.

use std::collections::HashMap;

use nntrace_common::layer::{Layer, Phase};

use super::Sample;
use super::list::List;
use super::phases::PhaseKey;
use crate::report::snapshot::{FunctionRow, Snapshot};

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

/// Returns the exclusive time of each function since an earlier snapshot, ns.
pub(super) fn added(before: &Snapshot, now: &Snapshot) -> Vec<u64> {
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

/// The columns that rows can be sorted by, in the order in which the key goes through them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FunctionSort {
    /// Exclusive time.
    #[default]
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

impl FunctionSort {
    const fn next(self) -> Self {
        match self {
            Self::Exclusive => Self::Now,
            Self::Now => Self::Count,
            Self::Count => Self::P50,
            Self::P50 => Self::P99,
            Self::P99 => Self::Max,
            Self::Max => Self::Name,
            Self::Name => Self::Exclusive,
        }
    }

    /// The number that a function is sorted by; what is not known is less than everything known.
    fn value(self, sample: &Sample, index: usize) -> Option<u64> {
        let row = &sample.snapshot.functions[index];
        match self {
            Self::Exclusive => Some(row.exclusive_ns),
            Self::Now => sample.added_ns.get(index).copied(),
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
    /// The functions and the selected one.
    pub list: List<FunctionKey>,
    /// The column that rows are sorted by.
    pub sort: FunctionSort,
    /// Whether the smallest comes first (for names: the last).
    pub reversed: bool,
    /// Indices into the snapshot's functions, in the order of the list.
    pub order: Vec<usize>,
    /// The only layer and phase whose functions are shown.
    pub of: Option<PhaseKey>,
    /// Part of the names that are shown.
    pub text: String,
    /// Whether keys are letters of `text`.
    pub is_typing: bool,
}

impl Functions {
    /// Takes over a new snapshot, another order or another choice of functions.
    pub(crate) fn refresh(&mut self, sample: &Sample) {
        let rows = &sample.snapshot.functions;
        let text = self.text.to_lowercase();
        let is_shown = |row: &FunctionRow| {
            self.of.is_none_or(|of| of == phase(row))
                && (text.is_empty() || row.name.to_lowercase().contains(&text))
        };
        let mut order: Vec<usize> = (0..rows.len()).filter(|&index| is_shown(&rows[index])).collect();
        // A stable sort: equal rows keep the snapshot's order, so that they do not dance.
        order.sort_by(|&a, &b| {
            let (a, b) = if self.reversed { (b, a) } else { (a, b) };
            self.sort.value(sample, b).cmp(&self.sort.value(sample, a))
        });
        if self.reversed && self.sort == FunctionSort::Name {
            order.reverse();
        }
        self.order = order;
        self.list.set_keys(self.order.iter().map(|&index| FunctionKey::of(&rows[index])).collect());
    }

    /// Index of the selected function in the snapshot.
    #[must_use]
    pub(crate) fn selected(&self) -> Option<usize> {
        self.order.get(self.list.index()).copied()
    }

    /// Sorts by the next column, largest first.
    pub(crate) fn next_sort(&mut self) {
        self.sort = self.sort.next();
        self.reversed = false;
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
