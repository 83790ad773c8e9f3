//! Power states of CPUs and the effective frequency of their clusters over the last while, as threads that run there ask for
//! them.

use std::collections::VecDeque;

use nntrace_common::power::Activity;

use super::Place;
use crate::model::{
    cpu_transition::Transition, power::PowerChange, small_counts::SmallCounts, topology::Topology,
};

/// States of one CPU or cluster that are kept when the oldest are forgotten, and half of those that there may be before.
const KEPT: usize = 2_048;

/// CPUs and clusters that share a clock.
#[derive(Clone, Debug, Default)]
pub(super) struct Clocks {
    /// By number.
    cpus: Vec<Cpu>,
    /// By number in the topology; unused for those that share no clock.
    clusters: Vec<Clock>,
    /// When the first states are of, ns; `None` before it is known which CPUs there are.
    begin: Option<u64>,
    /// CPUs without an event, whose state is not known elsewhere.
    silent: usize,
    /// Changes that wait for these.
    waiting: Vec<PowerChange>,
    is_settled: bool,
    is_crowded: bool,
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    clock: Option<u32>,
    /// Activity at first, where that is known.
    first: Option<Activity>,
    /// Requested frequency, kHz.
    khz: Option<u32>,
    /// Begins (ns) of activities.
    log: VecDeque<(u64, Activity)>,
    /// When a traced thread left it last, ns.
    left: u64,
}

#[derive(Clone, Debug, Default)]
struct Clock {
    running: u32,
    khz: SmallCounts<Option<u32>>,
    /// Begins (ns) of states: frequency, and CPUs that run.
    log: VecDeque<(u64, Option<u32>, u32)>,
}

/// The last stay of a CPU in an idle state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IdleStay {
    /// State; `None` where its depth is not known.
    pub(super) state: Option<u32>,
    /// Begin, ns.
    pub(super) begin: u64,
    /// End, ns.
    pub(super) end: u64,
}

impl Clocks {
    /// It is known which CPUs there are, and their activity and requested frequency (kHz) at `begin` (ns) as far as that is known.
    pub(super) fn begin(
        &mut self,
        topology: &Topology,
        begin: u64,
        state: impl Fn(u32) -> (Option<Activity>, Option<u32>),
    ) {
        self.clusters = vec![Clock::default(); topology.clusters.len()];
        let count = topology.cpus.keys().max().map_or(0, |last| *last as usize + 1);
        self.cpus = vec![Cpu::default(); count];
        for &number in topology.cpus.keys() {
            let (first, khz) = state(number);
            let clock = topology.clock_of(number).map(|clock| clock as u32);
            self.cpus[number as usize] = Cpu { clock, first, khz, ..Cpu::default() };
        }
        self.silent = self.cpus.iter().filter(|cpu| cpu.clock.is_some() && cpu.first.is_none()).count();
        self.begin = Some(begin);
        (self.is_settled, self.is_crowded) = (false, false);
        self.waiting.clear();
        self.settle();
    }

    /// Whether everything that comes can be answered.
    pub(super) fn are_settled(&self) -> bool {
        self.is_settled
    }

    /// Whether enough states are kept for [`Clocks::forget_oldest`].
    pub(super) fn are_crowded(&self) -> bool {
        self.is_crowded
    }

    /// CPUs without an event count as unknown from here on.
    pub(super) fn give_up_waiting(&mut self) {
        self.silent = 0;
        self.begin.get_or_insert(0);
        self.settle();
    }

    /// Forgets all but the last states.
    pub(super) fn forget_oldest(&mut self) {
        self.is_crowded = false;
        for cpu in &mut self.cpus {
            cpu.log.drain(..cpu.log.len().saturating_sub(KEPT));
        }
        for clock in &mut self.clusters {
            clock.log.drain(..clock.log.len().saturating_sub(KEPT));
        }
    }

    fn settle(&mut self) {
        let Some(begin) = self.begin.filter(|_| self.silent == 0 && !self.is_settled) else { return };
        self.is_settled = true;
        for number in 0..self.cpus.len() {
            let first = self.cpus[number].first.unwrap_or(Activity::Unknown);
            self.set(begin, number, first);
        }
        for change in std::mem::take(&mut self.waiting) {
            self.apply(change);
        }
    }

    /// Takes a change, in order of time.
    pub(super) fn change(&mut self, change: PowerChange) {
        if self.is_settled {
            self.apply(change);
            return;
        }
        if let PowerChange::Activity(Transition { cpu, before, .. }) = change
            && let Some(cpu) = self.cpus.get_mut(cpu as usize)
            && cpu.first.is_none()
        {
            cpu.first = Some(before.activity);
            self.silent = self.silent.saturating_sub(usize::from(cpu.clock.is_some()));
        }
        self.waiting.push(change);
        self.settle();
    }

    fn apply(&mut self, change: PowerChange) {
        match change {
            PowerChange::Activity(Transition { cpu, before, next, .. }) => {
                self.set(before.end, cpu as usize, next);
            }
            PowerChange::Frequency { time, cpu, khz } => self.set_frequency(time, cpu as usize, khz),
        }
    }

