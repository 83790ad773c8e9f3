//! States of the CPUs as their events leave them, for recordings that begin later than the run.

use std::collections::BTreeMap;

use nntrace_common::{power::Activity, record::Record};

use crate::model::{
    MAX_CPU, Topology,
    initial_state::{FrequencySource, IdleSource, InitialCpu, InitialState},
};

/// States of the CPUs after all events so far.
#[derive(Default)]
pub(super) struct CpuStates {
    now: InitialState,
    /// CPUs of the policy of each CPU; `None` before it is known which CPUs there are.
    policies: Option<BTreeMap<u32, Vec<u32>>>,
    /// Events of before, which count from then on.
    waiting: Vec<Record>,
}

impl CpuStates {
    /// Whether it is known which CPUs there are.
    pub(super) fn are_known(&self) -> bool {
        self.policies.is_some()
    }

    /// Takes what is known of the CPUs at the begin of the window. Events of before take precedence.
    pub(super) fn begin(&mut self, topology: &Topology, initial: &InitialState) {
        self.now = initial.clone();
        for cpu in topology.cpus.keys() {
            self.now.cpus.entry(*cpu).or_default();
        }
        let policies = topology.cpus.keys().map(|&cpu| (cpu, topology.policy_of(cpu)));
        self.policies = Some(policies.collect());
        for record in std::mem::take(&mut self.waiting) {
            self.take(&record);
        }
    }

    /// Takes an event of power.
    pub(super) fn take(&mut self, record: &Record) {
        let Some(policies) = &self.policies else {
            self.waiting.push(*record);
            return;
        };
        match *record {
            Record::Idle(event) => {
                let next = Activity::after_event(event.state);
                self.change(event.cpu, |_| (Some(next), IdleSource::Event));
            }
            Record::Hotplug(event) => self.change(event.cpu, |before| match (event.state != 0, before) {
                (false, _) => (Some(Activity::Offline), IdleSource::Event),
                (true, Some(Activity::Offline)) => (Some(Activity::Running), IdleSource::Event),
                (true, before) => (before, IdleSource::Event),
            }),
            Record::Lost { cpu, .. } => self.change(cpu, |_| (Some(Activity::Unknown), IdleSource::Unknown)),
            Record::Frequency(event) if event.cpu <= MAX_CPU => {
                let alone = [event.cpu];
                for &cpu in policies.get(&event.cpu).map_or(&alone[..], Vec::as_slice) {
                    let cpu = self.now.cpus.entry(cpu).or_default();
                    cpu.khz = Some(event.state).filter(|khz| *khz != 0);
                    cpu.frequency = FrequencySource::Event;
                }
            }
            _ => {}
        }
    }

    fn change(
        &mut self,
        number: u32,
        change: impl FnOnce(Option<Activity>) -> (Option<Activity>, IdleSource),
    ) {
        if number <= MAX_CPU {
            let cpu: &mut InitialCpu = self.now.cpus.entry(number).or_default();
            (cpu.activity, cpu.idle) = change(cpu.activity);
        }
    }

    /// Returns the states now.
    pub(super) fn now(&self) -> InitialState {
        self.now.clone()
    }
}

#[cfg(test)]
mod tests {
    use nntrace_common::{
        power::IDLE_EXIT,
        record::{PowerRecord, RecordKind},
    };

    use super::*;
    use crate::model::topology::CpuDescription;

    fn event(kind: RecordKind, cpu: u32, state: u32) -> PowerRecord {
        PowerRecord { kind: kind as u32, cpu, time: 0, state, lost: 0 }
    }

    fn idle(cpu: u32, state: u32) -> Record {
        Record::Idle(event(RecordKind::Idle, cpu, state))
    }

    fn frequency(cpu: u32, khz: u32) -> Record {
        Record::Frequency(event(RecordKind::Frequency, cpu, khz))
    }

    fn hotplug(cpu: u32, online: u32) -> Record {
        Record::Hotplug(event(RecordKind::Hotplug, cpu, online))
    }

    fn two_in_a_policy() -> Topology {
        let cpus = (0..3).map(|cpu| (cpu, CpuDescription::default())).collect();
        Topology { cpus, policies: vec![vec![0, 1], vec![2]], ..Topology::default() }
    }

    fn activities(states: &CpuStates) -> Vec<Option<Activity>> {
        states.now.cpus.values().map(|cpu| cpu.activity).collect()
    }

    #[test]
    fn the_last_event_shows_what_a_cpu_does() {
        let mut states = CpuStates::default();
        states.begin(&two_in_a_policy(), &InitialState::default());
        assert_eq!(activities(&states), [None, None, None]);
        for record in [idle(0, 2), idle(1, 1), idle(1, IDLE_EXIT), idle(2, 3)] {
            states.take(&record);
        }
        assert_eq!(
            activities(&states),
            [Some(Activity::Idle(2)), Some(Activity::Running), Some(Activity::Idle(3))]
        );
        states.take(&hotplug(1, 0));
        states.take(&Record::Lost { cpu: 2, time: 0 });
        assert_eq!(activities(&states)[1..], [Some(Activity::Offline), Some(Activity::Unknown)]);
        states.take(&hotplug(1, 1));
        assert_eq!(activities(&states)[1], Some(Activity::Running));
    }

    #[test]
    fn a_frequency_is_that_of_the_whole_policy() {
        let mut states = CpuStates::default();
        states.begin(&two_in_a_policy(), &InitialState::default());
        states.take(&frequency(1, 800));
        let khz = states.now.cpus.values().map(|cpu| cpu.khz);
        assert_eq!(khz.collect::<Vec<_>>(), [Some(800), Some(800), None]);
    }

    #[test]
    fn events_from_before_the_begin_take_precedence() {
        let read = InitialCpu { activity: Some(Activity::Running), khz: Some(100), ..InitialCpu::default() };
        let mut states = CpuStates::default();
        states.take(&idle(0, 1));
        assert!(!states.are_known());
        states.begin(&two_in_a_policy(), &InitialState { cpus: [(0, read), (2, read)].into() });
        assert_eq!(activities(&states), [Some(Activity::Idle(1)), None, Some(Activity::Running)]);
        assert_eq!(states.now.cpus[&0].khz, Some(100));
    }
}
