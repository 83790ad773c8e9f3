//! The order of things: what each CPU and cluster did, stretch after stretch, for timelines.
//!
//! Source: the power contract, sections 1 and 2. Fed with the same events as the clusters, in order of time, and only
//! when somebody asks for a timeline.

use std::collections::BTreeMap;

use nntrace_common::{
    power::{Activity, CpuIdle, Start},
    record::Record,
};

use super::{
    Clusters, Topology,
    clusters::Initial,
    timeline::{CpuState, Timeline},
};

/// Stretches that are kept one by one, over all timelines: about 16 MB.
const MAX_STEPS: usize = 1 << 20;

/// What the CPUs did, in order.
#[derive(Clone, Debug)]
pub(crate) struct TimelineRecorder {
    begin: u64,
    cap: usize,
    cpus: BTreeMap<u32, Cpu>,
    policies: BTreeMap<u32, Vec<u32>>,
}

/// What each cluster and CPU of a machine did in a window.
#[derive(Clone, Debug, Default)]
pub struct Timelines {
    /// In the order of the topology.
    pub clusters: Vec<(String, Timeline)>,
    /// By CPU.
    pub cpus: BTreeMap<u32, Timeline>,
}

#[derive(Clone, Debug)]
struct Cpu {
    idle: CpuIdle,
    /// Requested frequency; `None` where that is not known.
    khz: Option<u32>,
    /// Up to the last change of the activity, or of the frequency while it runs. Before the first event it is presumed
    /// to run.
    lane: Timeline,
}

impl TimelineRecorder {
    /// Of a machine of whose CPUs this is known at `begin` (ns); has `clusters` keep theirs, too.
    #[must_use]
    pub(crate) fn new(topology: &Topology, begin: u64, initial: &Initial, clusters: &mut Clusters) -> Self {
        let timelines = topology.cpus.len() + topology.clusters.len();
        let cap = MAX_STEPS / timelines.max(1);
        clusters.keep_steps(begin, cap);
        let mut steps = Self {
            begin,
            cap,
            cpus: BTreeMap::new(),
            policies: topology.cpus.keys().map(|&cpu| (cpu, topology.policy_of(cpu))).collect(),
        };
        for &number in topology.cpus.keys() {
            let cpu = steps.cpu(number);
            cpu.khz = initial.khz.get(&number).copied();
            if let Some(&activity) = initial.activity.get(&number) {
                cpu.idle.set(begin, activity);
            }
        }
        steps
    }

    fn cpu(&mut self, cpu: u32) -> &mut Cpu {
        let (begin, cap) = (self.begin, self.cap);
        self.cpus.entry(cpu).or_insert_with(|| Cpu {
            idle: CpuIdle::starting_at(begin),
            khz: None,
            lane: Timeline::starting_at(begin, cap),
        })
    }

    /// Takes a record of a power event; others are none of its business.
    pub(crate) fn record(&mut self, record: &Record) {
        match *record {
            Record::Idle(event) => self.idle_event(event.time, event.cpu, event.state),
            Record::Frequency(event) => self.frequency_event(event.time, event.cpu, event.state),
            Record::Hotplug(event) if event.state == 0 => self.set(event.time, event.cpu, Activity::Offline),
            Record::Hotplug(event) => self.set(event.time, event.cpu, Activity::Running),
            Record::Lost { cpu, time } => self.set(time, cpu, Activity::Unknown),
            _ => {}
        }
    }

    /// A `cpu_idle` event at `now` (ns).
    pub(crate) fn idle_event(&mut self, now: u64, cpu: u32, state: u32) {
        let cpu = self.cpu(cpu);
        let was_open = matches!(cpu.idle.start(), Start::Open);
        if let Some(stretch) = cpu.idle.event(now, state).closed {
            cpu.ended(stretch.end, stretch.activity, was_open);
        }
    }

    /// A `cpu_frequency` event at `now` (ns): it holds for the whole policy of the CPU.
    pub(crate) fn frequency_event(&mut self, now: u64, cpu: u32, khz: u32) {
        let alone = [cpu];
        let policy = self.policies.remove(&cpu);
        let khz = (khz != 0).then_some(khz);
        for &member in policy.as_deref().unwrap_or(&alone) {
            let cpu = self.cpu(member);
            if cpu.khz != khz {
                if cpu.runs() {
                    cpu.lane.push(now, CpuState::Running(cpu.khz));
                }
                cpu.khz = khz;
            }
        }
        if let Some(policy) = policy {
            self.policies.insert(cpu, policy);
        }
    }

    /// From `now` (ns) on a CPU does this, though no `cpu_idle` event says so: it went offline or came back, or its
    /// events were lost.
    pub(crate) fn set(&mut self, now: u64, cpu: u32, activity: Activity) {
        let cpu = self.cpu(cpu);
        let was_open = matches!(cpu.idle.start(), Start::Open);
        let stretch = cpu.idle.set(now, activity);
        cpu.ended(stretch.end, stretch.activity, was_open);
    }

