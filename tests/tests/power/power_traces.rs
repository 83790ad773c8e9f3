//! Traces of power events with expected values, through replay.

use std::{collections::BTreeMap, fs};

use anyhow::{Context as _, Result};
use nntrace_tests::{
    fixtures::fixture,
    power::{EXIT, Event},
    rows, trace,
};
use nntrace_user::{
    model::{
        Topology, energy,
        topology::{ClusterDescription, Domain},
    },
    replay::{Options, TimeRange},
    report::snapshot::{ClusterRow, CpuRow, EnergyRow, FrequencyRow, IdleRow, ResultUnit, Snapshot},
};
use serde::Deserialize;

/// Expected result of a trace, us.
#[derive(Deserialize)]
struct Expected {
    window_us: u64,
    cpu_idle: BTreeMap<String, u64>,
    cpu_requested: BTreeMap<String, u64>,
    cpu_effective: BTreeMap<String, u64>,
    cluster_idle: BTreeMap<String, u64>,
    cluster_active: BTreeMap<String, u64>,
    cluster_unknown: BTreeMap<String, u64>,
    cluster_hits: BTreeMap<String, u64>,
    energy: BTreeMap<String, ExpectedEnergy>,
}

/// Cost of a cluster by the model of this board, in the units of the model times us.
#[derive(Deserialize)]
struct ExpectedEnergy {
    cluster_idle: f64,
    cluster_cap: f64,
    cpu_cap: f64,
}

fn replay(name: &str, options: &Options) -> Result<Snapshot> {
    let snapshot = trace::replay_file_with(&fixture(name), options)?;
    rows::assert_tiled(&snapshot.cpus, &snapshot.clusters, snapshot.window.length_ns());
    Ok(snapshot)
}

fn topology(name: &str) -> Result<Topology> {
    let path = fixture("topology").join(name);
    Ok(Topology::from_toml(name, &fs::read_to_string(&path).with_context(|| path.display().to_string())?)?)
}

/// Converts to whole us, which all times of these traces are.
fn us(ns: u64) -> u64 {
    assert_eq!(ns % 1_000, 0, "{ns} ns");
    ns / 1_000
}

fn khz(khz: Option<u32>) -> String {
    khz.map_or_else(|| "None".into(), |khz| khz.to_string())
}

/// Converts rows to a map by `OWNER:STATE`.
fn map<'a, O: 'a, R: 'a, K: ToString>(
    owners: &'a [O],
    name: impl Fn(&O) -> K,
    rows: impl Fn(&'a O) -> &'a [R],
    row: impl Fn(&R) -> (String, u64),
) -> BTreeMap<String, u64> {
    let all = owners.iter().flat_map(|owner| {
        let name = name(owner).to_string();
        rows(owner).iter().map(|one| (name.clone(), row(one))).collect::<Vec<_>>()
    });
    all.map(|(name, (key, value))| (format!("{name}:{key}"), value)).collect()
}

#[test]
fn the_scenarios_come_to_what_was_laid_out() -> Result<()> {
    let expected: BTreeMap<String, Expected> =
        serde_json::from_str(&fs::read_to_string(fixture("power/expected.json"))?)?;
    assert_eq!(expected.len(), 5);
    let model = fixture("energy/tc2.txt");
    let model = energy::parse(&model.to_string_lossy(), &fs::read_to_string(&model)?)?;
    for (name, expected) in expected {
        let options = Options { energy_model: Some(model.clone()), ..Options::default() };
        let snapshot = replay(&format!("power/{name}.txt"), &options)?;
        let (cpus, clusters) = (&snapshot.cpus, &snapshot.clusters);
        let cluster = |row: &ClusterRow| row.cluster.clone();
        let idle = |row: &IdleRow| (row.state.to_string(), us(row.ns));
        let frequency = |row: &FrequencyRow| (khz(row.khz), us(row.ns));

        assert_eq!(us(snapshot.window.length_ns()), expected.window_us, "{name}");
        assert_eq!(map(cpus, |row| row.cpu, |row| &row.idle, idle), expected.cpu_idle, "{name}");
        assert_eq!(map(cpus, |row| row.cpu, |row| &row.running, frequency), expected.cpu_requested, "{name}");
        let effective = map(cpus, |row| row.cpu, |row| &row.effective, |row| (khz(row.khz), us(row.ns)));
        assert_eq!(effective, expected.cpu_effective, "{name}");
        assert_eq!(map(clusters, cluster, |row| &row.idle, idle), expected.cluster_idle, "{name}");
        assert_eq!(map(clusters, cluster, |row| &row.active, frequency), expected.cluster_active, "{name}");
        let unknown = clusters.iter().filter(|row| row.unknown_ns > 0);
        let unknown: BTreeMap<_, _> = unknown.map(|row| (cluster(row), us(row.unknown_ns))).collect();
        assert_eq!(unknown, expected.cluster_unknown, "{name}");
        let mut hits = map(clusters, cluster, |row| &row.idle, |row| (format!("C{}", row.state), row.hits));
        hits.extend(map(
            clusters,
            cluster,
            |row| &row.active,
            |row| (format!("P{}", khz(row.khz)), row.hits),
        ));
        assert_eq!(hits, expected.cluster_hits, "{name}");
        assert_eq!(snapshot.diagnostics, []);
        assert_energy(&name, snapshot.energy.as_ref().context("no energy")?, &expected.energy);
    }
    Ok(())
}

