//! Unknown time, missing states, wake-ups, domains apart, and which cluster is which.

use std::collections::BTreeMap;

use nntrace_common::{power::Residency, time_count::TimeCount};

use super::*;
use crate::model::{
    Topology,
    cluster_residency::ClusterResidency,
    cpu_residency::CpuResidency,
    topology::{ClusterDescription, CpuDescription, Domain, IdleStateDescription},
};

const MS: u64 = 1_000_000;

fn cluster(name: &str, cpus: impl IntoIterator<Item = u32>, domain: Domain) -> ClusterDescription {
    ClusterDescription { name: name.into(), cpus: cpus.into_iter().collect(), domain }
}

/// A machine whose CPUs have these idle states.
fn machine(clusters: Vec<ClusterDescription>, states: &[&str]) -> Topology {
    let state = |(level, name): (u32, &&str)| IdleStateDescription {
        name: (*name).into(),
        level,
        ..IdleStateDescription::default()
    };
    let idle_states: Vec<_> = (0..).zip(states).map(state).collect();
    let cpus = clusters.iter().flat_map(|cluster| &cluster.cpus);
    let cpus = cpus.map(|&cpu| (cpu, CpuDescription { idle_states: idle_states.clone() })).collect();
    Topology { cpus, clusters, ..Topology::default() }
}

fn cpu(cpu: u32) -> CpuResidency {
    CpuResidency::none(cpu)
}

fn stays(ns: u64, hits: u64) -> Residency {
    Residency { ns, hits, min_ns: 0, max_ns: ns }
}

/// One cluster of one CPU, in mW: P 1 GHz (100, 10), 2 GHz (300, 50); WFI (40, 4), sleep (5, 1).
fn small() -> EnergyModel {
    let text = r#"
        unit = "mW"
        energy_unit = "uJ"
        [[cluster]]
        name = "A"
        opps = [{ mhz = 1000, cluster = 100, core = 10 }, { mhz = 2000, cluster = 300, core = 50 }]
        idle = [
            { name = "WFI", cluster = 40, core = 4, entry = { cluster = 3 } },
            { name = "sleep", cluster = 5, core = 1, entry = { core = 7 } },
        ]
        wakeup = { cluster = 1000, core = 100 }
    "#;
    parse("small.toml", text).unwrap()
}

fn one(states: &[&str]) -> Topology {
    machine(vec![cluster("A", [0], Domain::Both)], states)
}

const WFI_AND_SLEEP: [&str; 2] = ["WFI", "sleep"];

#[test]
fn a_cpu_of_which_nothing_is_known_widens_the_range_and_nothing_else() {
    let cpus = [CpuResidency { unknown_ns: 10 * MS, ..cpu(0) }];
    let clusters = [ClusterResidency { unknown_ns: 10 * MS, ..ClusterResidency::default() }];
    let energy = price(&small(), &one(&WFI_AND_SLEEP), &cpus, &clusters);
    assert_eq!((energy.total, energy.parts), (0.0, EnergyParts::default()));
    assert_close(energy.total_min, 10e-3 * (5e-3 + 1e-3));
    assert_close(energy.total_max, 10e-3 * (300e-3 + 50e-3));
    assert_eq!(energy.unpriced, []);
}

#[test]
fn idle_of_unknown_depth_is_one_of_the_idle_states() {
    let cpus = [CpuResidency { idle_unknown_ns: 10 * MS, offline_ns: 5 * MS, ..cpu(0) }];
    let clusters =
        [ClusterResidency { idle_unknown_ns: 10 * MS, offline_ns: 5 * MS, ..ClusterResidency::default() }];
    let energy = price(&small(), &one(&WFI_AND_SLEEP), &cpus, &clusters);
    assert_close(energy.total_min, 10e-3 * 6e-3);
    assert_close(energy.total_max, 10e-3 * 44e-3);
    assert_close(energy.total, 0.0);
}

