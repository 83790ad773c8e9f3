//! Iterations: occurrences of a function that carry a number, and what was done in each, on whatever thread.

use std::collections::BTreeMap;

use nntrace_common::record::{SpanRecord, Total};
use rustc_hash::FxHashMap;

use super::Site;
use crate::model::{
    capped_table::{OTHERS_NAME, OTHERS_PID},
    limits::Limits,
};

/// Functions of one iteration that are kept one by one.
const MOST_FUNCTIONS: usize = 1 << 8;
/// Sections on other threads that one iteration remembers for its missing time.
const MOST_HELPERS: usize = 1 << 12;

/// All iterations, in the order they began.
#[derive(Clone, Debug)]
pub(crate) struct Iterations {
    numbers: FxHashMap<Key, u32>,
    /// Iterations that are kept one by one; those beyond are only counted.
    most: usize,
    /// Rows of functions, and sections on other threads, that all iterations may have together.
    room: usize,
    all: Vec<Iteration>,
    /// The next number of functions whose iterations carry none.
    next: FxHashMap<(u32, u64), u64>,
    /// Iterations beyond those that are kept.
    pub(crate) left_out: u64,
}

/// Process, hash of the function's name, number.
pub(crate) type Key = (u32, u64, u64);

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Iteration {
    /// Process, function and number.
    pub key: Key,
    /// Number, in [`Iterations::all`], of the iteration that it is part of.
    pub parent: Option<u32>,
    /// The sections that are the iteration, of those that ended.
    pub total: Total,
    /// Sections that are the iteration and have not ended: while there are any, it is in no mean and no extreme.
    pub open: u64,
    /// First begin and last end of what was done in it, ns; `None` before anything has ended.
    pub wall: Option<(u64, u64)>,
    /// Time of these sections, ns, that no section in them covers, on whatever thread.
    pub missing: u64,
    /// Sums by function.
    pub functions: BTreeMap<Site, FunctionSum>,
    helpers: Vec<(u64, u64)>,
}

/// Sum of the sections of one function in one iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FunctionSum {
    /// Sections; `own` is their whole duration.
    pub total: Total,
    /// First begin and last end, ns.
    pub wall: (u64, u64),
}

impl Iterations {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            numbers: FxHashMap::default(),
            most: limits.iterations,
            room: limits.iterations.saturating_mul(16),
            all: Vec::new(),
            next: FxHashMap::default(),
            left_out: 0,
        }
    }

    /// All of them.
    #[must_use]
    pub(crate) fn all(&self) -> &[Iteration] {
        &self.all
    }

    pub(super) fn next_number(&mut self, pid: u32, name: u64) -> u64 {
        let next = self.next.entry((pid, name)).or_default();
        *next += 1;
        *next - 1
    }

    /// The number in [`Iterations::all`] of an iteration of which a section begins; `None` when there is no room.
    pub(super) fn begin(&mut self, key: Key, parent: Option<u32>) -> Option<u32> {
        if let Some(&known) = self.numbers.get(&key) {
            self.all[known as usize].open += 1;
            return Some(known);
        }
        if self.all.len() >= self.most {
            self.left_out += 1;
            return None;
        }
        let number = self.all.len() as u32;
        self.numbers.insert(key, number);
        self.all.push(Iteration {
            key,
            parent,
            total: Total::default(),
            open: 1,
            wall: None,
            missing: 0,
            functions: BTreeMap::new(),
            helpers: Vec::new(),
        });
        Some(number)
    }

    pub(super) fn charge(&mut self, number: u32, site: Site, exclusive: u64) {
        self.function(number, site).total.exclusive += exclusive;
    }

    /// The row of a function in an iteration; where there is no room for another one, that of others.
    fn function(&mut self, number: u32, site: Site) -> &mut FunctionSum {
        let functions = &mut self.all[number as usize].functions;
        let is_full = functions.len() >= MOST_FUNCTIONS || self.room == 0;
        let is_known = functions.contains_key(&site);
        let others = Site { pid: OTHERS_PID, tag: site.tag, name: OTHERS_NAME };
        self.room = self.room.saturating_sub(usize::from(!is_known && !is_full));
        functions.entry(if is_known || !is_full { site } else { others }).or_default()
    }

    pub(super) fn count(&mut self, number: u32, site: Site, span: &SpanRecord, is_root: bool) {
        let wall = |known: Option<(u64, u64)>| match known {
            Some((begin, end)) => (begin.min(span.begin), end.max(span.end)),
            None => (span.begin, span.end),
        };
        let function = self.function(number, site);
        function.wall = wall((function.total.count > 0).then_some(function.wall));
        function.total.add(&Total { count: 1, own: span.end - span.begin, exclusive: 0 });
        let iteration = &mut self.all[number as usize];
        iteration.wall = Some(wall(iteration.wall));
        if is_root {
            iteration.open = iteration.open.saturating_sub(1);
            iteration.total.add(&Total { count: 1, own: span.end - span.begin, exclusive: span.exclusive });
        }
    }

    pub(super) fn help(&mut self, number: u32, section: (u64, u64)) {
        let helpers = &mut self.all[number as usize].helpers;
        if helpers.len() < MOST_HELPERS && self.room > 0 {
            self.room -= 1;
            helpers.push(section);
        }
    }

    pub(super) fn helpers(&self, number: u32) -> &[(u64, u64)] {
        &self.all[number as usize].helpers
    }

    pub(super) fn miss(&mut self, number: u32, missing: u64) {
        let iteration = &mut self.all[number as usize];
        iteration.missing += missing;
        // It has ended; what helps it later does not fill what is missing already.
        self.room += std::mem::take(&mut iteration.helpers).len();
    }
}
