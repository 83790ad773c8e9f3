//! What the CPUs of a trace did, from its power events in order of time.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use nntrace_common::{
    diagnostic::DiagnosticKind,
    power::{Activity, CpuFrequency, CpuIdle, FrequencySlice, Start},
    record::{FrequencyKey, PowerRecord, Record},
    time_count::TimeCount,
};

use rustc_hash::FxHashMap;

use super::diagnostics::DiagnosticCounts;
use crate::model::{
    Clusters, Topology,
    clusters::{ClusterResidency, Initial},
    idle_stays::IdleStays,
    power::{CpuReading, CpuResidency},
    timelines::{TimelineRecorder, Timelines},
    topology::{ClusterDescription, Domain, TopologyError},
};

/// Power events after which it is settled which CPUs there are.
const SURVEY: usize = 65_536;
/// The largest number of a CPU that is believed.
pub(crate) const MAX_CPU: u32 = 4_095;

/// The CPUs of a trace.
pub(crate) struct Cpus {
    /// Begin of the window, ns: the first event, whatever it is.
    begin: Option<u64>,
    /// Which CPUs any line is about, by number.
    seen: Vec<bool>,
    /// Whether there was any power event.
    has_events: bool,
    /// By CPU.
    machines: Vec<Option<Box<Cpu>>>,
    /// Power events, until it is settled which CPUs there are.
    survey: Vec<Record>,
    clusters: Option<Clusters>,
    /// Made of what is described, when the first power event is taken.
    idle_stays: Option<IdleStays>,
    /// Whether somebody wants to know what was done in which order.
    keeps_steps: bool,
    steps: Option<TimelineRecorder>,
    policies: FxHashMap<u32, Rc<[u32]>>,
    clusters_are_presumed: bool,
    /// The machine, as far as it is described: by the user, or by the trace before its first event.
    pub topology: Topology,
    /// Clusters that the user wants instead.
    wanted: Vec<ClusterDescription>,
}

struct Cpu {
    idle: CpuIdle,
    frequency: CpuFrequency,
    slices: BTreeMap<(u32, bool), TimeCount>,
}

/// What the CPUs did in the window.
#[derive(Default)]
pub(crate) struct CpuResults {
    /// Their clusters.
    pub topology: Topology,
    /// By CPU.
    pub cpus: Vec<CpuResidency>,
    /// By cluster, in the order of the topology.
    pub clusters: Vec<ClusterResidency>,
    /// How long single stays in idle states were.
    pub idle_stays: IdleStays,
    /// What was done in which order, where that was wanted.
    pub timelines: Option<Timelines>,
    /// Nothing told which CPUs form a cluster.
    pub clusters_are_presumed: bool,
}

impl Cpus {
    /// On this machine, as far as it is described, with these clusters instead of its own, if there are any.
    #[must_use]
    pub(crate) fn new(topology: Topology, wanted: Vec<ClusterDescription>) -> Self {
        Self {
            begin: None,
            seen: vec![false; MAX_CPU as usize + 1],
            has_events: false,
            machines: Vec::new(),
            survey: Vec::new(),
            clusters: None,
            idle_stays: None,
            keeps_steps: false,
            steps: None,
            policies: FxHashMap::default(),
            clusters_are_presumed: false,
            topology,
            wanted,
        }
    }

    /// Keeps what is done in which order, too. Called before the first record is taken.
    #[must_use]
    pub(crate) fn keeping_steps(mut self, keeps_steps: bool) -> Self {
        self.keeps_steps = keeps_steps;
        self
    }

    /// The window begins at `begin` (ns) or before. Called before the first record is taken.
    #[inline]
    pub(crate) fn starts(&mut self, begin: u64) {
        self.begin = Some(self.begin.map_or(begin, |known| known.min(begin)));
    }

    /// A CPU that the trace shows, whatever it does.
    #[inline]
    pub(crate) fn see(&mut self, cpu: u32) {
        if let Some(seen) = self.seen.get_mut(cpu as usize) {
            *seen = true;
        }
    }

    /// Whether no event has told what a CPU does.
    #[must_use]
    pub(crate) fn is_silent(&self, cpu: u32) -> bool {
        let machine = self.machines.get(cpu as usize).and_then(Option::as_ref);
        machine.is_none_or(|machine| machine.idle.start() == Start::Open)
    }

    /// The CPUs that there are: those that are described or asked for, and those that the trace showed so far.
    fn shown(&self) -> BTreeSet<u32> {
        let seen = (0..).zip(&self.seen).filter(|(_, seen)| **seen).map(|(cpu, _)| cpu);
        let wanted = self.wanted.iter().flat_map(|cluster| cluster.cpus.iter().copied());
        seen.chain(wanted).chain(self.topology.cpus.keys().copied()).collect()
    }

    /// Takes a record of a power event; others are none of its business.
    ///
    /// # Errors
    /// When the clusters that were asked for are none.
    pub(crate) fn record(
        &mut self,
        record: &Record,
        diagnostics: &mut DiagnosticCounts,
    ) -> Result<(), TopologyError> {
        match *record {
            Record::Idle(event) | Record::Frequency(event) | Record::Hotplug(event)
                if event.cpu > MAX_CPU =>
            {
                diagnostics.add(DiagnosticKind::CpuOutOfRange, event.time, event.cpu, b"");
                return Ok(());
            }
            Record::Idle(PowerRecord { cpu, time, state, .. }) => {
                let step = self.cpu(cpu).idle.event(time, state);
                if let Some(anomaly) = step.anomaly {
                    diagnostics.add(anomaly.into(), time, cpu, b"");
                }
                let Some(stretch) = step.closed else { return Ok(()) };
                self.idle_stays().ended(cpu, &stretch);
            }
            Record::Frequency(PowerRecord { cpu, time, state, .. }) => {
                self.frequency(cpu, time, state);
            }
            Record::Hotplug(PowerRecord { cpu, time, state, .. }) => {
                if self.cpu(cpu).idle.hotplug(time, state != 0).is_none() {
                    return Ok(());
                }
            }
            Record::Lost { cpu, time } if cpu <= MAX_CPU => {
                self.cpu(cpu).idle.set(time, Activity::Unknown);
            }
            _ => return Ok(()),
        }
        self.has_events |= !matches!(record, Record::Lost { .. });
        if let Some(clusters) = &mut self.clusters {
            feed(clusters, self.steps.as_mut(), record);
            return Ok(());
        }
        self.survey.push(*record);
        if self.survey.len() >= SURVEY { self.settle() } else { Ok(()) }
    }

