//! Sections as slices, and other marks as instants: their names, categories and arguments.

use std::{borrow::Cow, collections::BTreeMap};

use nntrace_common::{
    attributes::{Attributes, Reserved},
    layer::Tag,
    stamp::Stamp,
};

use super::encoder::Label;
use crate::{
    model::{Findings, section::Section},
    perfetto_schema::own::{ACCOUNT, ATTRIBUTE, ATTRIBUTES, CLASS, ITERATION, LAYER_PHASE, MARK},
};

/// Section that had not ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Unfinished {
    pub(super) pid: u32,
    pub(super) tid: u32,
    /// When it began.
    pub(super) begin: Stamp,
    pub(super) name: String,
    /// Layer and phase, as written; `None` where they are not known.
    pub(super) tag: Option<Tag>,
}

impl Unfinished {
    /// Returns the sections that had not ended, by thread and begin, as far as the processes of their threads are known.
    pub(super) fn all(findings: &Findings<'_>, threads: impl Iterator<Item = (u32, u32)>) -> Vec<Self> {
        let of_states = findings.run.threads.iter().map(|thread| (thread.tid, thread.pid));
        let of_processes = findings.run.processes.keys().map(|pid| (*pid, *pid));
        // Later ones win: those that have sections.
        let pids = of_processes.chain(of_states).chain(threads.map(|(pid, tid)| (tid, pid)));
        let pids: BTreeMap<u32, u32> = pids.collect();
        let open = findings.marks.open.iter().filter_map(|open| {
            let name = findings.marks.names.text(open.name);
            Some(Self { pid: *pids.get(&open.tid)?, tid: open.tid, begin: open.begin, name, tag: open.tag })
        });
        let mut all: Vec<Self> = open.collect();
        // Stable: those of one instant stay in their order, from the outermost in.
        all.sort_by_key(|section| (section.pid, section.tid, section.begin));
        all
    }

    /// Returns the label of its slice.
    pub(super) fn label(&self) -> Label<'_> {
        let mut label = Label { name: Cow::Borrowed(&self.name), ..Label::default() };
        if let Some(tag) = self.tag {
            label.text(LAYER_PHASE, tag.to_string());
        }
        label
    }
}

/// Returns the categories of a section: layer and phase.
pub(super) fn categories(section: &Section<'_>) -> [&'static str; 2] {
    [section.tag.layer().code(), section.tag.phase().code()]
}

/// Returns the label of a section's slice.
pub(super) fn label<'a>(section: &'a Section<'_>, categories: &'a [&'a str]) -> Label<'a> {
    let mut label = Label { name: Cow::Borrowed(&section.name), categories, ..Label::default() };
    label.text(LAYER_PHASE, section.tag.to_string());
    if let Some(class) = section.class_name() {
        label.text(CLASS, class);
    }
    add_attributes(&section.attributes, &mut label);
    label
}

/// Returns the label of a mark that is no section: an instant with all of its text.
pub(super) fn mark(payload: &str) -> Label<'_> {
    // The name is after the letter and the process.
    let name = payload.splitn(3, '|').nth(2).unwrap_or(payload);
    let name = name.split('#').next().unwrap_or(name);
    let mut label = Label { name: Cow::Borrowed(name), ..Label::default() };
    label.text(MARK, payload);
    label
}

/// Adds attributes: `iter` and `acct` by what they are, others after `attribute.`. Of a key that occurs twice, the last
/// value counts. Where this loses something, the text of all of them is added.
fn add_attributes<'a>(text: &'a str, label: &mut Label<'a>) {
    if text.is_empty() {
        return;
    }
    let all = Attributes::of(text.as_bytes(), 0);
    let reserved = Reserved::read(all.clone());
    if let Some(iteration) = reserved.iteration {
        label.number(ITERATION, iteration);
    }
    if let Some(account) = reserved.account {
        label.text(ACCOUNT, String::from_utf8_lossy(account));
    }
    let others = all.clone().filter(|(key, _)| !matches!(*key, b"iter" | b"acct"));
    let others: BTreeMap<String, &[u8]> = others.map(|(key, value)| (argument_key(key), value)).collect();
    let count = count_of(&reserved) + others.len();
    let is_lossy = all.clone().count() != count
        || all
            .clone()
            .any(|(key, value)| !key.iter().all(|byte| is_plain(*byte)) || str::from_utf8(value).is_err());
    if is_lossy {
        label.text(ATTRIBUTES, text);
    }
    for (key, value) in others {
        label.text(key, String::from_utf8_lossy(value));
    }
}

/// Returns the number of arguments that reserved attributes have.
fn count_of(reserved: &Reserved<'_>) -> usize {
    usize::from(reserved.iteration.is_some()) + usize::from(reserved.account.is_some())
}

/// Returns the key of an attribute's argument.
fn argument_key(key: &[u8]) -> String {
    let key = key.iter().map(|byte| if is_plain(*byte) { char::from(*byte) } else { '_' });
    ATTRIBUTE.chars().chain(key).collect()
}

/// Whether queries of arguments know a character in keys.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')
}
