//! Counters over time: states, power and energy of clusters, and dispatch overhead.
//!
//! Each has a sample where its value changes, and none beside.

#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;

use crate::model::{
    Findings, Topology,
    dispatch_overhead::{DispatchOverhead, all_have_overhead, has_overhead},
    energy::{EnergyModel, ResultUnit, visit_power},
    timeline::{CpuState, Timeline, Timelines, longest, visit_together},
};

/// Idle state of a cluster that is offline, or of which nothing is known; CPUs that run where that is not known.
const UNKNOWN: i64 = -1;

/// Counters of a run.
pub struct Counters<'a> {
    topology: &'a Topology,
    model: Option<&'a EnergyModel>,
    timelines: Option<&'a Timelines>,
    overhead: Option<DispatchOverhead>,
}

/// One counter; clusters and clusters by their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Counter {
    /// Frequency at which a cluster runs, kHz; 0 where no CPU of it runs, or the frequency is not known.
    Frequency(usize),
    /// Idle state of a cluster: 0 for none, else one more than its level, as Perfetto's own tables count.
    IdleState(usize),
    /// CPUs of a cluster that run, while all are known and online.
    Running(usize),
    /// Power of a cluster and its CPUs by the energy model, without wake-ups.
    Power(usize),
    /// Energy of the same up to now.
    Energy(usize),
    /// CPUs of a cluster that are idle while work goes on.
    IdleCpus(usize),
    /// Work that is ready for a cluster.
    Ready(usize),
    /// Whether a cluster has overhead.
    Overhead(usize),
    /// Whether all clusters have overhead.
    AllOverhead,
    /// Whether each cluster that work is ready for has overhead.
    HasOverhead,
}

impl Counter {
    /// Returns the group that it is shown in.
    pub(crate) const fn group(self) -> Group {
        match self {
            Self::Frequency(_) | Self::IdleState(_) | Self::Running(_) | Self::Power(_) | Self::Energy(_) => {
                Group::Clusters
            }
            Self::IdleCpus(_)
            | Self::Ready(_)
            | Self::Overhead(_)
            | Self::AllOverhead
            | Self::HasOverhead => Group::DispatchOverhead,
        }
    }
}

/// Value of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CounterValue {
    /// Whole number.
    Whole(i64),
    /// Number that the energy model makes.
    Real(f64),
}

/// Group of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Counters of clusters.
    Clusters,
    /// Counters of dispatch overhead.
    DispatchOverhead,
}

impl Group {
    /// Name for people.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Clusters => "clusters",
            Self::DispatchOverhead => "dispatch overhead",
        }
    }
}

/// Receiver of samples: counter, time (ns), value.
type Receiver<'a> = &'a mut dyn FnMut(Counter, u64, CounterValue);

impl<'a> Counters<'a> {
    /// Returns the counters of a run: none without timelines, those of dispatch overhead only where they are asked for.
    #[must_use]
    pub fn of(findings: &Findings<'a>, timelines: Option<&'a Timelines>, with_overhead: bool) -> Self {
        let overhead = timelines.filter(|_| with_overhead);
        Self {
            topology: findings.topology,
            model: findings.run.energy_model,
            timelines,
            overhead: overhead.and_then(|timelines| findings.dispatch_overhead(timelines)),
        }
    }

    /// Returns the counters, in their order.
    pub(crate) fn all(&self) -> Vec<Counter> {
        let mut all = Vec::new();
        for cluster in 0..self.timelines.map_or(0, |timelines| timelines.clusters.len()) {
            all.extend([Counter::Frequency(cluster), Counter::IdleState(cluster), Counter::Running(cluster)]);
            if self.model.is_some() {
                all.extend([Counter::Power(cluster), Counter::Energy(cluster)]);
            }
        }
        if let Some(overhead) = &self.overhead {
            for cluster in 0..overhead.clusters.len() {
                all.extend([Counter::IdleCpus(cluster), Counter::Ready(cluster), Counter::Overhead(cluster)]);
            }
            all.extend([Counter::AllOverhead, Counter::HasOverhead]);
        }
        all
    }

    /// Returns the name of a counter.
    pub(crate) fn name(&self, counter: Counter) -> String {
        let cluster = |number: usize| self.topology.clusters.get(number).map_or("", |cluster| &cluster.name);
        let of_overhead = self.overhead.as_ref().map_or(&[][..], |overhead| &overhead.clusters);
        let of_overhead = |number: usize| of_overhead.get(number).map_or("", |cluster| &cluster.name);
        match counter {
            Counter::Frequency(number) => format!("cluster {} frequency", cluster(number)),
            Counter::IdleState(number) => format!("cluster {} idle state", cluster(number)),
            Counter::Running(number) => format!("cluster {} running CPUs", cluster(number)),
            Counter::Power(number) => format!("cluster {} power", cluster(number)),
            Counter::Energy(number) => format!("cluster {} energy", cluster(number)),
            Counter::IdleCpus(number) => format!("dispatch {} idle CPUs", of_overhead(number)),
            Counter::Ready(number) => format!("dispatch {} ready work", of_overhead(number)),
            Counter::Overhead(number) => format!("dispatch {} overhead", of_overhead(number)),
            Counter::AllOverhead => "all-overhead".into(),
            Counter::HasOverhead => "has-overhead".into(),
        }
    }

