//! One CPU, as its power events change it.

use std::collections::BTreeMap;

use nntrace_common::{
    power::{Activity, CpuFrequency, CpuIdle, Start},
    record::FrequencyKey,
    time_count::TimeCount,
};

use crate::model::{
    cpu_residency::CpuReading,
    cpu_transition::Transition,
    timeline::{CpuState, Timeline},
};

/// One CPU.
#[derive(Clone, Debug)]
pub(super) struct Cpu {
    /// Idle or running.
    pub(super) idle: CpuIdle,
    frequency: CpuFrequency,
    /// Running time at earlier frequencies (kHz), and whether it is presumed.
    slices: BTreeMap<(u32, bool), TimeCount>,
    /// Its states up to the last change of its activity, or of its frequency while it runs. Before the first event it is
    /// presumed to run.
    timeline: Option<Timeline>,
}

impl Cpu {
    /// A CPU whose state is unknown at `begin` (ns), with a timeline of this many steps where it has one.
    pub(super) fn starting_at(begin: u64, steps: Option<usize>) -> Self {
        Self {
            idle: CpuIdle::starting_at(begin),
            frequency: CpuFrequency::UNKNOWN,
            slices: BTreeMap::new(),
            timeline: steps.map(|cap| Timeline::starting_at(begin, cap)),
        }
    }

    /// Its state at `begin` (ns), the begin of the window, as far as it is known from elsewhere than its events.
    pub(super) fn begin_as(&mut self, begin: u64, activity: Option<Activity>, khz: Option<u32>) {
        self.frequency = CpuFrequency::requested(khz.unwrap_or(0));
        if let Some(activity) = activity {
            self.idle.set(begin, activity);
        }
    }

    /// Its requested frequency is `khz` (0 for unknown) from `now` (ns) on; returns whether that is another one.
    pub(super) fn frequency_event(&mut self, now: u64, khz: u32) -> bool {
        let before = self.khz();
        let Some(slice) = self.frequency.event(&mut self.idle, now, khz) else { return false };
        self.slices.entry((slice.khz, slice.presumed)).or_default().change(slice.ns, slice.hits);
        let runs = self.idle.start() == Start::Open || self.idle.activity() == Activity::Running;
        if let Some(timeline) = self.timeline.as_mut().filter(|_| runs) {
            timeline.push(now, CpuState::Running(before));
        }
        true
    }

    /// Its activity has changed.
    pub(super) fn changed(&mut self, transition: &Transition) {
        let Transition { before, is_first, .. } = transition;
        let state = self.state(before.activity);
        if let Some(timeline) = &mut self.timeline {
            extend(timeline, before.end, state, *is_first);
        }
    }

    /// Its states until `end` (ns), where it has a timeline.
    pub(super) fn timeline_until(&self, end: u64) -> Option<Timeline> {
        let mut timeline = self.timeline.clone()?;
        let is_first = self.idle.start() == Start::Open;
        extend(&mut timeline, end, self.state(self.idle.activity()), is_first);
        Some(timeline)
    }

    /// Its tables; `number` is its own.
    pub(super) fn reading(&self, number: u32) -> CpuReading {
        let slices = self.slices.iter().map(|(&(khz, presumed), &total)| {
            (FrequencyKey { cpu: number, khz, presumed: u32::from(presumed), reserved: 0 }, total)
        });
        CpuReading { cpu: number, idle: self.idle, frequency: self.frequency, slices: slices.collect() }
    }

    fn state(&self, activity: Activity) -> CpuState {
        match activity {
            Activity::Running => CpuState::Running(self.khz()),
            Activity::Idle(state) => CpuState::Idle(state),
            Activity::IdleUnknown => CpuState::IdleUnknown,
            Activity::Offline => CpuState::Offline,
            Activity::Unknown => CpuState::Unknown,
        }
    }

    /// Its requested frequency, kHz.
    pub(super) fn khz(&self) -> Option<u32> {
        (self.frequency.khz() != 0).then_some(self.frequency.khz())
    }
}

/// The state until `end` (ns) was this; with `is_first`, all before was only presumed to be running.
fn extend(timeline: &mut Timeline, end: u64, state: CpuState, is_first: bool) {
    timeline.push(end, state);
    if is_first && !matches!(state, CpuState::Running(_)) {
        timeline.was(state);
    }
}
