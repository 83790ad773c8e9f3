//! Iterations: occurrences of a function that carry a number, and what was done in each, on whatever thread.
//!
//! All of a function are summed, as [`Root`]. Only those that have not ended, the last ones that have, and the slowest are
//! kept one by one, so that memory and the cost of a result do not grow with a run. An iteration is settled once this many
//! have ended after it: its duration is in the percentiles then, and what still comes of it, on a thread that it created,
//! counts in the sums of functions but no more in its own wall time.

mod root;
mod settled_numbers;

use std::collections::{BTreeMap, BTreeSet};

use nntrace_common::{
    record::{SpanRecord, Total},
    stack::Class,
};
use rustc_hash::FxHashMap;

use root::IterationSums;
pub(crate) use root::{Root, RootFunctionSum};

use super::Site;
use crate::model::{
    capped_table::{OTHERS_NAME, OTHERS_PID},
    histogram::Times,
    limits::Limits,
};

/// Functions of one iteration, and of all of a root, that are kept one by one.
const MOST_FUNCTIONS: usize = 1 << 8;
/// Sections on other threads that one iteration remembers for its missing time.
const MOST_HELPERS: usize = 1 << 12;
/// Iterations in whose memory a root has room, with the distribution of its times.
const ROWS_OF_ROOT: usize = 4;
/// Iterations that have ended and are not settled: this many may end before a late section of one.
const RECENT: usize = 1 << 10;

/// All iterations.
#[derive(Clone, Debug)]
pub(crate) struct Iterations {
    /// Numbers of those that are not settled.
    numbers: FxHashMap<Key, u32>,
    /// Iterations that are kept one by one.
    kept: FxHashMap<u32, Iteration>,
    /// Iterations that have not ended.
    open: BTreeSet<u32>,
    /// Iterations that have ended and are not settled, in the order of their ends.
    ended: BTreeMap<u64, u32>,
    next_number: u32,
    next_end: u64,
    /// Iterations that are kept one by one, beside the slowest.
    most: usize,
    /// Iterations that have ended and are not settled, at most.
    recent: usize,
    /// The slowest iterations of each root that are kept.
    slowest: usize,
    /// Rows of functions, and sections on other threads, that all iterations may have together.
    room: usize,
    /// Rows of functions that the roots may still get.
    root_room: usize,
    most_roots: usize,
    roots: Vec<Root>,
    root_places: FxHashMap<(u32, u64), u32>,
    /// Iterations that were forgotten before they ended: they stay open.
    pub(crate) left_out: u64,
    /// Iterations that are in the sums only, though all were to be listed.
    pub(crate) unlisted: u64,
    /// Sections that ended in iterations that are not kept any more.
    pub(crate) late: u64,
    /// Iterations with the number of one that was settled.
    pub(crate) resumed: u64,
    /// Iterations whose root is among others.
    pub(crate) summed: u64,
}

/// Process, hash of the function's name, number.
pub(crate) type Key = (u32, u64, u64);

/// Reference to an iteration, which need not be kept any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IterationId {
    /// Place of its root.
    pub(crate) root: u32,
    /// Its number in the order of begins.
    number: u32,
    /// The number that it carries.
    pub(crate) iter: u64,
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Iteration {
    /// Process, function and number.
    pub(crate) key: Key,
    /// The iteration that it is part of.
    pub(crate) parent: Option<IterationId>,
    root: u32,
    /// The sections that are the iteration, of those that ended.
    pub(crate) total: Total,
    /// Sections that are the iteration and have not ended: while there are any, it is in no sum, mean or extreme.
    pub(crate) open: u64,
    /// Place in the order of ends, if it has ended.
    end: Option<u64>,
    /// First begin and last end of what was done in it, ns; `None` before anything has ended.
    pub(crate) wall: Option<(u64, u64)>,
    /// Time of these sections, ns, that no section in them covers, on whatever thread.
    pub(crate) missing: u64,
    /// Sums by function.
    pub(crate) functions: BTreeMap<Site, FunctionSum>,
    helpers: Vec<(u64, u64)>,
    is_settled: bool,
}

/// Sum of the sections of one function in one iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FunctionSum {
    /// Sections; `own` is their whole duration.
    pub(crate) total: Total,
    /// First begin and last end, ns.
    pub(crate) wall: (u64, u64),
}

/// The iterations of one function as results show them.
pub(crate) struct RootResult<'a> {
    /// Sums of those that have ended, and how many have not.
    pub(crate) root: &'a Root,
    /// Durations of those that have ended.
    pub(crate) times: Times,
    /// The shortest and the longest duration, ns.
    pub(crate) extremes: Option<(u64, u64)>,
    /// The slowest that have ended, by wall time.
    pub(crate) slowest: Vec<&'a Iteration>,
}

