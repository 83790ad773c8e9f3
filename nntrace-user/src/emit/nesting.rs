//! Sections of one thread as trees: which one was in which.

use nntrace_common::{record::SpanRecord, stack::Class, stamp::Stamp};

/// Number of a section that is none.
const NONE: u32 = u32::MAX;

/// Sections of a thread as trees.
#[derive(Debug, Default)]
pub(super) struct Forest {
    nodes: Vec<Node>,
    /// Outermost sections, one after the other.
    roots: Vec<u32>,
    /// Outermost sections that overlap with those: asynchronous executions, which were on no stack, and what is left of threads
    /// whose records were lost.
    aside: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    span: SpanRecord,
    first_child: u32,
    next_sibling: u32,
}

impl Node {
    fn duration(&self) -> u64 {
        self.span.end.saturating_sub(self.span.begin)
    }
}

impl Forest {
    /// Grows the trees of sections in the order in which they ended.
    pub(super) fn grow(mut spans: Vec<SpanRecord>) -> Self {
        // Those that ended at one time stay in their order, where nothing shows another one.
        spans.sort_by_key(SpanRecord::end_stamp);
        let mut forest = Self::default();
        forest.nodes.reserve_exact(spans.len());
        for span in spans {
            forest.add(span);
        }
        forest
    }

    fn add(&mut self, span: SpanRecord) {
        let number = self.nodes.len() as u32;
        let node = Node { span, first_child: NONE, next_sibling: NONE };
        self.nodes.push(node);
        if span.class == Class::Asynchronous as u8 {
            self.aside.push(number);
            return;
        }
        let is_inside =
            |inner: &Node| inner.span.depth > span.depth && inner.span.begin_stamp() >= span.begin_stamp();
        let inside = self.roots.iter().rev().take_while(|root| is_inside(self.node(**root))).count();
        let first = self.roots.len() - inside;
        let has_time_inside = self.roots[first..].iter().any(|root| self.node(*root).duration() > 0);
        if has_time_inside && span.exclusive == node.duration() {
            // By their times those are in it, and by its own time they are not.
            self.aside.push(number);
            return;
        }
        self.adopt(number, first);
        let overlaps = |before: &u32| self.node(*before).span.end_stamp() > span.begin_stamp();
        if self.roots.last().is_some_and(overlaps) {
            self.aside.push(number);
        } else {
            self.roots.push(number);
        }
    }

    /// Puts the roots from a place on into a section.
    fn adopt(&mut self, number: u32, first: usize) {
        let mut next = NONE;
        for child in self.roots.drain(first..).rev() {
            self.nodes[child as usize].next_sibling = next;
            next = child;
        }
        self.nodes[number as usize].first_child = next;
    }

    fn node(&self, number: u32) -> &Node {
        &self.nodes[number as usize]
    }

    /// Returns the begins and ends of what was on the thread's stack, in their order. Where one section ends, the next one
    /// may take its place: `is_switch` has the last word on those for which nothing speaks against it.
    pub(super) fn edges(&mut self, is_switch: impl Fn(&SpanRecord) -> bool) -> Vec<Edge> {
        let mut next = NONE;
        for root in self.roots.iter().rev() {
            self.nodes[*root as usize].next_sibling = next;
            next = *root;
        }
        self.walk(next, is_switch)
    }

    /// Returns the begins and ends of each tree of sections that overlap with the others, by their begins.
    pub(super) fn edges_aside(&self, is_switch: impl Fn(&SpanRecord) -> bool) -> Vec<Vec<Edge>> {
        let mut trees: Vec<_> = self.aside.iter().map(|root| self.walk(*root, &is_switch)).collect();
        trees.sort_by_key(|edges| edges.first().map(|edge| edge.at));
        trees
    }

    /// Walks a section, what is in it, and what comes after it.
    fn walk(&self, first: u32, is_switch: impl Fn(&SpanRecord) -> bool) -> Vec<Edge> {
        let mut edges = Vec::new();
        let mut to_do = Vec::new();
        if first != NONE {
            to_do.push(Step::Enter { number: first, switched: 0 });
        }
        while let Some(step) = to_do.pop() {
            match step {
                Step::Enter { number, switched } => {
                    let Node { span, first_child, .. } = *self.node(number);
                    let kind = EdgeKind::Begin { span, is_switch: switched > 0 };
                    edges.push(Edge { at: span.begin_stamp(), kind });
                    to_do.push(Step::Leave { number, switched });
                    if first_child != NONE {
                        to_do.push(Step::Enter { number: first_child, switched: 0 });
                    }
                }
                Step::Leave { number, switched } => {
                    let Node { span, next_sibling: next, .. } = *self.node(number);
                    let takes_place = next != NONE && {
                        let after = &self.node(next).span;
                        // The place that is left to it stays open around it.
                        after.begin_stamp() == span.end_stamp()
                            && after.depth == span.depth.saturating_add(1)
                            && is_switch(after)
                    };
                    if !takes_place {
                        let end = Edge { at: span.end_stamp(), kind: EdgeKind::End };
                        edges.extend(std::iter::repeat_n(end, 1 + switched));
                    }
                    if next != NONE {
                        let switched = if takes_place { switched + 1 } else { 0 };
                        to_do.push(Step::Enter { number: next, switched });
                    }
                }
            }
        }
        edges
    }
}

/// Step of a walk. A section that replaces others has as many of them, each with an end of its own.
enum Step {
    Enter { number: u32, switched: usize },
    Leave { number: u32, switched: usize },
}

/// Begin or end of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    /// When it happened.
    pub(super) at: Stamp,
    /// Which of both.
    pub(super) kind: EdgeKind,
}

/// Kind of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EdgeKind {
    /// A section begins, in place of the one that is open if it is a switch.
    Begin {
        /// Section.
        span: SpanRecord,
        /// Whether it is a switch.
        is_switch: bool,
    },
    /// The innermost section, or the place that was left to another one, ends.
    End,
}
