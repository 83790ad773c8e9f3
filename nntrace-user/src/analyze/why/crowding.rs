//! Threads of one process that keep each other off the CPUs: in typical executions too, so that no difference shows it.

use std::collections::BTreeSet;

use super::{
    cpu_use::Meanwhile,
    tally::{Part, Tally},
};
use crate::{model::plurals::counted, report::number_format::percent};

/// Share of the time that is worth a note: one in this number.
const NOTED: u64 = 10;

/// Returns a note where typical executions wait for a CPU that threads of their own process have.
pub(super) fn note(typical: &[Tally], is_own: impl Fn(u32) -> bool, cpus: usize) -> Option<String> {
    let mut threads = BTreeSet::new();
    let (mut waited, mut all) = (0_u64, 0_u64);
    for tally in typical {
        all = all.saturating_add(tally.length);
        for (part, ns) in &tally.other {
            // Of its own thread, and not of one that it waits for.
            if let Part::Waited(None, Meanwhile::Ran(tid)) = part
                && is_own(*tid)
            {
                threads.insert(*tid);
                waited = waited.saturating_add(*ns);
            }
        }
    }
    if waited == 0 || waited < all / NOTED {
        return None;
    }
    Some(format!(
        "typical executions wait too: {} of their time for a CPU that {} of the same process had ({}): fewer threads may be faster",
        percent(waited, all),
        counted(threads.len() as u64, "other thread"),
        counted(cpus as u64, "CPU"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(length: u64, parts: &[(Part, u64)]) -> Tally {
        Tally { length, other: parts.iter().copied().collect(), ..Tally::default() }
    }

    #[test]
    fn only_waits_for_threads_of_the_same_process_are_noted() {
        let waited = |tid| Part::Waited(None, Meanwhile::Ran(tid));
        let typical = [
            tally(100, &[(waited(8), 30), (waited(99), 50), (Part::Waited(None, Meanwhile::Unknown), 9)]),
            tally(100, &[(waited(9), 20), (waited(8), 4)]),
        ];
        let is_own = |tid| tid < 10;
        assert_eq!(
            note(&typical, is_own, 2).unwrap(),
            "typical executions wait too: 27.0% of their time for a CPU that 2 other threads of the same process had (2 CPUs): \
             fewer threads may be faster"
        );
        let of_one = note(&typical, |tid| tid == 9, 1).unwrap();
        assert!(
            of_one.contains(
                " 10.0% of their time for a CPU that 1 other thread of the same process had (1 CPU)"
            ),
            "{of_one}"
        );
        assert_eq!(note(&typical, |_| false, 2), None);
        assert_eq!(note(&[tally(100, &[(waited(8), 9)])], is_own, 2), None, "too little");
        assert_eq!(note(&[], is_own, 2), None);
    }
}
