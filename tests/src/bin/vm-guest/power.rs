//! Power states of a VM with known idle states and clusters, and known switches of frequencies.

use std::{collections::BTreeMap, path::Path, thread, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::signal::Signal;
use nntrace_tests::{
    cpus::{self, Policy},
    live,
    power::{Event, cluster::ClusterResidency},
    profiler::Profiler,
    recorded,
    tracefs::Instance,
};
use nntrace_user::{
    live::sysfs,
    model::{
        Topology,
        topology::{ClusterDescription, Domain},
    },
    report::snapshot::{FrequencySource, IdleSource, Snapshot},
};

use crate::{Outcome, host, machine::Load};

/// Events of residency.
const EVENTS: [&str; 2] = ["power/cpu_idle", "power/cpu_frequency"];
/// Mean difference of our reading of the clock and the recording's, which is cut to 1 us, for one event in a sum over
/// many: time added at one end of a stay is removed at the other.
const EVENT_NS: u64 = 50;
/// Difference for single events: between the two readings the emulator may give another CPU its turn.
const TURN_NS: u64 = 2_000_000;
/// Length of each part of a run.
const PART: Duration = Duration::from_millis(120);
/// Lengths of sleeps for each of the idle states.
const NAPS: [Duration; 4] = [
    Duration::from_micros(200),
    Duration::from_micros(900),
    Duration::from_millis(4),
    Duration::from_millis(17),
];

/// Results of a run, and of the kernel's own recording of the same time.
struct Measured {
    snapshot: Snapshot,
    text: String,
    topology: Topology,
    /// Requested frequency of each CPU at the begin of the recording, kHz.
    khz: BTreeMap<u32, u32>,
}

/// Profiles and records while `work` runs.
fn measure(arguments: &[&str], work: impl FnOnce() -> Result<()>) -> Result<Measured> {
    let cpus = sysfs::present(Path::new(sysfs::CPUS));
    let last = *cpus.last().context("no CPU is present")?;
    let (mut topology, _) = sysfs::topology(Path::new(sysfs::CPUS));
    if arguments.contains(&TOGETHER) {
        topology.set_clusters(vec![ClusterDescription { name: "all".into(), cpus, domain: Domain::Both }])?;
    }
    let recording = Instance::recording(&EVENTS)?;
    let khz = sysfs::frequencies(Path::new(sysfs::CPUS));
    let attached = Profiler::new()?.args(["--marks", "none"]).args(arguments).attach()?;
    work()?;
    attached.signal(Signal::SIGINT)?;
    let snapshot = attached.finish()?.snapshot;
    let text = recording.text(last as usize + 1)?;
    ensure!(snapshot.loss.records_dropped == 0, "{:?}", snapshot.loss);
    Ok(Measured { snapshot, text, topology, khz })
}

/// Option that makes one cluster of all CPUs; [`measure`] adds them.
const TOGETHER: &str = "--cluster";

/// Returns the policies, with the governor that switches on request, each at its lowest frequency.
fn governed() -> Result<Vec<Policy>> {
    let policies = cpus::policies()?;
    for policy in &policies {
        policy.govern("userspace")?;
        policy.switch(*policy.khz.first().context("a policy without frequencies")?)?;
    }
    Ok(policies)
}

/// Returns the outcome where there is nothing to switch.
pub fn no_policies() -> Outcome {
    Outcome::Skipped("this machine has no frequency policies".into())
}

/// Switches one policy once, and checks for exactly that switch.
pub fn one_switch_is_one_transition() -> Result<Outcome> {
    let policies = governed()?;
    let Some(policy) = policies.first() else { return Ok(no_policies()) };
    let [low, high, ..] = policy.khz[..] else { bail!("one frequency: {:?}", policy.khz) };
    // Its cluster is active all the time, so that nothing else splits it.
    let load = Load::busy(policy.cpus[0])?;
    let Measured { snapshot, text, .. } = measure(&[], || {
        thread::sleep(PART);
        policy.switch(high)?;
        thread::sleep(PART);
        Ok(())
    })?;
    drop(load);
    let busy =
        snapshot.cpus.iter().find(|row| row.cpu == policy.cpus[0]).context("no row of the busy CPU")?;
    if !matches!(busy.initial.idle, IdleSource::Kernel | IdleSource::Event) {
        ensure!(
            !live::has_btf(),
            "the kernel's BTF tells the way to a CPU's run queue, but it was not found"
        );
        return Ok(Outcome::Skipped("this kernel does not tell what a CPU does that never sleeps".into()));
    }
    let window = &snapshot.window;
    let switches: Vec<(u64, u32, Event)> = nntrace_tests::tracefs::lines(&text)?
        .into_iter()
        .filter(|(at, _, event)| *at > window.begin_ns && matches!(event, Event::Frequency(_)))
        .collect();
    let told: Vec<u32> = switches.iter().map(|(_, cpu, _)| *cpu).collect();
    ensure!(told == policy.cpus, "the kernel tells the switch of the CPUs {told:?}");
    let at = switches[0].0;
    for row in &snapshot.clusters {
        let active: Vec<(Option<u32>, u64, u64)> =
            row.active.iter().map(|row| (row.khz, row.ns, row.hits)).collect();
        if row.cpus == policy.cpus {
            let [(first, before, 1), (second, after, 1)] = active[..] else {
                bail!("not one transition in {}: {active:?}", row.cluster)
            };
            ensure!((first, second) == (Some(low), Some(high)), "{active:?}");
            ensure!(before + after == window.length_ns(), "it was not active all the time: {active:?}");
            let apart = before.abs_diff(at - window.begin_ns);
            println!("switched at {at} ns by the recording, {apart} ns apart from ours");
            ensure!(apart <= TURN_NS, "{apart} ns apart");
        } else {
            let own = policies.iter().find(|policy| policy.cpus == row.cpus);
            let own = own.and_then(|policy| policy.khz.first()).copied();
            ensure!(
                active.iter().all(|(khz, ..)| *khz == own),
                "{} did not switch, and its active times are {active:?}",
                row.cluster
            );
        }
    }
    for row in snapshot.cpus.iter().filter(|row| policy.cpus.contains(&row.cpu)) {
        ensure!(row.initial.frequency == FrequencySource::Sysfs, "CPU {}: {:?}", row.cpu, row.initial);
        ensure!(
            row.running.iter().all(|row| row.khz == Some(low) || row.khz == Some(high)),
            "CPU {}: {:?}",
            row.cpu,
            row.running
        );
    }
    Ok(Outcome::Passed)
}

/// Checks that CPUs of several policies as one cluster have the highest frequency of the running ones.
pub fn the_fastest_running_cpu_decides() -> Result<Outcome> {
    let policies = governed()?;
    if policies.len() < 2 {
        return Ok(no_policies());
    }
    for (number, policy) in policies.iter().enumerate() {
        policy.switch(*policy.khz.get(number + 1).context("too few frequencies")?)?;
    }
    let last = sysfs::present(Path::new(sysfs::CPUS)).len() - 1;
    let measured = measure(&[TOGETHER, &format!("all=0-{last}")], || {
        let loads = naps()?;
        thread::sleep(PART * 4);
        drop(loads);
        thread::sleep(PART);
        Ok(())
    })?;
    let [cluster] = &measured.snapshot.clusters[..] else { bail!("{:?}", measured.snapshot.clusters) };
    ensure!(cluster.active.len() == policies.len(), "each policy decides at times: {:?}", cluster.active);
    compare(&measured)?;
    Ok(Outcome::Passed)
}

/// Starts naps on every CPU.
fn naps() -> Result<Vec<Load>> {
    cpus::online().into_iter().map(|cpu| Load::naps(cpu, &NAPS)).collect()
}

/// Checks the kernel's own governor under changing load.
pub fn every_switch_of_a_governor_is_seen() -> Result<Outcome> {
    let policies = governed()?;
    if policies.is_empty() {
        return Ok(no_policies());
    }
    for policy in &policies {
        policy.govern("schedutil")?;
    }
    let measured = measure(&[], || changing_load(&policies))?;
    let switches = nntrace_tests::tracefs::lines(&measured.text)?;
    let switches = switches.iter().filter(|(.., event)| matches!(event, Event::Frequency(_))).count();
    println!("{switches} events of cpu_frequency");
    ensure!(switches > 4, "the governor hardly switched: {switches} events");
    compare(&measured)?;
    Ok(Outcome::Passed)
}

fn changing_load(policies: &[Policy]) -> Result<()> {
    for policy in policies {
        let loads = naps()?;
        let busy = Load::busy(policy.cpus[0])?;
        thread::sleep(PART);
        drop(busy);
        thread::sleep(PART);
        drop(loads);
        thread::sleep(PART);
    }
    Ok(())
}

/// Runs a bit of everything. The host keeps the recording as an example of real events, the snapshot to compare it
/// with that of another run.
pub fn recording_for_the_golden_files() -> Result<Outcome> {
    let policies = governed()?;
    let measured = measure(&[], || {
        for policy in &policies {
            policy.switch(policy.khz[policy.khz.len() / 2])?;
            thread::sleep(PART);
        }
        for policy in &policies {
            policy.govern("schedutil")?;
        }
        changing_load(&policies)?;
        let loads = naps()?;
        thread::sleep(PART);
        drop(loads);
        // Sleeps without a known end: the deepest states.
        thread::sleep(PART);
        Ok(())
    })?;
    let json = |snapshot: &Snapshot| Ok::<_, anyhow::Error>(serde_json::to_string_pretty(snapshot)? + "\n");
    host::send("snapshot.json", json(&measured.snapshot)?.as_bytes())?;
    host::send("trace.txt", measured.text.as_bytes())?;
    host::send("topology.toml", measured.topology.to_toml().as_bytes())?;
    let states = sysfs_states();
    for row in measured.snapshot.clusters.iter().filter(|_| states > 0) {
        let deepest = row.idle.iter().map(|row| row.state).max();
        ensure!(
            deepest == Some(states - 1),
            "{} was never in its deepest state all together: {:?}",
            row.cluster,
            row.idle
        );
    }
    host::send("replayed.json", json(&compare(&measured)?)?.as_bytes())?;
    Ok(Outcome::Passed)
}

/// Returns the number of the first CPU's idle states, by its driver.
fn sysfs_states() -> u32 {
    let folder = Path::new(sysfs::CPUS).join("cpu0/cpuidle");
    let states = std::fs::read_dir(folder).into_iter().flatten().flatten();
    states.filter(|entry| entry.file_name().to_string_lossy().starts_with("state")).count() as u32
}

/// Compares all times of the snapshot with a sweep of the kernel's recording: approximately, as the clock readings
/// differ. Replaying that recording has to give the result of the sweep, to the nanosecond; returns the snapshot of
/// the replay.
fn compare(measured: &Measured) -> Result<Snapshot> {
    let Measured { snapshot, text, topology, .. } = measured;
    let (begin, end) = (snapshot.window.begin_ns, snapshot.window.end_ns);
    let events = recorded::for_policies(&nntrace_tests::tracefs::lines(text)?, topology);
    let mut worst = (0, String::new());
    for row in &snapshot.clusters {
        let (inside, later) = recorded::inside(&events, &row.cpus, begin, end);
        let mut khz = measured.khz.clone();
        khz.extend(later);
        let swept = ClusterResidency::sweep(&row.cpus, &inside, begin, end, &khz);
        let allowed = inside.len() as u64 * EVENT_NS + TURN_NS;
        let ours = row.active.iter().map(|row| (format!("active {:?}", row.khz), row.ns));
        let ours = ours.chain(row.idle.iter().map(|row| (format!("idle {}", row.state), row.ns)));
        let theirs = swept.active.iter().map(|(khz, stays)| (format!("active {khz:?}"), stays.ns));
        let theirs =
            theirs.chain(swept.idle.iter().map(|(state, stays)| (format!("idle {state}"), stays.ns)));
        let what = format!("{} {:?}", row.cluster, row.cpus);
        difference(&what, &ours.collect(), &theirs.collect(), allowed, &mut worst)?;
        for cpu in snapshot.cpus.iter().filter(|cpu| row.cpus.contains(&cpu.cpu)) {
            let ours = cpu.effective.iter().map(|row| (format!("effective {:?}", row.khz), row.ns));
            let theirs = swept.effective.get(&cpu.cpu).into_iter().flatten();
            let theirs = theirs.map(|(khz, ns)| (format!("effective {khz:?}"), *ns));
            let what = format!("CPU {}", cpu.cpu);
            difference(&what, &ours.collect(), &theirs.collect(), allowed, &mut worst)?;
        }
    }
    println!(
        "compared with the recording of {} events: at most {} ns apart, {}",
        events.len(),
        worst.0,
        worst.1
    );
    recorded::assert_replayed(text, topology)
}

fn difference(
    what: &str,
    ours: &BTreeMap<String, u64>,
    theirs: &BTreeMap<String, u64>,
    allowed: u64,
    worst: &mut (u64, String),
) -> Result<()> {
    let keys: std::collections::BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    for key in keys {
        let (ours, theirs) = (ours.get(key).copied().unwrap_or(0), theirs.get(key).copied().unwrap_or(0));
        let apart = ours.abs_diff(theirs);
        if apart > worst.0 {
            *worst = (apart, format!("{what}, {key}: {ours} and {theirs} ns"));
        }
        ensure!(
            apart <= allowed,
            "{what}, {key}: {ours} ns, by the recording {theirs} ns; {allowed} ns allowed"
        );
    }
    Ok(())
}
