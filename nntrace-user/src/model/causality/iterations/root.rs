//! What the iterations of one function add up to.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use nntrace_common::record::Total;

use super::{MOST_FUNCTIONS, settled_numbers::SettledNumbers};
use crate::model::{
    capped_table::{OTHERS_NAME, OTHERS_PID},
    causality::Site,
    histogram::{FEW_DIGITS, Times},
};

/// Sums over the iterations of one function of one process.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    /// Process and hash of the function's name.
    pub(crate) key: (u32, u64),
    /// Sums over those that have ended.
    pub(crate) sums: IterationSums,
    /// Iterations that have not ended.
    pub(crate) open: u64,
    /// Sums by function over those that have ended.
    pub(crate) functions: BTreeMap<Site, RootFunctionSum>,
    /// Durations of those that are settled.
    pub(super) times: Times,
    /// The shortest and the longest duration of those that are settled, ns.
    pub(super) extremes: Option<(u64, u64)>,
    /// The slowest of those that are settled: wall time and number; of equal ones, the first.
    pub(super) slowest: BTreeSet<(u64, Reverse<u32>)>,
    pub(super) settled: SettledNumbers,
    /// The next number where iterations carry none.
    pub(super) next: u64,
}

/// Sums over iterations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IterationSums {
    /// Iterations.
    pub(crate) count: u64,
    /// The sections that are the iterations.
    pub(crate) total: Total,
    /// Wall times, ns.
    pub(crate) wall: u64,
    /// Time of these sections, ns, that no section in them covers, on whatever thread.
    pub(crate) missing: u64,
}

/// Sum of the sections of one function in all iterations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RootFunctionSum {
    /// Sections; `own` is their whole duration.
    pub(crate) total: Total,
    /// Time from the first begin to the last end in each iteration, summed, ns.
    pub(crate) wall: u64,
}

impl Root {
    pub(super) fn new(key: (u32, u64)) -> Self {
        Self {
            key,
            sums: IterationSums::default(),
            open: 0,
            functions: BTreeMap::new(),
            times: Times::new(FEW_DIGITS),
            extremes: None,
            slowest: BTreeSet::new(),
            settled: SettledNumbers::default(),
            next: 0,
        }
    }

    /// The row of a function; where there is no room for another one, that of others. Room only becomes less, so that a
    /// function always has the same row.
    pub(super) fn function(&mut self, site: Site, room: &mut usize) -> &mut RootFunctionSum {
        let is_full = self.functions.len() >= MOST_FUNCTIONS || *room == 0;
        let is_known = self.functions.contains_key(&site);
        *room = room.saturating_sub(usize::from(!is_known && !is_full));
        let others = Site { pid: OTHERS_PID, tag: site.tag, name: OTHERS_NAME };
        self.functions.entry(if is_known || !is_full { site } else { others }).or_default()
    }

    /// An iteration of this number and duration (ns) will not change any more.
    pub(super) fn settle(&mut self, iter: u64, duration: u64) {
        self.times.record(duration);
        let (least, most) = self.extremes.unwrap_or((duration, duration));
        self.extremes = Some((least.min(duration), most.max(duration)));
        self.settled.insert(iter);
    }
}

impl IterationSums {
    pub(super) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.total.add(&other.total);
        self.wall = self.wall.saturating_add(other.wall);
        self.missing = self.missing.saturating_add(other.missing);
    }

    /// Removes what was added before.
    pub(super) fn remove(&mut self, other: &Self) {
        self.count -= other.count;
        remove(&mut self.total, &other.total);
        self.wall = self.wall.saturating_sub(other.wall);
        self.missing = self.missing.saturating_sub(other.missing);
    }

    /// Replaces what was added before by what it has become.
    pub(super) fn replace(&mut self, before: &Self, after: &Self) {
        self.add(after);
        self.remove(before);
    }
}

impl RootFunctionSum {
    pub(super) fn add(&mut self, total: &Total, wall: u64) {
        self.total.add(total);
        self.wall = self.wall.saturating_add(wall);
    }

    /// Removes what was added before.
    pub(super) fn remove(&mut self, total: &Total, wall: u64) {
        remove(&mut self.total, total);
        self.wall = self.wall.saturating_sub(wall);
    }
}

fn remove(sum: &mut Total, part: &Total) {
    sum.count -= part.count;
    // Sums that were too large to be kept are none any more.
    sum.own = sum.own.saturating_sub(part.own);
    sum.exclusive = sum.exclusive.saturating_sub(part.exclusive);
}
