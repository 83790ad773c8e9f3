//! Statistics of sections, summed by any choice of properties.

use std::borrow::Cow;

use nntrace_common::{
    layer::{Layer, Phase, Tag},
    record::SpanRecord,
    stack::Class,
};
use rustc_hash::FxHashSet;

use super::{
    capped_table::{Capped, Key, OTHERS, OTHERS_NAME, OTHERS_PID, Row},
    deviation,
    histogram::{FEW_DIGITS, Times},
    limits::Limits,
    section_filter::{Hidden, SectionFilter},
    stacks::execution_of,
};

/// Thread that stands for those that may not count, where there was no room for each.
const NOBODY: u32 = u32::MAX;
/// Number for a layer or phase of a row that is of several.
const ANY: u8 = u8::MAX;

/// Property of sections by which they are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// Process.
    Process,
    /// Thread.
    Thread,
    /// Layer.
    Layer,
    /// Phase.
    Phase,
    /// Function.
    Function,
}

/// Sum of the sections that are equal in the chosen properties; those that were not chosen are `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct SectionSums {
    /// Process; 0 stands for those that there was no room for.
    pub pid: Option<u32>,
    /// Process and thread.
    pub thread: Option<(u32, u32)>,
    /// Layer.
    pub layer: Option<Layer>,
    /// Phase.
    pub phase: Option<Phase>,
    /// Name of the function.
    pub name: Option<String>,
    /// Number of sections.
    pub count: u64,
    /// Sum of their durations, less what is subtracted from them, ns.
    pub total_ns: u128,
    /// Sum of their durations without the marked sections in them, ns.
    pub exclusive_ns: u128,
    /// Shortest, ns.
    pub min_ns: u64,
    /// Median, ns: as all percentiles, of two significant digits.
    pub p50_ns: u64,
    /// 95th percentile, ns.
    pub p95_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
    /// Standard deviation of all of them, ns.
    pub deviation_ns: f64,
    /// Whether earlier ones may be in `(others)`.
    pub is_partial: bool,
}

impl SectionSums {
    /// Returns the mean, ns.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.total_ns as f64 / self.count as f64 }
    }

    /// Returns the standard deviation as a share of the mean; `None` where that is 0.
    #[must_use]
    pub(crate) fn relative_deviation(&self) -> Option<f64> {
        let mean = self.mean_ns();
        (mean > 0.0).then(|| self.deviation_ns / mean)
    }
}

/// Key of a row. What was not chosen has the same value in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct RowKey {
    pid: u32,
    tid: u32,
    layer: u8,
    phase: u8,
    name: u64,
    /// 0, or the thread that may not count.
    unmarked: u32,
}

impl Key for RowKey {
    fn coarser(&self) -> Option<Self> {
        if self.name != OTHERS_NAME {
            return Some(Self { name: OTHERS_NAME, ..*self });
        }
        let unmarked = if self.unmarked == 0 { 0 } else { NOBODY };
        let coarser = Self { pid: OTHERS_PID, tid: 0, unmarked, ..*self };
        (coarser != *self).then_some(coarser)
    }

    fn is_others(&self) -> bool {
        self.name == OTHERS_NAME
    }
}

/// Sums under a key.
#[derive(Clone, Debug)]
struct Sums {
    name: Option<Box<str>>,
    count: u64,
    own: u128,
    squares: u128,
    exclusive: u128,
    min: u64,
    max: u64,
    times: Times,
}

impl Sums {
    fn new(name: Option<Box<str>>) -> Self {
        Self {
            name,
            count: 0,
            own: 0,
            squares: 0,
            exclusive: 0,
            min: u64::MAX,
            max: 0,
            times: Times::new(FEW_DIGITS),
        }
    }

    #[inline]
    fn add_time(&mut self, own: u64) {
        self.count += 1;
        self.own += u128::from(own);
        self.squares = self.squares.saturating_add(u128::from(own) * u128::from(own));
        self.min = self.min.min(own);
        self.max = self.max.max(own);
        self.times.record(own);
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.own += other.own;
        self.squares = self.squares.saturating_add(other.squares);
        self.exclusive += other.exclusive;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.times.merge(&other.times);
    }
}

impl Row<RowKey> for Sums {
    fn weight(&self) -> u64 {
        u64::try_from(self.own).unwrap_or(u64::MAX)
    }

    fn add(&mut self, other: Self) {
        self.merge(&other);
    }

    fn into_others(self, _key: RowKey) -> Self {
        Self { name: None, ..self }
    }
}

