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
    /// Files that were loaded, and not examined in time.
    files: BTreeMap<u32, u64>,
}

/// Processes that are counted at most.
const MOST_PROCESSES: usize = 10_000;
/// Processes that notes of a kind name at most.
const MOST_NOTES: usize = 5;

impl LeftOut {
    /// Takes the number of sections that a process has left out so far.
    pub(super) fn sections(&mut self, pid: u32, count: u64) {
        // Threads tell it out of order.
        update(&mut self.sections, pid, |known| count.max(known));
    }

    /// Takes a number of words that could not be changed in a process.
    pub(super) fn words(&mut self, pid: u32, count: u64) {
        update(&mut self.words, pid, |known| known.saturating_add(count));
    }

    /// Takes a number of files that a process has waited for in vain.
    pub(super) fn files(&mut self, pid: u32, count: u64) {
        update(&mut self.files, pid, |known| known.saturating_add(count));
    }

    /// Returns the number of marks that are missing at least: the begins and ends of the sections.
    pub(super) fn marks(&self) -> u64 {
        self.sections.values().fold(0, |sum, count| sum.saturating_add(count.saturating_mul(2)))
    }

    /// Returns notes on what is missing.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let sections = notes(&self.sections, |pid, count| {
            format!(
                "at least {} in process {pid} {} not recorded: a thread got its lane too late, or filled it faster than it was \
                 read; --no-hooks --engine-level op probes operators instead",
                counted(count, "operator call"),
                one_or_many(count, "was", "were")
            )
        });
        let words = notes(&self.words, |pid, count| {
            format!(
                "{count} {} in process {pid} could not be replaced, so calls through {} are not recorded; --no-hooks --engine-level op \
                 probes operators instead",
                one_or_many(count, "pointer to an operator", "pointers to operators"),
                one_or_many(count, "it", "them")
            )
        });
        let files = notes(&self.files, |pid, count| {
            format!(
                "process {pid} ran on before {} that it had loaded {} examined: first calls of an engine may be missing; run it \
                 again, or name the engine's file with --lib",
                counted(count, "file"),
                one_or_many(count, "was", "were"),
            )
        });
        sections.chain(words).chain(files)
    }
}

/// Returns the notes on the first processes, and one on how many more there are.
fn notes(counts: &BTreeMap<u32, u64>, note: impl Fn(u32, u64) -> String) -> impl Iterator<Item = String> {
    let more = counts.len().saturating_sub(MOST_NOTES);
    let rest = (more > 0).then(|| {
        format!("the same applies to {more} more {}", one_or_many(more as u64, "process", "processes"))
    });
    let first: Vec<String> = counts.iter().take(MOST_NOTES).map(|(pid, count)| note(*pid, *count)).collect();
    first.into_iter().chain(rest)
}

/// Updates the count of a process, if there is room for it.
fn update(counts: &mut BTreeMap<u32, u64>, pid: u32, next: impl FnOnce(u64) -> u64) {
    if counts.len() < MOST_PROCESSES || counts.contains_key(&pid) {
        let known = counts.entry(pid).or_default();
        *known = next(*known);
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
        left_out.files(9, 1);
        assert_eq!(left_out.marks(), u64::MAX);
        let notes: Vec<_> = left_out.notes().collect();
        assert!(notes[0].starts_with("at least 4 operator calls in process 7"), "{notes:?}");
        assert!(notes[2].starts_with("5 pointers to operators in process 7"), "{notes:?}");
        assert!(notes[3].starts_with("process 9 ran on before 1 file that it had loaded was"), "{notes:?}");
    }
}
