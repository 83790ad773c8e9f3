use std::{collections::BTreeMap, fs, path::PathBuf};

use proptest::prelude::*;

use super::*;
use crate::{
    model::{energy, topology::Topology},
    replay::{self, Options, Replayed},
    report::snapshot::Snapshot,
};

/// Samples of each counter, by its name.
type Samples = BTreeMap<String, Vec<(u64, CounterValue)>>;

fn fixture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(name);
    fs::read_to_string(path).unwrap()
}

/// Replays the text of a trace of the board with three clocks, with its energy model.
fn replayed(text: &str) -> Replayed {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    let mut options = Options {
        files: vec![file.path().to_owned()],
        with_steps: true,
        topology: Some(Topology::from_toml("dynamiq.toml", &fixture("topology/dynamiq.toml")).unwrap()),
        energy_model: Some(energy::parse("dynamiq.toml", &fixture("energy/dynamiq.toml")).unwrap()),
        ..Options::default()
    };
    options.questions.hand_overs = true;
    replay::replay(&options).unwrap()
}

fn samples(counters: &Counters<'_>) -> Samples {
    let mut samples = Samples::new();
    for counter in counters.all() {
        samples.insert(counters.name(counter), Vec::new());
    }
    counters.visit(&mut |counter, time, value| {
        samples.get_mut(&counters.name(counter)).expect("one of all").push((time, value));
    });
    samples
}

fn event(us: u64, cpu: u32, what: &str) -> String {
    format!("  <idle>-0 [{cpu:03}] d..1. 1.{us:06}: {what}\n")
}

fn idle(us: u64, cpu: u32, state: u32) -> String {
    event(us, cpu, &format!("cpu_idle: state={state} cpu_id={cpu}"))
}

const EXIT: u32 = u32::MAX;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The energy at the end is that of the snapshot but for wake-ups, which take no time; each counter has a sample only where its
    /// value changes.
    #[test]
    fn energy_grows_to_that_of_the_snapshot(
        events in prop::collection::vec((1_u64..900, 0_u32..8, 0_u32..6), 1..120),
    ) {
        let mut us = 0;
        let lines = events.iter().map(|(step, cpu, what)| {
            us += step;
            match what {
                0..3 => idle(us, *cpu, *what),
                3 => idle(us, *cpu, EXIT),
                // Frequencies with a price, and one without.
                4 => event(us, *cpu, &format!("cpu_frequency: state={} cpu_id={cpu}", [500_000, 600_000, 2_800_000][us as usize % 3])),
                _ => event(us, *cpu, &format!("cpu_frequency: state=1234 cpu_id={cpu}")),
            }
        });
        let replayed = replayed(&lines.collect::<String>());
        let findings = replayed.findings();
        let counters = Counters::of(&findings, replayed.timelines(), false);
        let samples = samples(&counters);
        for (name, samples) in &samples {
            prop_assert!(samples.is_sorted_by(|a, b| a.0 < b.0 && a.1 != b.1), "{name}: {samples:?}");
        }
        let energy = Snapshot::of(&findings).energy.expect("a model was given");
        for cluster in energy.clusters {
            let last = samples[&format!("cluster {} energy", cluster.cluster)].last();
            // A window of no length has no sample.
            let found = match last {
                Some((_, CounterValue::Real(found))) => *found,
                other => { prop_assert!(other.is_none(), "{other:?}"); 0.0 }
            };
            let expected = cluster.total - cluster.parts.wakeups;
            prop_assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1e-9), "{found} is not {expected}");
        }
    }
}

#[test]
fn counters_of_a_trace_are_as_counted_by_hand() {
    let mark = |us: u64, tid: u32, mark: &str| {
        format!("  app-{tid} (   20) [007] ...1. 1.{us:06}: tracing_mark_write: {mark}\n")
    };
    let text = [
        idle(0, 4, EXIT),
        event(0, 4, "cpu_frequency: state=600000 cpu_id=4"),
        idle(0, 5, 0),
        idle(0, 6, 0),
        mark(10, 20, "I|20|nn.send#h=1"),
        mark(15, 21, "I|20|nn.recv#h=1"),
        mark(20, 21, "B|20|[NN_LR_PE]one"),
        mark(25, 20, "I|20|nn.send#h=2"),
        idle(30, 5, EXIT),
        idle(30, 6, EXIT),
        mark(40, 21, "E|20"),
        mark(40, 21, "I|20|nn.recv#h=2"),
        mark(50, 21, "B|20|[NN_LR_PE]two"),
        mark(60, 21, "E|20"),
        idle(70, 4, 0),
        idle(80, 4, EXIT),
    ]
    .concat();
    let replayed = replayed(&text);
    let findings = replayed.findings();
    assert!(Counters::of(&findings, None, true).all().is_empty());
    let off = samples(&Counters::of(&findings, replayed.timelines(), false));
    assert!(off.keys().all(|name| name.starts_with("cluster ")), "{:?}", off.keys());

    let on = samples(&Counters::of(&findings, replayed.timelines(), true));
    let at = |us: u64| 1_000_000_000 + 1_000 * us;
    let whole = |name: &str| -> Vec<(u64, i64)> {
        let value = |(time, value): &(u64, CounterValue)| match value {
            CounterValue::Whole(value) => (*time, *value),
            CounterValue::Real(value) => panic!("{name}: {value}"),
        };
        on[name].iter().map(value).collect()
    };
    assert_eq!(whole("cluster middle running CPUs"), [(at(0), 1), (at(30), 3), (at(70), 2)]);
    // From the first start, at 20, to the last end.
    assert_eq!(whole("dispatch middle idle CPUs"), [(at(20), 2), (at(30), 0)]);
    assert_eq!(whole("dispatch middle ready work"), [(at(20), 0), (at(25), 1), (at(50), 0)]);
    assert_eq!(whole("dispatch middle overhead"), [(at(20), 0), (at(25), 1), (at(30), 0)]);
    assert_eq!(whole("all-overhead"), [(at(20), 0)]);
    assert_eq!(whole("has-overhead"), [(at(20), 0)]);
    // 40 mW of the cluster and 100 of each CPU that runs, 20 of each that is idle.
    let power: Vec<_> = on["cluster middle power"].iter().map(|(time, value)| (*time, *value)).collect();
    let rounded = power.iter().map(|(time, value)| match value {
        CounterValue::Real(watts) => (*time, (watts * 1e6).round() as i64),
        CounterValue::Whole(_) => panic!("power is no whole number"),
    });
    assert_eq!(rounded.collect::<Vec<_>>(), [(at(0), 180_000), (at(30), 340_000), (at(70), 260_000)]);
    let snapshot = Snapshot::of(&findings).with_dispatch_overhead(&findings, replayed.timelines());
    let row = snapshot.dispatch_overhead.expect("work was handed over");
    let middle = row.clusters.iter().find(|row| row.cluster == "middle").expect("a cluster");
    assert_eq!((middle.idle_ns, middle.ready_ns, middle.overhead_ns), (10_000, 25_000, 5_000));
    assert_eq!((row.hand_overs, row.all_overhead_ns, row.has_overhead_ns), (2, 0, 0));
}
