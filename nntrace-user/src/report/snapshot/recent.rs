//! What happened lately on each thread, for the timeline of the live view.

use nntrace_common::layer::Tag;

use crate::model::scheduling::Activity;

/// The last part of the window, thread by thread. It is not a part of the JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecentActivity {
    /// Instant from which on no section that ended is missing, ns.
    pub since_ns: u64,
    /// End of the window so far, ns.
    pub until_ns: u64,
    /// Threads by process and id.
    pub threads: Vec<RecentThread>,
    /// Names of sections.
    pub(crate) names: Vec<String>,
}

impl RecentActivity {
    /// Returns the name of a section, without its attributes.
    #[must_use]
    pub(crate) fn name(&self, section: &RecentSectionRow) -> &str {
        self.names.get(section.name as usize).map_or("", String::as_str)
    }
}

/// What one thread did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecentThread {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Sections in the order of their begins, from the outermost in.
    pub(crate) sections: Vec<RecentSectionRow>,
    /// States in their order; none where context switches are not traced.
    pub(crate) states: Vec<RecentState>,
}

/// A section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecentSectionRow {
    /// Begin, ns.
    pub(crate) begin_ns: u64,
    /// End, ns; of one that has not ended, the end of the window.
    pub(crate) end_ns: u64,
    /// Duration without the marked sections in it, ns; `None` while it has not ended.
    pub(crate) exclusive_ns: Option<u64>,
    /// Index of its name.
    pub(crate) name: u32,
    /// Sections around it, foreign ones too.
    pub(crate) depth: u8,
    /// Layer and phase, as written.
    pub(crate) tag: Tag,
}

impl RecentSectionRow {
    /// Whether an instant (ns) is in it.
    #[must_use]
    pub(crate) const fn holds(&self, instant: u64) -> bool {
        // One that took no time is in its instant.
        self.begin_ns <= instant && (instant < self.end_ns || instant == self.begin_ns)
    }
}

/// A state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecentState {
    /// Begin, ns.
    pub(crate) begin_ns: u64,
    /// End, ns.
    pub(crate) end_ns: u64,
    /// State.
    pub(crate) activity: Activity,
}