/// Checks that the energy has the parts of the scenario, and nothing else but the bounds of unknown time.
fn assert_energy(name: &str, energy: &EnergyRow, expected: &BTreeMap<String, ExpectedEnergy>) {
    let same = |ours: f64, expected: f64| (ours * 1e6 - expected).abs() < 1e-6;
    let mut total = 0.0;
    for row in &energy.clusters {
        let expected = &expected[&row.cluster];
        assert!(same(row.parts.cluster_idle, expected.cluster_idle), "{name} {row:?}");
        assert!(same(row.parts.cluster_active, expected.cluster_cap), "{name} {row:?}");
        assert!(same(row.parts.cpu_active, expected.cpu_cap), "{name} {row:?}");
        // WFI and deeper states cost a core nothing in this model, and wake-ups have no cost.
        assert!(same(row.parts.cpu_idle + row.parts.wakeups, 0.0), "{name} {row:?}");
        total += expected.cluster_idle + expected.cluster_cap + expected.cpu_cap;
    }
    assert_eq!(energy.clusters.len(), expected.len());
    assert!(same(energy.total, total), "{name}: {} {total}", energy.total);
    assert_eq!(energy.unit, ResultUnit::Relative);
    // Only the first two have unknown time: silent CPUs, and running ones without a frequency.
    let has_unknown = matches!(name, "unsorted_two_cpus" | "silent_cluster");
    assert_eq!(energy.total_min < energy.total_max, has_unknown, "{name} {energy:?}");
    assert_eq!(energy.total_min > energy.total, has_unknown, "{name} {energy:?}");
}

#[test]
fn the_example_of_the_notes() -> Result<()> {
    let snapshot = replay("power/notes_example.txt", &Options::default())?;
    let idle: Vec<_> = snapshot.clusters[0].idle.iter().map(|row| (row.state, row.ns)).collect();
    assert_eq!(idle, [(0, 300_000), (1, 50_000)]);
    Ok(())
}

/// Returns the parts of a row, us, by words.
fn parts(
    idle: &[IdleRow],
    running: &[FrequencyRow],
    word: &str,
    [idle_unknown, offline, unknown]: [u64; 3],
) -> BTreeMap<String, u64> {
    let idle = idle.iter().map(|row| (format!("idle{}", row.state), row.ns));
    let running = running.iter().map(|row| (format!("{word}@{}", khz(row.khz)), row.ns));
    let others = [("idle_unknown", idle_unknown), ("offline", offline), ("unknown", unknown)];
    let others = others.map(|(word, ns)| (word.to_owned(), ns));
    let all = idle.chain(running).chain(others).filter(|(_, ns)| *ns > 0);
    all.map(|(word, ns)| (word, us(ns))).collect()
}

type Rows = BTreeMap<String, BTreeMap<String, u64>>;

#[derive(Deserialize)]
struct Juno {
    window_us: u64,
    cpus: Rows,
    clusters_given_by_cluster_option: Rows,
    clusters_with_shared_policies: Rows,
    cpus_with_shared_policies: Rows,
}

