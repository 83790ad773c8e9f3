//! Pauses before executions: caches get cold in them, frequencies drop, pages are reclaimed.

use super::executions::Execution;
use crate::report::number_format::duration_ns;

/// How much longer the pauses before slow executions are at least: times, and ns.
const LONGER: (u64, u64) = (5, 1_000_000);

/// Returns a note where all slow executions come after longer pauses than the typical ones, but for a fifth of these.
pub(super) fn note(slow: &[Execution], typical: &[Execution]) -> Option<String> {
    let pauses = |all: &[Execution]| {
        let mut pauses: Vec<u64> = all.iter().filter_map(|execution| execution.pause).collect();
        pauses.sort_unstable();
        pauses
    };
    let (slow, typical) = (pauses(slow), pauses(typical));
    let (shortest, longest) =
        (*slow.first()?, *typical.get(typical.len().checked_sub(1 + typical.len() / 5)?)?);
    let (times, ns) = LONGER;
    if shortest < longest.saturating_mul(times) || shortest - longest < ns {
        return None;
    }
    let middle = |pauses: &[u64]| duration_ns(pauses[pauses.len() / 2]);
    Some(format!(
        "the slow ones came after a pause of {}, the typical ones after {} (medians): caches may have been cold, and frequencies low",
        middle(&slow),
        middle(&typical)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(pauses: &[Option<u64>]) -> Vec<Execution> {
        let execution = |pause: &Option<u64>| Execution { pause: *pause, ..Execution::default() };
        pauses.iter().map(execution).collect()
    }

    #[test]
    fn only_pauses_before_all_slow_ones_are_named() {
        const MS: u64 = 1_000_000;
        let typical = after(&[Some(0), Some(2 * MS), Some(MS), Some(MS), Some(900 * MS), None]);
        let noted = |slow: &[Option<u64>]| note(&after(slow), &typical);
        assert_eq!(
            noted(&[Some(500 * MS), None, Some(3_000 * MS), Some(700 * MS)]).unwrap(),
            "the slow ones came after a pause of 700 ms, the typical ones after 1.00 ms (medians): caches may have been \
             cold, and frequencies low"
        );
        for other in [&[Some(500 * MS), Some(9 * MS)][..], &[None], &[]] {
            assert_eq!(noted(other), None, "{other:?}");
        }
        // Five times as long, and nothing that anyone could notice.
        assert_eq!(note(&after(&[Some(900_000)]), &after(&[Some(1_000)])), None);
        assert_eq!(note(&after(&[Some(MS)]), &[]), None);
    }
}
