//! Stacks of layers and phases, and what the exact totals by process and stack sum up to.

use std::{cmp::Ordering, collections::BTreeMap, fmt, str::FromStr};

use nntrace_common::{
    layer::{Layer, Phase, Tag, UnknownTag},
    mark::{Label, Prefix},
    record::{Total, TotalKey},
    stack::{Adds, Class, MAX_DEPTH, PathStep, ROOT_PATH, Stack},
};
use rustc_hash::FxHashMap;

/// Steps of each path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paths {
    steps: FxHashMap<u64, PathStep>,
}

/// Exact totals by process and path.
pub(crate) type Totals = FxHashMap<TotalKey, Total>;

/// The text of a frame whose layer and phase are not known.
const UNKNOWN: &str = "?";

/// A frame of a stack; frames are in the order of their text, `LC_PCO` before `LR_PE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackFrame {
    /// Layer and phase; `None` where the kernel's table had no room for it.
    pub tag: Option<Tag>,
    /// Whether its time is subtracted from the frame around it.
    pub is_subtracted: bool,
}

impl StackFrame {
    fn order(self) -> (Option<(&'static str, &'static str)>, bool) {
        (self.tag.map(|tag| (tag.layer().code(), tag.phase().code())), self.is_subtracted)
    }
}

impl Ord for StackFrame {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for StackFrame {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The tag, or `?`; `!` behind it where it is subtracted.
impl fmt::Display for StackFrame {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tag {
            Some(tag) => write!(formatter, "{tag}")?,
            None => formatter.write_str(UNKNOWN)?,
        }
        formatter.write_str(if self.is_subtracted { "!" } else { "" })
    }
}

impl FromStr for StackFrame {
    type Err = UnknownTag;

    /// Reads what a frame displays.
    fn from_str(text: &str) -> Result<Self, UnknownTag> {
        let (tag, is_subtracted) = match text.strip_suffix('!') {
            Some(tag) => (tag, true),
            None => (text, false),
        };
        let tag = if tag == UNKNOWN { None } else { Some(tag.parse()?) };
        Ok(Self { tag, is_subtracted })
    }
}

/// Time in one stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StackSum {
    /// The process.
    pub pid: u32,
    /// From the outermost section in.
    pub path: Vec<StackFrame>,
    /// Sum.
    pub total: Total,
}

impl Paths {
    /// Whether it is known what a path consists of.
    #[must_use]
    pub(crate) fn contains(&self, path: u64) -> bool {
        self.steps.contains_key(&path)
    }

    /// Keeps the innermost step of a path; the first one stays.
    pub(crate) fn insert(&mut self, path: u64, step: PathStep) {
        self.steps.entry(path).or_insert(step);
    }

    /// Whether the innermost frames of a path add to the total of their layer and phase.
    #[must_use]
    pub(crate) fn adds(&self, path: u64) -> bool {
        self.steps.get(&path).is_some_and(|step| step.adds.to_total())
    }

    /// Every stack, by process and path.
    #[must_use]
    pub(crate) fn stacks(&self, totals: &Totals) -> Vec<StackSum> {
        let mut sums: Vec<StackSum> = totals
            .iter()
            .map(|(key, &total)| StackSum { pid: key.tgid, path: self.frames(key.path), total })
            .collect();
        sums.sort_by(|a, b| (a.pid, &a.path).cmp(&(b.pid, &b.path)));
        // Threads that only took part later have entries of their own for the same stack.
        sums.dedup_by(|next, sum| {
            let same = (next.pid, &next.path) == (sum.pid, &sum.path);
            if same {
                sum.total.add(&next.total);
            }
            same
        });
        sums
    }

