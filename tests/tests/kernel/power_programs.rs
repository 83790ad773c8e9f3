//! Programs on power events, run by the real kernel with events that are spelled out: any sequence is possible
//! without hardware. They are not attached, so that no other event comes between.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, Result, bail, ensure};
use nntrace_common::{
    diagnostic::DiagnosticKind,
    record::{PowerRecord, Record},
    time_count::TimeCount,
};
use nntrace_tests::{
    live,
    power::{EXIT, Event, Residency, Stays, cluster::ClusterResidency},
    rows, trace,
};
use nntrace_user::{
    live::{
        clock,
        kernel::{Kernel, KernelOptions},
        ring_drain::Rings,
        sysfs,
    },
    model::{
        Power, Topology,
        cpu_residency::CpuResidency,
        initial_state::{InitialCpu, InitialState},
        topology::{ClusterDescription, Domain},
    },
    replay::Options,
};

/// Loaded programs, with reset tables.
struct Bench {
    kernel: Kernel,
    rings: Rings,
    begin: u64,
    /// CPUs to run programs on.
    online: Vec<u32>,
    /// CPUs that change frequency together.
    policy: Vec<u32>,
}

/// The CPU that runs the program, the CPU that the event is about, and the event.
type Step = (u32, u32, Event);

impl Bench {
    fn new(ring_bytes: u32, khz: &BTreeMap<u32, u32>) -> Result<Self> {
        let (mut kernel, rings) = Kernel::load(KernelOptions { ring_bytes, ..KernelOptions::default() })?;
        let begin = clock::now();
        kernel.start_cpus(begin, khz)?;
        let online = sysfs::online(Path::new(sysfs::CPUS));
        Ok(Self { kernel, rings: Rings::new(rings), begin, online, policy: Vec::new() })
    }

    /// Returns two CPUs that programs can run on; the same one twice where there is only one.
    fn pair(&self) -> Result<(u32, u32)> {
        let first = *self.online.first().context("no CPU is online")?;
        Ok((first, *self.online.last().context("no CPU is online")?))
    }

    fn run(&mut self, steps: &[Step]) -> Result<()> {
        for &(on, cpu, event) in steps {
            match event {
                Event::Idle(state) => self.kernel.test_cpu_idle(on, state, cpu)?,
                Event::Frequency(khz) => self.kernel.test_cpu_frequency(on, khz, cpu)?,
                Event::Online(online) => self.kernel.tell_hotplug(cpu, online)?,
                Event::Lost => bail!("no program loses an event"),
            }
        }
        Ok(())
    }

    /// Returns the records of power events, in order; those of a CPU also by themselves.
    fn drain(&mut self) -> Result<Vec<(u64, u32, Event)>> {
        let lost = self.kernel.read_lost()?;
        let mut records = Vec::new();
        self.rings.read(&lost, |_| {});
        self.rings.hand_out(u64::MAX, |record| match record {
            Record::Idle(event) => records.push((event.time, event.cpu, Event::Idle(event.state))),
            Record::Frequency(event) => {
                records.push((event.time, event.cpu, Event::Frequency(event.state)));
            }
            Record::Hotplug(event) => {
                records.push((event.time, event.cpu, Event::Online(event.state != 0)));
            }
            _ => {}
        });
        Ok(records)
    }

    fn count(&self, kind: DiagnosticKind) -> Result<u64> {
        let found = self.kernel.read_diagnostics()?;
        Ok(found.iter().find(|(found, _)| *found == kind).map_or(0, |(_, count)| count.count))
    }

    /// Returns the residency of a CPU in the kernel's tables, in the window up to `end` (ns).
    fn residency(&self, cpu: u32, end: u64) -> Result<CpuResidency> {
        let readings = self.kernel.read_cpus()?;
        let reading = readings.iter().find(|reading| reading.cpu == cpu).context("no reading of that CPU")?;
        Ok(reading.until(end))
    }

