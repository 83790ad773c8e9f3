//! The TC2 model on five synthetic traces: residencies and energies are worked out by hand, times in us.

use std::collections::BTreeMap;

use nntrace_common::{power::Residency, time_count::TimeCount};

use super::*;
use crate::model::{
    Topology,
    cluster_residency::ClusterResidency,
    cpu_residency::CpuResidency,
    topology::{ClusterDescription, CpuDescription, Domain, IdleStateDescription},
};

/// Contents of a trace.
struct Trace {
    /// CPUs of clusters A and B.
    clusters: [&'static [u32]; 2],
    /// CPU, state, time.
    cpu_idle: &'static [(u32, u32, u64)],
    /// CPU, effective kHz (0: unknown), time.
    cpu_active: &'static [(u32, u32, u64)],
    /// Cluster, level, time.
    cluster_idle: &'static [(usize, u32, u64)],
    /// Cluster, kHz (0: unknown), time.
    cluster_active: &'static [(usize, u32, u64)],
    /// Cluster of whose CPUs nothing is known, time.
    unknown: Option<(usize, u64)>,
    /// Cluster idle, cluster active, CPUs active, of each cluster, in units of the model for 1 us.
    expected: [[u64; 3]; 2],
}

const TRACES: [Trace; 5] = [
    Trace {
        clusters: [&[1, 2], &[0, 3, 4]],
        cpu_idle: &[(1, 0, 310), (2, 0, 290), (2, 1, 190), (1, 1, 50)],
        cpu_active: &[(1, 0, 140), (2, 0, 20)],
        cluster_idle: &[(0, 0, 300), (0, 1, 50)],
        cluster_active: &[(0, 0, 150)],
        unknown: Some((1, 500)),
        expected: [[22_250, 0, 0], [0, 0, 0]],
    },
    Trace {
        clusters: [&[1, 2], &[0, 3, 4]],
        cpu_idle: &[(1, 0, 300), (2, 0, 300), (2, 1, 300), (1, 1, 300)],
        cpu_active: &[(1, 0, 200), (2, 0, 200)],
        cluster_idle: &[(0, 0, 300), (0, 1, 100)],
        cluster_active: &[(0, 0, 400)],
        unknown: Some((1, 800)),
        expected: [[23_500, 0, 0], [0, 0, 0]],
    },
    Trace {
        clusters: [&[1, 2], &[0, 3, 4]],
        cpu_idle: &[
            (1, 0, 300),
            (2, 0, 300),
            (0, 0, 900),
            (3, 0, 900),
            (4, 0, 900),
            (2, 1, 300),
            (1, 1, 300),
        ],
        cpu_active: &[(2, 500_000, 300), (1, 500_000, 300)],
        cluster_idle: &[(0, 0, 300), (1, 0, 900), (0, 1, 100)],
        cluster_active: &[(0, 500_000, 500)],
        unknown: None,
        expected: [[23_500, 3_960_000, 1_212_600], [22_500, 0, 0]],
    },
    Trace {
        clusters: [&[1, 2], &[0, 3, 4]],
        cpu_idle: &[
            (1, 0, 300),
            (2, 0, 300),
            (0, 0, 900),
            (3, 0, 900),
            (4, 0, 900),
            (2, 1, 300),
            (1, 1, 300),
        ],
        cpu_active: &[
            (2, 500_000, 100),
            (2, 600_000, 100),
            (1, 700_000, 200),
            (1, 800_000, 100),
            (2, 800_000, 100),
        ],
        cluster_idle: &[(0, 0, 300), (1, 0, 900), (0, 1, 100)],
        cluster_active: &[(0, 500_000, 100), (0, 600_000, 100), (0, 700_000, 200), (0, 800_000, 100)],
        unknown: None,
        expected: [[23_500, 4_062_400, 1_609_500], [22_500, 0, 0]],
    },
    Trace {
        clusters: [&[0, 1], &[2, 3, 4]],
        cpu_idle: &[
            (0, 0, 900),
            (1, 0, 900),
            (2, 0, 300),
            (3, 0, 300),
            (3, 1, 300),
            (4, 1, 400),
            (2, 1, 300),
        ],
        cpu_active: &[
            (4, 600_000, 200),
            (3, 350_000, 100),
            (4, 700_000, 100),
            (3, 800_000, 200),
            (4, 800_000, 100),
            (2, 700_000, 100),
            (2, 900_000, 100),
            (4, 900_000, 100),
            (2, 800_000, 100),
        ],
        cluster_idle: &[(0, 0, 900), (1, 1, 100)],
        cluster_active: &[
            (1, 600_000, 200),
            (1, 350_000, 100),
            (1, 700_000, 200),
            (1, 800_000, 200),
            (1, 900_000, 100),
        ],
        unknown: None,
        expected: [[63_000, 0, 0], [1_000, 2_404_600, 561_300]],
    },
];

const NS: u64 = 1_000;

fn stay(us: u64) -> Residency {
    Residency { ns: us * NS, hits: 1, min_ns: us * NS, max_ns: us * NS }
}

impl Trace {
    /// The machine; `names` of the deeper idle state of each cluster, where they are known.
    fn topology(&self, names: Option<[&str; 2]>) -> Topology {
        let mut topology = Topology::default();
        for (cluster, name) in ["A", "B"].into_iter().enumerate() {
            let cpus = self.clusters[cluster].to_vec();
            let states = names.map_or(Vec::new(), |names| {
                let state = |(level, name): (u32, &str)| IdleStateDescription {
                    name: name.into(),
                    level,
                    ..IdleStateDescription::default()
                };
                (0..).zip(["WFI", names[cluster]]).map(state).collect()
            });
            topology
                .cpus
                .extend(cpus.iter().map(|&cpu| (cpu, CpuDescription { idle_states: states.clone() })));
            topology.clusters.push(ClusterDescription { name: name.into(), cpus, domain: Domain::Both });
        }
        topology
    }

