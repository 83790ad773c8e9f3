//! Threads by their ids, by the CPUs that run them, and their times.

use super::{Activity, History, Scheduling, State, StateTimes, ThreadTimes};

impl Scheduling {
    /// Returns the thread that a CPU runs, if that is one that there are events of.
    #[must_use]
    pub(crate) fn runs_on(&self, cpu: u32) -> Option<u32> {
        self.cpus.get(&cpu)?.runs
    }

    /// Returns the ids of all threads, and their processes as far as these are known.
    pub(crate) fn ids(&self) -> impl Iterator<Item = (u32, Option<u32>)> {
        self.threads.iter().flat_map(|(&tid, lives)| lives.iter().map(move |life| (tid, life.tgid)))
    }

    /// Returns what the threads of this id did, each with the time (ns) from which on they did it.
    pub(crate) fn activities(&self, tid: u32) -> impl Iterator<Item = (u64, Activity)> {
        self.threads.get(&tid).into_iter().flatten().flat_map(History::activities)
    }

    /// The threads that run on a CPU now.
    pub(crate) fn running(&self) -> impl Iterator<Item = u32> {
        self.cpus.values().filter_map(|cpu| cpu.runs)
    }

    /// Whether a thread sleeps now, as far as that is known.
    #[must_use]
    pub(crate) fn sleeps(&self, tid: u32) -> bool {
        let life = self.threads.get(&tid).and_then(|lives| lives.last());
        life.is_some_and(|life| matches!(life.state(), State::Asleep { .. }))
    }

    /// Whether a thread with this id has been seen.
    #[must_use]
    pub(crate) fn knows(&self, tid: u32) -> bool {
        self.threads.contains_key(&tid)
    }

    /// Whether a thread has this id now.
    #[must_use]
    pub(crate) fn lives(&self, tid: u32) -> bool {
        self.knows(tid) && !self.has_ended(tid)
    }

    /// The threads that had this id after an instant (ns), one after the other, and one that ended in it.
    pub(crate) fn lives_since(&self, tid: u32, since: u64) -> impl Iterator<Item = &History> {
        let lives = self.threads.get(&tid).map_or(&[][..], |lives| lives);
        let is_over = |life: &&History| life.end.is_some_and(|end| end < since);
        lives[lives.iter().rposition(|life| is_over(&life)).map_or(0, |at| at + 1)..].iter()
    }

    /// Times of the threads of this id between two instants (ns): the five add up to what is between them. Of more
    /// than [`KEPT`](super::KEPT) stretches the oldest are unknown; so ask while they are young.
    #[must_use]
    pub(crate) fn times(&self, tid: u32, begin: u64, end: u64) -> StateTimes {
        let mut sum = StateTimes::default();
        for thread in self.threads.get(&tid).into_iter().flatten().rev() {
            sum += thread.between(begin, end);
            if thread.begin.is_some_and(|first| first <= begin) {
                break;
            }
        }
        sum.of(end.saturating_sub(begin))
    }

    /// Times of every thread in the window, which this was made for, from `begin` to `end` (ns), by id and begin.
    #[must_use]
    pub(crate) fn threads(&self, begin: u64, end: u64) -> Vec<ThreadTimes> {
        let lives = self.threads.iter().flat_map(|(&tid, lives)| lives.iter().map(move |life| (tid, life)));
        let rows = lives.map(|(tid, thread)| {
            let begin = thread.begin.map_or(begin, |first| first.max(begin)).min(end);
            let end = thread.end.map_or(end, |last| last.min(end));
            let times = thread.all_until(end).of(end.saturating_sub(begin));
            ThreadTimes { pid: thread.tgid, tid, begin, end, times, cpus: thread.cpus.clone() }
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|row| (row.tid, row.begin, row.end));
        rows
    }
}
