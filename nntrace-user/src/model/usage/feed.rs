//! Steps of one thread, read from its states as far as these are certain, and the sections that wait for them.

use std::collections::VecDeque;

use super::{
    Change, Claim,
    ledger::{Doing, Step},
};
use crate::model::scheduling::{Scheduling, State, StateStretch};

/// Sections that wait for the next event of their thread; with more, nothing is known of it.
const MOST_CLAIMS: usize = 1_024;

/// How much of a thread's present state is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Nothing of it: the thread's next event may contradict it, and sections that ended in it would keep what they
    /// took.
    Ended,
    /// As much as events show, for lack of room to wait for the next one.
    Present,
    /// The whole of it, as no event follows.
    Everything,
}

/// One thread.
#[derive(Clone, Debug)]
pub(super) struct Feed {
    /// Until when its states were read, ns.
    read_until: u64,
    /// End of the last thread of this id whose end was read, ns.
    ended: Option<u64>,
    /// Begin (ns) and kind of the state that was read in part.
    open: Option<(u64, State)>,
    /// Sections that ended later than that, in order of time.
    claims: VecDeque<Box<Claim>>,
}

impl Feed {
    /// Nothing was read before `begin` (ns).
    pub(super) fn starting_at(begin: u64) -> Self {
        Self { read_until: begin, ended: None, open: None, claims: VecDeque::new() }
    }

    /// A section ended.
    pub(super) fn push(&mut self, claim: Box<Claim>) {
        self.claims.push_back(claim);
    }

    /// Whether sections wait.
    pub(super) fn has_claims(&self) -> bool {
        !self.claims.is_empty()
    }

    /// Whether anything was read since then (ns), which is doubtful now.
    pub(super) fn rewind(&mut self, since: u64) -> bool {
        self.open = None;
        self.read_until > since
    }

    /// Reads the states until `now` (ns).
    pub(super) fn read(
        &mut self,
        tid: u32,
        now: u64,
        scheduling: &Scheduling,
        reach: Reach,
        mut emit: impl FnMut(Change),
    ) {
        let reach = if self.claims.len() > MOST_CLAIMS { Reach::Everything } else { reach };
        for life in scheduling.lives_since(tid, self.read_until) {
            if life.end.is_some() && life.end == self.ended {
                continue;
            }
            for stretch in life.stretches_from(self.read_until) {
                let StateStretch { begin, end, state, .. } = stretch;
                let is_read = match reach {
                    Reach::Ended => end.is_some(),
                    Reach::Present => end.is_some() || !is_undecided(state),
                    Reach::Everything => true,
                };
                if !is_read {
                    break;
                }
                if let Some((known, before)) = self.open
                    && known == begin
                    && before != state
                {
                    emit(Change::Doubt { tid, since: begin, but_on_others_than: None });
                }
                self.open = end.is_none().then_some((begin, state));
                self.read_stretch(tid, &stretch, now, &mut emit);
            }
            if let Some(end) = life.end.filter(|end| *end <= self.read_until.max(now)) {
                self.claim_until(end, &mut emit);
                self.read_until = self.read_until.max(end);
                (self.open, self.ended) = (None, Some(end));
                emit(Change::End { tid, pid: life.tgid });
            }
        }
        let until =
            if reach == Reach::Everything || !scheduling.knows(tid) { u64::MAX } else { self.read_until };
        self.claim_until(until, &mut emit);
    }

    fn read_stretch(&mut self, tid: u32, stretch: &StateStretch, now: u64, emit: &mut impl FnMut(Change)) {
        let end = stretch.end.map_or(now, |end| end.min(now));
        let mut begin = stretch.begin.max(self.read_until);
        while begin < end {
            let to = self.claims.front().map_or(end, |claim| claim.end.clamp(begin, end));
            if to > begin {
                emit(Change::Step(Step {
                    tid,
                    begin,
                    end: to,
                    doing: doing(stretch.state),
                    woken: stretch.woken.filter(|_| begin == stretch.begin),
                    leaves: stretch.end == Some(to),
                }));
            }
            begin = to;
            self.read_until = to;
            self.claim_until(to, emit);
        }
    }

    fn claim_until(&mut self, time: u64, emit: &mut impl FnMut(Change)) {
        while let Some(claim) = self.claims.pop_front_if(|claim| claim.end <= time) {
            emit(Change::Claim(claim));
        }
    }
}

/// Whether the thread's next event shows what it does.
const fn is_undecided(state: State) -> bool {
    matches!(state, State::Awake | State::Watched | State::Asleep { certain: false, .. })
}

const fn doing(state: State) -> Doing {
    match state {
        State::OnCpu(cpu) | State::HasRun(cpu) => Doing::OnCpu(cpu),
        State::Runnable | State::HasWaited => Doing::Runnable,
        State::Asleep { deep: false, .. } => Doing::Sleeping,
        State::Asleep { deep: true, .. } => Doing::Uninterruptible,
        State::Awake | State::Watched | State::Unknown => Doing::Unknown,
    }
}
