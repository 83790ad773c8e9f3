//! Power events of all CPUs, in order of time, each interpreted once.
//!
//! A `cpu_idle` event, a hotplug event or a loss makes a transition of one CPU, a `cpu_frequency` event a change on each
//! CPU of its policy. Clusters, idle stays and timelines are made of these, and of nothing else. Source: the power
//! contract, section 1.

mod cpu;

use std::{collections::BTreeMap, rc::Rc};

use nntrace_common::{
    power::{Activity, CpuIdle, IdleAnomaly, Interval, Start},
    record::Record,
};

use super::{
    Clusters, Topology,
    cluster_residency::ClusterResidency,
    cpu_residency::CpuReading,
    cpu_transition::Transition,
    idle_stays::IdleStays,
    initial_state::{InitialCpu, InitialState},
    timeline::{MAX_STEPS, Timelines},
};
use cpu::Cpu;

/// The CPUs and clusters of a system, as their power events change them.
#[derive(Clone, Debug)]
pub struct Power {
    begin: u64,
    topology: Topology,
    initial: InitialState,
    /// By number.
    cpus: Vec<Option<Box<Cpu>>>,
    /// The CPUs whose frequency changes with that of a CPU, itself included, by CPU.
    policies: BTreeMap<u32, Rc<[u32]>>,
    clusters: Clusters,
    idle_stays: IdleStays,
    /// Stretches that the timeline of one CPU or cluster keeps; `None` where there are no timelines.
    steps: Option<usize>,
    /// Changes that nobody has taken yet; `None` where nobody does.
    changes: Option<Vec<PowerChange>>,
}

/// Change of a CPU, as its events mean it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PowerChange {
    /// Its activity changes.
    Activity(Transition),
    /// Its requested frequency changes.
    Frequency {
        /// Time, ns.
        time: u64,
        /// CPU.
        cpu: u32,
        /// Frequency, kHz; `None` for an unknown one.
        khz: Option<u32>,
    },
}

impl PowerChange {
    /// Time of the change, ns.
    #[must_use]
    pub(crate) const fn time(&self) -> u64 {
        match self {
            Self::Activity(transition) => transition.before.end,
            Self::Frequency { time, .. } => *time,
        }
    }
}

impl Power {
    /// A system of whose CPUs this is known at `begin` (ns), with timelines where they are wanted.
    #[must_use]
    pub fn new(topology: &Topology, begin: u64, initial: &InitialState, with_timelines: bool) -> Self {
        let lines = topology.cpus.len() + topology.clusters.len();
        let steps = with_timelines.then(|| MAX_STEPS / lines.max(1));
        let mut clusters = Clusters::new(topology, begin, initial);
        if let Some(cap) = steps {
            clusters.keep_steps(begin, cap);
        }
        let mut power = Self {
            begin,
            cpus: Vec::new(),
            policies: topology.cpus.keys().map(|&cpu| (cpu, topology.policy_of(cpu).into())).collect(),
            clusters,
            idle_stays: IdleStays::new(topology, begin),
            steps,
            changes: None,
            topology: topology.clone(),
            initial: initial.clone(),
        };
        for &number in topology.cpus.keys().chain(initial.cpus.keys()) {
            let InitialCpu { activity, khz, .. } = initial.of(number);
            power.cpu(number).begin_as(begin, activity, khz);
        }
        power
    }

    /// Takes a record of a power event; others are none of its business. Returns what was odd about it, as the kernel
    /// programs count it too. Memory grows with the highest number of a CPU.
    pub fn record(&mut self, record: &Record) -> Option<IdleAnomaly> {
        match *record {
            Record::Idle(event) => return self.idle_event(event.time, event.cpu, event.state),
            Record::Frequency(event) => self.frequency_event(event.time, event.cpu, event.state),
            Record::Hotplug(event) => self.hotplug(event.time, event.cpu, event.state != 0),
            Record::Lost { cpu, time } => self.lost(time, cpu),
            _ => {}
        }
        None
    }

    /// A `cpu_idle` event at `now` (ns).
    pub(crate) fn idle_event(&mut self, now: u64, cpu: u32, state: u32) -> Option<IdleAnomaly> {
        let mut anomaly = None;
        let stay = self.change(cpu, |idle| {
            let step = idle.event(now, state);
            anomaly = step.anomaly;
            step.closed
        });
        // The length of a stay that something else ended is not known.
        if let Some(stay) = stay {
            self.idle_stays.ended(cpu, &stay);
        }
        anomaly
    }