    /// Returns the unit of a counter, where it has one.
    pub(crate) fn unit(&self, counter: Counter) -> Option<&'static str> {
        let result = self.model.map(EnergyModel::result_unit);
        match (counter, result) {
            (Counter::Frequency(_), _) => Some("kHz"),
            (Counter::Power(_), Some(ResultUnit::Joule)) => Some("W"),
            (Counter::Energy(_), Some(ResultUnit::Joule)) => Some("J"),
            _ => None,
        }
    }

    /// Shows every sample; those of one counter in the order of time.
    pub(super) fn visit(&self, sample: Receiver<'_>) {
        let Some(timelines) = self.timelines else { return };
        let mut last: FxHashMap<Counter, CounterValue> = FxHashMap::default();
        let mut on_change = |counter, time, value| {
            if last.insert(counter, value) != Some(value) {
                sample(counter, time, value);
            }
        };
        for (number, (_, timeline)) in timelines.clusters.iter().enumerate() {
            timeline.visit(|begin, _, parts| {
                let state = longest(parts);
                on_change(Counter::Frequency(number), begin, CounterValue::Whole(frequency(state)));
                on_change(Counter::IdleState(number), begin, CounterValue::Whole(idle_state(state)));
            });
            self.visit_running(number, timelines, &mut on_change);
        }
        if let Some(model) = self.model {
            visit_energy(model, self.topology, timelines, &mut on_change);
        }
        if let Some(overhead) = &self.overhead {
            visit_overhead(overhead, &mut on_change);
        }
    }

    /// Shows how many CPUs of a cluster run.
    fn visit_running(&self, number: usize, timelines: &Timelines, sample: Receiver<'_>) {
        let cpus = self.topology.clusters.get(number).map_or(&[][..], |cluster| &cluster.cpus);
        let lanes: Vec<&Timeline> = cpus.iter().filter_map(|cpu| timelines.cpus.get(cpu)).collect();
        let is_known = lanes.len() == cpus.len();
        visit_together(&lanes, |begin, _, states| {
            let running = states.iter().filter(|state| matches!(state, CpuState::Running(_))).count();
            let is_out = |state: &CpuState| matches!(state, CpuState::Unknown | CpuState::Offline);
            let is_known = is_known && !states.iter().any(is_out);
            let running = if is_known { i64::try_from(running).unwrap_or(i64::MAX) } else { UNKNOWN };
            sample(Counter::Running(number), begin, CounterValue::Whole(running));
        });
    }
}

/// Shows power and energy of clusters.
fn visit_energy(model: &EnergyModel, topology: &Topology, timelines: &Timelines, sample: Receiver<'_>) {
    let mut energies = vec![0.0; topology.clusters.len()];
    let mut last: Vec<f64> = Vec::new();
    let mut until = 0;
    visit_power(model, topology, timelines, |begin, end, powers| {
        for (number, (power, energy)) in powers.iter().zip(&mut energies).enumerate() {
            sample(Counter::Power(number), begin, CounterValue::Real(*power));
            // Between changes of the power it grows evenly.
            if last.get(number) != Some(power) {
                sample(Counter::Energy(number), begin, CounterValue::Real(*energy));
            }
            *energy += power * (end - begin) as f64 * 1e-9;
        }
        last.clear();
        last.extend(powers);
        until = end;
    });
    if !last.is_empty() {
        for (number, energy) in energies.into_iter().enumerate() {
            sample(Counter::Energy(number), until, CounterValue::Real(energy));
        }
    }
}

/// Shows the dispatch overhead.
fn visit_overhead(overhead: &DispatchOverhead, sample: Receiver<'_>) {
    let is = |value: bool| CounterValue::Whole(value.into());
    overhead.visit(|begin, _, clusters| {
        for (number, cluster) in clusters.iter().enumerate() {
            sample(Counter::IdleCpus(number), begin, CounterValue::Whole(cluster.idle.into()));
            sample(Counter::Ready(number), begin, CounterValue::Whole(cluster.ready.into()));
            sample(Counter::Overhead(number), begin, is(cluster.has_overhead()));
        }
        sample(Counter::AllOverhead, begin, is(all_have_overhead(clusters)));
        sample(Counter::HasOverhead, begin, is(has_overhead(clusters)));
    });
    // Nothing waits any more.
    for number in 0..overhead.clusters.len() {
        sample(Counter::Ready(number), overhead.end, CounterValue::Whole(0));
        sample(Counter::Overhead(number), overhead.end, is(false));
    }
    sample(Counter::AllOverhead, overhead.end, is(false));
    sample(Counter::HasOverhead, overhead.end, is(false));
}

/// Returns the frequency, kHz; 0 where it does not run, or the frequency is not known.
fn frequency(state: CpuState) -> i64 {
    match state {
        CpuState::Running(khz) => khz.unwrap_or(0).into(),
        _ => 0,
    }
}

/// Returns the idle state: 0 for none, otherwise one more than its number.
fn idle_state(state: CpuState) -> i64 {
    match state {
        CpuState::Running(_) => 0,
        CpuState::Idle(number) => i64::from(number) + 1,
        CpuState::IdleUnknown | CpuState::Offline | CpuState::Unknown => UNKNOWN,
    }
}
