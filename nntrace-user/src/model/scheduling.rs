//! Whether threads ran, waited for a CPU, or slept: from context switches and wake-ups in order of time.
//!
//! Nothing is claimed that the events do not show. Before its first event a thread is unknown; after events of a CPU were
//! lost, every thread is but those that run on other CPUs. A thread that is woken while nothing is known of it may run or
//! wait for a CPU; its next event shows which.
//!
//! A wake-up may show twice: where it is asked for, and when the thread is ready, which may be on another CPU and later. The first of
//! the two counts; but a thread that had not gone to sleep yet by then is seen to sleep after it, and woken by the second.
//!
//! A kernel may leave out an event without counting it: it shows no switch away from some of its own tasks, and skips
//! programs on tracepoints while it handles maps. Then the events of a thread contradict each other (it leaves a CPU that it
//! never got). Such an event concerns the two threads of a switch or the one that is woken: what these did since their
//! last events is unknown, and nothing else, however long others sleep meanwhile.
//!
//! Where wake-ups are not in a trace at all, a thread counts as sleeping until it gets a CPU.

mod cpu_set;
mod history;
mod lookups;
mod thread_names;

use std::ops::AddAssign;

use nntrace_common::{record::SchedRecord, sched::Change};
use rustc_hash::FxHashMap;

use super::limits::Limits;
pub(crate) use cpu_set::CpuSet;
pub(crate) use history::{Activity, History, State, StateStretch};
pub(crate) use thread_names::NamedThread;

/// Stretches that are kept of each thread, some hundred events a second for minutes: 1.5 MB for a thread with that many. Of
/// what is older only the sum over everything is known.
pub(crate) const KEPT: usize = 32_768;

/// Stretches that are kept of each thread where only sums over everything will be asked for: 3 kB.
const KEPT_FOR_SUMS: usize = 64;

/// How long a thread was in each state. They add up to the time that was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StateTimes {
    /// It ran, ns.
    pub on_cpu: u64,
    /// It waited for a CPU, ns.
    pub runnable: u64,
    /// It waited for something that signals interrupt, or was stopped, ns.
    pub sleeping: u64,
    /// It waited for something that signals do not interrupt, ns.
    pub uninterruptible: u64,
    /// Not known, or it did not live, ns.
    pub unknown: u64,
}

impl StateTimes {
    /// Returns the whole time, ns.
    #[must_use]
    pub(crate) const fn total(&self) -> u64 {
        self.known().saturating_add(self.unknown)
    }

    const fn known(&self) -> u64 {
        let awake = self.on_cpu.saturating_add(self.runnable);
        awake.saturating_add(self.sleeping).saturating_add(self.uninterruptible)
    }

    /// Returns these times with the rest of a time (ns) as unknown.
    const fn of(self, ns: u64) -> Self {
        Self { unknown: ns.saturating_sub(self.known()), ..self }
    }
}

impl AddAssign for StateTimes {
    fn add_assign(&mut self, other: Self) {
        self.on_cpu = self.on_cpu.saturating_add(other.on_cpu);
        self.runnable = self.runnable.saturating_add(other.runnable);
        self.sleeping = self.sleeping.saturating_add(other.sleeping);
        self.uninterruptible = self.uninterruptible.saturating_add(other.uninterruptible);
        self.unknown = self.unknown.saturating_add(other.unknown);
    }
}

/// State of a thread when it was first looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It runs, or waits for a CPU.
    Awake,
    /// It sleeps, or is stopped.
    Sleeping,
    /// It sleeps uninterruptibly.
    Uninterruptible,
}

/// One thread. An id that is used again is another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThreadTimes {
    /// Its process; `None` when no event gives it.
    pub pid: Option<u32>,
    /// The thread.
    pub tid: u32,
    /// When it was first there, ns.
    pub begin: u64,
    /// When it ended, or until when it was looked at, ns.
    pub end: u64,
    /// Times in each state from the one to the other.
    pub times: StateTimes,
    /// CPUs that it ran on.
    pub cpus: CpuSet,
}