#[test]
fn what_the_model_lacks_is_listed_and_may_be_any_of_its_kind() {
    let cpus = [CpuResidency {
        idle: BTreeMap::from([(2, stays(20 * MS, 1))]),
        running: BTreeMap::from([(Some(1_500_000), TimeCount::new(10 * MS, 1))]),
        ..cpu(0)
    }];
    let clusters = [ClusterResidency {
        active: BTreeMap::from([(Some(1_500_000), TimeCount::new(10 * MS, 1))]),
        idle: BTreeMap::from([(2, stays(20 * MS, 1))]),
        effective: BTreeMap::from([(0, BTreeMap::from([(Some(1_500_000), 10 * MS)]))]),
        ..ClusterResidency::default()
    }];
    let energy = price(&small(), &one(&["WFI", "sleep", "cpu-sleep"]), &cpus, &clusters);
    let unpriced: Vec<_> = energy
        .unpriced
        .iter()
        .map(|row| (row.cluster.as_str(), row.cpu, row.what.as_str(), row.ns))
        .collect();
    assert_eq!(
        unpriced,
        [
            ("A", None, "active 1500000 kHz", 10 * MS),
            ("A", None, "idle cpu-sleep", 20 * MS),
            ("A", Some(0), "active 1500000 kHz", 10 * MS),
            ("A", Some(0), "idle cpu-sleep", 20 * MS),
        ]
    );
    // The wake-up of the cluster from a deep state is known all the same.
    assert_close(energy.total, 1000e-6);
    assert_close(energy.total_min - energy.total, 10e-3 * 110e-3 + 20e-3 * 6e-3);
    assert_close(energy.total_max - energy.total, 10e-3 * 350e-3 + 20e-3 * 44e-3);
}

#[test]
fn running_time_that_no_cluster_saw_is_at_an_unknown_frequency() {
    let cpus =
        [CpuResidency { running: BTreeMap::from([(Some(2_000_000), TimeCount::new(10 * MS, 1))]), ..cpu(0) }];
    let clusters = [ClusterResidency {
        active: BTreeMap::from([(Some(2_000_000), TimeCount::new(6 * MS, 1))]),
        unknown_ns: 4 * MS,
        effective: BTreeMap::from([(0, BTreeMap::from([(Some(2_000_000), 6 * MS)]))]),
        ..ClusterResidency::default()
    }];
    let energy = price(&small(), &one(&WFI_AND_SLEEP), &cpus, &clusters);
    assert_close(energy.parts.cpu_active, 6e-3 * 50e-3);
    assert_close(energy.total_min - energy.total, 4e-3 * (5e-3 + 10e-3));
    assert_close(energy.total_max - energy.total, 4e-3 * (300e-3 + 50e-3));
}

#[test]
fn wake_ups_are_stays_that_ended() {
    let cpus = [CpuResidency {
        idle: BTreeMap::from([(0, stays(10 * MS, 5)), (1, stays(20 * MS, 4))]),
        idle_at_end: Some(1),
        ..cpu(0)
    }];
    let clusters = [ClusterResidency {
        idle: BTreeMap::from([(0, stays(10 * MS, 5)), (1, stays(20 * MS, 4))]),
        idle_at_end: Some(1),
        ..ClusterResidency::default()
    }];
    let energy = price(&small(), &one(&WFI_AND_SLEEP), &cpus, &clusters);
    // Wake-ups: the cluster 3 times from sleep, the CPU 5 times from WFI. Entries: the cluster 5 times, the CPU 3.
    assert_close(energy.parts.wakeups, 3.0 * 1000e-6 + 5.0 * 100e-6 + 5.0 * 3e-6 + 3.0 * 7e-6);
    assert_close(energy.parts.cluster_idle, 10e-3 * 40e-3 + 20e-3 * 5e-3);
    assert_close(energy.parts.cpu_idle, 10e-3 * 4e-3 + 20e-3 * 1e-3);
    assert_close(energy.total, energy.parts.sum());
    let relative = EnergyModel { unit: None, energy_unit: None, ..small() };
    let energy = price(&relative, &one(&WFI_AND_SLEEP), &cpus, &clusters);
    // A wake-up of 1 is a power of 1 for 1 us.
    assert_close(energy.parts.wakeups, 1e-6 * (3.0 * 1000.0 + 5.0 * 100.0 + 5.0 * 3.0 + 3.0 * 7.0));
}

/// Three clocks, one idle domain.
fn dynamiq_machine() -> Topology {
    let clusters = vec![
        cluster("0", 0..4, Domain::Frequency),
        cluster("1", 4..7, Domain::Frequency),
        cluster("2", [7], Domain::Frequency),
        cluster("idle0", 0..8, Domain::Idle),
    ];
    machine(clusters, &["WFI", "cpu-sleep", "cluster-sleep"])
}