impl Iteration {
    /// Time from the first begin to the last end of what was done in it, ns.
    #[must_use]
    pub(crate) fn wall_ns(&self) -> u64 {
        self.wall.map_or(0, |(begin, end)| end - begin)
    }

    fn sums(&self) -> IterationSums {
        IterationSums { count: 1, total: self.total, wall: self.wall_ns(), missing: self.missing }
    }

    const fn has_ended(&self) -> bool {
        self.end.is_some() || self.is_settled
    }
}

impl Iterations {
    /// Creates an empty table. With `every`, all iterations are kept one by one, as long as there is room; else the
    /// last, and this many of the slowest.
    pub(super) fn new(limits: &Limits, every: bool, slowest: usize) -> Self {
        Self {
            numbers: FxHashMap::default(),
            kept: FxHashMap::default(),
            open: BTreeSet::new(),
            ended: BTreeMap::new(),
            next_number: 0,
            next_end: 0,
            most: limits.iterations,
            recent: if every { usize::MAX } else { RECENT },
            slowest,
            room: limits.iterations.saturating_mul(16),
            root_room: limits.iterations.saturating_mul(4),
            most_roots: (limits.iterations / ROWS_OF_ROOT).max(16),
            roots: Vec::new(),
            root_places: FxHashMap::default(),
            left_out: 0,
            unlisted: 0,
            late: 0,
            resumed: 0,
            summed: 0,
        }
    }

    /// Returns the iterations that are kept one by one, in the order they began.
    #[must_use]
    pub(crate) fn kept(&self) -> Vec<&Iteration> {
        let mut all: Vec<_> = self.kept.iter().collect();
        all.sort_unstable_by_key(|(number, _)| **number);
        all.into_iter().map(|(_, iteration)| iteration).collect()
    }

    /// Key of an iteration, kept or not.
    #[must_use]
    pub(crate) fn key(&self, id: IterationId) -> Option<Key> {
        self.roots.get(id.root as usize).map(|root| (root.key.0, root.key.1, id.iter))
    }

    /// Process and function of a root.
    #[must_use]
    pub(crate) fn root_key(&self, place: u32) -> Option<(u32, u64)> {
        self.roots.get(place as usize).map(|root| root.key)
    }

    /// Hashes of all names.
    pub(super) fn names(&self) -> impl Iterator<Item = u64> {
        let kept = self.kept.values().flat_map(|iteration| iteration.functions.keys());
        let roots = self.roots.iter();
        let summed = roots.flat_map(|root| root.functions.keys().map(|site| site.name).chain([root.key.1]));
        kept.map(|site| site.name).chain(summed)
    }