/// All threads that there are events of.
#[derive(Clone, Debug)]
pub(crate) struct Scheduling {
    /// Events before it only set the state, ns.
    begin: u64,
    cap: usize,
    /// By id; those that had the same one after each other.
    threads: FxHashMap<u32, Vec<History>>,
    /// How many lives these have had, and with how many room is made.
    lives: usize,
    most: usize,
    /// Threads that had ended when there was no room for more.
    pub(crate) forgotten: u64,
    cpus: FxHashMap<u32, Cpu>,
    /// Whether there are wake-ups among the events.
    has_wakeups: bool,
    has_switches: bool,
    /// Events that others prove missing.
    missing: u64,
    /// Losses that nobody has asked for yet: CPU, and when it was last seen, ns.
    losses: Vec<(u32, u64)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    /// Its last event, ns.
    last_seen: u64,
    /// Records that it had lost by then.
    lost: u32,
    /// The thread that it runs, if that is one of ours: it is [`State::OnCpu`] here.
    runs: Option<u32>,
}

impl Default for Scheduling {
    fn default() -> Self {
        Self::starting_at(0)
    }
}

impl Scheduling {
    /// Creates the state for a window that begins at `begin` (ns).
    #[must_use]
    pub(crate) fn starting_at(begin: u64) -> Self {
        Self::keeping(begin, KEPT)
    }

    /// Creates the state for sums over everything: of what a thread did at one time only the last is kept.
    #[must_use]
    pub(crate) fn for_sums() -> Self {
        Self::keeping(0, KEPT_FOR_SUMS)
    }

    /// Creates the state for a window that begins at `begin` (ns), with every change of every thread: who hands them in
    /// bounds how many there are.
    #[must_use]
    pub(crate) fn keeping_all(begin: u64) -> Self {
        Self::keeping(begin, usize::MAX).with_room_for(usize::MAX)
    }

    fn keeping(begin: u64, cap: usize) -> Self {
        Self {
            begin,
            cap,
            threads: FxHashMap::default(),
            lives: 0,
            most: Limits::default().threads,
            forgotten: 0,
            cpus: FxHashMap::default(),
            has_wakeups: false,
            has_switches: false,
            missing: 0,
            losses: Vec::new(),
        }
    }

