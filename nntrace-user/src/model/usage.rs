//! Resources that sections use: time on CPU by cluster and effective frequency, waits, wake-ups from idle states.
//!
//! A section ends after all that its thread did in it is known, so it is read from what its thread did: each thread has a
//! ledger of short stretches, and a section that ends takes those since its begin that no section in it has taken. What is
//! never taken is the thread's work outside of sections. So every nanosecond is in one row, and each is moved once.
//!
//! The state of a CPU before its first event is known only then; until each CPU that shares a clock has one, everything waits, at
//! most [`MOST_WAITING`] steps of threads.

mod clocks;
mod feed;
mod ledger;
mod tables;

use std::collections::{BTreeMap, VecDeque};

use nntrace_common::{layer::Tag, power::Activity, record::SpanRecord, stack::Class};
use rustc_hash::FxHashMap;

use super::{
    capped_table::{Capped, Key, OTHERS_NAME, OTHERS_PID, Row},
    limits::Limits,
    power::Power,
    scheduling::Scheduling,
    topology::Topology,
};
use clocks::Clocks;
use feed::{Feed, Reach};
use ledger::{Ledger, Step};
pub(crate) use tables::UsageTables;

/// Steps of threads that wait for the first event of each CPU, about 40 MB; with more, CPUs without one are unknown.
const MOST_WAITING: usize = 1 << 19;

/// Thread that stands for those that may not count, where there was no room for each.
const NOBODY: u32 = u32::MAX;

/// Where a thread ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    /// On a CPU that shares a clock with others.
    Clock {
        /// Number of the cluster in the topology.
        cluster: u32,
        /// Effective frequency, kHz; `None` where it is not known.
        khz: Option<u32>,
        /// CPUs of the cluster that ran at the time.
        sharing: u32,
    },
    /// On a CPU of whose power states nothing is known.
    Unknown {
        /// The CPU.
        cpu: u32,
    },
    /// On a CPU without a clock of a cluster, or one that was idle by its power events.
    NoClock {
        /// The CPU.
        cpu: u32,
    },
}

/// Wake-ups from one idle state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wakes {
    /// Times that a thread was the first traced one to run after the CPU was in the state.
    pub count: u64,
    /// Times of these that the wake-up came while the CPU was in the state.
    pub measured: u64,
    /// Sum of the times from these wake-ups to the end of the state, ns.
    pub latency: u64,
    /// Longest of these times, ns.
    pub longest: u64,
}

impl Wakes {
    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.measured += other.measured;
        self.latency += other.latency;
        self.longest = self.longest.max(other.longest);
    }
}

/// Resources used in some time of one or more threads. The times add up to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Time on CPU by place, ns.
    pub ran: BTreeMap<Place, u64>,
    /// Time that was spent waiting for a CPU, ns.
    pub runnable: u64,
    /// Time asleep so that signals wake, or stopped, ns.
    pub sleeping: u64,
    /// Time asleep so that no signal wakes, ns.
    pub uninterruptible: u64,
    /// Time of which nothing is known, ns.
    pub unknown: u64,
    /// Wake-ups by CPU and its idle state, `None` where its depth is not known.
    pub wakes: BTreeMap<(u32, Option<u32>), Wakes>,
}

impl Usage {
    /// Time on CPU, ns.
    #[must_use]
    pub(crate) fn on_cpu(&self) -> u64 {
        self.ran.values().sum()
    }

    /// Returns the whole time, ns.
    #[must_use]
    pub(crate) fn total(&self) -> u64 {
        self.on_cpu() + self.runnable + self.sleeping + self.uninterruptible + self.unknown
    }

    /// Adds the resources used in another time.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (place, ns) in &other.ran {
            *self.ran.entry(*place).or_default() += ns;
        }
        self.runnable += other.runnable;
        self.sleeping += other.sleeping;
        self.uninterruptible += other.uninterruptible;
        self.unknown += other.unknown;
        for (state, wakes) in &other.wakes {
            self.wakes.entry(*state).or_default().add(wakes);
        }
    }
}

/// A part of a section: all of it, or from where its thread took over work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Portion {
    /// Begin, ns; it ends where the next one begins.
    pub begin: u64,
    /// Its time without the sections in it, ns.
    pub exclusive: u64,
    /// Number of the account that it is charged to.
    pub account: Option<u32>,
    /// Place of the root of the iteration that it belongs to.
    pub iteration_root: Option<u32>,
}