    /// Runs the steps, and compares the tables and the records with the expectation. `kept` are the steps that change
    /// anything. Returns the sweep over each CPU.
    fn check(&mut self, steps: &[Step], kept: &[(u32, Event)], khz: &BTreeMap<u32, u32>) -> Result<()> {
        let counted = self.kernel.read_event_counts()?.power;
        self.run(steps)?;
        let end = clock::now();
        // For hotplug, only events that change anything.
        let counted = self.kernel.read_event_counts()?.power - counted;
        let least = steps.iter().filter(|(.., event)| !matches!(event, Event::Online(_))).count() as u64;
        assert!((least..=steps.len() as u64).contains(&counted), "{counted} events are counted of {steps:?}");
        let records = self.drain()?;
        let told: Vec<(u32, Event)> = records.iter().map(|&(_, cpu, event)| (cpu, event)).collect();
        assert_eq!(told, kept, "records of transitions");
        assert!(records.is_sorted_by_key(|&(at, ..)| at), "{records:?}");
        for cpu in 0..self.kernel.cpus() {
            // A frequency is that of the whole policy.
            let shares = |of: u32, event| {
                matches!(event, Event::Frequency(_))
                    && self.policy.contains(&of)
                    && self.policy.contains(&cpu)
            };
            let events = records.iter().filter(|&&(_, of, event)| of == cpu || shares(of, event));
            let events: Vec<(u64, Event)> = events.map(|&(at, _, event)| (at, event)).collect();
            let swept = Residency::sweep(&events, self.begin, end, khz.get(&cpu).copied());
            let residency = self.residency(cpu, end)?;
            assert_same(&residency, &swept);
            assert_eq!(residency.total_ns(), end - self.begin, "the parts of CPU {cpu} are the window");
        }
        self.check_replay(&records, end, khz)
    }

    /// Checks that the same events as a textual trace give the same results in replay: the tables by CPU, and the
    /// clusters in the model.
    fn check_replay(&self, records: &[(u64, u32, Event)], end: u64, khz: &BTreeMap<u32, u32>) -> Result<()> {
        let mut topology = two_clusters(self.kernel.cpus())?;
        if !self.policy.is_empty() {
            topology.set_policies(vec![self.policy.clone()])?;
        }
        let word = |at: u64, text: &str| trace::line(at, 1, 1, text) + "\n";
        let mut text = String::new();
        for (cpu, khz) in khz {
            text += &word(self.begin, &format!("cpu_frequency_devlib: state={khz} cpu_id={cpu}"));
        }
        text += &word(self.begin, "nntrace_start");
        let cpus =
            khz.iter().map(|(&cpu, &khz)| (cpu, InitialCpu { khz: Some(khz), ..InitialCpu::default() }));
        let mut power = Power::new(&topology, self.begin, &InitialState { cpus: cpus.collect() }, false);
        for &(at, cpu, event) in records {
            text += &(trace::power_line(at, cpu, event) + "\n");
            let record = |state| PowerRecord { kind: 0, cpu, time: at, state, lost: 0 };
            power.record(&match event {
                Event::Idle(state) => Record::Idle(record(state)),
                Event::Frequency(khz) => Record::Frequency(record(khz)),
                Event::Online(online) => Record::Hotplug(record(online.into())),
                Event::Lost => Record::Lost { cpu, time: at },
            });
        }
        text += &word(end, "nntrace_end");
        let options = Options { topology: Some(topology.clone()), ..Options::default() };
        let snapshot = trace::replay_with(text, &options)?;
        if records.is_empty() && khz.is_empty() {
            // A trace without any power event has no CPUs.
            assert_eq!(snapshot.cpus, []);
            return Ok(());
        }
        assert_eq!((snapshot.window.begin_ns, snapshot.window.end_ns), (self.begin, end));
        rows::assert_tiled(&snapshot.cpus, &snapshot.clusters, end - self.begin);
        let live = power.clusters_until(end);
        let of_policy = |&(at, cpu, event): &(u64, u32, Event)| match event {
            Event::Frequency(_) => topology.policy_of(cpu).into_iter().map(|cpu| (at, cpu, event)).collect(),
            Event::Idle(_) | Event::Online(_) | Event::Lost => vec![(at, cpu, event)],
        };
        let records: Vec<_> = records.iter().flat_map(of_policy).collect();
        for (row, live) in snapshot.clusters.iter().zip(&live) {
            let swept = ClusterResidency::sweep(&row.cpus, &records, self.begin, end, khz);
            rows::assert_cluster(row, &snapshot.cpus, &swept);
            assert_eq!(live.concurrency, swept.concurrency);
            assert_eq!(live.effective, swept.effective);
            assert_eq!(live.active, sums(&swept.active));
            assert_eq!((live.unknown_ns, live.idle_unknown_ns), (swept.unknown_ns, swept.idle_unknown_ns));
        }
        for row in &snapshot.cpus {
            let residency = self.residency(row.cpu, end)?;
            let running: BTreeMap<_, _> =
                row.running.iter().map(|row| (row.khz, TimeCount::new(row.ns, row.hits))).collect();
            assert_eq!(running, residency.running, "running of CPU {}", row.cpu);
            let idle: Vec<_> = row.idle.iter().map(|row| (row.state, row.ns, row.hits)).collect();
            let table: Vec<_> =
                residency.idle.iter().map(|(&state, stays)| (state, stays.ns, stays.hits)).collect();
            assert_eq!(idle, table, "idle of CPU {}", row.cpu);
        }
        Ok(())
    }
}