fn assert_rows(snapshot: &Snapshot, cpus: &Rows, clusters: &Rows) {
    let cpu = |row: &CpuRow| {
        let others = [row.idle_unknown_ns, row.offline_ns, row.unknown_ns];
        (row.cpu.to_string(), parts(&row.idle, &row.running, "run", others))
    };
    let cluster = |row: &ClusterRow| {
        let others = [row.idle_unknown_ns, row.offline_ns, row.unknown_ns];
        (row.cluster.clone(), parts(&row.idle, &row.active, "active", others))
    };
    assert_eq!(&snapshot.cpus.iter().map(cpu).collect::<Rows>(), cpus);
    assert_eq!(&snapshot.clusters.iter().map(cluster).collect::<Rows>(), clusters);
}

#[test]
fn a_board_whose_cpus_sleep_when_the_trace_begins() -> Result<()> {
    let expected: Juno = serde_json::from_str(&fs::read_to_string(fixture("power/juno.expected.json"))?)?;
    let cluster = |name: &str, cpus: &[u32]| ClusterDescription {
        name: name.into(),
        cpus: cpus.to_vec(),
        domain: Domain::Both,
    };
    let clusters = vec![cluster("L", &[0, 3, 4, 5]), cluster("B", &[1, 2])];
    let named = replay("power/juno.txt.zst", &Options { clusters, ..Options::default() })?;
    assert_eq!(us(named.window.length_ns()), expected.window_us);
    assert_rows(&named, &expected.cpus, &expected.clusters_given_by_cluster_option);

    let topology = Some(topology("juno.toml")?);
    let shared = replay("power/juno.txt.zst", &Options { topology, ..Options::default() })?;
    assert_rows(&shared, &expected.cpus_with_shared_policies, &expected.clusters_with_shared_policies);
    // Result of a tool that takes a CPU in an unknown state for a running one, at 61.4 and 57.8 ms.
    let at_850 = |cpu: usize| shared.cpus[cpu].running.iter().find(|row| row.khz == Some(850_000));
    assert_eq!(at_850(4).map(|row| us(row.ns)), Some(1_759));
    assert_eq!(at_850(5).map(|row| us(row.ns)), Some(750));
    assert_eq!(shared.cpus[4].idle[1].name, "cpu-sleep-0");
    assert!(shared.cpus[4].idle[1].early.is_some());
    Ok(())
}

#[test]
fn one_idle_domain_of_three_clocks() -> Result<()> {
    let event = |us: u64, cpu: u32, what: &str| {
        format!("          <idle>-0     [{cpu:03}] d..1  1.{us:06}: {what} cpu_id={cpu}\n")
    };
    let mut text: String = (0..8).map(|cpu| event(0, cpu, "cpu_idle: state=2")).collect();
    text += &event(0, 0, "cpu_frequency: state=1000000");
    text += &event(0, 7, "cpu_frequency: state=2800000");
    text += &event(100, 1, "cpu_idle: state=4294967295");
    text += &event(200, 7, "cpu_idle: state=4294967295");
    text += &event(300, 1, "cpu_idle: state=1");
    text += &event(400, 7, "cpu_idle: state=2");
    text += &event(500, 7, "cpu_idle: state=4294967295");
    let options = Options { topology: Some(topology("dynamiq.toml")?), ..Options::default() };
    let snapshot = trace::replay_with(text, &options)?;
    rows::assert_tiled(&snapshot.cpus, &snapshot.clusters, 500_000);
    let [little, middle, big, unit] = &snapshot.clusters[..] else { panic!("four domains") };
    let active =
        |row: &ClusterRow| -> Vec<_> { row.active.iter().map(|row| (row.khz, us(row.ns))).collect() };
    let idle =
        |row: &ClusterRow| -> Vec<_> { row.idle.iter().map(|row| (row.name.clone(), us(row.ns))).collect() };
    assert_eq!((little.domain, unit.domain), (Domain::Frequency, Domain::Idle));
    assert_eq!(active(little), [(Some(1_000_000), 200)]);
    assert_eq!(active(middle), []);
    assert_eq!(active(big), [(Some(2_800_000), 200)]);
    assert_eq!(active(unit), [(None, 300)]);
    assert_eq!(idle(unit), [("little-off".into(), 100), ("unit-off".into(), 100)]);
    assert_eq!(idle(little), [("little-off".into(), 200), ("unit-off".into(), 100)]);
    assert_eq!(snapshot.cpus[7].cluster, "big");
    // The state in between is disabled: the next deeper one counts. 200 us are less than its target residency.
    let stays: Vec<_> =
        snapshot.cpus[7].idle.iter().map(|row| (row.whole_stays, row.early, row.late)).collect();
    assert_eq!(stays, [(1, Some(1), Some(0))]);
    Ok(())
}