/// Times of a section, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SectionTimes {
    /// Begin.
    pub(crate) begin: u64,
    /// End.
    pub(crate) end: u64,
    /// Duration without subtracted sections.
    pub(crate) own: u64,
    /// Duration without the marked sections in it.
    pub(crate) exclusive: u64,
}

/// Rows that the sections of one place are added to, as long as no row has moved.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    is_known: bool,
    is_hidden: bool,
    generation: u32,
    own: Option<u32>,
    exclusive: Option<u32>,
    execution: Option<u32>,
    /// Inside a section of the same function, whose row has its time already.
    in_itself: bool,
}

impl Place {
    /// Whether no section has been added there.
    #[must_use]
    #[inline]
    pub(crate) fn is_new(&self) -> bool {
        !self.is_known
    }
}

/// Statistics of sections.
pub struct SectionStatistics {
    properties: Vec<Property>,
    filter: SectionFilter,
    rows: Capped<RowKey, Sums>,
    /// Threads that take part in the accounting.
    taking_part: FxHashSet<(u32, u32)>,
    hidden: Hidden,
}

impl SectionStatistics {
    /// Creates statistics of the sections that a filter shows, by these properties.
    #[must_use]
    pub fn new(properties: Vec<Property>, filter: SectionFilter, limits: &Limits) -> Self {
        Self {
            properties,
            filter,
            rows: Capped::new(limits.functions),
            taking_part: FxHashSet::default(),
            hidden: Hidden::default(),
        }
    }

    /// A thread takes part in the accounting: its sections count.
    pub(crate) fn mark_thread(&mut self, pid: u32, tid: u32) {
        self.taking_part.insert((pid, tid));
    }

    /// Adds a section. `place` is that of earlier ones of the same thread, stack and name, or a new one, for which `section`
    /// and `name` are asked.
    #[inline]
    pub(crate) fn add<'a>(
        &mut self,
        place: &mut Place,
        times: SectionTimes,
        section: impl FnOnce() -> Option<(SpanRecord, Cow<'a, str>)>,
    ) {
        let SectionTimes { begin, end, own, exclusive } = times;
        if !place.is_known || place.generation != self.rows.generation() {
            let Some((span, name)) = section() else { return };
            *place = self.place(&span, &name);
        }
        if place.is_hidden || !self.filter.shows_times(begin, end) {
            self.hidden.add(end.saturating_sub(begin));
            return;
        }
        if let Some(row) = place.own {
            let row = self.rows.at(row);
            if !place.in_itself {
                row.add_time(own);
            }
            // Most add both to one row.
            if place.exclusive == place.own {
                row.exclusive += u128::from(exclusive);
            }
        }
        if let Some(row) = place.execution {
            self.rows.at(row).add_time(own);
        }
        if let Some(row) = place.exclusive.filter(|_| place.own.is_none()) {
            self.rows.at(row).exclusive += u128::from(exclusive);
        }
    }

    #[cold]
    fn place(&mut self, span: &SpanRecord, name: &str) -> Place {
        let hidden = Place { is_known: true, is_hidden: true, ..Place::default() };
        let (Some(tag), Some(class)) = (span.tag(), Class::from_code(span.class)) else { return hidden };
        if !self.filter.shows_place(span.tid, tag, name) {
            return Place { generation: self.rows.generation(), ..hidden };
        }
        if !span.is_provisional() {
            self.mark_thread(span.tgid, span.tid);
        }
        let has = |property| self.properties.contains(&property);
        let (by_function, by_tag) = (has(Property::Function), has(Property::Layer) && has(Property::Phase));
        // As in the table of layers and phases: a detail is in the section around it, and a part of an execution counts as one
        // where none is around it.
        let (own, exclusive, execution) = if by_function {
            (true, true, false)
        } else {
            let is_handed = class == Class::Handed;
            let adds = span.adds;
            (adds.to_total() && !is_handed, !is_handed, by_tag && adds.to_execution() && !is_handed)
        };
        loop {
            let generation = self.rows.generation();
            let mut row = |tag: Tag, is_wanted: bool| {
                let key = self.key(span, tag);
                let name = by_function.then(|| Box::from(name));
                is_wanted.then(|| self.rows.place(key, || Sums::new(name)))
            };
            let (sums, executions) = (row(tag, own || exclusive), row(execution_of(tag), execution));
            // The second of two places can move the first one.
            if self.rows.generation() == generation || executions.is_none() {
                return Place {
                    is_known: true,
                    is_hidden: false,
                    generation: self.rows.generation(),
                    own: sums.filter(|_| own),
                    exclusive: sums.filter(|_| exclusive),
                    execution: executions,
                    in_itself: by_function && span.adds.is_in_itself(),
                };
            }
        }
    }