/// A section that ended, which takes what its thread used.
#[derive(Clone, Debug)]
struct Claim {
    tid: u32,
    end: u64,
    key: RowKey,
    portions: Vec<Portion>,
}

/// Function of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct RowKey {
    pid: u32,
    tag: Tag,
    name: u64,
    /// 0, or the thread that may not count.
    tid: u32,
}

impl Key for RowKey {
    fn coarser(&self) -> Option<Self> {
        if self.name != OTHERS_NAME {
            return Some(Self { name: OTHERS_NAME, ..*self });
        }
        let tid = if self.tid == 0 { 0 } else { NOBODY };
        (self.pid != OTHERS_PID || self.tid != tid).then_some(Self { pid: OTHERS_PID, tid, ..*self })
    }

    fn is_others(&self) -> bool {
        self.name == OTHERS_NAME
    }
}

impl Row<RowKey> for Usage {
    fn weight(&self) -> u64 {
        self.total()
    }

    fn add(&mut self, other: Self) {
        self.merge(&other);
    }
}

/// Owner of the work of a thread that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    /// Its process.
    Process(u32),
    /// The thread, where its process is not known.
    Thread(u32),
}

/// Change of a thread or section, in order of time by thread.
#[derive(Clone, Debug)]
enum Change {
    /// A thread was in a state.
    Step(Step),
    /// A section ended.
    Claim(Box<Claim>),
    /// All that a thread did since is unknown after all, but that it ran on other CPUs than this one.
    Doubt { tid: u32, since: u64, but_on_others_than: Option<u32> },
    /// A thread has ended.
    End { tid: u32, pid: Option<u32> },
}

/// Resources that the sections and threads of a run use.
#[derive(Clone)]
pub(crate) struct UsageLedgers {
    /// Threads, by id, as far as they were read from their states.
    feeds: FxHashMap<u32, Feed>,
    /// Threads of which nothing was read are read from here on, ns.
    read_from: u64,
    books: Books,
}

/// Ledgers of threads, and the rows of those who took from them.
#[derive(Clone)]
struct Books {
    clocks: Clocks,
    /// Changes that wait for the first event of each CPU.
    waiting: VecDeque<Change>,
    /// Whether changes of CPUs are still to come from before what has come of threads.
    waits_for_power: bool,
    ledgers: FxHashMap<u32, Ledger>,
    rows: Capped<RowKey, Usage>,
    accounts: BTreeMap<Option<u32>, Usage>,
    iterations: BTreeMap<u32, Usage>,
    /// Work of threads that have ended outside of sections.
    ended: BTreeMap<Owner, Usage>,
}