/// Returns the first CPU alone, and all others together.
fn two_clusters(cpus: u32) -> Result<Topology> {
    let mut topology = Topology::default();
    for cpu in 0..cpus {
        topology.cpus.entry(cpu).or_default();
    }
    topology.set_clusters(vec![ClusterDescription {
        name: "first".into(),
        cpus: vec![0],
        domain: Domain::Both,
    }])?;
    Ok(topology)
}

fn sums(stays: &BTreeMap<Option<u32>, Stays>) -> BTreeMap<Option<u32>, TimeCount> {
    stays.iter().map(|(&khz, stays)| (khz, TimeCount::new(stays.ns, stays.hits))).collect()
}

/// Compares every figure, to the nanosecond.
fn assert_same(residency: &CpuResidency, swept: &Residency) {
    let idle = residency.idle.iter().map(|(&state, stays)| {
        (state, Stays { ns: stays.ns, hits: stays.hits, min_ns: stays.min_ns, max_ns: stays.max_ns })
    });
    assert_eq!(idle.collect::<BTreeMap<_, _>>(), swept.idle, "idle of CPU {}", residency.cpu);
    assert_eq!(residency.running, sums(&swept.running), "running of CPU {}", residency.cpu);
    let others = [residency.idle_unknown_ns, residency.offline_ns, residency.unknown_ns];
    assert_eq!(
        others,
        [swept.idle_unknown_ns, swept.offline_ns, swept.unknown_ns],
        "the rest of CPU {}",
        residency.cpu
    );
}

/// Drops the CPU that runs the programs, which leaves no trace.
fn all(steps: &[Step]) -> Vec<(u32, Event)> {
    steps.iter().map(|&(_, cpu, event)| (cpu, event)).collect()
}

const RING: u32 = 64 * 1024;

#[test]
fn every_transition_is_recorded_and_accounted_whichever_cpu_reports_it() -> Result<()> {
    use Event::{Frequency, Idle};
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let mut bench = Bench::new(RING, &BTreeMap::new())?;
    let (a, b) = bench.pair()?;
    if a == b {
        println!("one CPU only: nothing to show here");
        return Ok(());
    }
    let steps = [
        (a, a, Idle(1)),
        (b, b, Idle(EXIT)),
        (b, a, Frequency(800_000)), // while it is idle
        (a, a, Idle(EXIT)),
        (a, b, Frequency(500_000)),
        (b, b, Idle(0)),
        (b, b, Idle(EXIT)),
        (a, b, Frequency(1_200_000)),
        (b, a, Frequency(1_200_000)),
        (b, b, Idle(2)),
        (a, a, Idle(9)), // the deepest that the kernel can have
        (a, a, Idle(EXIT)),
        (a, b, Frequency(500_000)),
        (b, b, Idle(EXIT)),
        (b, b, Idle(1)),
    ];
    bench.check(&steps, &all(&steps), &BTreeMap::new())?;
    assert_eq!(bench.kernel.read_diagnostics()?.len(), 0);
    // The first event of CPU a entered a state: it was running. The first one of CPU b left a state.
    let end = clock::now();
    assert_eq!(bench.residency(a, end)?.idle_unknown_ns, 0);
    assert!(bench.residency(b, end)?.idle_unknown_ns > 0);
    Ok(())
}

