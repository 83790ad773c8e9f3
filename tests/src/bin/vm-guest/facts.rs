//! What the kernel of this machine gives, for the table in the documentation.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Result;
use nix::sys::utsname::uname;
use nntrace_tests::{live, profiler::Profiler};
use nntrace_user::{
    live::{sysfs, tracefs},
    report::snapshot::Snapshot,
};
use serde::Serialize;

use crate::{Outcome, host, machine};

/// The facts, as the host reads them.
#[derive(Serialize)]
struct Facts {
    /// `uname -r`.
    release: String,
    /// `uname -m`.
    machine: String,
    /// From which the layout of the kernel's own structures is read.
    btf: bool,
    /// Who puts CPUs to sleep; none where the kernel just waits for an interrupt.
    idle_driver: Option<String>,
    /// The names of the first CPU's idle states.
    idle_states: Vec<String>,
    /// How many frequency policies there are.
    policies: usize,
    /// Where the clusters are known from.
    clusters: String,
    /// Where it is known from what CPUs did when the window began, and of how many.
    initial_idle: BTreeMap<String, usize>,
    /// The tracepoints beside, as the snapshot names them.
    evidence: Vec<String>,
    /// The tracepoints that residency needs, as far as they are there.
    tracepoints: Vec<&'static str>,
    /// What the profiler says that it cannot measure.
    notes: Vec<String>,
}

/// Gathers them, and gives them to the host.
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
    let policies = machine::policies()?;
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
