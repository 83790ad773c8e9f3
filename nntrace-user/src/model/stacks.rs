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
    /// Part of its time in the frame around it.
    pub part: FramePart,
}

/// Part of a frame's time in the frame around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum FramePart {
    /// It lies in that frame.
    #[default]
    Inside,
    /// It is subtracted from that frame.
    Subtracted,
    /// It is work for an execution on another thread, which waits for it: in no total of a layer.
    Handed,
    /// It is a call that starts or awaits an asynchronous execution, which has its time.
    Part,
}

impl FramePart {
    /// Returns the mark after the tag.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Inside => "",
            Self::Subtracted => "!",
            Self::Handed => "+",
            Self::Part => "*",
        }
    }

    /// Returns the part by the class of a step.
    const fn of(class: u8) -> Self {
        if class == Class::Subtract as u8 {
            Self::Subtracted
        } else if class == Class::Handed as u8 {
            Self::Handed
        } else if class == Class::Part as u8 {
            Self::Part
        } else {
            Self::Inside
        }
    }
}

impl StackFrame {
    fn order(self) -> (Option<(&'static str, &'static str)>, &'static str) {
        (self.tag.map(|tag| (tag.layer().code(), tag.phase().code())), self.part.suffix())
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

/// The tag, or `?`; after it `!` where it is subtracted, `+` where it is work handed to another thread, `*` where it is a call of
/// an asynchronous execution.
impl fmt::Display for StackFrame {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tag {
            Some(tag) => write!(formatter, "{tag}")?,
            None => formatter.write_str(UNKNOWN)?,
        }
        formatter.write_str(self.part.suffix())
    }
}

impl FromStr for StackFrame {
    type Err = UnknownTag;

    /// Reads what a frame displays.
    fn from_str(text: &str) -> Result<Self, UnknownTag> {
        let suffixed = |part: FramePart| text.strip_suffix(part.suffix()).map(|tag| (tag, part));
        let (tag, part) = suffixed(FramePart::Subtracted)
            .or_else(|| suffixed(FramePart::Handed))
            .or_else(|| suffixed(FramePart::Part))
            .unwrap_or((text, FramePart::Inside));
        let tag = if tag == UNKNOWN { None } else { Some(tag.parse()?) };
        Ok(Self { tag, part })
    }
}

/// Time in one stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StackSum {
    /// The process.
    pub pid: u32,
    /// Frames, from the outermost section in.
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

    /// Returns every path with its innermost step, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &PathStep)> {
        self.steps.iter().map(|(path, step)| (*path, step))
    }

    /// Returns layer and phase of the innermost frames of a path.
    #[cfg(test)]
    #[must_use]
    pub(crate) fn tag(&self, path: u64) -> Option<Tag> {
        self.steps.get(&path).and_then(|step| Tag::from_index(step.tag))
    }

    /// Whether the innermost frames of a path add to the total of their layer and phase.
    #[must_use]
    pub(crate) fn adds(&self, path: u64) -> bool {
        self.steps.get(&path).is_some_and(|step| step.adds.to_total())
    }

    /// Whether the innermost frames of a path add to the total of their stack: those of an unknown one do.
    #[must_use]
    pub(crate) fn adds_to_stack(&self, path: u64) -> bool {
        self.steps.get(&path).is_none_or(|step| step.adds.to_total())
    }

    /// Every stack, by process and path.
    #[must_use]
    pub(crate) fn stacks(&self, totals: &Totals) -> Vec<StackSum> {
        let mut sums: Vec<StackSum> = totals
            .iter()
            .map(|(key, &total)| {
                // Replay keeps the own time of what adds to no total, too.
                let own = if self.adds_to_stack(key.path) { total.own } else { 0 };
                StackSum { pid: key.tgid, path: self.frames(key.path), total: Total { own, ..total } }
            })
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
            // The execution that it is work for is as long as it takes.
            if step.class == Class::Handed as u8 {
                continue;
            }
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

    /// Layer of the innermost frame of a path in a report, and the sum it adds to. Where driver and CPU executor are one
    /// layer, the one inside the other is its detail, and is not counted twice. `None` for a path that is not known.
    #[must_use]
    pub(crate) fn as_reported(&self, path: u64, process: LayersOf) -> Option<(Tag, Adds)> {
        let mut stack = Stack::EMPTY;
        for step in self.steps(path)? {
            let tag = reported(Tag::from_index(step.tag)?, process);
            let prefix = match FramePart::of(step.class) {
                FramePart::Inside => Prefix::None,
                FramePart::Subtracted => Prefix::Subtract,
                FramePart::Handed => Prefix::Handed,
                FramePart::Part => Prefix::Part,
            };
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
    #[must_use]
    pub(crate) fn frames(&self, path: u64) -> Vec<StackFrame> {
        let Some(steps) = self.steps(path) else {
            return vec![StackFrame { tag: None, part: FramePart::Inside }];
        };
        let frames = steps
            .into_iter()
            .map(|step| StackFrame { tag: Tag::from_index(step.tag), part: FramePart::of(step.class) });
        frames.collect()
    }
}

/// Execution in the layer of `tag`.
#[must_use]
pub(crate) fn execution_of(tag: Tag) -> Tag {
    let layer: Layer = tag.layer();
    Tag::new(layer, Phase::Execution)
}

/// Process, by which its layers in a report differ from those of its marks (the mark contract, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LayersOf {
    /// Driver: the CPU executor in it is the driver.
    Driver,
    /// Application: a driver in it is the CPU executor.
    Application,
    /// Application that calls a driver of the kernel: it has both.
    DriverCaller,
}

/// A tag as a report shows it, by its process.
fn reported(tag: Tag, process: LayersOf) -> Tag {
    match (tag.layer(), process) {
        (Layer::CpuFallback, LayersOf::Driver) => Tag::new(Layer::Driver, tag.phase()),
        (Layer::Driver, LayersOf::Application) => Tag::new(Layer::CpuFallback, tag.phase()),
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
            .flat_map(|tag| {
                let parts = [FramePart::Inside, FramePart::Subtracted, FramePart::Handed, FramePart::Part];
                parts.map(|part| StackFrame { tag, part })
            })
            .collect();
        frames.sort();
        assert_eq!(frames.len(), 4 * (91 + 1));
        let texts: Vec<String> = frames.iter().map(ToString::to_string).collect();
        assert!(texts.is_sorted());
        let read: Result<Vec<StackFrame>, _> = texts.iter().map(|text| text.parse()).collect();
        assert_eq!(read, Ok(frames));
    }
}