#[test]
fn frequencies_read_at_the_start_count_from_the_begin() -> Result<()> {
    use Event::{Frequency, Idle};
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let cpu = Bench::new(RING, &BTreeMap::new())?.pair()?.0;
    let khz = BTreeMap::from([(cpu, 600_000)]);
    for steps in [
        vec![(cpu, cpu, Idle(1)), (cpu, cpu, Idle(EXIT)), (cpu, cpu, Frequency(900_000))],
        // Before the first idle event it is unknown whether the CPU runs: it did, ...
        vec![(cpu, cpu, Frequency(900_000)), (cpu, cpu, Frequency(700_000)), (cpu, cpu, Idle(1))],
        // ... it did not, ...
        vec![(cpu, cpu, Frequency(900_000)), (cpu, cpu, Frequency(700_000)), (cpu, cpu, Idle(EXIT))],
        // ... and it is never known.
        vec![(cpu, cpu, Frequency(900_000))],
        vec![],
    ] {
        let mut bench = Bench::new(RING, &khz)?;
        bench.check(&steps, &all(&steps), &khz)?;
    }
    Ok(())
}

#[test]
fn the_same_frequency_and_a_stray_exit_are_no_transitions() -> Result<()> {
    use Event::{Frequency, Idle};
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let mut bench = Bench::new(RING, &BTreeMap::new())?;
    let (a, b) = bench.pair()?;
    let steps = [
        (a, a, Frequency(800_000)),
        (b, a, Frequency(800_000)),
        (a, a, Idle(1)),
        (b, a, Frequency(800_000)),
        (a, a, Idle(EXIT)),
        (a, a, Idle(EXIT)),
        (a, a, Idle(EXIT)),
        (a, a, Frequency(800_000)),
        (a, a, Idle(2)),
        (a, a, Idle(2)),
        (a, a, Idle(0)),
        (a, a, Idle(EXIT)),
    ];
    let kept = [
        (a, Frequency(800_000)),
        (a, Idle(1)),
        (a, Idle(EXIT)),
        (a, Idle(2)),
        (a, Idle(2)),
        (a, Idle(0)),
        (a, Idle(EXIT)),
    ];
    bench.check(&steps, &kept, &BTreeMap::new())?;
    assert_eq!(bench.count(DiagnosticKind::ExitWhileRunning)?, 2);
    assert_eq!(bench.count(DiagnosticKind::EnterWhileIdle)?, 2);
    assert_eq!(bench.count(DiagnosticKind::CpuOutOfRange)?, 0);
    Ok(())
}

#[test]
fn an_event_of_a_cpu_that_cannot_be_is_counted_and_changes_nothing() -> Result<()> {
    use Event::{Frequency, Idle};
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let mut bench = Bench::new(RING, &BTreeMap::new())?;
    let (a, b) = bench.pair()?;
    let beyond = bench.kernel.cpus();
    let steps = [
        (a, beyond, Idle(1)),
        (b, u32::MAX, Idle(EXIT)),
        (b, beyond, Frequency(800_000)),
        (a, a, Idle(1)),
        (a, u32::MAX, Frequency(800_000)),
    ];
    bench.check(&steps, &[(a, Idle(1))], &BTreeMap::new())?;
    assert_eq!(bench.count(DiagnosticKind::CpuOutOfRange)?, 4);
    Ok(())
}

