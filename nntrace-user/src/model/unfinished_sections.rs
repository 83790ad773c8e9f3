//! Marked sections that had not ended when the window did: where a program hangs, or was when it was killed.

use std::collections::BTreeMap;

use nntrace_common::{layer::Tag, stack::Class, stamp::Stamp};
use rustc_hash::FxHashSet;

use super::{Findings, marks::OpenSection, section::class_name};

/// Open sections, compared between successive reads.
#[derive(Debug, Default)]
pub struct OpenSections {
    /// Thread, begin and name of those of the last read.
    seen: FxHashSet<(u32, Stamp, u64)>,
    /// Those that were open in the last two reads.
    lasting: Vec<OpenSection>,
}

impl OpenSections {
    /// Replaces the open sections. Those that the read before did not have are left out: too short to report, or read while they
    /// changed.
    pub(crate) fn update(&mut self, open: Vec<OpenSection>) {
        let key = |open: &OpenSection| (open.tid, open.begin, open.name);
        let seen = open.iter().map(key).collect();
        let before = std::mem::replace(&mut self.seen, seen);
        self.lasting = open.into_iter().filter(|open| before.contains(&key(open))).collect();
    }

    /// Those that were open in the last two reads.
    pub(crate) fn lasting(&self) -> &[OpenSection] {
        &self.lasting
    }

    /// Those that were open in the last two reads, to add what is known of them.
    pub(crate) fn lasting_mut(&mut self) -> &mut [OpenSection] {
        &mut self.lasting
    }
}

/// Section that had not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedSection {
    /// Process of its thread; `None` where nothing shows it.
    pub pid: Option<u32>,
    /// Thread.
    pub tid: u32,
    /// When it began.
    pub(crate) begin: Stamp,
    /// Name without attributes.
    pub name: String,
    /// Layer and phase, as written; `None` where they are not known.
    pub tag: Option<Tag>,
    /// Whether it is a part of the section around it, or subtracted from that.
    pub(crate) class: Class,
    /// Sections around it that have not ended either.
    pub depth: u8,
}

impl UnfinishedSection {
    /// Returns these sections by thread and begin, from the outermost in, with the names of the hashes and, where that is not
    /// known, the process of each thread.
    pub(crate) fn all(
        open: &[OpenSection],
        name: impl Fn(u64) -> String,
        process: impl Fn(u32) -> Option<u32>,
    ) -> Vec<Self> {
        let sections = open.iter().map(|open| {
            let OpenSection { pid, tid, begin, tag, class, .. } = *open;
            Self {
                pid: pid.or_else(|| process(tid)),
                tid,
                begin,
                name: name(open.name),
                tag,
                class,
                depth: 0,
            }
        });
        let mut sections: Vec<Self> = sections.collect();
        // Stable: those of one instant stay in their order, from the outermost in.
        sections.sort_by_key(|section| (section.pid, section.tid, section.begin));
        for at in 1..sections.len() {
            let around = &sections[at - 1];
            if (around.pid, around.tid) == (sections[at].pid, sections[at].tid) {
                sections[at].depth = around.depth.saturating_add(1);
            }
        }
        sections
    }

    /// Returns when it began, ns.
    #[must_use]
    pub const fn begin_ns(&self) -> u64 {
        self.begin.time
    }

    /// Returns the word for a class that is not the usual one.
    pub(crate) const fn class_name(&self) -> Option<&'static str> {
        class_name(self.class)
    }
}

impl Findings<'_> {
    /// Returns the sections that had not ended, by thread and begin, from the outermost in. `threads` are processes and their
    /// threads that have sections.
    #[must_use]
    pub fn unfinished_sections(&self, threads: impl Iterator<Item = (u32, u32)>) -> Vec<UnfinishedSection> {
        self.named(&self.marks.open, threads)
    }

    /// Returns the sections that have been open for a while, in the same order.
    pub(crate) fn lasting_sections(&self, open: &OpenSections) -> Vec<UnfinishedSection> {
        self.named(open.lasting(), std::iter::empty())
    }

    fn named(
        &self,
        open: &[OpenSection],
        threads: impl Iterator<Item = (u32, u32)>,
    ) -> Vec<UnfinishedSection> {
        let of_states = self.run.threads.iter().map(|thread| (thread.tid, thread.pid));
        let of_processes = self.run.processes.keys().map(|pid| (*pid, *pid));
        // Later ones win: those that have sections.
        let pids = of_processes.chain(of_states).chain(threads.map(|(pid, tid)| (tid, pid)));
        let pids: BTreeMap<u32, u32> = pids.collect();
        let name = |hash| self.marks.names.text(hash);
        UnfinishedSection::all(open, name, |tid| pids.get(&tid).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_open_in_the_last_two_reads_lasts() {
        let open = |tid, begin: u64, name| OpenSection {
            pid: None,
            tid,
            begin: begin.into(),
            name,
            tag: None,
            class: Class::Section,
            slot: 0,
        };
        let lasting =
            |sections: &OpenSections| sections.lasting().iter().map(|open| open.tid).collect::<Vec<_>>();
        let mut sections = OpenSections::default();
        sections.update(vec![open(1, 10, 5), open(2, 10, 5)]);
        assert!(lasting(&sections).is_empty());
        // The second thread is in another call of the same function.
        sections.update(vec![open(1, 10, 5), open(2, 20, 5), open(3, 20, 5)]);
        assert_eq!(lasting(&sections), [1]);
        sections.update(vec![open(2, 20, 5), open(3, 20, 6)]);
        assert_eq!(lasting(&sections), [2]);
        sections.update(Vec::new());
        assert!(lasting(&sections).is_empty());
    }
}
