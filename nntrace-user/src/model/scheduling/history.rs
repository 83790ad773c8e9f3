//! States of one thread in order of time, with sums that any interval is read from.

use std::collections::VecDeque;

use super::{CpuSet, StateTimes};

/// State of a thread, as far as its events show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It runs on this CPU.
    OnCpu(u32),
    /// It waits for a CPU.
    Runnable,
    /// As the event after it shows, if none is missing, it ran on this CPU.
    HasRun(u32),
    /// As the event after it shows, if none is missing, it waited for a CPU.
    HasWaited,
    /// It waits for something else.
    Asleep {
        /// Signals do not wake it.
        deep: bool,
        /// By an event; else it was found so, and the next event decides.
        certain: bool,
    },
    /// It runs, or waits for a CPU: the next event shows which.
    Awake,
    /// Nothing is known, but from here on no event is missing: the next one shows what it did before.
    Watched,
    /// Nothing is known.
    Unknown,
}

impl State {
    /// Its place among the sums; `None` for what is not known.
    const fn place(self) -> Option<usize> {
        match self {
            Self::OnCpu(_) | Self::HasRun(_) => Some(0),
            Self::Runnable | Self::HasWaited => Some(1),
            Self::Asleep { deep: false, .. } => Some(2),
            Self::Asleep { deep: true, .. } => Some(3),
            Self::Awake | Self::Watched | Self::Unknown => None,
        }
    }
}

/// State of a thread, with all kinds of sleep as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// It ran on this CPU.
    OnCpu(u32),
    /// It waited for a CPU.
    Runnable,
    /// It waited for something else.
    Asleep,
    /// Not known, or it had ended.
    Unknown,
}

impl From<State> for Activity {
    fn from(state: State) -> Self {
        match state {
            State::OnCpu(cpu) | State::HasRun(cpu) => Self::OnCpu(cpu),
            State::Runnable | State::HasWaited => Self::Runnable,
            State::Asleep { .. } => Self::Asleep,
            State::Awake | State::Watched | State::Unknown => Self::Unknown,
        }
    }
}

/// Time on CPU, runnable, sleeping and sleeping uninterruptibly, ns.
type Sums = [u64; 4];

#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// When it began, ns.
    begin: u64,
    /// Sums of the stretches before it, those that are not kept any more included.
    before: Sums,
    state: State,
}

impl Stretch {
    /// Sums up to `now` (ns), if nothing else begins until then.
    fn until(&self, now: u64) -> Sums {
        let mut sums = self.before;
        if let Some(place) = self.state.place() {
            sums[place] += now.saturating_sub(self.begin);
        }
        sums
    }
}

/// One state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StateStretch {
    /// Begin, ns.
    pub begin: u64,
    /// End, ns; `None` of the present state.
    pub end: Option<u64>,
    /// State.
    pub state: State,
    /// When the thread was woken from a sleep for this, ns.
    pub woken: Option<u64>,
}

/// States of one thread from its begin to its end.
#[derive(Clone, Debug)]
pub(crate) struct History {
    /// Its process.
    pub tgid: Option<u32>,
    /// When it began, ns; `None` if it was there before.
    pub begin: Option<u64>,
    /// When it ended, ns.
    pub end: Option<u64>,
    /// CPUs that it ran on.
    pub cpus: CpuSet,
    /// Whether it had not run on its last CPU before.
    is_new_there: bool,
    /// Oldest first.
    stretches: VecDeque<Stretch>,
    /// How many of them are kept.
    cap: usize,
    /// Until when (ns) there were others before those that are kept.
    forgotten_until: Option<u64>,
}

impl History {
    /// Nothing is known of it so far but, perhaps, when (ns) it began.
    pub(crate) fn new(begin: Option<u64>, cap: usize) -> Self {
        Self {
            tgid: None,
            begin,
            end: None,
            cpus: CpuSet::default(),
            is_new_there: false,
            stretches: VecDeque::new(),
            cap,
            forgotten_until: None,
        }
    }

    /// Returns what it did, each with the time (ns) from which on it did it.
    pub(crate) fn activities(&self) -> impl Iterator<Item = (u64, Activity)> {
        self.stretches.iter().map(|stretch| (stretch.begin, stretch.state.into()))
    }

    /// Whether states after this time (ns) are not kept one by one any more.
    pub(crate) fn has_forgotten_since(&self, since: u64) -> bool {
        self.forgotten_until.is_some_and(|until| since < until)
    }

    /// Its last state.
    pub(crate) fn state(&self) -> State {
        self.stretches.back().map_or(State::Unknown, |last| last.state)
    }

    /// Whether it has no event yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Whether nothing is known of it before `now` (ns), and it lives.
    pub(crate) fn begins_with(&self, now: u64) -> bool {
        self.end.is_none() && self.stretches.front().is_none_or(|first| first.begin >= now)
    }

