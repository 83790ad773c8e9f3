//! Sections by where they stand: a thread, a stack of layers and phases, a name. What one site adds up to, by report
//! and phase of the application, is what all tables are sums of.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use nntrace_common::{
    interface::Role,
    layer::Tag,
    record::{SpanRecord, Total, TotalKey},
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    histogram::{self, FEW_DIGITS, MANY_DIGITS},
    stacks::execution_of,
    timeline::Stretch,
};

/// Sites that are found without a search. A power of two.
const RECENT: usize = 256;

/// All sites.
pub struct Sites {
    numbers: FxHashMap<SiteKey, u32>,
    /// Numbers of sites that were used, by [`SiteKey::place`].
    recent: Box<[u32; RECENT]>,
    all: Vec<Site>,
    phases: Distributions<PhaseKey>,
    functions: Distributions<FunctionKey>,
    /// Threads that take part in the accounting, by process and thread.
    taking_part: FxHashSet<(u32, u32)>,
}

impl Default for Sites {
    fn default() -> Self {
        Self {
            numbers: FxHashMap::default(),
            recent: Box::new([NONE; RECENT]),
            all: Vec::new(),
            phases: Distributions::default(),
            functions: Distributions::default(),
            taking_part: FxHashSet::default(),
        }
    }
}

/// What tells a site from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SiteKey {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// The stack.
    pub path: u64,
    /// Hash of the name.
    pub name: u64,
    /// Its thread had shown interface calls only: it counts if the thread takes part in the end.
    pub provisional: bool,
}

impl SiteKey {
    /// Where the number of such a site is kept in [`Sites::recent`]. Paths and names are hashes already.
    #[inline]
    fn place(&self) -> usize {
        const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = (self.path ^ self.name ^ u64::from(self.tid)).wrapping_mul(MIX);
        (mixed >> (64 - RECENT.trailing_zeros())) as usize
    }
}

/// Sections of one site.
#[derive(Clone, Debug)]
pub struct Site {
    /// Where.
    pub key: SiteKey,
    /// Layer and phase of them.
    pub tag: Tag,
    /// What their function is to executions.
    pub role: Role,
    /// What they add up to, by stretch of the run.
    pub sums: Vec<(Stretch, SiteSum)>,
    function: u32,
    phase: u32,
    execution: u32,
}

/// What the sections of one site add up to in one stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteSum {
    /// Sections, their own and their exclusive time.
    pub total: Total,
    /// Own time, ns, of those that an execution in a driver covers.
    pub covered: u64,
}

/// Where a section was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    site: u32,
    sum: u32,
}

/// What was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// Where.
    pub place: Place,
    /// Its layer and phase.
    pub tag: Tag,
    /// What its function is to executions.
    pub role: Role,
}

/// A layer and phase of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PhaseKey {
    pid: u32,
    tag: Tag,
    /// 0, or the thread that may not count.
    tid: u32,
}

/// A marked function of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FunctionKey {
    pid: u32,
    tag: Tag,
    name: u64,
    /// 0, or the thread that may not count.
    tid: u32,
}

/// What the sections of one function add up to.
#[derive(Clone, Debug)]
pub struct FunctionSum {
    /// Sections, their own and their exclusive time.
    pub total: Total,
    /// Their own times, one by one.
    pub times: Histogram<u32>,
}

/// No distribution.
const NONE: u32 = u32::MAX;

impl Sites {
    /// Adds a section that ended and began in `stretch`. One whose tag no contract knows is left out. `role` tells what
    /// the function of a name is to executions.
    pub fn add(&mut self, span: &SpanRecord, stretch: Stretch, role: impl Fn(u64) -> Role) -> Option<Added> {
        let provisional = span.is_provisional();
        let key = SiteKey { pid: span.tgid, tid: span.tid, path: span.path, name: span.name, provisional };
        let place = key.place();
        let mut number = self.recent[place];
        if self.all.get(number as usize).is_none_or(|site| site.key != key) {
            number = match self.numbers.get(&key) {
                Some(&number) => number,
                None => self.make(key, span, role(span.name))?,
            };
            self.recent[place] = number;
        }
        let site = &mut self.all[number as usize];
        let own = span.own;
        for distribution in [site.phase, site.execution] {
            if distribution != NONE {
                histogram::record(&mut self.phases.all[distribution as usize].1, own);
            }
        }
        histogram::record(&mut self.functions.all[site.function as usize].1, own);
        let sum = site.sum_of(stretch);
        site.sums[sum].1.total.add(&Total { count: 1, own, exclusive: span.exclusive });
        Some(Added { place: Place { site: number, sum: sum as u32 }, tag: site.tag, role: site.role })
    }