impl UsageLedgers {
    /// Nothing yet.
    #[must_use]
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            feeds: FxHashMap::default(),
            read_from: 0,
            books: Books {
                clocks: Clocks::default(),
                waiting: VecDeque::new(),
                waits_for_power: false,
                ledgers: FxHashMap::default(),
                rows: Capped::new(limits.functions),
                accounts: BTreeMap::new(),
                iterations: BTreeMap::new(),
                ended: BTreeMap::new(),
            },
        }
    }

    /// It is known which CPUs there are, and their activity and requested frequency (kHz) at `begin` (ns) as far as that is known.
    pub(crate) fn begin_power(
        &mut self,
        topology: &Topology,
        begin: u64,
        state: impl Fn(u32) -> (Option<Activity>, Option<u32>),
    ) {
        self.books.clocks.begin(topology, begin, state);
        self.books.waits_for_power = true;
    }

    /// The changes of CPUs up to now have come.
    pub(crate) fn catch_up(&mut self, power: &mut Power, scheduling: &Scheduling) {
        self.books.waits_for_power = false;
        self.take_power(power, scheduling);
    }

    /// Takes the changes of CPUs that have come.
    pub(crate) fn take_power(&mut self, power: &mut Power, scheduling: &Scheduling) {
        let mut last = None;
        for change in power.take_changes() {
            last = Some(change.time());
            self.books.clocks.change(change);
        }
        self.books.settle();
        let is_crowded = !self.books.waits_for_power && self.books.clocks.are_crowded();
        if let Some(now) = last.filter(|_| is_crowded) {
            for tid in scheduling.running() {
                self.read(tid, now, scheduling, Reach::Present);
            }
            self.books.clocks.forget_oldest();
        }
    }

    /// Something happened to a thread by `now` (ns), which `scheduling` has taken.
    pub(crate) fn thread_changed(&mut self, tid: u32, now: u64, scheduling: &mut Scheduling) {
        self.doubt(scheduling.losses());
        scheduling.forget_losses();
        self.read(tid, now, scheduling, Reach::Ended);
        if self.feeds.len() > 2 * scheduling.room() {
            self.feeds.retain(|tid, feed| feed.has_claims() || scheduling.lives(*tid));
            self.read_from = now;
        }
    }

    /// A section ended; its portions are in order of time, none where all of it belongs together.
    pub(crate) fn section(&mut self, span: &SpanRecord, portions: &[Portion], scheduling: &Scheduling) {
        // Its calls take what their threads did.
        if span.class == Class::Asynchronous as u8 {
            return;
        }
        let Some(tag) = span.tag() else { return };
        let all =
            [Portion { begin: span.begin, exclusive: span.exclusive, account: None, iteration_root: None }];
        let portions = if portions.is_empty() { &all } else { portions };
        let tid = if span.is_provisional() { span.tid } else { 0 };
        let claim = Box::new(Claim {
            tid: span.tid,
            end: span.end,
            key: RowKey { pid: span.tgid, tag, name: span.name, tid },
            portions: portions.to_vec(),
        });
        self.feed(span.tid).push(claim);
        self.read(span.tid, span.end, scheduling, Reach::Ended);
    }

    /// Events of these CPUs were lost since these times (ns).
    fn doubt(&mut self, losses: &[(u32, u64)]) {
        for &(cpu, since) in losses {
            for (tid, feed) in &mut self.feeds {
                if feed.rewind(since) {
                    self.books.take(Change::Doubt { tid: *tid, since, but_on_others_than: Some(cpu) });
                }
            }
        }
    }

    fn feed(&mut self, tid: u32) -> &mut Feed {
        let read_from = self.read_from;
        self.feeds.entry(tid).or_insert_with(|| Feed::starting_at(read_from))
    }

    /// Reads the states of a thread until `now` (ns), its present one as far as `reach` allows.
    fn read(&mut self, tid: u32, now: u64, scheduling: &Scheduling, reach: Reach) {
        let Self { feeds, read_from, books } = self;
        let feed = feeds.entry(tid).or_insert_with(|| Feed::starting_at(*read_from));
        feed.read(tid, now, scheduling, reach, |change| books.take(change));
    }
}

impl Books {
    fn take(&mut self, change: Change) {
        if self.clocks.are_settled() && !self.waits_for_power {
            self.apply(change);
            return;
        }
        self.waiting.push_back(change);
        if self.waiting.len() > MOST_WAITING {
            self.clocks.give_up_waiting();
            self.settle();
        }
    }

    /// Takes what has waited, once nothing is waited for.
    fn settle(&mut self) {
        if self.clocks.are_settled() && !self.waits_for_power {
            while let Some(change) = self.waiting.pop_front() {
                self.apply(change);
            }
        }
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Step(step) => self.ledgers.entry(step.tid).or_default().step(&step, &mut self.clocks),
            Change::Claim(claim) => self.claim(&claim),
            Change::Doubt { tid, since, but_on_others_than } => {
                if let Some(ledger) = self.ledgers.get_mut(&tid) {
                    ledger.doubt(since, but_on_others_than);
                }
            }
            Change::End { tid, pid } => {
                if let Some(ledger) = self.ledgers.remove(&tid) {
                    let rest = ledger.rest(u64::MAX);
                    let owner = pid.map_or(Owner::Thread(tid), Owner::Process);
                    self.ended.entry(owner).or_default().merge(&rest);
                }
            }
        }
    }

    fn claim(&mut self, claim: &Claim) {
        let ledger = self.ledgers.entry(claim.tid).or_default();
        let mut all = Usage::default();
        let mut end = claim.end;
        // What comes last is on top.
        for portion in claim.portions.iter().rev() {
            let usage = ledger.claim(portion.begin, end, portion.exclusive);
            end = portion.begin;
            if claim.key.tid == 0 {
                self.accounts.entry(portion.account).or_default().merge(&usage);
                if let Some(root) = portion.iteration_root {
                    self.iterations.entry(root).or_default().merge(&usage);
                }
            }
            all.merge(&usage);
        }
        self.rows.row(claim.key, Usage::default).merge(&all);
    }
}

#[cfg(test)]
mod tests;
