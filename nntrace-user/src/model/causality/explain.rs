//! Why a function takes now more, now less time: because what it calls runs now more, now less often, or because each
//! call takes now more, now less time.
//!
//! For a function that calls another n times, each call taking t, with n and the t independent of each other:
//! Var(sum of t) = E\[n\] Var t + Var n E\[t\]^2 (the law of total variance). What is left of the function's variance is
//! its own time, what depends on each other, and the other callees.

use std::collections::BTreeMap;

use nntrace_common::{mark, record::SpanRecord, stack::Class};
use rustc_hash::FxHashMap;

use crate::model::{
    capped_table::{Capped, Key, OTHERS_NAME, Row},
    limits::Limits,
};

/// Sections of one thread that wait for the function around them to end.
const MOST_WAITING: usize = 1 << 13;

/// Sums for the explanation of one function.
#[derive(Clone, Debug)]
pub(crate) struct Explanation {
    function: String,
    /// Hash of that name.
    hash: u64,
    waiting: FxHashMap<u32, Vec<Ended>>,
    /// Threads of which sections may wait.
    most_threads: usize,
    /// Times of the function, ns.
    times: Moments,
    callees: Capped<Called, Callee>,
    /// Sections that were forgotten, as too many waited.
    pub(crate) forgotten: u64,
}

#[derive(Clone, Copy, Debug)]
struct Ended {
    begin: u64,
    depth: u8,
    name: u64,
    duration: u64,
}

/// Sums of values and of their squares.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: u64,
    sum: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }

    /// Variance of the values as a whole population, not as a sample.
    fn variance(&self) -> f64 {
        if self.count == 0 { 0.0 } else { (self.squares / self.count as f64 - self.mean().powi(2)).max(0.0) }
    }
}

/// Hash of the name of a callee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Called(u64);

impl Key for Called {
    fn coarser(&self) -> Option<Self> {
        (self.0 != OTHERS_NAME).then_some(Self(OTHERS_NAME))
    }

    fn is_others(&self) -> bool {
        self.0 == OTHERS_NAME
    }
}

impl Row<Called> for Callee {
    fn weight(&self) -> u64 {
        self.times.count
    }

    fn add(&mut self, other: Self) {
        self.times.merge(other.times);
        self.calls.merge(other.calls);
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Callee {
    times: Moments,
    /// Calls in each function that had any.
    calls: Moments,
}

/// Share of one callee in the function's variance.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Share {
    /// Hash of the callee's name.
    pub name: u64,
    /// Calls.
    pub calls: u64,
    /// Calls in one function, on average.
    pub mean_calls: f64,
    /// Time of one call, ns, on average.
    pub mean_time: f64,
    /// Share of the function's variance because it is called now more, now less often: Var n E\[t\]^2.
    pub how_often: f64,
    /// Share of the function's variance because each call takes now more, now less time: E\[n\] Var t.
    pub how_long: f64,
}

impl Explanation {
    /// Explanation of the function of this name.
    #[must_use]
    pub(crate) fn of(function: &str, limits: &Limits) -> Self {
        Self {
            hash: mark::name_hash(function.as_bytes(), 0),
            function: function.into(),
            waiting: FxHashMap::default(),
            most_threads: limits.threads,
            times: Moments::default(),
            callees: Capped::new(limits.causes),
            forgotten: 0,
        }
    }

    /// The name of the function.
    #[must_use]
    pub(crate) fn function(&self) -> &str {
        &self.function
    }

    /// How often it ran.
    #[must_use]
    pub(crate) fn count(&self) -> u64 {
        self.times.count
    }

    /// Its time, ns, on average.
    #[must_use]
    pub(crate) fn mean(&self) -> f64 {
        self.times.mean()
    }

    /// The variance of its time, ns^2.
    #[must_use]
    pub(crate) fn variance(&self) -> f64 {
        self.times.variance()
    }

    pub(super) fn span(&mut self, span: &SpanRecord) {
        // What its thread did meanwhile are no calls of it.
        if span.class == Class::Asynchronous as u8 {
            if span.name == self.hash {
                self.times.add((span.end - span.begin) as f64);
            }
            return;
        }
        if self.waiting.len() >= self.most_threads && !self.waiting.contains_key(&span.tid) {
            self.forget_threads();
        }
        let waiting = self.waiting.entry(span.tid).or_default();
        if span.name == self.hash {
            let is_before = |ended: &Ended| ended.begin < span.begin || ended.depth <= span.depth;
            let first = waiting.iter().rposition(is_before).map_or(0, |at| at + 1);
            let mut calls: BTreeMap<u64, u64> = BTreeMap::new();
            for ended in &waiting[first..] {
                *calls.entry(ended.name).or_default() += 1;
                self.callees.row(Called(ended.name), Callee::default).times.add(ended.duration as f64);
            }
            for (name, calls) in calls {
                self.callees.row(Called(name), Callee::default).calls.add(calls as f64);
            }
            self.times.add((span.end - span.begin) as f64);
        }
        if span.is_outermost() {
            waiting.clear();
        } else {
            if waiting.len() == MOST_WAITING {
                waiting.drain(..MOST_WAITING / 2);
                self.forgotten += MOST_WAITING as u64 / 2;
            }
            let duration = span.end - span.begin;
            waiting.push(Ended { begin: span.begin, depth: span.depth, name: span.name, duration });
        }
    }

    /// Forgets threads on which nothing waits, or else all.
    #[cold]
    fn forget_threads(&mut self) {
        self.waiting.retain(|_, waiting| !waiting.is_empty());
        if self.waiting.len() > self.most_threads / 2 {
            self.forgotten += self.waiting.values().map(|waiting| waiting.len() as u64).sum::<u64>();
            self.waiting.clear();
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = u64> {
        self.callees.iter().map(|(called, ..)| called.0)
    }

    pub(super) fn summed(&self) -> u64 {
        self.callees.summed()
    }

    /// Shares of all callees, of 1, the largest first.
    #[must_use]
    pub(crate) fn shares(&self) -> Vec<Share> {
        let variance = self.variance();
        let share = |part: f64| if variance > 0.0 { part / variance } else { 0.0 };
        let mut shares: Vec<Share> = self
            .callees
            .iter()
            .map(|(&Called(name), callee, _)| {
                // Functions that did not call it called it 0 times.
                let calls = Moments { count: self.times.count, ..callee.calls };
                Share {
                    name,
                    calls: callee.times.count,
                    mean_calls: calls.mean(),
                    mean_time: callee.times.mean(),
                    how_often: share(calls.variance() * callee.times.mean().powi(2)),
                    how_long: share(calls.mean() * callee.times.variance()),
                }
            })
            .collect();
        let size = |share: &Share| share.how_often + share.how_long;
        shares.sort_by(|a, b| size(b).total_cmp(&size(a)).then(a.name.cmp(&b.name)));
        shares
    }
}
