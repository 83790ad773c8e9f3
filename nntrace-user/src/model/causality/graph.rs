//! Every section with what caused it. Time makes it acyclic: a cause has begun before what it causes.

use std::collections::BTreeMap;

use nntrace_common::{layer::Tag, stamp::Stamp};

use super::context::{Context, Edge};
use crate::model::limits::Limits;

/// Sections and edges.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    nodes: Vec<Node>,
    /// Number of sections that are kept at most; those beyond are only counted.
    most: usize,
    edges: Vec<(u32, u32, Edge)>,
    /// Sections beyond those that are kept.
    pub(crate) left_out: u64,
}

/// A section.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Thread.
    pub tid: u32,
    /// Layer and phase; `None` while it has not ended.
    pub(crate) tag: Option<Tag>,
    /// Hash of its name.
    pub name: u64,
    /// When it began.
    pub begin: Stamp,
    /// When it ended, ns.
    pub end: Option<u64>,
    /// Number that its iteration carries.
    pub(crate) iteration: Option<u64>,
    /// Number of its account.
    pub(crate) account: Option<u32>,
    /// Whether it ended before the window: it is in no list.
    pub(crate) ended_before: bool,
    /// Cause: the section that handed it over or created its thread, else the one it is nested in.
    pub parent: Option<(u32, Edge)>,
}

impl Graph {
    pub(super) const fn new(limits: &Limits) -> Self {
        Self { nodes: Vec::new(), most: limits.sections, edges: Vec::new(), left_out: 0 }
    }

    /// The sections, in the order they began.
    #[must_use]
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the edges: a cause, what it caused, and how.
    #[must_use]
    pub(crate) fn edges(&self) -> &[(u32, u32, Edge)] {
        &self.edges
    }

    /// Sections by the number of their cause; those without a cause under `None`.
    #[must_use]
    pub(crate) fn children(&self) -> BTreeMap<Option<u32>, Vec<u32>> {
        let mut children: BTreeMap<Option<u32>, Vec<u32>> = BTreeMap::new();
        for (node, number) in self.nodes.iter().zip(0..) {
            children.entry(node.parent.map(|(parent, _)| parent)).or_default().push(number);
        }
        children
    }

    pub(super) fn begin(
        &mut self,
        tid: u32,
        name: u64,
        begin: Stamp,
        causes: &[(Option<u32>, Edge)],
        context: Context,
    ) -> Option<u32> {
        if self.nodes.len() >= self.most {
            self.left_out += 1;
            return None;
        }
        let number = self.nodes.len() as u32;
        let mut parent = None;
        for (cause, edge) in causes.iter().filter_map(|(cause, edge)| Some(((*cause)?, *edge))) {
            self.edges.push((cause, number, edge));
            // Whose work it is matters more than which loop of a worker runs it.
            parent = Some((cause, edge));
        }
        self.nodes.push(Node {
            tid,
            tag: None,
            name,
            begin,
            end: None,
            ended_before: false,
            iteration: context.iteration.map(|iteration| iteration.iter),
            account: context.charge.map(|charge| charge.account),
            parent,
        });
        Some(number)
    }

    /// A section ended before the window.
    pub(super) fn end_before(&mut self, number: u32) {
        if let Some(node) = self.nodes.get_mut(number as usize) {
            node.ended_before = true;
        }
    }

    pub(super) fn close(&mut self, number: u32, tag: Tag, end: u64) {
        if let Some(node) = self.nodes.get_mut(number as usize) {
            (node.tag, node.end) = (Some(tag), Some(end));
        }
    }
}
