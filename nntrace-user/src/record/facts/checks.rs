//! Checks of a checkpoint that was read. Values that no recorder writes would overflow sums, or ask for endless memory.

use super::{super::initial_host::InitialHost, Checkpoint, CpuRow};
use crate::model::MAX_CPU;

impl Checkpoint {
    /// Reads a checkpoint.
    ///
    /// # Errors
    /// When it is none of this version, or has values that no run has; with a text that says which.
    pub(in super::super) fn read(json: &[u8]) -> Result<Box<Self>, String> {
        let state: Box<Self> = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        state.check()?;
        Ok(state)
    }

    fn check(&self) -> Result<(), String> {
        let Self { window, host_at_begin, cpus, reports, kept, .. } = self;
        if window.begin_ns > window.end_ns {
            return Err(format!(
                "its window begins at {} ns and ends at {} ns",
                window.begin_ns, window.end_ns
            ));
        }
        host_at_begin.as_ref().map_or(Ok(()), InitialHost::check)?;
        let mut kept_cpus = kept.iter().flat_map(|kept| kept.initial.cpus.keys());
        if let Some(cpu) = kept_cpus.find(|cpu| **cpu > MAX_CPU) {
            return Err(format!(
                "what it keeps begins with CPU {cpu}, and {MAX_CPU} is the largest number of one"
            ));
        }
        cpus.iter().try_for_each(CpuRow::check)?;
        // Sections without a report are in the first one.
        let count = reports.starting_marks.len().max(1);
        let sections = reports.sections.iter().map(|row| row.report);
        let mut numbers = sections.chain(reports.executions.iter().map(|row| row.report));
        match numbers.find(|report| *report as usize >= count) {
            Some(report) => {
                Err(format!("it has sums of report {report}, counted from 0, and {count} reports"))
            }
            None => Ok(()),
        }
    }
}

impl CpuRow {
    fn check(&self) -> Result<(), String> {
        let Self { cpu, idle, running, idle_unknown_ns, offline_ns, unknown_ns, .. } = self;
        if *cpu > MAX_CPU {
            return Err(format!("it has CPU {cpu}, and {MAX_CPU} is the largest number of one"));
        }
        let idle = idle.values().map(|stays| stays.ns);
        let times = idle.chain(running.iter().map(|row| row.sum.ns));
        let mut times = times.chain([*idle_unknown_ns, *offline_ns, *unknown_ns]);
        let sum = times.try_fold(0_u64, u64::checked_add);
        sum.map(drop).ok_or_else(|| format!("the times of CPU {cpu} are longer than any window"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Returns a state without anything, as JSON.
    fn empty() -> Value {
        let sizes =
            ["functions", "sites", "phases", "names", "tracks", "open_slices", "hand_overs", "threads"];
        let sizes = sizes.into_iter().chain(["processes", "causes", "iterations", "sections"]);
        let limits: serde_json::Map<String, Value> = sizes.map(|size| (size.to_owned(), json!(9))).collect();
        json!({
            "is_last": true,
            "run": {
                "tool": "", "arguments": [], "command": [], "folder": "", "environment": {},
                "clocks": {"monotonic_ns": 0, "boottime_ns": 0, "realtime_ns": 0}, "scheduling": false,
                "questions": {"iteration_root": null, "by": null, "explain": null, "missing": false, "graph": false},
                "limits": limits, "drivers": [], "exit_status": null,
            },
            "host_at_begin": null,
            "host": {"kernel": "", "machine": "", "cpus": 1},
            "window": {"clock": "monotonic", "begin_ns": 10, "end_ns": 20},
            "source": {"kind": "live", "marks": "uprobe", "files": []},
            "processes": {}, "threads": [], "energy_model": null, "evidence": null, "verify": null,
            "overhead": {
                "marks": 0, "ns_per_mark": null, "power_events": 0, "ns_per_power_event": null, "collector_cpu_ns": 0,
            },
            "loss": {
                "records_produced": 0, "records_drained": 0, "records_dropped": 0, "records_late": 0, "dropped_by_cpu": {},
            },
            "diagnostics": [], "notes": [], "with_details": false, "seen_drivers": [], "driver_callers": [], "open": [],
            "late_names": [], "paths": [], "cpus": [], "totals": [],
            "reports": {"starting_marks": [], "sections": [], "executions": []},
        })
    }

    fn read(state: &Value) -> Result<Box<Checkpoint>, String> {
        Checkpoint::read(state.to_string().as_bytes())
    }

    #[test]
    fn keys_and_diagnostics_of_later_versions_are_left_out() {
        let mut state = empty();
        state["cause"] = json!({"later": 1});
        state["later"] = json!({"a": 1});
        let row = |kind: &str| json!({"kind": kind, "count": 1, "first_ns": 2, "tid": 3, "example": []});
        state["diagnostics"] = json!([row("a_later_kind"), row("bad_nesting")]);
        assert_eq!(read(&state).unwrap().diagnostics().len(), 1);
    }

    #[test]
    fn values_that_no_run_has_are_refused() {
        let cpu = |number: u32, ns: u64| {
            json!({
                "cpu": number, "idle": {}, "idle_at_end": null, "running": [{"khz": null, "ns": ns, "count": 1}],
                "idle_unknown_ns": 1, "offline_ns": 0, "unknown_ns": 0, "idle_source": "event", "frequency_source": "event",
            })
        };
        let section = |report: u32| json!({"report": report, "app_phase": "overall", "pid": 1, "path": "0000000000000001", "own_ns": 1});
        let host = |cpu: u32| {
            json!({
                "topology": {"cpus": {}, "clusters": [], "policies": [[cpu]], "has_no_idle_driver": false},
                "initial": {"cpus": {}},
            })
        };
        let kept = |cpu: u32| {
            let state = json!({"activity": null, "idle": "unknown", "khz": null, "frequency": "unknown"});
            json!({"begin_ns": 11, "first_event": 2, "initial": {"cpus": {cpu.to_string(): state}}})
        };
        let cases = [
            (["cpus", ""], json!([cpu(MAX_CPU, 9)]), None),
            (["cpus", ""], json!([cpu(MAX_CPU + 1, 9)]), Some("CPU 8192")),
            (["cpus", ""], json!([cpu(1, u64::MAX)]), Some("longer than any window")),
            (["window", "end_ns"], json!(9), Some("ends at 9 ns")),
            (["reports", "sections"], json!([section(0)]), None),
            (["reports", "sections"], json!([section(1)]), Some("sums of report 1")),
            (["kept", ""], kept(MAX_CPU), None),
            (["kept", ""], kept(MAX_CPU + 1), Some("CPU 8192")),
            (["host_at_begin", ""], host(MAX_CPU), None),
            (["host_at_begin", ""], host(MAX_CPU + 1), Some("CPU 8192")),
        ];
        for ([key, inner], value, reason) in cases {
            let mut state = empty();
            let place = if inner.is_empty() { &mut state[key] } else { &mut state[key][inner] };
            *place = value;
            let error = read(&state).err();
            match reason {
                Some(reason) => {
                    assert!(error.as_ref().is_some_and(|error| error.contains(reason)), "{key}: {error:?}");
                }
                None => assert_eq!(error, None, "{key}"),
            }
        }
    }
}