    /// The iterations by function, in the order in which the first of each began.
    #[must_use]
    pub(crate) fn by_root(&self) -> Vec<RootResult<'_>> {
        let mut recent: Vec<Vec<&Iteration>> = vec![Vec::new(); self.roots.len()];
        for iteration in self.ended.values().filter_map(|number| self.kept.get(number)) {
            recent[iteration.root as usize].push(iteration);
        }
        // One whose iterations all ended before the window has none.
        let has_any =
            |(root, recent): &(&Root, Vec<_>)| root.open > 0 || root.sums.count > 0 || !recent.is_empty();
        let roots = self.roots.iter().zip(recent).filter(has_any).map(|(root, recent)| {
            let mut times = root.times.clone();
            let mut extremes = root.extremes;
            for iteration in &recent {
                let own = iteration.total.own;
                times.record(own);
                extremes = Some(extremes.map_or((own, own), |(least, most)| (least.min(own), most.max(own))));
            }
            let settled = root.slowest.iter().filter_map(|(_, number)| self.kept.get(&number.0));
            let mut slowest: Vec<_> = recent.into_iter().chain(settled).collect();
            slowest.sort_by_key(|iteration| (std::cmp::Reverse(iteration.wall_ns()), iteration.key));
            slowest.truncate(self.slowest);
            RootResult { root, times, extremes, slowest }
        });
        roots.collect()
    }

    pub(super) fn next_number(&mut self, pid: u32, name: u64) -> u64 {
        let place = self.root(pid, name);
        let next = &mut self.roots[place as usize].next;
        *next += 1;
        *next - 1
    }

    /// Place of the root of a function; when there is no room for another one, that of others.
    fn root(&mut self, pid: u32, name: u64) -> u32 {
        let key = (pid, name);
        if let Some(&place) = self.root_places.get(&key) {
            return place;
        }
        let is_full = self.roots.len() >= self.most_roots;
        let key = if is_full { (OTHERS_PID, OTHERS_NAME) } else { key };
        self.summed += u64::from(is_full);
        let next = self.roots.len() as u32;
        let place = *self.root_places.entry(key).or_insert(next);
        if place == next {
            self.roots.push(Root::new(key));
        }
        place
    }

    /// The iteration of which a section begins; `None` when no more can be told apart.
    pub(super) fn begin(&mut self, key: Key, parent: Option<IterationId>) -> Option<IterationId> {
        let (pid, name, iter) = key;
        if let Some(&number) = self.numbers.get(&key) {
            let root = self.reopen(number);
            return Some(IterationId { root, number, iter });
        }
        self.settle_surplus();
        let number = self.next_number;
        let Some(next) = number.checked_add(1) else {
            self.left_out += 1;
            return None;
        };
        self.next_number = next;
        let root = self.root(pid, name);
        let of_root = &mut self.roots[root as usize];
        of_root.open += 1;
        self.resumed += u64::from(of_root.settled.contains(iter));
        self.numbers.insert(key, number);
        self.open.insert(number);
        self.kept.insert(
            number,
            Iteration {
                key,
                parent,
                root,
                total: Total::default(),
                open: 1,
                end: None,
                wall: None,
                missing: 0,
                functions: BTreeMap::new(),
                helpers: Vec::new(),
                is_settled: false,
            },
        );
        Some(IterationId { root, number, iter })
    }

    /// One more section of an iteration begins; returns the place of its root. One that had ended has not any more.
    fn reopen(&mut self, number: u32) -> u32 {
        let Self { kept, roots, open, ended, root_room, .. } = self;
        let Some(iteration) = kept.get_mut(&number) else { return 0 };
        iteration.open += 1;
        if let Some(end) = iteration.end.take() {
            ended.remove(&end);
            open.insert(number);
            let root = &mut roots[iteration.root as usize];
            root.open += 1;
            root.sums.remove(&iteration.sums());
            for (&site, sum) in &iteration.functions {
                root.function(site, root_room).remove(&sum.total, sum.wall.1 - sum.wall.0);
            }
        }
        iteration.root
    }

    /// Settles those that ended first where there are too many to keep; where too many are open, forgets the oldest.
    fn settle_surplus(&mut self) {
        while self.ended.len() > self.recent || self.numbers.len() >= self.most.max(1) {
            if let Some((_, number)) = self.ended.pop_first() {
                self.settle(number);
            } else if let Some(number) = self.open.pop_first() {
                // Most likely its end was lost; it stays open.
                self.left_out += 1;
                if let Some(iteration) = self.kept.get(&number) {
                    self.numbers.remove(&iteration.key);
                }
                self.forget(number);
            } else {
                return;
            }
        }
    }

    fn settle(&mut self, number: u32) {
        let Some(iteration) = self.kept.get_mut(&number) else { return };
        (iteration.is_settled, iteration.end) = (true, None);
        self.room += std::mem::take(&mut iteration.helpers).len();
        self.numbers.remove(&iteration.key);
        let root = &mut self.roots[iteration.root as usize];
        root.settle(iteration.key.2, iteration.total.own);
        root.slowest.insert((iteration.wall_ns(), std::cmp::Reverse(number)));
        if root.slowest.len() > self.slowest
            && let Some((_, fastest)) = root.slowest.pop_first()
        {
            self.unlisted += u64::from(self.recent == usize::MAX);
            self.forget(fastest.0);
        }
    }

    fn forget(&mut self, number: u32) {
        if let Some(iteration) = self.kept.remove(&number) {
            self.room += iteration.functions.len() + iteration.helpers.len();
        }
    }

    pub(super) fn charge(&mut self, id: IterationId, site: Site, exclusive: u64) {
        let Self { kept, roots, room, root_room, .. } = self;
        let root = &mut roots[id.root as usize];
        let Some(iteration) = kept.get_mut(&id.number) else {
            let sum = root.function(site, root_room);
            sum.total.exclusive = sum.total.exclusive.saturating_add(exclusive);
            return;
        };
        let (site, sum) = iteration.function(site, room);
        sum.total.exclusive = sum.total.exclusive.saturating_add(exclusive);
        if iteration.has_ended() {
            let sum = root.function(site, root_room);
            sum.total.exclusive = sum.total.exclusive.saturating_add(exclusive);
        }
    }

    pub(super) fn count(&mut self, id: IterationId, site: Site, span: &SpanRecord, is_root: bool) {
        let duration = span.end - span.begin;
        let Self { kept, roots, room, root_room, open, ended, next_end, late, .. } = self;
        let root = &mut roots[id.root as usize];
        let is_counted = is_root || !span.adds.is_in_itself();
        let section =
            if is_counted { Total { count: 1, own: duration, exclusive: 0 } } else { Total::default() };
        let Some(iteration) = kept.get_mut(&id.number) else {
            *late += 1;
            root.function(site, root_room).add(&section, duration);
            return;
        };
        let before = iteration.sums();
        let (site, sum) = iteration.function(site, room);
        let known = (sum.total.count > 0).then_some(sum.wall);
        sum.wall = widened(known, span);
        sum.total.add(&section);
        let wider = (sum.wall.1 - sum.wall.0) - known.map_or(0, |(begin, end)| end - begin);
        // It may have been started in another one; the calls of this one are in it themselves.
        if span.class != Class::Asynchronous as u8 {
            iteration.wall = Some(widened(iteration.wall, span));
        }
        if is_root {
            iteration.open = iteration.open.saturating_sub(1);
            iteration.total.add(&Total { exclusive: span.exclusive, ..section });
        }
        if iteration.has_ended() {
            root.function(site, root_room).add(&section, wider);
            root.sums.replace(&before, &iteration.sums());
            if iteration.is_settled {
                root.slowest.remove(&(before.wall, std::cmp::Reverse(id.number)));
                root.slowest.insert((iteration.wall_ns(), std::cmp::Reverse(id.number)));
            }
        } else if iteration.open == 0 {
            iteration.end = Some(*next_end);
            ended.insert(*next_end, id.number);
            *next_end += 1;
            open.remove(&id.number);
            root.open -= 1;
            root.sums.add(&iteration.sums());
            for (&site, sum) in &iteration.functions {
                root.function(site, root_room).add(&sum.total, sum.wall.1 - sum.wall.0);
            }
        }
    }

    /// A section that is an iteration ended before the window. An iteration of nothing else was not in the window.
    pub(super) fn end_before(&mut self, id: IterationId) {
        let Some(iteration) = self.kept.get_mut(&id.number) else { return };
        iteration.open = iteration.open.saturating_sub(1);
        if iteration.open > 0 || iteration.has_ended() {
            return;
        }
        let (key, root) = (iteration.key, &mut self.roots[iteration.root as usize]);
        root.open -= 1;
        self.numbers.remove(&key);
        self.open.remove(&id.number);
        self.forget(id.number);
    }

    pub(super) fn help(&mut self, id: IterationId, section: (u64, u64)) {
        let Some(iteration) = self.kept.get_mut(&id.number).filter(|iteration| !iteration.is_settled) else {
            return;
        };
        if iteration.helpers.len() < MOST_HELPERS && self.room > 0 {
            self.room -= 1;
            iteration.helpers.push(section);
        }
    }

    pub(super) fn helpers(&self, id: IterationId) -> &[(u64, u64)] {
        self.kept.get(&id.number).map_or(&[], |iteration| &iteration.helpers)
    }

    pub(super) fn miss(&mut self, id: IterationId, missing: u64) {
        let Some(iteration) = self.kept.get_mut(&id.number) else { return };
        iteration.missing = iteration.missing.saturating_add(missing);
        if iteration.has_ended() {
            let sum = &mut self.roots[iteration.root as usize].sums.missing;
            *sum = sum.saturating_add(missing);
        }
        // It has ended; what helps it later does not fill what is missing already.
        self.room += std::mem::take(&mut iteration.helpers).len();
    }
}

impl Iteration {
    /// The row of a function, and the function that it is of; where there is no room for another one, that of others.
    fn function(&mut self, site: Site, room: &mut usize) -> (Site, &mut FunctionSum) {
        let is_full = self.functions.len() >= MOST_FUNCTIONS || *room == 0;
        let is_known = self.functions.contains_key(&site);
        *room = room.saturating_sub(usize::from(!is_known && !is_full));
        let others = Site { pid: OTHERS_PID, tag: site.tag, name: OTHERS_NAME };
        let site = if is_known || !is_full { site } else { others };
        (site, self.functions.entry(site).or_default())
    }
}

fn widened(known: Option<(u64, u64)>, span: &SpanRecord) -> (u64, u64) {
    known.map_or((span.begin, span.end), |(begin, end)| (begin.min(span.begin), end.max(span.end)))
}

#[cfg(test)]
mod tests;
