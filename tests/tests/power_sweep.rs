//! Random traces of power events, in every disorder that the contract allows, against sweeps that look at every CPU at
//! every instant.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::Result;
use nntrace_tests::{
    power::{EXIT, Event, Residency, cluster::ClusterResidency},
    recorded::for_policies,
    rows,
    trace::{self, Random, power_line},
};
use nntrace_user::{
    model::topology::{ClusterDescription, Domain, Topology},
    replay::Options,
};

const TRACES: u64 = 400;

/// A machine of 2 to 16 CPUs, not all of them next to each other, in 1 to 3 clusters; some CPUs share a policy.
fn machine(random: &mut Random) -> Result<Topology> {
    let mut cpus: Vec<u32> = (0..2 + random.below(15) as u32).collect();
    if random.below(3) == 0 {
        cpus.iter_mut().skip(2).for_each(|cpu| *cpu *= 3);
    }
    let mut topology = Topology::default();
    for &cpu in &cpus {
        topology.cpus.entry(cpu).or_default();
    }
    let mut clusters: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    let count = 1 + random.below(3);
    for &cpu in &cpus {
        clusters.entry(random.below(count)).or_default().push(cpu);
    }
    if random.below(2) == 0 {
        topology.set_policies(clusters.values().cloned().collect())?;
    }
    let clusters = clusters.into_iter().map(|(number, cpus)| ClusterDescription {
        name: number.to_string(),
        cpus,
        domain: Domain::Both,
    });
    topology.set_clusters(clusters.collect())?;
    Ok(topology)
}

/// Events of all CPUs but the silent ones, in order of time: doubles and strays among them, and several at one instant.
fn events(random: &mut Random, topology: &Topology) -> Vec<(u64, u32, Event)> {
    let loud: Vec<u32> = topology.cpus.keys().copied().filter(|_| random.below(8) > 0).collect();
    let mut now = 7_000_000_000;
    let mut events = Vec::new();
    for _ in 0..random.below(300) {
        now += [0, 0, 1, 7, 1_000, 2_500_000][random.below(6) as usize];
        let Some(&cpu) = loud.get(random.below(loud.len().max(1) as u64) as usize) else { break };
        let event = match random.below(10) {
            0..4 => Event::Idle(random.below(4) as u32),
            4..7 => Event::Idle(EXIT),
            7 if random.below(4) == 0 => Event::Online(random.below(2) == 0),
            _ => Event::Frequency(100_000 * (1 + random.below(4) as u32)),
        };
        events.push((now, cpu, event));
    }
    // Of one instant, those of the lower CPU count first.
    events.sort_by_key(|&(at, cpu, _)| (at, cpu));
    events
}

/// The lines with those of each CPU in their order, and else in any.
fn shuffled(lines: &[(u32, String)], random: &mut Random) -> Vec<String> {
    let mut keyed: Vec<(u64, usize)> = Vec::new();
    let mut last: BTreeMap<u32, u64> = BTreeMap::new();
    for (number, (cpu, _)) in lines.iter().enumerate() {
        let key = last.entry(*cpu).or_default();
        *key += random.below(50);
        keyed.push((*key, number));
    }
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, number)| lines[number].1.clone()).collect()
}

#[test]
fn streaming_is_the_sweep_and_every_row_tiles_the_window() -> Result<()> {
    let mut compared = 0;
    for seed in 0..TRACES {
        let mut random = Random::new(seed);
        let topology = machine(&mut random)?;
        let events = events(&mut random, &topology);
        let (Some(&(begin, ..)), Some(&(end, ..))) = (events.first(), events.last()) else { continue };
        if events.iter().all(|(.., event)| *event == Event::Online(true)) {
            // Nobody went down before: that says nothing of power.
            continue;
        }
        let lines: Vec<(u32, String)> =
            events.iter().map(|&(at, cpu, event)| (cpu, power_line(at, cpu, event))).collect();
        // Events of one instant and of different CPUs have no order.
        let shuffled = shuffled(&lines, &mut random).into_iter().fold(String::new(), |mut text, line| {
            let _ = writeln!(text, "{line}");
            text
        });
        let options = Options { topology: Some(topology.clone()), ..Options::default() };
        let snapshot = trace::replay_with(shuffled, &options)?;
        let plain = lines.iter().fold(String::new(), |text, (_, line)| text + line + "\n");
        assert_eq!(trace::replay_with(plain, &options)?, snapshot, "shuffling changes nothing, seed {seed}");

        rows::assert_tiled(&snapshot.cpus, &snapshot.clusters, end - begin);
        assert_eq!(snapshot.cpus.len(), topology.cpus.len());
        let events = for_policies(&events, &topology);
        for row in &snapshot.cpus {
            let of_cpu = events.iter().filter(|(_, cpu, _)| *cpu == row.cpu);
            let of_cpu: Vec<(u64, Event)> = of_cpu.map(|&(at, _, event)| (at, event)).collect();
            rows::assert_cpu(row, &Residency::sweep(&of_cpu, begin, end, None));
        }
        for row in &snapshot.clusters {
            let swept = ClusterResidency::sweep(&row.cpus, &events, begin, end, &BTreeMap::new());
            rows::assert_cluster(row, &snapshot.cpus, &swept);
        }
        compared += 1;
    }
    assert!(compared > TRACES / 2, "{compared} traces had any event");
    Ok(())
}