#[test]
fn all_descriptions_of_machines_read_back() -> Result<()> {
    for name in ["tc2.toml", "juno.toml", "dynamiq.toml", "vm.toml"] {
        let described = topology(name)?;
        assert_eq!(Topology::from_toml(name, &described.to_toml())?, described, "{name}");
        let clocks = described.clusters.iter().filter(|cluster| cluster.domain.shares_clock());
        let mut cpus: Vec<u32> = clocks.flat_map(|cluster| cluster.cpus.clone()).collect();
        cpus.sort_unstable();
        assert!(cpus.iter().eq(described.cpus.keys()), "{name}: each CPU has one clock");
    }
    Ok(())
}

#[test]
fn idle_states_of_idlestats_own_files_have_their_names() -> Result<()> {
    let head = "idlestat version = 0.8\ncpus=2\nclusterA:\n\tcore0\n\t\tcpu0\nclusterB:\n\tcore0\n\t\tcpu1\n\
                cpuid 0:\n\tWFI\n\t1\n\tcluster-sleep-b\n\t3000\n\t(null)\n\t-1\n\
                cpuid 1:\n\tWFI\n\t1\n\tcluster-sleep-l\n\t2500\n\t(null)\n\t-1\n";
    let events = [
        "idlestat-9 [000] ....  10.000000: cpu_frequency: state=500000 cpu_id=0",
        "<idle>-0 [000] d..2  10.000010: cpu_idle: state=1 cpu_id=0",
        "<idle>-0 [001] d..2  10.000010: cpu_idle: state=1 cpu_id=1",
        "<idle>-0 [000] d..2  10.000510: cpu_idle: state=4294967295 cpu_id=0",
        "<idle>-0 [001] d..2  10.004510: cpu_idle: state=4294967295 cpu_id=1",
        "idlestat-9 [001] d..2  10.005000: cpu_frequency: state=0 cpu_id=0",
    ];
    let snapshot = trace::replay(head.to_owned() + &events.join("\n"))?;
    assert_eq!(snapshot.diagnostics, []);
    let row = |cpu: usize| &snapshot.cpus[cpu].idle[0];
    assert_eq!((row(0).name.as_str(), row(0).early, row(0).late), ("cluster-sleep-b", Some(1), Some(0)));
    assert_eq!((row(1).name.as_str(), row(1).early, row(1).late), ("cluster-sleep-l", Some(0), Some(0)));
    let names: Vec<_> = snapshot.clusters.iter().map(|row| row.cluster.as_str()).collect();
    assert_eq!(names, ["A", "B"]);
    // Its frequency of 0 at the end means that it is unknown from then on.
    let running: Vec<_> = snapshot.cpus[0].running.iter().map(|row| (row.khz, row.ns)).collect();
    assert_eq!(running, [(Some(500_000), 4_500_000)]);
    Ok(())
}

#[test]
fn a_time_range_of_a_trace_in_no_order_has_all_of_it() -> Result<()> {
    let line = |ms: u64, state: u32| trace::power_line(ms * 1_000_000, 0, Event::Idle(state)) + "\n";
    let text = line(1_000, 1) + &line(9_000, EXIT) + &line(2_000, EXIT) + &line(3_000, 2);
    let range = Some(TimeRange { begin: 1_500_000_000, end: 4_000_000_000 });
    let snapshot = trace::replay_with(text, &Options { range, ..Options::default() })?;
    let idle: Vec<_> = snapshot.cpus[0].idle.iter().map(|row| (row.state, row.ns / 1_000_000)).collect();
    assert_eq!(idle, [(1, 500), (2, 1_000)]);
    assert_eq!(snapshot.cpus[0].running[0].ns, 1_000_000_000);
    Ok(())
}
