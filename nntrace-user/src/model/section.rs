//! Single sections, as lists and exports show them.

use std::borrow::Cow;

use nntrace_common::{layer::Tag, stack::Class};

/// Marked section that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Begin, ns.
    pub begin_ns: u64,
    /// End, ns.
    pub end_ns: u64,
    /// Duration without subtracted sections, ns.
    pub own_ns: u64,
    /// Duration without the marked sections in it, ns.
    pub exclusive_ns: u64,
    /// Sections that were open around it, foreign ones too.
    pub depth: u8,
    /// Layer and phase, as written.
    pub tag: Tag,
    /// Class, by which it adds to totals.
    pub class: Class,
    /// Hash of the tags from the outermost section to this one.
    pub path: u64,
    /// Name without attributes; its hash where the text never came.
    pub name: Cow<'a, str>,
    /// Attributes as written, each behind a `#`; empty where there is none, or they were not recorded.
    pub attributes: Cow<'a, str>,
}

impl Section<'_> {
    /// Returns the duration, ns.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}
