//! Losses that hooks in the targets report.

use std::collections::BTreeMap;

use crate::model::plurals::{counted, one_or_many};

/// Counts of what hooks have left out, by process.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    /// Sections at least, as far as processes have told.
    sections: BTreeMap<u32, u64>,
    /// Words that lead to functions, and could not be changed.
    words: BTreeMap<u32, u64>,
}

/// Processes that are counted at most.
const MOST_PROCESSES: usize = 10_000;

impl LeftOut {
    /// Takes the number of sections that a process has left out so far.
    pub(super) fn sections(&mut self, pid: u32, count: u64) {
        if self.sections.len() < MOST_PROCESSES || self.sections.contains_key(&pid) {
            let known = self.sections.entry(pid).or_default();
            // Threads tell it out of order.
            *known = count.max(*known);
        }
    }

    /// Takes a number of words that could not be changed in a process.
    pub(super) fn words(&mut self, pid: u32, count: u64) {
        if self.words.len() < MOST_PROCESSES || self.words.contains_key(&pid) {
            let known = self.words.entry(pid).or_default();
            *known = known.saturating_add(count);
        }
    }

    /// Returns the number of marks that are missing at least: the begins and ends of the sections.
    pub(super) fn marks(&self) -> u64 {
        self.sections.values().fold(0, |sum, count| sum.saturating_add(count.saturating_mul(2)))
    }

    /// Returns notes on what is missing.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let sections = self.sections.iter().map(|(pid, count)| {
            format!(
                "at least {} in process {pid} {} not recorded: a thread got its lane too late, or filled it faster than it was \
                 read; run without --hooks to probe operators instead",
                counted(*count, "operator call"),
                one_or_many(*count, "was", "were")
            )
        });
        let words = self.words.iter().map(|(pid, count)| {
            format!(
                "{count} {} in process {pid} could not be replaced, so calls through {} are not recorded; run without --hooks to \
                 probe operators instead",
                one_or_many(*count, "pointer to an operator", "pointers to operators"),
                one_or_many(*count, "it", "them")
            )
        });
        sections.chain(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_counted_once_and_words_each_time() {
        let mut left_out = LeftOut::default();
        assert_eq!((left_out.marks(), left_out.notes().count()), (0, 0));
        for count in [1, 4, 2] {
            left_out.sections(7, count);
        }
        left_out.sections(8, u64::MAX);
        left_out.words(7, 3);
        left_out.words(7, 2);
        assert_eq!(left_out.marks(), u64::MAX);
        let notes: Vec<_> = left_out.notes().collect();
        assert!(notes[0].starts_with("at least 4 operator calls in process 7"), "{notes:?}");
        assert!(notes[2].starts_with("5 pointers to operators in process 7"), "{notes:?}");
    }
}
