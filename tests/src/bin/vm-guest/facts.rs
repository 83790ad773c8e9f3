//! Facts about this kernel, for the table in the documentation.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Result;
use nix::sys::utsname::uname;
use nntrace_tests::{cpus, live, profiler::Profiler};
use nntrace_user::{
    live::{sysfs, tracefs},
    report::snapshot::Snapshot,
};
use serde::Serialize;

use crate::{Outcome, host};

/// Facts in the format for the host.
#[derive(Serialize)]
struct Facts {
    /// `uname -r`.
    release: String,
    /// `uname -m`.
    machine: String,
    /// Whether the kernel describes its types.
    btf: bool,
    /// Driver of the idle states; `None` where the kernel just waits for an interrupt.
    idle_driver: Option<String>,
    /// Names of the first CPU's idle states.
    idle_states: Vec<String>,
    /// Number of frequency policies.
    policies: usize,
    /// Source of the clusters.
    clusters: String,
    /// Sources of the CPUs' activity at the begin of the window, with the number of CPUs.
    initial_idle: BTreeMap<String, usize>,
    /// Tracepoints of evidence, as named in the snapshot.
    evidence: Vec<String>,
    /// Tracepoints for residency that exist.
    tracepoints: Vec<&'static str>,
    /// Notes of the profiler on things that it cannot measure.
    notes: Vec<String>,
}

/// Gathers the facts, and sends them to the host.
pub fn tell() -> Result<Outcome> {
    let snapshot: Snapshot =
        Profiler::new()?.args(["--marks", "none", "--duration", "300ms"]).run()?.snapshot;
    let mut initial_idle: BTreeMap<String, usize> = BTreeMap::new();
    for row in &snapshot.cpus {
        let source = serde_json::to_value(row.initial.idle)?;
        *initial_idle.entry(source.as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    let read = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let driver = read("/sys/devices/system/cpu/cpuidle/current_driver").filter(|name| name != "none");
    let (topology, note) = sysfs::topology(Path::new(sysfs::CPUS));
    let cluster_files = Path::new(sysfs::CPUS).join("cpu0/topology/cluster_cpus_list").exists();
    let policies = cpus::policies()?;
    let uname = uname()?;
    let facts = Facts {
        release: uname.release().to_string_lossy().into_owned(),
        machine: uname.machine().to_string_lossy().into_owned(),
        btf: live::has_btf(),
        idle_driver: driver,
        idle_states: topology
            .cpus
            .values()
            .next()
            .map(|cpu| cpu.idle_states.iter().map(|state| state.name.clone()).collect())
            .unwrap_or_default(),
        policies: policies.len(),
        clusters: match (note, cluster_files, policies.is_empty()) {
            (Some(_), ..) => "none known: one of all CPUs",
            (None, true, _) => "topology/cluster_cpus_list",
            (None, false, false) => "frequency policies",
            (None, false, true) => "unknown",
        }
        .into(),
        initial_idle,
        evidence: snapshot.evidence.map(|evidence| evidence.sources).unwrap_or_default(),
        tracepoints: [
            "power/cpu_idle",
            "power/cpu_frequency",
            "cpuhp/cpuhp_exit",
            "sched/sched_process_fork",
        ]
        .into_iter()
        .filter(|event| tracefs::field_offset(event, "common_pid").is_ok())
        .collect(),
        notes: snapshot.notes,
    };
    let mut text = serde_json::to_string_pretty(&facts)?;
    text.push('\n');
    print!("{text}");
    host::send("facts.json", text.as_bytes())?;
    Ok(Outcome::Passed)
}