    fn key(&self, span: &SpanRecord, tag: Tag) -> RowKey {
        let has = |property| self.properties.contains(&property);
        let by_thread = has(Property::Thread);
        RowKey {
            pid: if by_thread || has(Property::Process) { span.tgid } else { OTHERS_PID },
            tid: if by_thread { span.tid } else { 0 },
            layer: if has(Property::Layer) { tag.layer() as u8 } else { ANY },
            phase: if has(Property::Phase) { tag.phase() as u8 } else { ANY },
            name: if has(Property::Function) { span.name } else { 0 },
            unmarked: if span.is_provisional() { span.tid } else { 0 },
        }
    }

    /// Returns the sections that the filter hid.
    #[must_use]
    pub fn hidden(&self) -> Hidden {
        self.hidden
    }

    /// Returns the number of rows that were summed as `(others)`.
    #[must_use]
    pub fn summed(&self) -> u64 {
        self.rows.summed()
    }

    /// Returns the rows, by their properties in the order in which these were chosen.
    #[must_use]
    pub fn rows(&self) -> Vec<SectionSums> {
        let mut merged: Vec<(RowKey, Sums, bool)> = Vec::new();
        let counts =
            |key: &RowKey, pid: u32| key.unmarked == 0 || self.taking_part.contains(&(pid, key.unmarked));
        let counted = self.rows.iter().filter(|(key, ..)| {
            // Without the process in the key, any of the thread's counts: an id is that of one thread.
            if key.pid == OTHERS_PID {
                key.unmarked == 0 || self.taking_part.iter().any(|(_, tid)| *tid == key.unmarked)
            } else {
                counts(key, key.pid)
            }
        });
        let mut sorted: Vec<(RowKey, &Sums, bool)> =
            counted.map(|(key, sums, is_late)| (RowKey { unmarked: 0, ..*key }, sums, is_late)).collect();
        sorted.sort_by_key(|(RowKey { pid, tid, layer, phase, name, .. }, ..)| {
            (*pid, *tid, *layer, *phase, *name)
        });
        for (key, sums, is_late) in sorted {
            match merged.last_mut() {
                Some((last, known, known_late)) if *last == key => {
                    known.merge(sums);
                    *known_late |= is_late;
                }
                _ => merged.push((key, sums.clone(), is_late)),
            }
        }
        // Of some places, all sections are hidden.
        merged.retain(|(_, sums, _)| sums.count > 0 || sums.exclusive > 0);
        let mut rows: Vec<SectionSums> =
            merged.into_iter().map(|(key, sums, is_late)| self.row(&key, &sums, is_late)).collect();
        rows.sort_by(|a, b| {
            let orders = self.properties.iter().map(|property| match property {
                Property::Process => a.pid.cmp(&b.pid),
                Property::Thread => a.thread.cmp(&b.thread),
                Property::Layer => a.layer.cmp(&b.layer),
                Property::Phase => a.phase.cmp(&b.phase),
                Property::Function => a.name.cmp(&b.name),
            });
            orders.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        });
        rows
    }

    fn row(&self, key: &RowKey, sums: &Sums, is_partial: bool) -> SectionSums {
        let has = |property| self.properties.contains(&property);
        let times = sums.times.histogram();
        let name =
            if key.is_others() { OTHERS.to_owned() } else { sums.name.as_deref().unwrap_or_default().into() };
        SectionSums {
            pid: has(Property::Process).then_some(key.pid),
            thread: has(Property::Thread).then_some((key.pid, key.tid)),
            layer: Layer::ALL.get(usize::from(key.layer)).copied(),
            phase: Phase::ALL.get(usize::from(key.phase)).copied(),
            name: has(Property::Function).then_some(name),
            count: sums.count,
            total_ns: sums.own,
            exclusive_ns: sums.exclusive,
            min_ns: if sums.count == 0 { 0 } else { sums.min },
            p50_ns: times.value_at_quantile(0.5).min(sums.max),
            p95_ns: times.value_at_quantile(0.95).min(sums.max),
            p99_ns: times.value_at_quantile(0.99).min(sums.max),
            max_ns: sums.max,
            deviation_ns: deviation::of_sums(sums.count, sums.own, sums.squares),
            is_partial,
        }
    }
}
