//! Lives of threads: which events of a thread id belong to one thread, as the kernel gives the ids of threads that have ended
//! to others.

use std::collections::BTreeMap;

use nntrace_common::record::ProcessRecord;

/// Thread by its id and the number of its life.
pub(super) type Life = (u32, u32);

/// Lives of threads that were created during the recording.
#[derive(Debug, Default)]
pub(super) struct Lives {
    /// Times and creators of the threads of an id, in order.
    births: BTreeMap<u32, Vec<Birth>>,
}

/// Creation of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Birth {
    /// Time, ns.
    pub(super) time: u64,
    /// Process that created it.
    pub(super) pid: u32,
    /// Thread that created it.
    pub(super) by: u32,
}

impl Lives {
    /// Returns the lives of threads that these forks created.
    pub(super) fn of(forks: &[ProcessRecord]) -> Self {
        let mut lives = Self::default();
        for fork in forks {
            let birth = Birth { time: fork.time, pid: fork.tgid, by: fork.detail };
            lives.births.entry(fork.tid).or_default().push(birth);
        }
        for births in lives.births.values_mut() {
            births.sort_by_key(|birth| birth.time);
        }
        lives
    }

    /// Returns the life of a thread id at a time.
    pub(super) fn at(&self, tid: u32, time: u64) -> Life {
        let births = self.births.get(&tid);
        (tid, births.map_or(0, |births| births.partition_point(|birth| birth.time <= time)) as u32)
    }

    /// Returns the creation of a life; `None` if it is older than the recording.
    pub(super) fn birth(&self, (tid, life): Life) -> Option<Birth> {
        self.births.get(&tid)?.get((life as usize).checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use nntrace_common::record::RecordKind;

    use super::*;

    #[test]
    fn an_id_is_of_the_thread_that_was_created_last() {
        let fork =
            |tid, by, time| ProcessRecord { kind: RecordKind::Fork as u32, tgid: 10, tid, detail: by, time };
        let lives = Lives::of(&[fork(12, 11, 200), fork(12, 10, 100), fork(13, 10, 50)]);
        let at = [99, 100, 199, 200].map(|time| lives.at(12, time));
        assert_eq!(at, [(12, 0), (12, 1), (12, 1), (12, 2)]);
        assert_eq!(lives.birth((12, 0)), None);
        assert_eq!(lives.birth((12, 2)), Some(Birth { time: 200, pid: 10, by: 11 }));
        assert_eq!(lives.at(99, 1_000), (99, 0));
    }
}