    /// A `cpu_frequency` event at `now` (ns): it holds for the whole policy of the CPU.
    pub(crate) fn frequency_event(&mut self, now: u64, cpu: u32, khz: u32) {
        let policy = Rc::clone(self.policies.entry(cpu).or_insert_with(|| Rc::from([cpu])));
        for &member in &*policy {
            if self.cpu(member).frequency_event(now, khz) {
                let khz = (khz != 0).then_some(khz);
                self.clusters.frequency(now, member, khz);
                if let Some(changes) = &mut self.changes {
                    changes.push(PowerChange::Frequency { time: now, cpu: member, khz });
                }
            }
        }
    }

    /// A CPU went offline at `now` (ns), or ran its first instruction after it was.
    pub(crate) fn hotplug(&mut self, now: u64, cpu: u32, online: bool) {
        self.change(cpu, |idle| idle.hotplug(now, online));
    }

    /// Events of a CPU were lost at `now` (ns): nothing is known of it until its next one.
    pub(crate) fn lost(&mut self, now: u64, cpu: u32) {
        self.change(cpu, |idle| Some(idle.set(now, Activity::Unknown)));
    }

    /// Changes the activity of a CPU; returns the stretch that this ended.
    fn change(
        &mut self,
        cpu: u32,
        change: impl FnOnce(&mut CpuIdle) -> Option<Interval>,
    ) -> Option<Interval> {
        let state = self.cpu(cpu);
        let is_first = state.idle.start() == Start::Open;
        let before = change(&mut state.idle)?;
        let transition = Transition { cpu, before, next: state.idle.activity(), is_first };
        state.changed(&transition);
        self.clusters.change(&transition);
        if let Some(changes) = &mut self.changes {
            changes.push(PowerChange::Activity(transition));
        }
        Some(before)
    }

    /// Keeps every change from here on until it is taken.
    pub(crate) fn keep_changes(&mut self) {
        self.changes.get_or_insert_default();
    }

    /// Takes the changes that are kept.
    pub(crate) fn take_changes(&mut self) -> std::vec::Drain<'_, PowerChange> {
        self.changes.get_or_insert_default().drain(..)
    }

    /// Activity and requested frequency (kHz) of a CPU now, as far as they are known.
    #[must_use]
    pub(crate) fn state_of(&self, cpu: u32) -> (Option<Activity>, Option<u32>) {
        let cpu = self.cpus.get(cpu as usize).and_then(Option::as_deref);
        cpu.map_or((None, None), |cpu| {
            let is_known = cpu.idle.start() != Start::Open;
            (is_known.then(|| cpu.idle.activity()), cpu.khz())
        })
    }

    fn cpu(&mut self, number: u32) -> &mut Cpu {
        let (place, begin, steps) = (number as usize, self.begin, self.steps);
        if self.cpus.len() <= place {
            self.cpus.resize_with(place + 1, || None);
        }
        self.cpus[place].get_or_insert_with(|| Box::new(Cpu::starting_at(begin, steps)))
    }

    /// State of the CPUs at the begin.
    pub(crate) fn initial_state(&self) -> &InitialState {
        &self.initial
    }

    /// How CPUs belong together.
    #[must_use]
    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The tables of a CPU, as the kernel programs keep them too.
    #[must_use]
    pub(crate) fn reading(&self, number: u32) -> CpuReading {
        let cpu = self.cpus.get(number as usize).and_then(Option::as_deref);
        cpu.map_or_else(|| Cpu::starting_at(self.begin, None).reading(number), |cpu| cpu.reading(number))
    }

    /// Residency of each cluster until `end` (ns), in the order of the topology.
    #[must_use]
    pub fn clusters_until(&self, end: u64) -> Vec<ClusterResidency> {
        self.clusters.until(end)
    }

    /// How long single stays in idle states were.
    #[must_use]
    pub(crate) fn idle_stays(&self) -> &IdleStays {
        &self.idle_stays
    }

    /// The states of everything until `end` (ns) in their order, without limits; `None` where there are no timelines.
    #[must_use]
    pub(crate) fn timelines_until(&self, end: u64) -> Option<Timelines> {
        self.steps?;
        let names = self.topology.clusters.iter().map(|cluster| cluster.name.clone());
        let cpus = (0..).zip(&self.cpus).filter_map(|(number, cpu)| {
            let timeline = cpu.as_ref()?.timeline_until(end)?;
            Some((number, timeline))
        });
        Some(Timelines {
            clusters: names.zip(self.clusters.steps_until(end)).collect(),
            cpus: cpus.collect(),
            ..Timelines::default()
        })
    }
}

#[cfg(test)]
mod tests;