    /// A frequency event for one CPU of a policy holds for the whole policy.
    fn frequency(&mut self, cpu: u32, time: u64, khz: u32) {
        let policy = match self.policies.get(&cpu) {
            Some(policy) => Rc::clone(policy),
            None => self.policies.entry(cpu).or_insert(self.topology.policy_of(cpu).into()).clone(),
        };
        for &member in &*policy {
            let cpu = self.cpu(member);
            if let Some(slice) = cpu.frequency.event(&mut cpu.idle, time, khz) {
                cpu.add(&slice);
            }
        }
    }

    fn cpu(&mut self, cpu: u32) -> &mut Cpu {
        self.see(cpu);
        let (place, begin) = (cpu as usize, self.begin.unwrap_or_default());
        if self.machines.len() <= place {
            self.machines.resize_with(place + 1, || None);
        }
        self.machines[place].get_or_insert_with(|| Box::new(Cpu::starting_at(begin)))
    }

    fn idle_stays(&mut self) -> &mut IdleStays {
        let begin = self.begin.unwrap_or_default();
        self.idle_stays.get_or_insert_with(|| IdleStays::new(&self.topology, begin))
    }

    /// It is settled now which CPUs there are.
    fn settle(&mut self) -> Result<(), TopologyError> {
        for cpu in self.shown() {
            self.topology.cpus.entry(cpu).or_default();
        }
        let described = std::mem::take(&mut self.topology.clusters);
        let wanted = std::mem::take(&mut self.wanted);
        if !wanted.is_empty() {
            self.topology.set_clusters(wanted)?;
        } else if !described.is_empty() {
            self.topology.set_clusters(described)?;
        } else {
            self.clusters_are_presumed = true;
            let cpus = self.topology.cpus.keys().copied().collect();
            self.topology.clusters =
                vec![ClusterDescription { name: "all".into(), cpus, domain: Domain::Both }];
        }
        let begin = self.begin.unwrap_or_default();
        let initial = Initial::default();
        let mut clusters = Clusters::new(&self.topology, begin, &initial);
        self.steps =
            self.keeps_steps.then(|| TimelineRecorder::new(&self.topology, begin, &initial, &mut clusters));
        for record in self.survey.drain(..) {
            feed(&mut clusters, self.steps.as_mut(), &record);
        }
        self.clusters = Some(clusters);
        Ok(())
    }

    /// Closes what is open at `end` (ns). Nothing at all when the trace has no power event.
    ///
    /// # Errors
    /// When the clusters that were asked for are none.
    pub(crate) fn finish(mut self, end: u64) -> Result<CpuResults, TopologyError> {
        if !self.has_events {
            return Ok(CpuResults::default());
        }
        if self.clusters.is_none() {
            self.settle()?;
        }
        let clusters = self.clusters.as_ref().map(|clusters| clusters.until(end)).unwrap_or_default();
        let timelines = self.steps.as_ref().zip(self.clusters.as_ref());
        let timelines = timelines.map(|(steps, clusters)| steps.until(end, &self.topology, clusters));
        let begin = self.begin.unwrap_or(end);
        let readings = self.shown().into_iter().map(|number| {
            let machine = self.machines.get_mut(number as usize).and_then(Option::take);
            let cpu = machine.map_or_else(|| Cpu::starting_at(begin), |machine| *machine);
            cpu.reading(number).until(end)
        });
        let cpus = readings.collect();
        let idle_stays = self.idle_stays.unwrap_or_default();
        let Self { topology, clusters_are_presumed, .. } = self;
        Ok(CpuResults { topology, cpus, clusters, idle_stays, timelines, clusters_are_presumed })
    }
}

impl Cpu {
    fn starting_at(begin: u64) -> Self {
        Self { idle: CpuIdle::starting_at(begin), frequency: CpuFrequency::UNKNOWN, slices: BTreeMap::new() }
    }

    fn add(&mut self, slice: &FrequencySlice) {
        self.slices.entry((slice.khz, slice.presumed)).or_default().change(slice.ns, slice.hits);
    }

    fn reading(self, cpu: u32) -> CpuReading {
        let slices = self.slices.into_iter().map(|((khz, presumed), total)| {
            (FrequencyKey { cpu, khz, presumed: u32::from(presumed), reserved: 0 }, total)
        });
        CpuReading { cpu, idle: self.idle, frequency: self.frequency, slices: slices.collect() }
    }
}

fn feed(clusters: &mut Clusters, steps: Option<&mut TimelineRecorder>, record: &Record) {
    match *record {
        Record::Idle(event) => clusters.idle_event(event.time, event.cpu, event.state),
        Record::Frequency(event) => clusters.frequency_event(event.time, event.cpu, event.state),
        Record::Hotplug(event) => clusters.hotplug(event.time, event.cpu, event.state != 0),
        Record::Lost { cpu, time } => clusters.lost(time, cpu),
        _ => {}
    }
    if let Some(steps) = steps {
        steps.record(record);
    }
}
