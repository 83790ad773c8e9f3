//! Iterations: occurrences of a function that carry a number, and what was done in each, on whatever thread.

use std::collections::BTreeMap;

use nntrace_common::record::{SpanRecord, Total};
use rustc_hash::FxHashMap;

use super::Site;

/// Iterations that are kept one by one; those beyond are only counted.
const MOST: usize = 1 << 17;
/// Sections on other threads that one iteration remembers for its missing time.
const MOST_HELPERS: usize = 1 << 12;

/// All iterations, in the order they began.
#[derive(Clone, Debug, Default)]
pub struct Iterations {
    numbers: FxHashMap<Key, u32>,
    all: Vec<Iteration>,
    /// The next number of functions whose iterations carry none.
    next: FxHashMap<(u32, u64), u64>,
    /// Iterations beyond those that are kept.
    pub left_out: u64,
}

/// Process, hash of the function's name, number.
pub type Key = (u32, u64, u64);

/// One of them.
#[derive(Clone, Debug)]
pub struct Iteration {
    /// What it is.
    pub key: Key,
    /// Number, in [`Iterations::all`], of the iteration that it is part of.
    pub parent: Option<u32>,
    /// The sections that are the iteration.
    pub total: Total,
    /// First begin and last end of what was done in it, ns; `None` before anything has ended.
    pub wall: Option<(u64, u64)>,
    /// Time of these sections, ns, that no section in them covers, on whatever thread.
    pub missing: u64,
    /// What was done in it, by function.
    pub functions: BTreeMap<Site, FunctionSum>,
    helpers: Vec<(u64, u64)>,
}

/// What the sections of one function add up to in one iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionSum {
    /// Sections; `own` is their whole duration.
    pub total: Total,
    /// First begin and last end, ns.
    pub wall: (u64, u64),
}

impl Iterations {
    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[Iteration] {
        &self.all
    }

    pub(super) fn next_number(&mut self, pid: u32, name: u64) -> u64 {
        let next = self.next.entry((pid, name)).or_default();
        *next += 1;
        *next - 1
    }

    /// The number in [`Iterations::all`] of an iteration that begins, or goes on; `None` when there is no room.
    pub(super) fn begin(&mut self, key: Key, parent: Option<u32>) -> Option<u32> {
        if let Some(&known) = self.numbers.get(&key) {
            return Some(known);
        }
        if self.all.len() >= MOST {
            self.left_out += 1;
            return None;
        }
        let number = self.all.len() as u32;
        self.numbers.insert(key, number);
        self.all.push(Iteration {
            key,
            parent,
            total: Total::default(),
            wall: None,
            missing: 0,
            functions: BTreeMap::new(),
            helpers: Vec::new(),
        });
        Some(number)
    }

    pub(super) fn charge(&mut self, number: u32, site: Site, exclusive: u64) {
        self.all[number as usize].functions.entry(site).or_default().total.exclusive += exclusive;
    }

    pub(super) fn count(&mut self, number: u32, site: Site, span: &SpanRecord, is_root: bool) {
        let iteration = &mut self.all[number as usize];
        let wall = |known: Option<(u64, u64)>| match known {
            Some((begin, end)) => (begin.min(span.begin), end.max(span.end)),
            None => (span.begin, span.end),
        };
        iteration.wall = Some(wall(iteration.wall));
        let function = iteration.functions.entry(site).or_default();
        function.wall = wall((function.total.count > 0).then_some(function.wall));
        function.total.add(&Total { count: 1, own: span.end - span.begin, exclusive: 0 });
        if is_root {
            iteration.total.add(&Total { count: 1, own: span.end - span.begin, exclusive: span.exclusive });
        }
    }

    pub(super) fn help(&mut self, number: u32, section: (u64, u64)) {
        let helpers = &mut self.all[number as usize].helpers;
        if helpers.len() < MOST_HELPERS {
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
        iteration.helpers = Vec::new();
    }
}
