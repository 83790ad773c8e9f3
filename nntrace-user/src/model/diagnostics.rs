//! Counts what is odd in a trace, and keeps the first example of each kind.

use nntrace_common::diagnostic::{DiagnosticCount, DiagnosticKind, Diagnostics};

/// Counts of diagnostics, with the first example of each kind.
#[derive(Default)]
pub(crate) struct DiagnosticCounts {
    counts: [Option<DiagnosticCount>; DiagnosticKind::ALL.len()],
}

impl DiagnosticCounts {
    /// One more of a kind, at `time` (ns) in a thread. The first by time is the example, whatever the order they come in.
    pub(crate) fn add(&mut self, kind: DiagnosticKind, time: u64, tid: u32, example: &[u8]) {
        let place = &mut self.counts[kind as usize];
        let count = place.map_or(0, |known| known.count);
        let is_first = place.is_none_or(|known| (time, tid) < (known.first_ns, known.tid));
        if is_first {
            *place = Some(DiagnosticCount { count, ..DiagnosticCount::first(time, tid, example) });
        }
        if let Some(known) = place {
            known.count = count.saturating_add(1);
        }
    }

    /// One more of each kind that one mark showed.
    #[cold]
    pub(crate) fn add_all(&mut self, diagnostics: Diagnostics, time: u64, tid: u32, mark: &[u8]) {
        for kind in diagnostics.iter() {
            self.add(kind, time, tid, mark);
        }
    }

    /// Adds `more` to a kind that was counted before.
    pub(crate) fn add_more(&mut self, kind: DiagnosticKind, more: u64) {
        if let Some(count) = &mut self.counts[kind as usize] {
            count.count = count.count.saturating_add(more);
        }
    }

    /// A kind that was met before was so often met, as far as it is known.
    pub(crate) fn set_count(&mut self, kind: DiagnosticKind, count: u64) {
        if let Some(known) = &mut self.counts[kind as usize] {
            known.count = count;
        }
    }

    /// Adds the count of a kind, with its first example.
    pub(crate) fn add_counted(&mut self, kind: DiagnosticKind, count: &DiagnosticCount) {
        let example = &count.example[..count.len as usize];
        self.add(kind, count.first_ns, count.tid, example);
        self.add_more(kind, count.count - 1);
    }

    /// Adds what another count has.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (kind, count) in other.counts() {
            self.add_counted(kind, &count);
        }
    }

    /// Every kind that was met, in the order of kinds.
    #[must_use]
    pub(crate) fn counts(&self) -> Vec<(DiagnosticKind, DiagnosticCount)> {
        let all = DiagnosticKind::ALL.into_iter().zip(self.counts);
        all.filter_map(|(kind, count)| Some((kind, count?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_by_time_is_the_example() {
        let mut diagnostics = DiagnosticCounts::default();
        diagnostics.add(DiagnosticKind::UnmatchedEnd, 20, 1, b"E|1");
        diagnostics.add(DiagnosticKind::UnmatchedEnd, 10, 2, b"E|2");
        diagnostics.add(DiagnosticKind::UnmatchedEnd, 10, 3, b"E|3");
        let [(kind, count)] = diagnostics.counts()[..] else { panic!() };
        assert_eq!((kind, count.count, count.tid), (DiagnosticKind::UnmatchedEnd, 3, 2));
        assert_eq!(&count.example[..count.len as usize], b"E|2");
    }
}
