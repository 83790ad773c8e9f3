//! Slow reference implementation of the contract: a tree of all sections, walked afterwards. Tests and fuzzing
//! compare the stack with it.

use std::{collections::BTreeMap, vec::Vec};

use super::{Adds, Class, Closed, MAX_DEPTH};
use crate::{
    layer::{Layer, Phase, Tag},
    mark::{Label, Prefix},
};

/// Effect of a mark on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A section begins.
    Begin(Prefix, Label),
    /// The innermost section ends.
    End,
}

/// Totals of a stream of events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Own time (ns) by tag; execution includes its parts where they add to it.
    pub total: BTreeMap<Tag, u64>,
    /// Duration without nested marked frames (ns) by tag.
    pub exclusive: BTreeMap<Tag, u64>,
    /// Frames that add to the total, by tag.
    pub count: BTreeMap<Tag, u64>,
    /// Number of marked frames open at the end.
    pub open: u32,
}

impl Sums {
    /// Adds a frame closed by a stack.
    pub fn add(&mut self, closed: &Closed) {
        self.add_frame(closed.tag, closed.adds, closed.own, closed.exclusive);
    }

    fn add_frame(&mut self, tag: Tag, adds: Adds, own: u64, exclusive: u64) {
        *self.exclusive.entry(tag).or_default() += exclusive;
        let execution = Tag::new(tag.layer(), Phase::Execution);
        for (tag, adds) in [(tag, adds.to_total()), (execution, adds.to_execution())] {
            if adds {
                *self.total.entry(tag).or_default() += own;
                *self.count.entry(tag).or_default() += 1;
            }
        }
    }
}

/// Returns the expected totals of events, each at its time (ns).
#[must_use]
pub fn sums(events: &[(u64, Event)]) -> Sums {
    let tree = Tree::grow(events);
    let mut sums = Sums::default();
    for node in tree.marked() {
        if tree.nodes[node].end.is_none() {
            sums.open += 1;
            continue;
        }
        let tag = tree.tag(node);
        let own = tree.duration(node).saturating_sub(tree.subtracted(node));
        let nested: u64 = tree.closed_children(node).map(|child| tree.duration(child)).sum();
        let counts = |up| matches!(tree.class(up), Class::Section | Class::Subtract);
        let counted = tree.above(node).any(|up| counts(up) && tree.tag(up) == tag);
        let executes = tree.above(node).any(|up| tree.tag(up) == Tag::new(tag.layer(), Phase::Execution));
        let adds = match tree.class(node) {
            Class::Section => 1 | u8::from(tag.phase().is_execution_part() && !executes) << 1,
            Class::Subtract => u8::from(!counted),
            _ => 0,
        };
        sums.add_frame(tag, Adds::from_bits(adds), own, tree.duration(node).saturating_sub(nested));
    }
    sums
}

/// Section, or the placeholder left by a switch.
struct Node {
    begin: u64,
    end: Option<u64>,
    /// Node open around it.
    around: Option<usize>,
    /// Tag as written, and whether it is subtracted; `None` when it is not marked.
    tag: Option<(bool, Tag)>,
}

struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    fn grow(events: &[(u64, Event)]) -> Self {
        let mut nodes: Vec<Node> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        let mut push = |open: &mut Vec<usize>, begin, tag: Option<_>| {
            // Beyond the table all sections are like foreign ones.
            let tag = tag.filter(|_| open.len() < MAX_DEPTH);
            nodes.push(Node { begin, end: None, around: open.last().copied(), tag });
            open.push(nodes.len() - 1);
        };
        let mut ends: Vec<(usize, u64)> = Vec::new();
        for &(now, event) in events {
            let Event::Begin(prefix, label) = event else {
                ends.extend(open.pop().map(|node| (node, now)));
                continue;
            };
            if prefix == Prefix::Switch {
                ends.extend(open.pop().map(|node| (node, now)));
                push(&mut open, now, None);
            }
            push(&mut open, now, label.tag().map(|tag| (prefix == Prefix::Subtract, tag)));
        }
        for (node, end) in ends {
            nodes[node].end = Some(end);
        }
        Self { nodes }
    }

    fn marked(&self) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(|&node| self.nodes[node].tag.is_some())
    }

    /// Returns the nearest marked node around one.
    fn parent(&self, node: usize) -> Option<usize> {
        let around = std::iter::successors(self.nodes[node].around, |&up| self.nodes[up].around);
        around.into_iter().find(|&up| self.nodes[up].tag.is_some())
    }

    fn above(&self, node: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.parent(node), |&up| self.parent(up))
    }

    /// Returns the tag of a marked node as written.
    fn written(&self, node: usize) -> (bool, Tag) {
        self.nodes[node].tag.expect("only marked nodes are asked for a tag")
    }

    fn tag(&self, node: usize) -> Tag {
        let (_, tag) = self.written(node);
        match self.parent(node) {
            Some(parent) if tag.phase() == Phase::Unspecified => {
                Tag::new(tag.layer(), self.tag(parent).phase())
            }
            _ => tag,
        }
    }

    fn class(&self, node: usize) -> Class {
        let (subtract, _) = self.written(node);
        let (layer, phase) = (self.tag(node).layer(), self.tag(node).phase());
        if subtract {
            return Class::Subtract;
        }
        let Some(parent) = self.parent(node) else {
            return if layer == Layer::Utility { Class::Detail } else { Class::Section };
        };
        let (above, around) = (self.tag(parent).layer(), self.tag(parent).phase());
        let called = matches!(layer, Layer::Runtime | Layer::Ipc);
        if (phase == Phase::Initialization && around != Phase::Initialization)
            || (called
                && above == Layer::Application
                && around != phase
                && !around.is_application_phase()
                && !phase.is_execution())
        {
            Class::Subtract
        } else if layer == Layer::Utility || (layer == above && !around.has_subphase(phase)) {
            Class::Detail
        } else {
            Class::Section
        }
    }

    /// Returns the duration, ns; 0 when it ended before it began.
    fn duration(&self, node: usize) -> u64 {
        let Node { begin, end, .. } = self.nodes[node];
        end.map_or(0, |end| end.saturating_sub(begin))
    }

    fn closed_children(&self, node: usize) -> impl Iterator<Item = usize> {
        self.marked()
            .filter(move |&child| self.nodes[child].end.is_some() && self.parent(child) == Some(node))
    }

    /// Returns the time that the marked nodes in this one subtract from it, ns.
    fn subtracted(&self, node: usize) -> u64 {
        self.closed_children(node)
            .map(|child| match self.class(child) {
                Class::Subtract => {
                    let reached = std::iter::once(node)
                        .chain(self.above(node))
                        .find(|&number| self.class(number) != Class::Detail);
                    let same = reached.is_some_and(|number| self.tag(number) == self.tag(child));
                    if same { 0 } else { self.duration(child) }
                }
                Class::Detail => self.subtracted(child),
                _ => 0,
            })
            .sum()
    }
}
