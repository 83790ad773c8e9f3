//! Slow and typical executions of a run: what is known of their host, and the names of things.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::{
    chain::{Doing, Link},
    cpu_use::{CpuUse, Meanwhile},
    device_activity::{DeviceActivity, DeviceWait},
    tally::{Host, Tally},
};
use crate::{
    analyze::run_graph::{
        build::Built,
        collect::{Events, Rival},
        frequencies::Frequencies,
    },
    model::{Findings, Scheduling, frequency_limits::FrequencyLimits, timeline::Timelines},
};

/// Clusters whose highest frequencies differ by less are of one kind, percent.
const SAME_KIND: u64 = 5;

/// Slow and typical executions of a run, for the words of a description.
pub(super) struct Compared<'a> {
    pub(super) run: &'a Run<'a>,
    pub(super) slow: &'a [Tally],
    pub(super) typical: &'a [Tally],
    /// Begins and ends of the slow ones, ns.
    pub(super) slow_times: &'a [(u64, u64)],
    /// Begins and ends of the typical ones, ns.
    pub(super) typical_times: &'a [(u64, u64)],
    pub(super) knows_frequencies: bool,
    pub(super) limits: Option<&'a FrequencyLimits>,
}

/// Knowledge of a run.
pub(super) struct Run<'a> {
    /// Graph of it.
    pub(super) built: &'a Built<'a>,
    findings: &'a Findings<'a>,
    cpu_use: CpuUse,
    device_activity: DeviceActivity,
    rings: Vec<String>,
    frequencies: Option<Frequencies>,
    /// Kind of each cluster with frequencies: the first of those that are as fast.
    kinds: Vec<u32>,
    /// Processes of threads.
    processes: FxHashMap<u32, u32>,
    locks: BTreeMap<u32, String>,
    rivals: &'a [Rival],
}

impl<'a> Run<'a> {
    /// Takes what is known of a run.
    pub(super) fn new(
        built: &'a Built<'a>,
        findings: &'a Findings<'a>,
        timelines: Option<&Timelines>,
        events: &'a Events,
    ) -> Self {
        let frequencies = timelines.map(|timelines| Frequencies::new(findings.topology, timelines));
        let mut processes = events.processes.clone();
        for (tid, pid) in events.scheduling.iter().flat_map(Scheduling::ids) {
            if let Some(pid) = pid {
                processes.entry(tid).or_insert(pid);
            }
        }
        Self {
            built,
            findings,
            cpu_use: CpuUse::new(events.scheduling.as_ref(), &events.rival_turns, timelines),
            device_activity: DeviceActivity::new(&events.devices.jobs_until(findings.run.window.end_ns)),
            rings: events.devices.ring_names(),
            rivals: &events.rivals,
            kinds: frequencies.as_ref().map(kinds).unwrap_or_default(),
            frequencies,
            processes,
            locks: events.locks.iter().collect(),
        }
    }
}

impl Run<'_> {
    /// Returns the process of a thread, where it is known.
    pub(super) fn process_of(&self, tid: u32) -> Option<u32> {
        self.processes.get(&tid).copied()
    }

    /// Whether a thread that slept between two times (ns) was woken when a device was done with a job of it, by a thread of another
    /// process.
    pub(super) fn was_woken_by_device(&self, thread: u32, waker: u32, times: (u64, u64)) -> bool {
        self.process(thread) != self.process(waker)
            && self.device_activity.has_woken(self.built.threads[thread as usize].tid, times)
    }

    /// Returns how many CPUs the run has.
    pub(super) fn cpus(&self) -> usize {
        self.findings.sums.cpus.len()
    }
}