    fn set(&mut self, now: u64, number: usize, next: Activity) {
        let Some(cpu) = self.cpus.get_mut(number) else { return };
        let before = cpu.log.back().map(|(_, activity)| *activity);
        if before == Some(next) {
            return;
        }
        match cpu.log.back_mut() {
            Some(last) if last.0 == now => last.1 = next,
            _ => cpu.log.push_back((now, next)),
        }
        self.is_crowded |= cpu.log.len() > 2 * KEPT;
        let khz = cpu.khz;
        let Some(clock) = cpu.clock.and_then(|clock| self.clusters.get_mut(clock as usize)) else { return };
        if before == Some(Activity::Running) {
            clock.running -= 1;
            clock.khz.take(khz);
        }
        if next == Activity::Running {
            clock.running += 1;
            clock.khz.add(khz);
        }
        self.is_crowded |= clock.changed(now);
    }

    fn set_frequency(&mut self, now: u64, number: usize, khz: Option<u32>) {
        let Some(cpu) = self.cpus.get_mut(number) else { return };
        let before = std::mem::replace(&mut cpu.khz, khz);
        let runs = cpu.log.back().is_some_and(|(_, activity)| *activity == Activity::Running);
        if let Some(clock) =
            cpu.clock.filter(|_| runs).and_then(|clock| self.clusters.get_mut(clock as usize))
        {
            clock.khz.take(before);
            clock.khz.add(khz);
            self.is_crowded |= clock.changed(now);
        }
    }

    /// Shows where a thread on a CPU was from `begin` to `end` (ns), stretch by stretch.
    pub(super) fn visit(&self, cpu: u32, begin: u64, end: u64, mut stretch: impl FnMut(u64, u64, Place)) {
        let unknown = Place::Unknown { cpu };
        let Some(known) = self.cpus.get(cpu as usize) else {
            stretch(begin, end, unknown);
            return;
        };
        let clock = known.clock.and_then(|clock| Some((clock, self.clusters.get(clock as usize)?)));
        walk(
            &known.log,
            begin,
            end,
            |(at, _)| *at,
            |from, to, state| match (state, clock) {
                (None | Some((_, Activity::Unknown)), _) => stretch(from, to, unknown),
                (Some((_, Activity::Running)), Some((cluster, clock))) => {
                    walk(
                        &clock.log,
                        from,
                        to,
                        |(at, ..)| *at,
                        |from, to, state| {
                            let place = state.map_or(unknown, |(_, khz, sharing)| Place::Clock {
                                cluster,
                                khz: *khz,
                                sharing: *sharing,
                            });
                            stretch(from, to, place);
                        },
                    );
                }
                _ => stretch(from, to, Place::NoClock { cpu }),
            },
        );
    }

    /// A traced thread left a CPU at `now` (ns).
    pub(super) fn leave(&mut self, cpu: u32, now: u64) {
        if let Some(cpu) = self.cpus.get_mut(cpu as usize) {
            cpu.left = now;
        }
    }

    /// Returns the idle state that a CPU was in before a thread ran there at `now` (ns), if it has run no other traced one since.
    pub(super) fn idle_before(&self, cpu: u32, now: u64) -> Option<IdleStay> {
        let cpu = self.cpus.get(cpu as usize)?;
        let at = cpu.log.partition_point(|(begin, _)| *begin <= now).checked_sub(1)?;
        let (end, Activity::Running) = *cpu.log.get(at)? else { return None };
        let (begin, before) = *cpu.log.get(at.checked_sub(1)?)?;
        let state = match before {
            Activity::Idle(state) => Some(state),
            Activity::IdleUnknown => None,
            _ => return None,
        };
        (cpu.left <= end).then_some(IdleStay { state, begin, end })
    }
}

impl Clock {
    /// Its CPUs have changed at `now` (ns). Returns whether many states are kept.
    fn changed(&mut self, now: u64) -> bool {
        // `None` sorts first: one unknown frequency makes the highest unknown.
        let khz = self.khz.first().flatten().and_then(|_| self.khz.last().flatten());
        if self.log.back().is_none_or(|last| (last.1, last.2) != (khz, self.running)) {
            match self.log.back_mut() {
                Some(last) if last.0 == now => (last.1, last.2) = (khz, self.running),
                _ => self.log.push_back((now, khz, self.running)),
            }
        }
        self.log.len() > 2 * KEPT
    }
}

/// Shows the states of a log from `begin` to `end` (ns); `None` before the first.
fn walk<T>(
    log: &VecDeque<T>,
    begin: u64,
    end: u64,
    time: impl Fn(&T) -> u64,
    mut stretch: impl FnMut(u64, u64, Option<&T>),
) {
    let mut next = log.partition_point(|state| time(state) <= begin);
    let mut from = begin;
    while from < end {
        let to = log.get(next).map_or(end, |state| time(state).min(end));
        if to > from {
            stretch(from, to, next.checked_sub(1).and_then(|at| log.get(at)));
        }
        from = to;
        next += 1;
    }
}
