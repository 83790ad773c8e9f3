//! The tables of the states of CPUs and clusters over time.

use std::{collections::BTreeMap, path::Path};

use super::{
    ExportError, Label,
    schema::{CLUSTER_INTERVALS, CPU_INTERVALS},
    table::{Table, Value},
};
use crate::model::{
    Findings,
    timeline::{CpuState, Timeline, Timelines},
};

/// Writes both tables.
pub(super) fn write(
    folder: &Path,
    label: &Label,
    findings: &Findings<'_>,
    timelines: Option<&Timelines>,
) -> Result<(), ExportError> {
    let topology = findings.topology;
    let mut table = Table::create(folder, &CPU_INTERVALS, label)?;
    // The results have no row of other CPUs.
    let is_shown = |cpu: u32| findings.sums.cpus.iter().any(|row| row.cpu == cpu);
    for (&cpu, timeline) in timelines.iter().flat_map(|all| &all.cpus).filter(|(cpu, _)| is_shown(**cpu)) {
        let cluster = Some(topology.cluster_of(cpu)).filter(|name| !name.is_empty());
        let idle_name = |state| topology.idle_name(cpu, state);
        each(timeline, "running", idle_name, |[begin, end, state, idle, idle_name, khz, ns]| {
            table.push(&[cpu.into(), cluster.into(), begin, end, state, idle, idle_name, khz, ns])
        })?;
    }
    table.finish()?;
    let mut table = Table::create(folder, &CLUSTER_INTERVALS, label)?;
    let clusters = timelines.iter().flat_map(|all| &all.clusters).zip(&topology.clusters);
    for ((name, timeline), cluster) in clusters {
        let idle_name = |level| topology.level_name(&cluster.cpus, level);
        each(timeline, "active", idle_name, |[begin, end, state, idle, idle_name, khz, ns]| {
            table.push(&[Value::Text(name), begin, end, state, idle, idle_name, khz, ns])
        })?;
    }
    table.finish().map(drop)
}

/// Calls this with every interval, in order of time: begin, end, name of the state, number and name of the idle state,
/// frequency, time in the state. `running` is the name of the state that has a frequency.
fn each(
    timeline: &Timeline,
    running: &'static str,
    idle_name: impl Fn(u32) -> String,
    mut take: impl FnMut([Value<'_>; 7]) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let mut names: BTreeMap<u32, String> = BTreeMap::new();
    let mut taken = Ok(());
    timeline.visit(|begin, end, parts| {
        for &(state, ns) in parts {
            if taken.is_err() {
                return;
            }
            let (name, idle, khz) = match state {
                CpuState::Running(khz) => (running, None, khz),
                CpuState::Idle(state) => ("idle", Some(state), None),
                CpuState::IdleUnknown => ("idle_unknown", None, None),
                CpuState::Offline => ("offline", None, None),
                CpuState::Unknown => ("unknown", None, None),
            };
            let idle_name = idle.map(|state| &**names.entry(state).or_insert_with(|| idle_name(state)));
            let idle_name = idle_name.filter(|name| !name.is_empty());
            taken = take([
                begin.into(),
                end.into(),
                name.into(),
                idle.into(),
                idle_name.into(),
                khz.into(),
                ns.into(),
            ]);
        }
    });
    taken
}

/// Returns the length of the intervals of the coarsest timeline, ns; `None` where every interval has one state.
pub(super) fn resolution(timelines: &Timelines) -> Option<u64> {
    let clusters = timelines.clusters.iter().map(|(_, timeline)| timeline);
    timelines.cpus.values().chain(clusters).filter_map(Timeline::resolution).max()
}