    fn cpus(&self) -> Vec<CpuResidency> {
        let all = self
            .clusters
            .iter()
            .zip(0..)
            .flat_map(|(cpus, cluster)| cpus.iter().map(move |&cpu| (cpu, cluster)));
        let residency = |(cpu, cluster): (u32, usize)| CpuResidency {
            cpu,
            idle: self.cpu_idle.iter().filter(|row| row.0 == cpu).map(|row| (row.1, stay(row.2))).collect(),
            idle_at_end: None,
            // What each CPU asked for itself: it must not matter.
            running: BTreeMap::from([(
                Some(200_000),
                TimeCount::new(
                    self.cpu_active.iter().filter(|row| row.0 == cpu).map(|row| row.2 * NS).sum(),
                    1,
                ),
            )]),
            idle_unknown_ns: 0,
            offline_ns: 0,
            initial: Default::default(),
            unknown_ns: self
                .unknown
                .filter(|unknown| unknown.0 == cluster)
                .map_or(0, |unknown| unknown.1 * NS),
        };
        all.map(residency).collect()
    }

    fn clusters(&self) -> Vec<ClusterResidency> {
        let khz = |khz: u32| (khz != 0).then_some(khz);
        let residency = |cluster: usize| {
            let mut effective: BTreeMap<u32, BTreeMap<Option<u32>, u64>> = BTreeMap::new();
            for &(cpu, at, us) in self.cpu_active.iter().filter(|row| self.clusters[cluster].contains(&row.0))
            {
                effective.entry(cpu).or_default().insert(khz(at), us * NS);
            }
            let (idle, active) = (self.cluster_idle.iter(), self.cluster_active.iter());
            ClusterResidency {
                active: active
                    .filter(|row| row.0 == cluster)
                    .map(|row| (khz(row.1), TimeCount::new(row.2 * NS, 1)))
                    .collect(),
                idle: idle.filter(|row| row.0 == cluster).map(|row| (row.1, stay(row.2))).collect(),
                unknown_ns: self.unknown.filter(|unknown| unknown.0 == cluster).map_or(0, |at| at.1 * NS),
                effective,
                ..ClusterResidency::default()
            }
        };
        vec![residency(0), residency(1)]
    }

    fn energy(&self, names: Option<[&str; 2]>) -> Energy {
        price(&tc2(), &self.topology(names), &self.cpus(), &self.clusters())
    }
}

#[test]
fn the_five_traces_cost_what_they_should() {
    for (trace, number) in TRACES.iter().zip(1..) {
        let energy = trace.energy(Some(["cluster-sleep-b", "cluster-sleep-l"]));
        for (found, expected) in energy.clusters.iter().zip(trace.expected) {
            let [idle, active, cpus] = expected.map(|units| units as f64 * 1e-6);
            assert_close(found.parts.cluster_idle, idle);
            assert_close(found.parts.cluster_active, active);
            assert_close(found.parts.cpu_active, cpus);
            assert_close(found.parts.cpu_idle, 0.0);
            assert_close(found.parts.wakeups, 0.0);
            assert_close(found.total, idle + active + cpus);
        }
        let expected: u64 = trace.expected.iter().flatten().sum();
        assert_close(energy.total, expected as f64 * 1e-6);
        assert_eq!(energy.unpriced, [], "trace {number}");
        assert_eq!(energy.notes, tc2().notes);
    }
}

#[test]
fn unknown_frequencies_and_cpus_make_a_range() {
    let energy = TRACES[0].energy(None);
    // A: 150 us at any of its frequencies, its CPUs 160 us. B: anything for 500 us, and its three CPUs.
    let [a, b] = &energy.clusters[..] else { panic!("{energy:?}") };
    assert_close(a.total_min - a.total, f64::from(150 * 7_920 + 160 * 2_021) * 1e-6);
    assert_close(a.total_max - a.total, f64::from(150 * 15_200 + 160 * 6_997) * 1e-6);
    assert_close(b.total, 0.0);
    assert_close(b.total_min, f64::from(500 * 10) * 1e-6);
    assert_close(b.total_max, f64::from(500 * 4_905 + 3 * 500 * 1_024) * 1e-6);
    assert_close(energy.total_max, a.total_max + b.total_max);
    for trace in &TRACES[2..] {
        let energy = trace.energy(None);
        assert_eq!((energy.total_min, energy.total_max), (energy.total, energy.total));
    }
}

#[test]
fn states_without_names_are_taken_in_order_and_that_is_said() {
    for trace in &TRACES {
        let named = trace.energy(Some(["cluster-sleep-b", "cluster-sleep-l"]));
        let by_place = trace.energy(None);
        assert_eq!(by_place.parts, named.parts);
        assert!(by_place.notes[0].starts_with("idle states of cluster A have no names here"), "{by_place:?}");
    }
}