#[test]
fn clocks_pay_for_frequencies_and_the_idle_domain_for_idle_states() {
    let idle_time = BTreeMap::from([(0, stays(20 * MS, 2)), (1, stays(30 * MS, 3))]);
    let mut cpus: Vec<CpuResidency> =
        (0..8).map(|number| CpuResidency { idle: idle_time.clone(), ..cpu(number) }).collect();
    for (number, khz) in [(0, 1_800_000), (4, 600_000), (7, 2_800_000)] {
        cpus[number].running = BTreeMap::from([(Some(khz), TimeCount::new(50 * MS, 1))]);
    }
    let clock = |number: u32, khz| ClusterResidency {
        active: BTreeMap::from([(Some(khz), TimeCount::new(50 * MS, 1))]),
        // What goes on in it as far as idle states go is the idle domain's to pay.
        idle: BTreeMap::from([(1, stays(50 * MS, 9))]),
        effective: BTreeMap::from([(number, BTreeMap::from([(Some(khz), 50 * MS)]))]),
        ..ClusterResidency::default()
    };
    let clusters = [
        clock(0, 1_800_000),
        clock(4, 600_000),
        clock(7, 2_800_000),
        ClusterResidency {
            active: BTreeMap::from([(None, TimeCount::new(60 * MS, 2))]),
            idle: BTreeMap::from([(1, stays(10 * MS, 1)), (2, stays(30 * MS, 2))]),
            ..ClusterResidency::default()
        },
    ];
    let energy = price(&dynamiq(), &dynamiq_machine(), &cpus, &clusters);
    let [little, middle, big, idle] = &energy.clusters[..] else { panic!("{energy:?}") };
    for (found, cluster_active, cpu_active) in
        [(little, 30.5, 150.0), (middle, 40.0, 100.0), (big, 300.0, 2000.0)]
    {
        assert_close(found.parts.cluster_active, 50e-3 * cluster_active * 1e-3);
        assert_close(found.parts.cpu_active, 50e-3 * cpu_active * 1e-3);
        assert_close(found.parts.cluster_idle, 0.0);
    }
    assert_close(little.parts.cpu_idle, 4.0 * (20e-3 * 4e-3 + 30e-3 * 1e-3));
    assert_close(middle.parts.cpu_idle, 3.0 * (20e-3 * 20e-3 + 30e-3 * 3e-3));
    // The big one names no idle states: those of the idle domain apply.
    assert_close(big.parts.cpu_idle, 20e-3 * 40e-3);
    assert_close(little.parts.wakeups, 4.0 * (2.0 * 0.5e-6 + 3.0 * 2e-6));
    assert_close(idle.parts.cluster_idle, 10e-3 * 45e-3 + 30e-3 * 5e-3);
    assert_close(idle.parts.wakeups, 3.0 * 10e-6 + 2.0 * 100e-6);
    assert_close(idle.parts.cluster_active + idle.parts.cpu_active + idle.parts.cpu_idle, 0.0);
    assert_close(energy.total, energy.clusters.iter().map(|cluster| cluster.total).sum());
    assert_eq!((energy.total_min, energy.total_max), (energy.total, energy.total));
    assert_eq!(energy.unpriced, []);
    assert_eq!(energy.notes, [] as [&str; 0]);
}

#[test]
fn an_unknown_clock_may_cost_nothing_as_its_idle_state_is_not_its_own() {
    let unknown = ClusterResidency { unknown_ns: 10 * MS, ..ClusterResidency::default() };
    let known = ClusterResidency { offline_ns: 10 * MS, ..ClusterResidency::default() };
    let energy =
        price(&dynamiq(), &dynamiq_machine(), &[], &[unknown.clone(), known.clone(), known.clone(), unknown]);
    let ranges: Vec<_> = energy.clusters.iter().map(|row| (row.total_min, row.total_max)).collect();
    assert_close(ranges[0].1, 10e-3 * 30.5e-3);
    assert_close(ranges[3].1, 10e-3 * 50e-3);
    for nothing in [ranges[0].0, ranges[1].1, ranges[2].1, ranges[3].0] {
        assert_close(nothing, 0.0);
    }
}

