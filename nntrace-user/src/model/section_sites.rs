//! Sections by where they stand: a thread, a stack of layers and phases, a name. What one site adds up to, by report
//! and phase of the application, is what all tables are sums of.

mod key;

use std::{
    borrow::Cow,
    collections::{BTreeMap, btree_map::Entry},
};

use nntrace_common::{
    hidl_calls::Role,
    layer::{Layer, Phase, Tag},
    record::{SpanRecord, Total, TotalKey},
};
use rustc_hash::{FxHashMap, FxHashSet};

use self::key::NOBODY;
pub(crate) use self::key::SiteKey;
use super::{
    app_phases::ReportSlot,
    capped_table::{Capped, Key, OTHERS_NAME, OTHERS_PID, Row},
    causality,
    histogram::{FEW_DIGITS, MANY_DIGITS, Times},
    limits::Limits,
    slowest_calls::{SlowCall, SlowestCalls},
    stacks::execution_of,
};

/// Sites that are found without a search. A power of two.
const RECENT: usize = 256;

/// All sites.
pub(crate) struct Sites {
    all: Capped<SiteKey, Site>,
    /// Places of sites that were used, by [`SiteKey::slot`].
    recent: Box<[u32; RECENT]>,
    phases: Capped<PhaseKey, Times>,
    functions: Capped<FunctionKey, FunctionSum>,
    /// Threads that take part in the accounting, by process and thread.
    taking_part: FxHashSet<(u32, u32)>,
    /// Number of these that are kept; beyond it, those with nothing left that could count by them are forgotten.
    most_taking_part: usize,
}

impl Default for Sites {
    fn default() -> Self {
        Self::new(&Limits::default())
    }
}

/// Sections of one site.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// Where.
    pub key: SiteKey,
    /// Layer and phase of them.
    pub tag: Tag,
    /// Role of their function in executions.
    pub role: Role,
    /// Whether nothing but sums comes of them.
    is_plain: bool,
    /// Sums by stretch of the run.
    pub sums: Vec<(ReportSlot, SiteSum)>,
    /// Where its distributions are.
    links: Links,
}

/// Places of the distributions that the times of a site are in.
#[derive(Clone, Copy, Debug)]
struct Links {
    function: u32,
    phase: Option<u32>,
    execution: Option<u32>,
    /// Generations of the tables of functions and of phases when the places were looked up.
    generations: (u32, u32),
}

/// Sum of the sections of one site in one stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SiteSum {
    /// Sections, their own and their exclusive time.
    pub total: Total,
    /// Own time, ns, of those that an execution in a driver covers.
    pub covered: u64,
}

/// Where a section was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    site: SiteKey,
    stretch: ReportSlot,
}

/// Result of adding a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Added {
    /// Where.
    pub place: Place,
    /// Its layer and phase.
    pub tag: Tag,
    /// Role of its function in executions.
    pub role: Role,
    /// Whether nothing but sums comes of it.
    pub is_plain: bool,
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

impl Key for PhaseKey {
    fn coarser(&self) -> Option<Self> {
        let tid = if self.tid == 0 { 0 } else { NOBODY };
        (self.pid != OTHERS_PID || self.tid != tid).then_some(Self { pid: OTHERS_PID, tid, ..*self })
    }

    fn is_others(&self) -> bool {
        self.pid == OTHERS_PID
    }
}

impl Row<PhaseKey> for Times {
    fn weight(&self) -> u64 {
        self.count()
    }

    fn add(&mut self, other: Self) {
        self.merge(&other);
    }
}

impl Key for FunctionKey {
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

/// Sum of the sections of one function.
#[derive(Clone, Debug)]
pub(crate) struct FunctionSum {
    /// Sections, their own and their exclusive time.
    pub total: Total,
    /// Their own times.
    pub times: Times,
    /// The slowest of them.
    pub slowest: SlowestCalls,
}

/// Function of a process.
#[derive(Debug)]
pub(crate) struct Function<'a> {
    /// Its sections.
    pub sum: Cow<'a, FunctionSum>,
    /// Whether earlier ones may be summed as others.
    pub is_late: bool,
}