    /// Totals by process, layer and phase: a part of execution adds to its layer's execution where no execution
    /// frame holds it (the mark contract, section 2).
    #[must_use]
    pub(crate) fn phases(&self, totals: &Totals) -> BTreeMap<(u32, Tag), Total> {
        let mut phases: BTreeMap<(u32, Tag), Total> = BTreeMap::new();
        for (key, total) in totals {
            let Some((step, tag)) =
                self.steps.get(&key.path).and_then(|s| Some((s, Tag::from_index(s.tag)?)))
            else {
                continue;
            };
            let counted = Total { exclusive: 0, ..*total };
            let sum = phases.entry((key.tgid, tag)).or_default();
            sum.add(&Total { exclusive: total.exclusive, ..Total::default() });
            if step.adds.to_total() {
                sum.add(&counted);
            }
            if step.adds.to_execution() {
                phases.entry((key.tgid, execution_of(tag))).or_default().add(&counted);
            }
        }
        phases
    }

    /// Role of the innermost frame of a path in a report, and the sum it adds to: in a driver process the CPU executor is
    /// the driver, elsewhere a driver is the CPU executor (the mark contract, section 3). The two are one layer then,
    /// so that the one inside the other is its detail, and is not counted twice. `None` for a path that is not known.
    #[must_use]
    pub(crate) fn as_reported(&self, path: u64, in_driver: bool) -> Option<(Tag, Adds)> {
        let mut stack = Stack::EMPTY;
        for step in self.steps(path)? {
            let tag = reported(Tag::from_index(step.tag)?, in_driver);
            let prefix = if step.class == Class::Subtract as u8 { Prefix::Subtract } else { Prefix::None };
            stack.begin(0, prefix, Label::tagged(tag), 0, |_, _| {});
        }
        let mut innermost = None;
        stack.end(0, |_, closed| innermost = Some((closed.tag, closed.adds)));
        innermost
    }

    /// The steps of a path from the outermost in; `None` when one of them was never stored.
    fn steps(&self, mut path: u64) -> Option<Vec<&PathStep>> {
        let mut steps = Vec::new();
        // A path is as deep as a stack; the bound keeps a damaged table from going round in circles.
        while path != ROOT_PATH && steps.len() < MAX_DEPTH {
            let step = self.steps.get(&path)?;
            steps.push(step);
            path = step.parent;
        }
        steps.reverse();
        Some(steps)
    }

    /// The frames of a path from the outermost in. One of which a step was never stored is a single unknown frame.
    fn frames(&self, path: u64) -> Vec<StackFrame> {
        let Some(steps) = self.steps(path) else {
            return vec![StackFrame { tag: None, is_subtracted: false }];
        };
        let frames = steps.into_iter().map(|step| StackFrame {
            tag: Tag::from_index(step.tag),
            is_subtracted: step.class == Class::Subtract as u8,
        });
        frames.collect()
    }
}

/// Execution in the layer of `tag`.
#[must_use]
pub(crate) fn execution_of(tag: Tag) -> Tag {
    let layer: Layer = tag.layer();
    Tag::new(layer, Phase::Execution)
}

/// A tag as a report shows it, by the role of its process.
fn reported(tag: Tag, in_driver: bool) -> Tag {
    match (tag.layer(), in_driver) {
        (Layer::CpuFallback, true) => Tag::new(Layer::Driver, tag.phase()),
        (Layer::Driver, false) => Tag::new(Layer::CpuFallback, tag.phase()),
        _ => tag,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_in_the_order_of_their_text() {
        let tags = (0..=u8::MAX).filter_map(Tag::from_index).map(Some).chain([None]);
        let mut frames: Vec<StackFrame> = tags
            .flat_map(|tag| [false, true].map(|is_subtracted| StackFrame { tag, is_subtracted }))
            .collect();
        frames.sort();
        assert_eq!(frames.len(), 2 * (91 + 1));
        let texts: Vec<String> = frames.iter().map(ToString::to_string).collect();
        assert!(texts.is_sorted());
        let read: Result<Vec<StackFrame>, _> = texts.iter().map(|text| text.parse()).collect();
        assert_eq!(read, Ok(frames));
    }
}
