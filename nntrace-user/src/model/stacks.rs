//! Exact totals per process and stack of layers and phases, and what they sum up to.

use std::collections::{BTreeMap, HashMap};

use nntrace_common::{
    layer::{Layer, Phase, Tag},
    record::{Total, TotalKey},
    stack::{Class, PathStep, ROOT_PATH},
};

/// The totals, and the words for their keys.
#[derive(Clone, Debug, Default)]
pub struct StackTotals {
    /// By process and path.
    pub totals: HashMap<TotalKey, Total>,
    /// What each path consists of.
    pub paths: HashMap<u64, PathStep>,
    /// Names of marked sections, by hash.
    pub names: HashMap<u64, String>,
}

/// Time in one stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackSum {
    /// The process.
    pub pid: u32,
    /// Tags from the outermost section in; a subtracted one's ends in `!`.
    pub path: Vec<String>,
    /// What adds up.
    pub total: Total,
}

impl StackTotals {
    /// Every stack, by process and path.
    #[must_use]
    pub fn stacks(&self) -> Vec<StackSum> {
        let mut sums: Vec<StackSum> = self
            .totals
            .iter()
            .map(|(key, &total)| StackSum { pid: key.tgid, path: self.path(key.path), total })
            .collect();
        sums.sort_by(|a, b| (a.pid, &a.path).cmp(&(b.pid, &b.path)));
        sums
    }

    /// Totals by process, layer and phase: a part of execution adds to its layer's execution where no execution
    /// frame holds it (the mark contract, section 2).
    #[must_use]
    pub fn phases(&self) -> BTreeMap<(u32, Tag), Total> {
        let mut phases: BTreeMap<(u32, Tag), Total> = BTreeMap::new();
        for (key, total) in &self.totals {
            let Some((step, tag)) =
                self.paths.get(&key.path).and_then(|s| Some((s, Tag::from_index(s.tag)?)))
            else {
                continue;
            };
            let sum = phases.entry((key.tgid, tag)).or_default();
            sum.exclusive += total.exclusive;
            if step.adds.to_total() {
                sum.count += total.count;
                sum.own += total.own;
            }
            if step.adds.to_execution() {
                let sum = phases.entry((key.tgid, execution_of(tag))).or_default();
                sum.count += total.count;
                sum.own += total.own;
            }
        }
        phases
    }

    /// The tags of a path from the outermost in. A step that was never stored shows as `?`.
    fn path(&self, mut path: u64) -> Vec<String> {
        let mut tags = Vec::new();
        // A path is as deep as a stack; the bound keeps a damaged table from going round in circles.
        while path != ROOT_PATH && tags.len() < nntrace_common::stack::MAX_DEPTH {
            let Some(step) = self.paths.get(&path) else {
                tags.push("?".to_owned());
                break;
            };
            let tag = Tag::from_index(step.tag).map_or_else(|| "?".to_owned(), |tag| tag.to_string());
            tags.push(if step.class == Class::Subtract as u8 { tag + "!" } else { tag });
            path = step.parent;
        }
        tags.reverse();
        tags
    }
}

/// Execution in the layer of `tag`.
#[must_use]
pub fn execution_of(tag: Tag) -> Tag {
    let layer: Layer = tag.layer();
    Tag::new(layer, Phase::Execution)
}