#[test]
fn a_full_ring_loses_records_countably_and_no_time() -> Result<()> {
    use Event::Frequency;
    const EVENTS: u32 = 1_000;
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let mut bench = Bench::new(4_096, &BTreeMap::new())?;
    let (a, _) = bench.pair()?;
    let frequencies: Vec<Step> = (1..=EVENTS).map(|khz| (a, a, Frequency(khz))).collect();
    bench.run(&[(a, a, Event::Idle(1)), (a, a, Event::Idle(EXIT))])?;
    bench.run(&frequencies)?;
    let end = clock::now();
    let drained = bench.drain()?.len() as u64;
    let counts = bench.kernel.read_ring_counts()?;
    let (produced, dropped) =
        counts.iter().fold((0, 0), |sum, count| (sum.0 + count.produced, sum.1 + count.dropped));
    assert_eq!(produced, u64::from(EVENTS) + 2);
    assert_eq!(produced, drained + dropped);
    ensure!(dropped > 0, "a ring of one page has held {produced} records");
    assert_eq!(u64::from(bench.kernel.read_lost()?[a as usize]), dropped);

    let residency = bench.residency(a, end)?;
    assert_eq!(residency.total_ns(), end - bench.begin);
    let hits: u64 = residency.running.values().map(|sum| sum.count).sum();
    assert_eq!(
        residency.running.len() as u64,
        u64::from(EVENTS) + 1,
        "a row for each frequency, one for none"
    );
    // The time before the first event and after idle has no frequency; each change splits an interval.
    assert_eq!(hits, 2 + u64::from(EVENTS));

    // Events are recorded again when there is room again.
    bench.run(&[(a, a, Frequency(EVENTS + 1))])?;
    let records = bench.drain()?;
    assert!(
        matches!(records[..], [(_, cpu, Frequency(khz))] if cpu == a && khz == EVENTS + 1),
        "{records:?}"
    );
    Ok(())
}

#[test]
fn a_frequency_holds_for_the_whole_policy_and_its_other_events_change_nothing() -> Result<()> {
    use Event::{Frequency, Idle};
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let mut bench = Bench::new(RING, &BTreeMap::new())?;
    let (a, b) = bench.pair()?;
    if a == b {
        println!("one CPU only: nothing to show here");
        return Ok(());
    }
    bench.policy = vec![a, b];
    let policies = [bench.policy.clone()];
    assert!(bench.kernel.set_policies(&policies)?.is_empty());
    let steps = [
        (a, a, Frequency(600_000)), // before anything is known of idle
        (a, b, Frequency(600_000)),
        (b, b, Idle(1)),
        (a, b, Frequency(900_000)), // reported for the one that sleeps
        (a, a, Frequency(900_000)),
        (b, b, Idle(EXIT)),
        (b, a, Frequency(600_000)),
        (a, a, Idle(1)),
        (a, a, Idle(EXIT)),
    ];
    let kept = [
        (a, Frequency(600_000)),
        (b, Idle(1)),
        (b, Frequency(900_000)),
        (b, Idle(EXIT)),
        (a, Frequency(600_000)),
        (a, Idle(1)),
        (a, Idle(EXIT)),
    ];
    bench.check(&steps, &kept, &BTreeMap::new())
}

#[test]
fn a_policy_that_is_too_large_is_named() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let mut bench = Bench::new(RING, &BTreeMap::new())?;
    // CPUs that this host does not have are left out; the length is what counts.
    let policies: Vec<Vec<u32>> = vec![(100..164).collect(), (200..265).collect()];
    assert_eq!(bench.kernel.set_policies(&policies)?, [&policies[1][..]]);
    Ok(())
}

#[test]
fn a_cpu_that_goes_offline_is_offline_until_it_does_something() -> Result<()> {
    use Event::{Idle, Online};
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    for (steps, kept) in [
        // It is brought up, ...
        (vec![Idle(1), Idle(EXIT), Online(false), Online(true), Idle(2)], None),
        // ... its first sign of life is an event of idle, ...
        (vec![Online(false), Idle(1), Idle(EXIT)], None),
        (vec![Online(false), Idle(EXIT), Idle(1)], None),
        // ... and an event without a change is none.
        (
            vec![Online(true), Idle(1), Online(true), Online(false), Online(false)],
            Some(vec![Idle(1), Online(false)]),
        ),
    ] {
        let mut bench = Bench::new(RING, &BTreeMap::new())?;
        let (_, cpu) = bench.pair()?;
        let steps: Vec<Step> = steps.into_iter().map(|event| (cpu, cpu, event)).collect();
        let kept =
            kept.map_or_else(|| all(&steps), |kept| kept.into_iter().map(|event| (cpu, event)).collect());
        bench.check(&steps, &kept, &BTreeMap::new())?;
    }
    Ok(())
}
