//! Slices and instants of this program's own export, as the marks that they were made of.
//!
//! A section has the annotation `layer_phase`; its tag, its class and its attributes are those of the mark. What is drawn for
//! people, and follows from marks, is left out.

use std::borrow::Cow;

use nntrace_common::{hidl_calls, layer::Tag, mark::Label, stack::Class};

use super::sequences::Sequence;
use crate::perfetto_schema::{
    DebugAnnotation, TrackEvent,
    own::{
        ACCOUNT, ATTRIBUTE, ATTRIBUTES, CLASS, HAND_OVER, ITERATION, LAYER_PHASE, MARK, SUBTRACTED, VIOLATION,
    },
};

/// Meaning of a slice or an instant.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Own {
    /// Slice or instant that is not of the export.
    Foreign,
    /// Section, with the text of its mark from the tag on.
    Section(Vec<u8>),
    /// Mark, with all of its text.
    Mark(Vec<u8>),
    /// Drawing of what other events show.
    Derived,
}

/// Returns the meaning of an event with a name.
pub(super) fn read(event: &TrackEvent, name: &[u8], sequence: &Sequence) -> Own {
    let interned = event.category_iids.iter().filter_map(|iid| sequence.category(*iid));
    let is = |category: &str| {
        event.categories.iter().chain(interned.clone()).any(|known| **known == *category.as_bytes())
    };
    let annotations =
        || event.debug_annotations.iter().map(|annotation| (key(annotation, sequence), annotation));
    let find =
        |wanted: &str| annotations().find(|(key, _)| *key == wanted.as_bytes()).map(|(_, found)| found);
    let find_text = |wanted| find(wanted).and_then(|annotation| text(annotation, sequence));
    if let Some(mark) = find_text(MARK) {
        return Own::Mark(mark.into_owned());
    }
    if is(VIOLATION) || is(HAND_OVER) {
        return Own::Derived;
    }
    let tag = find_text(LAYER_PHASE).and_then(|tag| str::from_utf8(&tag).ok()?.parse::<Tag>().ok());
    let Some(tag) = tag else { return Own::Foreign };
    // No mark has these classes, and with a tag they would count twice.
    let is_elsewhere =
        |class: Cow<'_, [u8]>| [Class::Handed, Class::Part].iter().any(|it| it.word().as_bytes() == &*class);
    if find_text(CLASS).is_some_and(is_elsewhere) {
        return Own::Foreign;
    }
    let mut mark = Vec::new();
    // A call of an interface has its layer and phase by its name.
    if hidl_calls::meaning(name).label != Label::tagged(tag) || !hidl_calls::is_interface_call(name) {
        if find_text(CLASS).is_some_and(|class| *class == *SUBTRACTED.as_bytes()) {
            mark.extend_from_slice(b"[SUB]");
        }
        mark.extend_from_slice(format!("[NN_{tag}]").as_bytes());
    }
    mark.extend_from_slice(name);
    if let Some(attributes) = find_text(ATTRIBUTES) {
        mark.extend_from_slice(&attributes);
        return Own::Section(mark);
    }
    for (key, annotation) in annotations() {
        let key = if key == ITERATION.as_bytes() {
            b"iter"
        } else if key == ACCOUNT.as_bytes() {
            b"acct"
        } else if let Some(key) = key.strip_prefix(ATTRIBUTE.as_bytes()) {
            key
        } else {
            continue;
        };
        if let Some(value) = text(annotation, sequence) {
            mark.push(b'#');
            mark.extend_from_slice(key);
            mark.push(b'=');
            mark.extend_from_slice(&value);
        }
    }
    Own::Section(mark)
}

fn key<'a>(annotation: &'a DebugAnnotation, sequence: &'a Sequence) -> &'a [u8] {
    let interned = || annotation.name_iid.and_then(|iid| sequence.key(iid));
    annotation.name.as_ref().or_else(interned).map(|key| &**key).unwrap_or_default()
}

/// Returns the value of an annotation as text; `None` where it is none, or its number has no text.
fn text<'a>(annotation: &'a DebugAnnotation, sequence: &'a Sequence) -> Option<Cow<'a, [u8]>> {
    if let Some(number) = annotation.uint_value {
        return Some(number.to_string().into_bytes().into());
    }
    let interned = || annotation.string_value_iid.and_then(|iid| sequence.value(iid));
    annotation.string_value.as_ref().or_else(interned).map(|text| Cow::Borrowed(&**text))
}