    /// What everything did until `end` (ns), with the clusters that were given at the start.
    #[must_use]
    pub(crate) fn until(&self, end: u64, topology: &Topology, clusters: &Clusters) -> Timelines {
        let names = topology.clusters.iter().map(|cluster| cluster.name.clone());
        let cpus = self.cpus.iter().map(|(&number, cpu)| {
            let mut cpu = cpu.clone();
            let was_open = matches!(cpu.idle.start(), Start::Open);
            cpu.ended(end, cpu.idle.activity(), was_open);
            (number, cpu.lane)
        });
        Timelines { clusters: names.zip(clusters.steps_until(end)).collect(), cpus: cpus.collect() }
    }
}

impl Cpu {
    /// Whether it runs, or is presumed to.
    fn runs(&self) -> bool {
        matches!(self.idle.start(), Start::Open) || self.idle.activity() == Activity::Running
    }

    /// What it did ended at `end` (ns); `was_open`: it was only presumed to run until then.
    fn ended(&mut self, end: u64, activity: Activity, was_open: bool) {
        let doing = match activity {
            Activity::Running => CpuState::Running(self.khz),
            Activity::Idle(state) => CpuState::Idle(state),
            Activity::IdleUnknown => CpuState::IdleUnknown,
            Activity::Offline => CpuState::Offline,
            Activity::Unknown => CpuState::Unknown,
        };
        self.lane.push(end, doing);
        if was_open && activity != Activity::Running {
            self.lane.was(doing);
        }
    }
}

#[cfg(test)]
mod tests {
    use nntrace_common::power::IDLE_EXIT;

    use super::*;
    use crate::model::topology::{ClusterDescription, CpuDescription, Domain};

    fn machine() -> Topology {
        Topology {
            cpus: (0..2).map(|cpu| (cpu, CpuDescription::default())).collect(),
            clusters: vec![ClusterDescription { name: "all".into(), cpus: vec![0, 1], domain: Domain::Both }],
            policies: vec![vec![0, 1]],
            ..Topology::default()
        }
    }

    fn stretches(lane: &Timeline) -> Vec<(u64, CpuState)> {
        lane.pieces(usize::MAX).iter().map(|piece| (piece.end, piece.parts[0].0)).collect()
    }

    #[test]
    fn frequencies_split_running_only_and_the_first_event_tells_what_was_before() {
        let topology = machine();
        let mut clusters = Clusters::new(&topology, 100, &Initial::default());
        let mut steps = TimelineRecorder::new(&topology, 100, &Initial::default(), &mut clusters);
        let idle = |steps: &mut TimelineRecorder, clusters: &mut Clusters, now, cpu, state| {
            steps.idle_event(now, cpu, state);
            clusters.idle_event(now, cpu, state);
        };
        steps.frequency_event(150, 0, 500);
        clusters.frequency_event(150, 0, 500);
        idle(&mut steps, &mut clusters, 200, 0, 1);
        idle(&mut steps, &mut clusters, 250, 1, IDLE_EXIT);
        steps.frequency_event(300, 1, 800);
        clusters.frequency_event(300, 1, 800);
        idle(&mut steps, &mut clusters, 400, 0, IDLE_EXIT);
        steps.set(450, 1, Activity::Unknown);
        clusters.lost(450, 1);
        let timelines = steps.until(500, &topology, &clusters);
        let running = |khz| CpuState::Running(Some(khz));
        assert_eq!(
            stretches(&timelines.cpus[&0]),
            [
                (150, CpuState::Running(None)),
                (200, running(500)),
                (400, CpuState::Idle(1)),
                (500, running(800))
            ]
        );
        assert_eq!(
            stretches(&timelines.cpus[&1]),
            [
                (250, CpuState::IdleUnknown),
                (300, running(500)),
                (450, running(800)),
                (500, CpuState::Unknown)
            ]
        );
        let (name, lane) = &timelines.clusters[0];
        assert_eq!(name, "all");
        assert_eq!(
            stretches(lane),
            [
                (150, CpuState::Running(None)),
                (200, running(500)),
                (250, CpuState::IdleUnknown),
                (300, running(500)),
                (500, running(800))
            ]
        );
    }

    #[test]
    fn a_cpu_without_an_event_is_unknown_and_one_that_was_read_is_what_was_read() {
        let topology = machine();
        let activity = BTreeMap::from([(1, Activity::Offline)]);
        let initial = Initial { khz: BTreeMap::new(), activity };
        let mut clusters = Clusters::new(&topology, 0, &initial);
        let mut steps = TimelineRecorder::new(&topology, 0, &initial, &mut clusters);
        steps.frequency_event(10, 0, 500);
        let timelines = steps.until(50, &topology, &clusters);
        assert_eq!(stretches(&timelines.cpus[&0]), [(50, CpuState::Unknown)]);
        assert_eq!(stretches(&timelines.cpus[&1]), [(50, CpuState::Offline)]);
        assert_eq!(stretches(&timelines.clusters[0].1), [(50, CpuState::Unknown)]);
    }
}
