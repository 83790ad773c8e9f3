//! Distributions: how long the sections took, one by one, by layer and phase and by function.

use std::collections::HashMap;

use hdrhistogram::Histogram;
use nntrace_common::{layer::Tag, record::SpanRecord};

use super::stacks::execution_of;

/// Digits kept of a time in the histogram of a phase.
const PHASE_DIGITS: u8 = 3;
/// Digits kept in that of a function, of which there can be many.
const FUNCTION_DIGITS: u8 = 2;

/// The sections that were recorded one by one.
#[derive(Default)]
pub struct Spans {
    phases: HashMap<(u32, Tag), Histogram<u32>>,
    functions: HashMap<FunctionKey, FunctionSum>,
}

/// A marked function of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionKey {
    /// The process.
    pub pid: u32,
    /// Its layer and phase.
    pub tag: Tag,
    /// Hash of its name.
    pub name: u64,
}

/// What the sections of one function add up to.
#[derive(Clone, Debug)]
pub struct FunctionSum {
    /// Sections.
    pub count: u64,
    /// Duration less what was subtracted, ns.
    pub total: u64,
    /// Duration less the marked sections in it, ns.
    pub exclusive: u64,
    /// The former, one by one.
    pub times: Histogram<u32>,
}

impl Spans {
    /// Takes a section that ended. One whose tag no contract knows is left out.
    pub fn add(&mut self, span: &SpanRecord) {
        let Some(tag) = span.tag() else { return };
        if span.adds.to_total() {
            record(phase(&mut self.phases, span.tgid, tag), span.own);
        }
        if span.adds.to_execution() {
            record(phase(&mut self.phases, span.tgid, execution_of(tag)), span.own);
        }
        let key = FunctionKey { pid: span.tgid, tag, name: span.name };
        let sum = self.functions.entry(key).or_insert_with(|| FunctionSum {
            count: 0,
            total: 0,
            exclusive: 0,
            times: histogram(FUNCTION_DIGITS),
        });
        sum.count += 1;
        sum.total += span.own;
        sum.exclusive += span.exclusive;
        record(&mut sum.times, span.own);
    }

    /// Times of the frames of a process that add to a layer and phase; `None` when none was recorded.
    #[must_use]
    pub fn phase(&self, pid: u32, tag: Tag) -> Option<&Histogram<u32>> {
        self.phases.get(&(pid, tag))
    }

    /// Every function.
    pub fn functions(&self) -> impl Iterator<Item = (&FunctionKey, &FunctionSum)> {
        self.functions.iter()
    }
}

fn phase(phases: &mut HashMap<(u32, Tag), Histogram<u32>>, pid: u32, tag: Tag) -> &mut Histogram<u32> {
    phases.entry((pid, tag)).or_insert_with(|| histogram(PHASE_DIGITS))
}

/// An empty histogram that grows with what it is given.
fn histogram(digits: u8) -> Histogram<u32> {
    let mut histogram = Histogram::new_with_bounds(1, 2, digits)
        .unwrap_or_else(|_| unreachable!("the bounds and the digits are constants that the library takes"));
    histogram.auto(true);
    histogram
}

fn record(histogram: &mut Histogram<u32>, ns: u64) {
    // It grows by itself; were it ever not to, the time still counts, at the upper end.
    if histogram.record(ns).is_err() {
        histogram.saturating_record(ns);
    }
}

#[cfg(test)]
mod tests {
    use nntrace_common::{
        layer::{Layer, Phase},
        record::RecordKind,
        stack::{Adds, Class},
    };

    use super::*;

    fn span(phase: Phase, own: u64, adds: u8) -> SpanRecord {
        SpanRecord {
            kind: RecordKind::Span as u32,
            tid: 1,
            tgid: 1,
            tag: Tag::new(Layer::CpuFallback, phase).index(),
            class: Class::Section as u8,
            depth: 0,
            adds: Adds::from_bits(adds),
            begin: 0,
            end: own,
            own,
            exclusive: own / 2,
            path: 1,
            name: 7,
        }
    }

    #[test]
    fn a_part_of_execution_is_in_both_distributions() {
        let mut spans = Spans::default();
        for own in [1_000, 2_000, 4_000_000_000] {
            spans.add(&span(Phase::Computation, own, 3));
        }
        spans.add(&span(Phase::Computation, 5, 0));
        let computation = spans.phase(1, Tag::new(Layer::CpuFallback, Phase::Computation)).unwrap();
        let execution = spans.phase(1, Tag::new(Layer::CpuFallback, Phase::Execution)).unwrap();
        assert_eq!((computation.len(), execution.len()), (3, 3));
        assert!(computation.max() >= 4_000_000_000);
        assert_eq!(computation.value_at_quantile(0.5), 2_000);
        let (_, sum) = spans.functions().next().unwrap();
        assert_eq!((sum.count, sum.times.len()), (4, 4));
    }
}
