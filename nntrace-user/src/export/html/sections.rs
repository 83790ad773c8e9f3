//! Sections of a swimlane, in bounded memory: the longest ones of its window. All others are counted.

use std::{borrow::Cow, cell::RefCell, cmp::Reverse, collections::BinaryHeap, rc::Rc};

use nntrace_common::{layer::Tag, stack::ON_NO_STACK};
use rustc_hash::FxHashSet;

use crate::model::{
    input::Observer,
    section::{Section, SectionObserver},
    section_filter::Hidden,
};

/// Sections at most: what a page of a few MB holds.
const MOST: usize = 100_000;
/// Bytes of their names and attributes at most.
const MOST_BYTES: usize = 16 << 20;
/// Bytes of one of these texts at most; longer ones end in an ellipsis.
const LONGEST_TEXT: usize = 1 << 10;
/// Names that sections share at most.
const MOST_NAMES: usize = 1 << 16;

/// Part of a run that a swimlane shows; all of it by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// First and last instant of its window, ns; `None` for the whole run.
    pub range: Option<(u64, u64)>,
    /// Duration below which sections are hidden, ns.
    pub least_ns: u64,
}

/// Sections of a swimlane.
#[derive(Debug)]
pub struct Sections {
    pub(super) shown: Shown,
    most: usize,
    most_bytes: usize,
    /// The longest ones, the shortest of them first.
    kept: BinaryHeap<Reverse<Held>>,
    /// Bytes of their texts.
    bytes: usize,
    names: FxHashSet<Rc<str>>,
    /// All sections of the run.
    pub(super) all: Hidden,
    /// Sections outside of the window.
    pub(super) outside: Hidden,
    /// Sections in the window that are shorter than what was asked for.
    pub(super) short: Hidden,
    /// Other sections in the window, shorter than the ones that are kept.
    pub(super) hidden: Hidden,
}

/// Collection for a whole run.
impl Default for Sections {
    fn default() -> Self {
        Self::new(Shown::default())
    }
}

/// Section that is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Held {
    pub(super) duration_ns: u64,
    /// Place among all, the last one first: of equally long ones the first are kept.
    number: Reverse<u64>,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) begin_ns: u64,
    begin_sequence: u32,
    pub(super) depth: u8,
    pub(super) exclusive_ns: u64,
    pub(super) tag: Tag,
    /// Word for a class that is not the usual one.
    pub(super) class: Option<&'static str>,
    pub(super) name: Rc<str>,
    pub(super) attributes: Box<str>,
}

impl Held {
    /// Whether it was on no stack, and may overlap with others of its thread.
    pub(super) fn is_asynchronous(&self) -> bool {
        self.depth == ON_NO_STACK
    }

    /// End, ns.
    pub(super) fn end_ns(&self) -> u64 {
        self.begin_ns.saturating_add(self.duration_ns)
    }
}

impl Sections {
    /// Creates a collection without any.
    #[must_use]
    pub fn new(shown: Shown) -> Self {
        Self::bounded(shown, MOST, MOST_BYTES)
    }

    pub(super) fn bounded(shown: Shown, most: usize, most_bytes: usize) -> Self {
        Self {
            shown,
            most,
            most_bytes,
            kept: BinaryHeap::new(),
            bytes: 0,
            names: FxHashSet::default(),
            all: Hidden::default(),
            outside: Hidden::default(),
            short: Hidden::default(),
            hidden: Hidden::default(),
        }
    }

    /// Takes a section.
    pub fn take(&mut self, section: &Section<'_>) {
        let duration_ns = section.duration_ns();
        self.all.add(duration_ns);
        if self.shown.range.is_some_and(|(first, last)| section.end_ns < first || last < section.begin_ns) {
            self.outside.add(duration_ns);
            return;
        }
        if duration_ns < self.shown.least_ns {
            self.short.add(duration_ns);
            return;
        }
        let is_full = self.kept.len() >= self.most;
        if is_full && self.kept.peek().is_some_and(|Reverse(shortest)| duration_ns <= shortest.duration_ns) {
            self.hidden.add(duration_ns);
            return;
        }
        let name = self.shared(&section.name);
        let attributes: Box<str> = shortened(&section.attributes).into();
        self.bytes += name.len() + attributes.len();
        self.kept.push(Reverse(Held {
            duration_ns,
            number: Reverse(self.all.sections),
            pid: section.pid,
            tid: section.tid,
            begin_ns: section.begin_ns,
            begin_sequence: section.sequences.0,
            depth: section.depth,
            exclusive_ns: section.exclusive_ns,
            tag: section.tag,
            class: section.class_name(),
            name,
            attributes,
        }));
        while self.kept.len() > self.most || self.bytes > self.most_bytes {
            let Some(Reverse(shortest)) = self.kept.pop() else { break };
            self.bytes -= shortest.name.len() + shortest.attributes.len();
            self.hidden.add(shortest.duration_ns);
        }
    }

    /// Returns a name, which sections share.
    fn shared(&mut self, name: &str) -> Rc<str> {
        let name = shortened(name);
        if let Some(known) = self.names.get(&*name) {
            return Rc::clone(known);
        }
        // Sections that have one keep it.
        if self.names.len() >= MOST_NAMES {
            self.names.clear();
        }
        let shared: Rc<str> = (&*name).into();
        self.names.insert(Rc::clone(&shared));
        shared
    }

    /// Returns what is kept: by thread, each in the order of their begins, from the outside in.
    pub(super) fn by_thread(&self) -> Vec<&Held> {
        let mut all: Vec<&Held> = self.kept.iter().map(|Reverse(held)| held).collect();
        let key = |held: &&Held| {
            let thread = (held.pid, held.tid);
            (thread, held.begin_ns, held.begin_sequence, held.depth, Reverse(held.number))
        };
        all.sort_unstable_by_key(key);
        all
    }
}

/// Returns as much of a text as is kept.
fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= LONGEST_TEXT {
        return text.into();
    }
    format!("{}\u{2026}", &text[..text.floor_char_boundary(LONGEST_TEXT)]).into()
}

/// Sections that a model's observer collects.
pub type SharedSections = Rc<RefCell<Sections>>;

/// Returns an observer of a model that collects its sections.
#[must_use]
pub fn observer(sections: &SharedSections) -> Observer {
    let sections = Rc::clone(sections);
    Observer::new(SectionObserver::new(move |section: &Section<'_>| sections.borrow_mut().take(section)))
}