impl Compared<'_> {
    /// Returns the name of a function.
    pub(super) fn function(&self, component: u32) -> String {
        self.run.built.components.name(component)
    }

    /// Returns the name of a process, with its id.
    pub(super) fn process(&self, pid: u32) -> String {
        let findings = self.run.findings;
        let known = findings.run.processes.get(&pid).map(|process| process.comm.as_str());
        let of_devices = || Some(findings.devices.comm(pid).to_owned());
        let is_name = |comm: &String| !comm.is_empty();
        let known = known.map(str::to_owned).filter(is_name);
        let name = known.or_else(|| self.name_of(pid)).or_else(of_devices).filter(is_name);
        name.map_or_else(|| format!("process {pid}"), |comm| format!("{comm} ({pid})"))
    }

    /// Returns the name of a thread, with its id and its process.
    pub(super) fn thread(&self, tid: u32) -> String {
        let name =
            self.name_of(tid).map_or_else(|| format!("thread {tid}"), |comm| format!("{comm} ({tid})"));
        match self.run.processes.get(&tid) {
            Some(pid) if *pid != tid => format!("{name} of {}", self.process(*pid)),
            _ => name,
        }
    }

    fn name_of(&self, tid: u32) -> Option<String> {
        let run = &self.run.findings.run;
        let shown = run.threads.iter().find(|thread| thread.tid == tid).map(|thread| thread.comm.clone());
        let all = || run.thread_names?.get(tid, self.run.processes.get(&tid).copied());
        shown.filter(|comm| !comm.is_empty()).or_else(all)
    }

    /// Returns the name of a lock.
    pub(super) fn lock(&self, lock: Option<u32>) -> String {
        lock.and_then(|lock| self.run.locks.get(&lock).cloned()).unwrap_or_default()
    }

    /// Returns the name of a rival, with its ids.
    pub(super) fn rival(&self, rival: u32) -> String {
        self.run.rivals.get(rival as usize).map(rival_name).unwrap_or_default()
    }

    /// Returns the name of a ring with that of its device.
    pub(super) fn ring(&self, ring: u32) -> &str {
        self.run.rings.get(ring as usize).map_or("", |name| name)
    }

    /// Returns the name of a kind of clusters.
    pub(super) fn cluster(&self, kind: u32) -> String {
        let frequencies = self.run.frequencies.iter().flat_map(|frequencies| &frequencies.0);
        let of_kind = frequencies.zip(&self.run.kinds).filter(|(_, other)| **other == kind);
        let named = |name: &str| {
            // Those of this machine are only numbered.
            let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
            if is_number { format!("cluster {name}") } else { name.to_owned() }
        };
        of_kind.map(|(cluster, _)| named(&cluster.name)).collect::<Vec<_>>().join(" and ")
    }

    /// Returns the CPUs of a kind of clusters.
    pub(super) fn cpus_of(&self, kind: u32) -> Vec<u32> {
        let frequencies = self.run.frequencies.iter().flat_map(|frequencies| &frequencies.0);
        let of_kind = frequencies.zip(&self.run.kinds).filter(|(_, other)| **other == kind);
        of_kind.flat_map(|(cluster, _)| cluster.cpus.clone()).collect()
    }

    /// Returns the name of an idle state, and its exit latency, ns, where it is known.
    pub(super) fn idle_state(&self, cpu: u32, state: Option<u32>) -> (String, Option<u64>) {
        let topology = self.run.findings.topology;
        let Some(state) = state else { return ("of unknown depth".into(), None) };
        let described = topology.cpus.get(&cpu).and_then(|cpu| cpu.idle_states.get(state as usize));
        (topology.idle_name(cpu, state), described.and_then(|state| state.exit_latency_ns))
    }
}

impl Host for Run<'_> {
    fn process(&self, thread: u32) -> u32 {
        let tid = self.built.threads[thread as usize].tid;
        self.processes.get(&tid).copied().unwrap_or(tid)
    }

    fn speeds(&self, cpu: u32, (begin, end): (u64, u64), take: &mut dyn FnMut(u64, Option<(u32, u32)>)) {
        let all = self.frequencies.iter().flat_map(|frequencies| &frequencies.0).zip(&self.kinds);
        let Some((cluster, kind)) = all.into_iter().find(|(cluster, _)| cluster.cpus.contains(&cpu)) else {
            return take(end - begin, None);
        };
        cluster.visit(begin, end, |ns, khz| take(ns, khz.map(|khz| (*kind, khz))));
    }

    fn meanwhile(&self, link: &Link, take: &mut dyn FnMut(Meanwhile, u64)) {
        let Doing::Waited(turn) = link.doing else { return };
        let tid = self.built.threads[link.thread as usize].tid;
        self.cpu_use.visit(tid, turn, (link.begin, link.end), take);
    }

    fn devices(&self, link: &Link, take: &mut dyn FnMut(Option<DeviceWait>, u64)) {
        let tid = self.built.threads[link.thread as usize].tid;
        self.device_activity.visit(tid, (link.begin, link.end), take);
    }
}

/// Returns the kind of each cluster: the first one whose highest frequency is about the same.
fn kinds(frequencies: &Frequencies) -> Vec<u32> {
    let highest: Vec<u64> = frequencies.0.iter().map(|cluster| u64::from(cluster.highest())).collect();
    let is_same = |a: u64, b: u64| a.abs_diff(b) * 100 <= a.max(b) * SAME_KIND;
    let kind =
        |place: usize| highest.iter().position(|other| is_same(*other, highest[place])).unwrap_or(place);
    (0..highest.len()).map(|place| kind(place) as u32).collect()
}

/// Names a rival: `sh (1234)`, `sh (4 processes)`.
fn rival_name(rival: &Rival) -> String {
    let Rival { name, threads } = rival;
    let name = if name.is_empty() { "unnamed thread" } else { name };
    let processes = threads.iter().map(|(pid, _)| pid).collect::<BTreeSet<_>>().len();
    match threads.first() {
        Some((0, 0)) if threads.len() == 1 => format!("{name} (outside of this PID namespace)"),
        Some((pid, tid)) if threads.len() == 1 && pid == tid => format!("{name} ({tid})"),
        Some((pid, tid)) if threads.len() == 1 => format!("{name} ({tid}) of process {pid}"),
        Some((pid, _)) if processes == 1 => format!("{name} ({} threads of process {pid})", threads.len()),
        _ => format!("{name} ({processes} processes)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rivals_are_named_by_what_they_are_of() {
        let name = |name: &str, threads: &[(u32, u32)]| {
            rival_name(&Rival { name: name.to_owned(), threads: threads.iter().copied().collect() })
        };
        assert_eq!(name("sh", &[(7, 7)]), "sh (7)");
        assert_eq!(name("pool", &[(7, 8)]), "pool (8) of process 7");
        assert_eq!(name("pool", &[(7, 8), (7, 9)]), "pool (2 threads of process 7)");
        assert_eq!(name("sh", &[(7, 7), (8, 8), (8, 9)]), "sh (2 processes)");
        assert_eq!(name("", &[(7, 7)]), "unnamed thread (7)");
        assert_eq!(name("sh", &[(0, 0)]), "sh (outside of this PID namespace)");
    }
}