#[test]
fn clusters_match_by_cpus_then_by_name_then_by_place() {
    let text = r#"
        [[cluster]]
        name = "little"
        cpus = "4-7"
        opps = [{ mhz = 1, cluster = 1 }]
        [[cluster]]
        name = "clusterother"
        opps = [{ mhz = 1, cluster = 10 }]
        [[cluster]]
        name = "third"
        opps = [{ mhz = 1, cluster = 100 }]
        [[cluster]]
        name = "fourth"
        opps = [{ mhz = 1, cluster = 1000 }]
        [[cluster]]
        name = "absent"
        cpus = "0-1"
        opps = [{ mhz = 1, cluster = 10000 }]
    "#;
    let model = parse("m.toml", text).unwrap();
    // Its name does not count where it names CPUs.
    let names = [("little", 0..4), ("big", 4..8), ("other", 8..10)];
    let clusters = names.into_iter().map(|(name, cpus)| cluster(name, cpus, Domain::Both)).collect();
    let active = ClusterResidency {
        active: BTreeMap::from([(Some(1_000), TimeCount::new(1_000 * MS, 1))]),
        ..ClusterResidency::default()
    };
    let energy = price(&model, &machine(clusters, &[]), &[], &[active.clone(), active.clone(), active]);
    let totals: Vec<f64> = energy.clusters.iter().map(|row| row.total).collect();
    assert_eq!(totals, [100.0, 1.0, 10.0]);
    assert_eq!(
        energy.notes,
        [
            "no cluster here has the CPUs 0-1 of the model's cluster absent: it is not used; --cluster absent=0-1 \
             makes one of them",
            "the model's cluster third is taken for cluster little (CPUs 0-3) only because of its place",
            "no cluster here is left for the model's cluster fourth",
        ]
    );
}

#[test]
fn a_cluster_without_a_model_and_a_cpu_without_a_cluster_are_listed() {
    let mut topology =
        machine(vec![cluster("A", [0], Domain::Both), cluster("B", [1], Domain::Both)], &["WFI"]);
    topology.cpus.insert(9, CpuDescription::default());
    let running = CpuResidency { running: BTreeMap::from([(None, TimeCount::new(10 * MS, 1))]), ..cpu(1) };
    let homeless = CpuResidency { unknown_ns: 7 * MS, offline_ns: MS, ..cpu(9) };
    let second = ClusterResidency {
        active: BTreeMap::from([(None, TimeCount::new(10 * MS, 1))]),
        idle: BTreeMap::from([(0, stays(3 * MS, 1))]),
        offline_ns: MS,
        ..ClusterResidency::default()
    };
    let energy = price(&small(), &topology, &[running, homeless], &[ClusterResidency::default(), second]);
    let unpriced: Vec<_> = energy
        .unpriced
        .iter()
        .map(|row| (row.cluster.as_str(), row.cpu, row.what.as_str(), row.ns))
        .collect();
    assert_eq!(
        unpriced,
        [
            ("B", None, "everything: no cluster of the model applies", 13 * MS),
            ("", Some(9), "everything: it is in no cluster", 7 * MS),
        ]
    );
    assert_eq!((energy.total, energy.total_max), (0.0, 0.0));
}

#[test]
fn powers_that_cannot_apply_are_told() {
    let topology =
        machine(vec![cluster("A", [0], Domain::Frequency), cluster("B", [0], Domain::Idle)], &["WFI"]);
    let model =
        parse("m.toml", &DYNAMIQ.replace("cpus = \"0-3\"", "").replace("cpus = \"4-6\"", "")).unwrap();
    let model = EnergyModel {
        clusters: vec![
            ClusterModel { name: "A".into(), ..small().clusters[0].clone() },
            ClusterModel { name: "B".into(), ..model.clusters[0].clone() },
        ],
        ..model
    };
    let energy = price(&model, &topology, &[], &[]);
    assert_eq!(
        energy.notes,
        [
            "the CPUs 0 of cluster A do not go idle by themselves: what idle states and wake-ups cost the cluster is \
             not used",
            "the CPUs 0 of cluster B share no clock: what frequencies cost there is not used",
        ]
    );
}
