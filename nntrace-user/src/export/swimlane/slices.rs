//! Sections as slices, and other marks as instants: their names, categories and arguments.

use std::{borrow::Cow, collections::BTreeMap};

use nntrace_common::attributes::{Attributes, Reserved};

use super::encoder::Label;
use crate::{
    model::{section::Section, unfinished_sections::UnfinishedSection},
    perfetto_schema::own::{ACCOUNT, ATTRIBUTE, ATTRIBUTES, CLASS, ITERATION, LAYER_PHASE, MARK},
};

/// Returns the label of the slice of a section that had not ended.
pub(super) fn unfinished_label(section: &UnfinishedSection) -> Label<'_> {
    let mut label = Label { name: Cow::Borrowed(&section.name), ..Label::default() };
    if let Some(tag) = section.tag {
        label.text(LAYER_PHASE, tag.to_string());
    }
    if let Some(class) = section.class_name() {
        label.text(CLASS, class);
    }
    label
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