impl FunctionSum {
    const fn new() -> Self {
        Self {
            total: Total { count: 0, own: 0, exclusive: 0 },
            times: Times::new(FEW_DIGITS),
            slowest: SlowestCalls::new(),
        }
    }

    fn merge(&mut self, other: &Self) {
        self.total.add(&other.total);
        self.times.merge(&other.times);
        self.slowest.merge(&other.slowest);
    }
}

impl Row<FunctionKey> for FunctionSum {
    fn weight(&self) -> u64 {
        self.total.own
    }

    fn add(&mut self, other: Self) {
        self.merge(&other);
    }
}

impl Row<SiteKey> for Site {
    fn weight(&self) -> u64 {
        self.sums.iter().fold(0, |sum, (_, part)| sum.saturating_add(part.total.own))
    }

    fn add(&mut self, other: Self) {
        for (stretch, part) in other.sums {
            let sum = self.sum_of(stretch);
            sum.total.add(&part.total);
            sum.covered = sum.covered.saturating_add(part.covered);
        }
    }

    fn into_others(self, key: SiteKey) -> Self {
        let role = if key.keeps_name { self.role } else { Role::Ordinary };
        Self { key, role, ..self }
    }
}

/// No place.
const NONE: u32 = u32::MAX;

impl Sites {
    /// Creates empty tables.
    #[must_use]
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            all: Capped::new(limits.sites),
            recent: Box::new([NONE; RECENT]),
            phases: Capped::new(limits.phases),
            functions: Capped::new(limits.functions),
            taking_part: FxHashSet::default(),
            most_taking_part: limits.threads,
        }
    }

    /// Adds a section that ended and began in `stretch`. One whose tag no contract knows is left out. `name` gives what
    /// the function of a name is to executions, and whether it shows a driver.
    pub(crate) fn add(
        &mut self,
        span: &SpanRecord,
        stretch: ReportSlot,
        name: impl FnOnce(u64) -> (Role, bool),
    ) -> Option<Added> {
        let place = self.place(span, |hash| Some(name(hash)))?;
        self.add_at(place, span, stretch);
        let Site { key, tag, role, is_plain, .. } = *self.all.at(place);
        Some(Added { place: Place { site: key, stretch }, tag, role, is_plain })
    }

    /// Does the same with a section of which nothing but sums comes; `false` if more may, or its name is not known.
    #[inline]
    pub(crate) fn add_plain(
        &mut self,
        span: &SpanRecord,
        stretch: impl FnOnce() -> ReportSlot,
        name: impl FnOnce(u64) -> Option<(Role, bool)>,
    ) -> bool {
        let place = self.place(span, name).filter(|&place| self.all.at(place).is_plain);
        if let Some(place) = place {
            self.add_at(place, span, stretch());
        }
        place.is_some()
    }

    /// Returns the place of the site of a section, which is made if it is new; `None` if its tag or its name is not known.
    #[inline]
    fn place(&mut self, span: &SpanRecord, name: impl FnOnce(u64) -> Option<(Role, bool)>) -> Option<u32> {
        let mut key = SiteKey {
            pid: span.tgid,
            tid: span.tid,
            path: span.path,
            name: span.name,
            in_itself: span.adds.is_in_itself(),
            provisional: span.is_provisional(),
            keeps_name: false,
        };
        let slot = key.slot();
        let mut place = self.recent[slot];
        if self.all.get(place).is_none_or(|site| !site.key.is_of(&key)) {
            let (role, shows_driver) = name(span.name)?;
            key.keeps_name = role != Role::Ordinary || shows_driver;
            place = self.make(key, span, role)?;
            self.recent[slot] = place;
        }
        Some(place)
    }

    #[inline]
    fn add_at(&mut self, place: u32, span: &SpanRecord, stretch: ReportSlot) {
        let generations = (self.functions.generation(), self.phases.generation());
        if self.all.at(place).links.generations != generations {
            self.link(place, span);
        }
        let site = self.all.at(place);
        let (own, links, in_itself) = (span.own, site.links, site.key.in_itself);
        let total = Total { count: 1, own, exclusive: span.exclusive };
        site.sum_of(stretch).total.add(&total);
        if let Some(phase) = links.phase {
            self.phases.at(phase).record(own);
        }
        if let Some(execution) = links.execution {
            self.phases.at(execution).record(own);
        }
        let function = self.functions.at(links.function);
        function.total.add(&span.of_function());
        if !in_itself {
            function.times.record(own);
            function.slowest.add(SlowCall { ns: own, begin: span.begin, tid: span.tid });
        }
    }

    #[cold]
    fn make(&mut self, key: SiteKey, span: &SpanRecord, role: Role) -> Option<u32> {
        let tag = span.tag()?;
        if !key.provisional {
            self.mark_thread(key.pid, key.tid);
        }
        // No generation is the last of all: it is linked before it is used.
        let links = Links { function: NONE, phase: None, execution: None, generations: (u32::MAX, u32::MAX) };
        let is_plain = role == Role::Ordinary && !is_driver_execution(tag) && !ends_app_phase(tag);
        Some(self.all.place(key, || Site { key, tag, role, is_plain, sums: Vec::new(), links }))
    }

    /// Looks up where the distributions of a site are: rows of them have been summed, or it is new.
    #[cold]
    fn link(&mut self, place: u32, span: &SpanRecord) {
        let site = self.all.at(place);
        let (pid, tag, name) = (site.key.pid, site.tag, site.key.name);
        let tid = if site.key.provisional { site.key.tid } else { 0 };
        let function = FunctionKey { pid, tag, name, tid };
        let adds = [(span.adds.to_total(), tag), (span.adds.to_execution(), execution_of(tag))];
        // The second of two places can move the first one.
        loop {
            let before = self.phases.generation();
            let [phase, execution] = adds.map(|(is_wanted, tag)| {
                is_wanted.then(|| self.phases.place(PhaseKey { pid, tag, tid }, || Times::new(MANY_DIGITS)))
            });
            if self.phases.generation() == before {
                let function = self.functions.place(function, FunctionSum::new);
                let generations = (self.functions.generation(), before);
                self.all.at(place).links = Links { function, phase, execution, generations };
                return;
            }
        }
    }

    /// Own time (ns) of a section that was added there turns out to be covered by an execution.
    pub(crate) fn cover(&mut self, place: Place, own: u64) {
        if let Some(site) = self.all.find(place.site) {
            let sum = site.sum_of(place.stretch);
            sum.covered = sum.covered.saturating_add(own);
        }
    }

    /// A thread takes part: what it showed so far counts.
    pub(crate) fn mark_thread(&mut self, pid: u32, tid: u32) {
        if self.taking_part.insert((pid, tid)) && self.taking_part.len() > self.most_taking_part {
            let sites =
                self.all.iter().filter(|(key, ..)| key.provisional).map(|(key, ..)| (key.pid, key.tid));
            let phases = self.phases.iter().map(|(key, ..)| (key.pid, key.tid));
            let functions = self.functions.iter().map(|(key, ..)| (key.pid, key.tid));
            let used: FxHashSet<_> = sites.chain(phases).chain(functions).collect();
            self.taking_part.retain(|thread| used.contains(thread));
            self.most_taking_part = self.most_taking_part.max(2 * self.taking_part.len());
        }
    }

    /// Whether sections of a thread, 0 for one that takes part, count.
    pub(crate) fn counts(&self, pid: u32, tid: u32) -> bool {
        tid == 0 || self.taking_part.contains(&(pid, tid))
    }

    /// How many rows were summed as others: functions, layers and phases of processes, and places.
    #[must_use]
    pub(crate) fn summed(&self) -> [u64; 3] {
        [self.functions.summed(), self.phases.summed(), self.all.summed()]
    }

    /// The names of what is kept.
    pub(crate) fn names(&self) -> impl Iterator<Item = u64> {
        let of_sites = self.all.iter().map(|(key, ..)| key.name);
        of_sites.chain(self.functions.iter().map(|(key, ..)| key.name))
    }

    /// Whether entries of totals under this key count.
    #[must_use]
    pub(crate) fn counts_total(&self, key: &TotalKey) -> bool {
        self.counts(key.tgid, key.tid)
    }

    /// Sums of the functions of threads that take part.
    pub(crate) fn function_totals(&self) -> impl Iterator<Item = (causality::Site, Total)> {
        let functions = self.functions.iter().filter(|(key, ..)| key.tid == 0);
        functions.map(|(&FunctionKey { pid, tag, name, .. }, sum, _)| {
            (causality::Site { pid, tag, name }, sum.total)
        })
    }

    /// The sites that count.
    pub(crate) fn counted(&self) -> impl Iterator<Item = &Site> {
        let all = self.all.iter().map(|(_, site, _)| site);
        all.filter(|site| !site.key.provisional || self.counts(site.key.pid, site.key.tid))
    }

    /// Exact totals by process and stack of what was added.
    #[must_use]
    pub(crate) fn totals(&self) -> FxHashMap<TotalKey, Total> {
        let mut totals: FxHashMap<TotalKey, Total> = FxHashMap::default();
        for site in self.counted() {
            let sum = totals.entry(TotalKey::new(site.key.pid, site.key.path)).or_default();
            for (_, part) in &site.sums {
                sum.add(&part.total);
            }
        }
        totals
    }

    /// Own times of the frames that add to a layer and phase of a process; of those of which all are known.
    #[must_use]
    pub(crate) fn phases(&self) -> BTreeMap<(u32, Tag), Times> {
        let mut merged: BTreeMap<_, Option<Times>> = BTreeMap::new();
        for (key, times, is_late) in self.phases.iter().filter(|(key, ..)| self.counts(key.pid, key.tid)) {
            let known = merged.entry((key.pid, key.tag)).or_insert_with(|| Some(Times::new(MANY_DIGITS)));
            match known {
                Some(known) if !is_late => known.merge(times),
                _ => *known = None,
            }
        }
        merged.into_iter().filter_map(|(key, times)| Some((key, times?))).collect()
    }

    /// Every function of every process, by process, layer and phase, and hash of its name.
    #[must_use]
    pub(crate) fn functions(&self) -> BTreeMap<(u32, Tag, u64), Function<'_>> {
        let mut merged: BTreeMap<_, Function<'_>> = BTreeMap::new();
        for (key, sum, is_late) in self.functions.iter().filter(|(key, ..)| self.counts(key.pid, key.tid)) {
            match merged.entry((key.pid, key.tag, key.name)) {
                // Nearly always there is nothing to merge, and copies of the distributions would be large.
                Entry::Vacant(entry) => {
                    entry.insert(Function { sum: Cow::Borrowed(sum), is_late });
                }
                Entry::Occupied(entry) => {
                    let known = entry.into_mut();
                    known.sum.to_mut().merge(sum);
                    known.is_late |= is_late;
                }
            }
        }
        merged
    }
}

/// Whether sections of a tag are executions that may cover others, or be covered by them.
pub(crate) fn is_driver_execution(tag: Tag) -> bool {
    matches!(tag.layer(), Layer::Driver | Layer::CpuFallback) && tag.phase().is_execution()
}

/// Whether the end of a section with a tag ends a phase of the application.
pub(crate) fn ends_app_phase(tag: Tag) -> bool {
    tag.layer() == Layer::Application && matches!(tag.phase(), Phase::WarmUp | Phase::Benchmark)
}

impl Site {
    /// The sum of that stretch, which mostly is the last one.
    fn sum_of(&mut self, stretch: ReportSlot) -> &mut SiteSum {
        let known = self.sums.iter().rposition(|(known, _)| *known == stretch);
        let at = known.unwrap_or_else(|| {
            self.sums.push((stretch, SiteSum::default()));
            self.sums.len() - 1
        });
        &mut self.sums[at].1
    }
}
