//! CPUs of a trace and their clusters.
//!
//! A trace does not begin with a list of its CPUs. Its power records wait in the model until enough of it, or all,
//! was read.

use std::collections::BTreeSet;

use nntrace_common::record::Record;

use crate::model::{
    MAX_CPU, Model, Topology,
    initial_state::InitialState,
    topology::{ClusterDescription, Domain, TopologyError},
};

/// Power records after which the set of CPUs is final.
const ENOUGH: usize = 65_536;

/// CPUs of a trace.
pub(crate) struct CpuSurvey {
    /// Begin of the window, ns: the first event, of any kind.
    begin: Option<u64>,
    /// CPUs that any line is about, by number.
    seen: Vec<bool>,
    /// CPUs whose activity an event has shown, by number.
    known: Vec<bool>,
    /// CPUs with an event of their frequency.
    changed: BTreeSet<u32>,
    has_events: bool,
    with_timelines: bool,
    /// Whether the clusters were given nowhere.
    pub(crate) clusters_are_presumed: bool,
    /// The system, as far as it is described: by the user, or in the header of the trace.
    pub(crate) topology: Topology,
    /// State of the CPUs at the begin of the window, as far as the trace declares it.
    pub(crate) initial: InitialState,
    /// Clusters that the user asks for instead.
    wanted: Vec<ClusterDescription>,
}

impl CpuSurvey {
    /// Creates the survey of a system, as far as it is described, with the wanted clusters, if any, instead of its
    /// own.
    #[must_use]
    pub(crate) fn new(topology: Topology, wanted: Vec<ClusterDescription>, with_timelines: bool) -> Self {
        Self {
            begin: None,
            seen: vec![false; MAX_CPU as usize + 1],
            known: vec![false; MAX_CPU as usize + 1],
            changed: BTreeSet::new(),
            has_events: false,
            with_timelines,
            clusters_are_presumed: false,
            topology,
            initial: InitialState::default(),
            wanted,
        }
    }

    /// Sets the begin of the window to `begin` (ns), unless it is earlier. Called before the first record is taken.
    #[inline]
    pub(crate) fn starts(&mut self, begin: u64) {
        self.begin = Some(self.begin.map_or(begin, |known| known.min(begin)));
    }

    /// Sets the begin of the window to `begin` (ns), whatever it was, with no known state. Called before any event is taken.
    pub(crate) fn restarts(&mut self, begin: u64) {
        self.begin = Some(begin);
        self.initial = InitialState::default();
    }

    /// Takes an event of the frequency of a CPU.
    #[inline]
    pub(crate) fn changes(&mut self, cpu: u32) {
        if !self.changed.contains(&cpu) && cpu <= MAX_CPU {
            self.changed.insert(cpu);
        }
    }

    /// Whether an event has shown the frequency of a CPU, or that of another one with the same clock.
    pub(crate) fn has_changed(&self, cpu: u32) -> bool {
        let mut clusters = self.wanted.iter().chain(&self.topology.clusters);
        let shares = |cluster: &ClusterDescription| {
            cluster.domain.shares_clock()
                && cluster.cpus.contains(&cpu)
                && cluster.cpus.iter().any(|other| self.changed.contains(other))
        };
        self.changed.contains(&cpu) || clusters.any(shares)
    }

    /// Adds a CPU that occurs in the trace.
    #[inline]
    pub(crate) fn see(&mut self, cpu: u32) {
        if let Some(seen) = self.seen.get_mut(cpu as usize) {
            *seen = true;
        }
    }

    /// Whether there was any power event; a loss is none.
    #[must_use]
    pub(crate) fn has_events(&self) -> bool {
        self.has_events
    }

    /// Whether no event has shown the activity of a CPU.
    #[must_use]
    pub(crate) fn is_silent(&self, cpu: u32) -> bool {
        self.known.get(cpu as usize).is_none_or(|is_known| !is_known)
    }

    /// Returns the CPUs that are described, asked for, or shown in the trace so far.
    pub(crate) fn shown(&self) -> BTreeSet<u32> {
        let seen = (0..).zip(&self.seen).filter(|(_, seen)| **seen).map(|(cpu, _)| cpu);
        let wanted = self.wanted.iter().flat_map(|cluster| cluster.cpus.iter().copied());
        seen.chain(wanted).chain(self.topology.cpus.keys().copied()).collect()
    }

    /// Takes a power record that the model has already taken.
    ///
    /// # Errors
    /// When the clusters asked for are invalid.
    pub(crate) fn record(&mut self, record: &Record, model: &mut Model) -> Result<(), TopologyError> {
        let (cpu, is_event, shows_activity) = match *record {
            Record::Idle(event) => (event.cpu, true, true),
            Record::Frequency(event) => (event.cpu, true, false),
            // A CPU that comes online without having gone offline changes nothing.
            Record::Hotplug(event) => (event.cpu, event.state == 0, event.state == 0),
            Record::Lost { cpu, .. } => (cpu, false, true),
            _ => return Ok(()),
        };
        if let Some(known) = self.known.get_mut(cpu as usize) {
            *known |= shows_activity;
            self.has_events |= is_event;
            self.see(cpu);
        }
        if model.waiting() >= ENOUGH { self.settle(model) } else { Ok(()) }
    }

    /// Makes the set of CPUs final.
    ///
    /// # Errors
    /// When the clusters asked for are invalid.
    pub(crate) fn settle(&mut self, model: &mut Model) -> Result<(), TopologyError> {
        if !model.waits_for_cpus() {
            return Ok(());
        }
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
        model.begin_power(&self.topology, begin, &self.initial, self.with_timelines);
        Ok(())
    }
}