    #[cold]
    fn make(&mut self, key: SiteKey, span: &SpanRecord, role: Role) -> Option<u32> {
        let tag = span.tag()?;
        if !key.provisional {
            self.taking_part.insert((key.pid, key.tid));
        }
        let tid = if key.provisional { key.tid } else { 0 };
        let pid = key.pid;
        let mut phase = |wanted: bool, tag: Tag| {
            if wanted { self.phases.number(PhaseKey { pid, tag, tid }, MANY_DIGITS) } else { NONE }
        };
        let site = Site {
            key,
            tag,
            role,
            sums: Vec::new(),
            phase: phase(span.adds.to_total(), tag),
            execution: phase(span.adds.to_execution(), execution_of(tag)),
            function: self.functions.number(FunctionKey { pid, tag, name: key.name, tid }, FEW_DIGITS),
        };
        let number = self.all.len() as u32;
        self.all.push(site);
        self.numbers.insert(key, number);
        Some(number)
    }

    /// Own time (ns) of a section that was added there turns out to be covered by an execution.
    pub fn cover(&mut self, place: Place, own: u64) {
        let sum = &mut self.all[place.site as usize].sums[place.sum as usize].1;
        sum.covered = sum.covered.saturating_add(own);
    }

    /// A thread takes part: what it showed so far counts.
    pub fn takes_part(&mut self, pid: u32, tid: u32) {
        self.taking_part.insert((pid, tid));
    }

    fn counts(&self, pid: u32, tid: u32) -> bool {
        tid == 0 || self.taking_part.contains(&(pid, tid))
    }

    /// Whether entries of totals under this key count.
    #[must_use]
    pub fn counts_total(&self, key: &TotalKey) -> bool {
        self.counts(key.tgid, key.tid)
    }

    /// The sites that count.
    pub fn counted(&self) -> impl Iterator<Item = &Site> {
        self.all.iter().filter(|site| !site.key.provisional || self.counts(site.key.pid, site.key.tid))
    }

    /// Exact totals by process and stack of what was added.
    #[must_use]
    pub fn totals(&self) -> FxHashMap<TotalKey, Total> {
        let mut totals: FxHashMap<TotalKey, Total> = FxHashMap::default();
        for site in self.counted() {
            let sum = totals.entry(TotalKey::new(site.key.pid, site.key.path)).or_default();
            for (_, part) in &site.sums {
                sum.add(&part.total);
            }
        }
        totals
    }

    /// Own times of the frames that add to a layer and phase of a process, one by one.
    #[must_use]
    pub fn phases(&self) -> BTreeMap<(u32, Tag), Histogram<u32>> {
        let mut merged = BTreeMap::new();
        for (key, times) in &self.phases.all {
            if self.counts(key.pid, key.tid) {
                merge(merged.entry((key.pid, key.tag)), times);
            }
        }
        merged
    }

    /// Every function of every process, by process, layer and phase, and hash of its name.
    #[must_use]
    pub fn functions(&self) -> BTreeMap<(u32, Tag, u64), FunctionSum> {
        let mut times = BTreeMap::new();
        for (key, recorded) in &self.functions.all {
            if self.counts(key.pid, key.tid) {
                merge(times.entry((key.pid, key.tag, key.name)), recorded);
            }
        }
        let mut totals: FxHashMap<(u32, Tag, u64), Total> = FxHashMap::default();
        for site in self.counted() {
            let sum = totals.entry((site.key.pid, site.tag, site.key.name)).or_default();
            for (_, part) in &site.sums {
                sum.add(&part.total);
            }
        }
        let sums = times.into_iter().map(|(key, times)| {
            let total = totals.get(&key).copied().unwrap_or_default();
            (key, FunctionSum { total, times })
        });
        sums.collect()
    }
}

impl Site {
    /// Place of the sum of that stretch, which mostly is the last one.
    fn sum_of(&mut self, stretch: Stretch) -> usize {
        let known = self.sums.iter().rposition(|(known, _)| *known == stretch);
        known.unwrap_or_else(|| {
            self.sums.push((stretch, SiteSum::default()));
            self.sums.len() - 1
        })
    }
}

fn merge<K: Ord>(entry: std::collections::btree_map::Entry<'_, K, Histogram<u32>>, times: &Histogram<u32>) {
    match entry {
        std::collections::btree_map::Entry::Vacant(entry) => {
            entry.insert(times.clone());
        }
        std::collections::btree_map::Entry::Occupied(mut entry) => {
            // It resizes itself to what is added; of equal digits, nothing is lost.
            let merged = entry.get_mut().add(times);
            debug_assert!(merged.is_ok());
        }
    }
}

/// Histograms by key.
struct Distributions<K> {
    numbers: FxHashMap<K, u32>,
    all: Vec<(K, Histogram<u32>)>,
}

impl<K> Default for Distributions<K> {
    fn default() -> Self {
        Self { numbers: FxHashMap::default(), all: Vec::new() }
    }
}

impl<K: Copy + Eq + std::hash::Hash> Distributions<K> {
    fn number(&mut self, key: K, digits: u8) -> u32 {
        *self.numbers.entry(key).or_insert_with(|| {
            self.all.push((key, histogram::empty(digits)));
            self.all.len() as u32 - 1
        })
    }
}