    /// Sets the number of threads from which on those that have ended are forgotten, and counted.
    #[must_use]
    pub(crate) fn with_room_for(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Returns the number of threads from which on those that have ended are forgotten.
    #[must_use]
    pub(crate) fn room(&self) -> usize {
        self.most
    }

    /// Forgets threads that have ended.
    #[cold]
    fn make_room(&mut self) {
        for lives in self.threads.values_mut() {
            lives.retain(|thread| thread.end.is_none());
        }
        self.threads.retain(|_, lives| !lives.is_empty());
        let left: usize = self.threads.values().map(Vec::len).sum();
        self.forgotten += (self.lives - left) as u64;
        self.lives = left;
        // As many as live at once there have to be.
        self.most = self.most.max(2 * left);
    }

    /// Whether it is known of threads what they did at one time, and not only in all.
    #[must_use]
    pub(crate) fn keeps_stretches(&self) -> bool {
        self.cap == KEPT && !self.is_empty()
    }

    /// Whether it has no thread.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Whether there are context switches, but no wake-up among them: then waiting for a CPU after a sleep counts as a
    /// part of it.
    #[must_use]
    pub(crate) fn lacks_wakeups(&self) -> bool {
        self.has_switches && !self.has_wakeups
    }

    /// Events that must have come, as others show, and did not: those of CPUs that lost some included. A lower bound.
    #[must_use]
    pub(crate) fn missing(&self) -> u64 {
        self.missing
    }

    /// These losses are known.
    pub(crate) fn forget_losses(&mut self) {
        self.losses.clear();
    }

    /// Losses since they were last taken: CPU, and when it was last seen, ns.
    #[must_use]
    pub(crate) fn losses(&self) -> &[(u32, u64)] {
        &self.losses
    }

    /// Every event of this thread from `since` (ns) on will come; right after that it was found to do this.
    pub(crate) fn watch(&mut self, pid: u32, tid: u32, since: u64, found: Found) {
        let since = since.max(self.begin);
        self.has_wakeups = true;
        let thread = self.current(tid, since);
        thread.tgid = Some(pid);
        if thread.is_empty() {
            thread.push(
                since,
                match found {
                    Found::Awake => State::Watched,
                    Found::Sleeping => State::Asleep { deep: false, certain: false },
                    Found::Uninterruptible => State::Asleep { deep: true, certain: false },
                },
            );
        }
    }

    /// Something happened to a thread. Records come in order of time.
    pub(crate) fn record(&mut self, record: &SchedRecord) {
        let SchedRecord { tid, tgid, cpu, time, lost, .. } = *record;
        let Some(change) = Change::from_code(record.change).filter(|_| tid != 0) else { return };
        let now = time.max(self.begin);
        if self.cpu(cpu).lost != lost {
            self.lost(cpu, now);
            self.cpu(cpu).lost = lost;
        }
        match change {
            Change::New => self.is_born(tid, now),
            // Who has ended may be woken under an id that it has got since: what it does next shows that.
            Change::Woken if self.has_ended(tid) => {}
            Change::Woken => self.wakes(tid, now),
            Change::In => self.gets_cpu(tid, cpu, now),
            Change::Renamed => self.takes_id(tid, tgid, cpu, now),
            _ => self.leaves_cpu(tid, tgid, cpu, now, change),
        }
        self.cpu(cpu).last_seen = now;
    }

    /// Events of a CPU were lost since its last one, until `now` (ns).
    pub(crate) fn lost(&mut self, cpu: u32, now: u64) {
        let seen = self.cpu(cpu);
        let since = std::mem::replace(&mut seen.last_seen, now);
        seen.runs = None;
        self.losses.push((cpu, since));
        for thread in self.threads.values_mut().flatten() {
            thread.forget(cpu, since, now);
        }
    }

    /// By the end of the run, at `now` (ns), a CPU has lost this many records.
    pub(crate) fn lost_by(&mut self, cpu: u32, lost: u32, now: u64) {
        if self.cpu(cpu).lost != lost {
            self.lost(cpu, now);
            self.cpu(cpu).lost = lost;
        }
    }

    fn is_born(&mut self, tid: u32, now: u64) {
        self.has_wakeups = true;
        self.is_gone(tid, now);
        let mut thread = History::new(Some(now), self.cap);
        thread.push(now, State::Runnable);
        if self.lives >= self.most {
            self.make_room();
        }
        let lives = self.threads.entry(tid).or_default();
        let before = lives.len();
        // Found before its begin came: the same one.
        thread.tgid = lives.pop_if(|found| found.begins_with(now)).and_then(|found| found.tgid);
        lives.push(thread);
        self.lives += lives.len() - before;
    }

    /// Another thread has the id by now: the one before, if it lived, has ended unseen.
    fn is_gone(&mut self, tid: u32, now: u64) {
        let living = |thread: &History| thread.end.is_none() && !thread.begins_with(now);
        if self.threads.get(&tid).and_then(|lives| lives.last()).is_some_and(living) {
            self.misses(tid, now);
            self.current(tid, now).finish(now);
        }
    }

    /// It turns out that the thread which leaves this CPU is not the one that had the id before: that one ended unseen, at the
    /// latest when this one got the CPU.
    fn was_another(&mut self, tid: u32, cpu: u32, now: u64) {
        let Some(since) = self.current(tid, now).take_run(cpu) else { return self.is_gone(tid, now) };
        self.missing += 1;
        self.current(tid, since).finish(since);
        self.current(tid, since).run(since, cpu);
    }

    /// Whether a thread had this id, and none has it now.
    fn has_ended(&self, tid: u32) -> bool {
        self.threads.get(&tid).and_then(|lives| lives.last()).is_some_and(|last| last.end.is_some())
    }

    /// Whether it may be another thread by now that has this id, by all that is known of the last one.
    fn may_have_ended(&self, tid: u32) -> bool {
        let is_certain =
            |state| matches!(state, State::OnCpu(_) | State::Runnable | State::Asleep { certain: true, .. });
        let may = |last: &History| last.end.is_some() || !is_certain(last.state());
        self.threads.get(&tid).and_then(|lives| lives.last()).is_none_or(may)
    }

    /// An event of this thread is missing since its last one, though none is counted as lost.
    fn misses(&mut self, tid: u32, now: u64) {
        self.missing += 1;
        let thread = self.current(tid, now);
        let state = thread.state();
        thread.settle(State::Unknown);
        if let State::OnCpu(cpu) = state {
            self.cpu(cpu).runs = None;
        }
    }

    /// A CPU has another thread by now than the one that it was seen to take.
    fn misses_leave(&mut self, cpu: u32, now: u64) {
        if let Some(other) = self.cpu(cpu).runs {
            self.misses(other, now);
            self.current(other, now).push(now, State::Watched);
        }
    }

    /// A thread goes on under the id of its process, which the leader had until it ended.
    ///
    /// The kernel exchanges the ids a while before its event: the last of the leader may come under the thread's id, and the
    /// thread may leave the CPU under its new one.
    fn takes_id(&mut self, tid: u32, leader: u32, cpu: u32, now: u64) {
        if self.cpu(cpu).runs == Some(leader) {
            if !self.has_ended(tid) {
                self.current(tid, now).finish(now);
            }
            return;
        }
        self.leaves_cpu(tid, leader, cpu, now, Change::Ends);
        self.is_gone(leader, now);
        let thread = self.current(leader, now);
        if thread.is_empty() {
            thread.begin = Some(now);
        }
        thread.tgid = Some(leader);
        thread.push(now, State::OnCpu(cpu));
        self.cpu(cpu).runs = Some(leader);
    }

    fn wakes(&mut self, tid: u32, now: u64) {
        self.has_wakeups = true;
        let thread = self.current(tid, now);
        match thread.state() {
            // It was about to sleep, or would have been when it ran again.
            State::OnCpu(_) | State::Runnable | State::Awake => {}
            State::Asleep { certain: true, .. } => thread.push(now, State::Runnable),
            State::Asleep { certain: false, .. } => thread.push(now, State::Awake),
            // The two conclusions are of what is over, and never the last.
            State::Watched | State::Unknown | State::HasRun(_) | State::HasWaited => {
                thread.settle(State::Unknown);
                // Also where it was unknown before: an instant to go back to.
                thread.push(now, State::Awake);
            }
        }
    }

    fn gets_cpu(&mut self, tid: u32, cpu: u32, now: u64) {
        self.has_switches = true;
        self.misses_leave(cpu, now);
        let has_wakeups = self.has_wakeups;
        let thread = self.current(tid, now);
        match thread.state() {
            State::OnCpu(_) => self.misses(tid, now),
            State::Asleep { certain: true, .. } if has_wakeups => self.misses(tid, now),
            State::Asleep { certain: false, .. } | State::Awake | State::Watched if has_wakeups => {
                thread.settle(State::HasWaited);
            }
            _ => {}
        }
        let thread = self.current(tid, now);
        thread.run(now, cpu);
        self.cpu(cpu).runs = Some(tid);
    }

    fn leaves_cpu(&mut self, tid: u32, tgid: u32, cpu: u32, now: u64, change: Change) {
        self.has_switches = true;
        if let Some(other) = self.cpu(cpu).runs
            && tid == tgid
            && self.may_have_ended(tid)
            && self.current(other, now).tgid == Some(tgid)
        {
            // The leader is the thread that runs, by its id of before: it execs.
            self.takes_id(other, tgid, cpu, now);
        }
        let known = self.current(tid, now).tgid;
        if tgid != 0 && known.is_some_and(|known| known != tgid) {
            self.was_another(tid, cpu, now);
        }
        let thread = self.current(tid, now);
        match thread.state() {
            State::OnCpu(taken) if taken == cpu => {}
            State::OnCpu(_) | State::Runnable | State::Asleep { certain: true, .. } => self.misses(tid, now),
            State::Awake | State::Watched | State::Asleep { certain: false, .. } => {
                thread.settle(State::HasRun(cpu));
            }
            State::HasRun(_) | State::HasWaited | State::Unknown => {}
        }
        if self.cpu(cpu).runs != Some(tid) {
            self.misses_leave(cpu, now);
        }
        let thread = self.current(tid, now);
        if tgid != 0 {
            thread.tgid = Some(tgid);
        }
        match change {
            Change::Preempted => thread.push(now, State::Runnable),
            Change::Sleeps => thread.push(now, State::Asleep { deep: false, certain: true }),
            Change::SleepsDeep => thread.push(now, State::Asleep { deep: true, certain: true }),
            _ => thread.finish(now),
        }
        self.cpu(cpu).runs = None;
    }

    fn cpu(&mut self, cpu: u32) -> &mut Cpu {
        self.cpus.entry(cpu).or_default()
    }

    /// The thread that has this id now.
    fn current(&mut self, tid: u32, now: u64) -> &mut History {
        let cap = self.cap;
        if self.lives >= self.most && !self.threads.contains_key(&tid) {
            self.make_room();
        }
        let lives = self.threads.entry(tid).or_default();
        if lives.last().is_none_or(|thread| thread.end.is_some()) {
            let begin = lives.last().map(|_| now);
            lives.push(History::new(begin, cap));
            self.lives += 1;
        }
        let last = lives.len() - 1;
        &mut lives[last]
    }
}

#[cfg(test)]
pub(crate) mod simulated_machine;
#[cfg(test)]
mod tests;