    /// It does this from `now` (ns) on. What comes too late to be put in order counts as of the last change.
    pub(crate) fn push(&mut self, now: u64, state: State) {
        let mut new = Stretch { begin: now, before: Sums::default(), state };
        if let Some(last) = self.stretches.back_mut() {
            new.begin = now.max(last.begin);
            if last.begin == new.begin {
                // What had no length was nothing.
                last.state = state;
                return;
            }
            if last.state == state {
                return;
            }
            new.before = last.until(new.begin);
        }
        if self.stretches.len() >= self.cap {
            self.stretches.pop_front();
            self.forgotten_until = Some(self.stretches.front().map_or(new.begin, |first| first.begin));
        }
        self.stretches.push_back(new);
    }

    /// It gets this CPU at `now` (ns).
    pub(crate) fn run(&mut self, now: u64, cpu: u32) {
        self.push(now, State::OnCpu(cpu));
        self.is_new_there = self.cpus.insert(cpu);
    }

    /// It turns out not to have been this thread that has run on the CPU since it got it; returns since when (ns), or `None` where
    /// it has not been seen to get it.
    pub(crate) fn take_run(&mut self, cpu: u32) -> Option<u64> {
        let run = self.stretches.pop_back_if(|last| last.state == State::OnCpu(cpu))?;
        if self.is_new_there {
            self.cpus.remove(cpu);
        }
        Some(run.begin)
    }

    /// It turns out what the last stretch was.
    pub(crate) fn settle(&mut self, state: State) {
        if let Some(last) = self.stretches.back_mut() {
            last.state = state;
        }
    }

    /// It ended at `now` (ns).
    pub(crate) fn finish(&mut self, now: u64) {
        self.push(now, State::Unknown);
        self.end = self.stretches.back().map(|last| last.begin);
    }

    /// Events of a CPU are missing between `since` and `now` (ns): all that this thread may have done meanwhile but run on
    /// another CPU, from which it would have been seen to go, is not known.
    pub(crate) fn forget(&mut self, cpu: u32, since: u64, now: u64) {
        if self.end.is_some_and(|end| end <= since) || self.stretches.is_empty() {
            return;
        }
        let first = self.stretches.partition_point(|stretch| stretch.begin < since).saturating_sub(1);
        let tail = self.stretches.split_off(first);
        for stretch in &tail {
            let Stretch { begin, state, .. } = *stretch;
            let unknown_from = match state {
                State::OnCpu(other) | State::HasRun(other) if other != cpu => None,
                // What was concluded is no better than what it was concluded from.
                State::HasRun(_) | State::HasWaited => Some(begin),
                _ => Some(since.max(begin)),
            };
            if self.stretches.is_empty() {
                self.stretches.push_back(*stretch);
            }
            if unknown_from != Some(begin) {
                self.push(begin, state);
            }
            if let Some(from) = unknown_from {
                self.push(from, State::Unknown);
            }
        }
        if self.end.is_none() && !matches!(self.state(), State::OnCpu(_)) {
            self.push(now, State::Watched);
        }
    }

    /// The states from that of `from` (ns) on, as far as they are kept one by one.
    pub(crate) fn stretches_from(&self, from: u64) -> impl Iterator<Item = StateStretch> {
        let first = self.stretches.partition_point(|stretch| stretch.begin <= from).saturating_sub(1);
        let lived = self
            .stretches
            .range(first..)
            .take_while(|stretch| self.end.is_none_or(|end| stretch.begin < end));
        (first..).zip(lived).map(|(at, stretch)| StateStretch {
            begin: stretch.begin,
            end: self.stretches.get(at + 1).map(|next| next.begin),
            state: stretch.state,
            woken: self.woken(at),
        })
    }

    /// When the wake-up was that the stretch at this place is due to, ns.
    fn woken(&self, at: usize) -> Option<u64> {
        let before = |back: usize| at.checked_sub(back).and_then(|at| self.stretches.get(at));
        let waited = before(1).filter(|waited| waited.state == State::Runnable)?;
        let slept = before(2).is_some_and(|slept| matches!(slept.state, State::Asleep { .. }));
        slept.then_some(waited.begin)
    }

    /// Times between two instants (ns); stretches of which nothing is known are left out.
    pub(crate) fn between(&self, begin: u64, end: u64) -> StateTimes {
        let Some(first) = self.stretches.front() else { return StateTimes::default() };
        let end = self.end.map_or(end, |last| last.min(end));
        let begin = begin.max(first.begin);
        if begin >= end {
            return StateTimes::default();
        }
        let (from, to) = (self.sums(begin), self.sums(end));
        StateTimes {
            on_cpu: to[0] - from[0],
            runnable: to[1] - from[1],
            sleeping: to[2] - from[2],
            uninterruptible: to[3] - from[3],
            unknown: 0,
        }
    }

    /// Times up to `end` (ns), stretches that are not kept one by one any more included.
    pub(crate) fn all_until(&self, end: u64) -> StateTimes {
        let end = self.end.map_or(end, |last| last.min(end));
        let [on_cpu, runnable, sleeping, uninterruptible] = self.sums(end);
        StateTimes { on_cpu, runnable, sleeping, uninterruptible, unknown: 0 }
    }

    fn sums(&self, now: u64) -> Sums {
        let next = self.stretches.partition_point(|stretch| stretch.begin <= now);
        match next.checked_sub(1) {
            Some(at) => self.stretches[at].until(now),
            None => Sums::default(),
        }
    }
}
