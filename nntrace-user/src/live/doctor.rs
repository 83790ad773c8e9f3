//! Capabilities of this machine, each tried the way a run uses it.

mod fixes;
mod host_checks;
mod kernel_checks;
mod kernel_config;

use std::{ffi::OsStr, path::Path};

use nix::sys::utsname::{UtsName, uname};
use serde::Serialize;

use self::kernel_checks::KernelSide;
use super::sysfs;

/// Version of [`Diagnosis`] as JSON: within one, keys are only added.
const VERSION: u32 = 1;

/// A machine, and what it lets a run measure.
#[derive(Debug, Serialize)]
pub struct Diagnosis {
    /// Version of this structure.
    pub version: u32,
    /// Release of the kernel, as `uname -r` prints it.
    pub kernel: String,
    /// Architecture, as `uname -m` prints it.
    pub machine: String,
    /// Number of CPUs that are online.
    pub cpus: usize,
    /// Whether a live run can start here and see marks: all that it requires is present.
    pub can_trace: bool,
    /// Whether a live run can show at least idle states and frequencies of CPUs (`--marks none`).
    pub can_show_cpus: bool,
    /// The capabilities, those that others depend on first.
    pub capabilities: Vec<Capability>,
}

/// Something that a run requires or can use.
#[derive(Debug, Serialize)]
pub struct Capability {
    /// Its name.
    pub name: &'static str,
    /// The purpose that it serves in a run.
    pub purpose: &'static str,
    /// Whether no live run works without it.
    pub required: bool,
    /// Result of its check.
    #[serde(flatten)]
    pub finding: Finding,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Whether it is there.
    pub status: Status,
    /// Text on what was found, or why it is not there.
    pub found: String,
    /// Commands that provide it, each on its own; empty where none does.
    pub fixes: Vec<String>,
}

/// Whether a capability is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It works.
    Present,
    /// A part of it works.
    Partial,
    /// It does not work here.
    Absent,
    /// It could not be tried, for lack of another one.
    Unknown,
}

impl Status {
    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Partial => "partial",
            Self::Absent => "absent",
            Self::Unknown => "unknown",
        }
    }
}

impl Finding {
    fn present(found: impl Into<String>) -> Self {
        Self { status: Status::Present, found: found.into(), fixes: Vec::new() }
    }

    fn partial(found: impl Into<String>, fixes: Vec<String>) -> Self {
        Self { status: Status::Partial, found: found.into(), fixes }
    }

    fn absent(found: impl Into<String>, fixes: Vec<String>) -> Self {
        Self { status: Status::Absent, found: found.into(), fixes }
    }

    fn unknown(found: impl Into<String>) -> Self {
        Self { status: Status::Unknown, found: found.into(), fixes: Vec::new() }
    }
}

/// How a capability is checked.
struct Check {
    name: &'static str,
    purpose: &'static str,
    required: bool,
    run: fn(&mut KernelSide) -> Finding,
}

impl Check {
    const fn required(
        name: &'static str,
        purpose: &'static str,
        run: fn(&mut KernelSide) -> Finding,
    ) -> Self {
        Self { name, purpose, required: true, run }
    }

    const fn optional(
        name: &'static str,
        purpose: &'static str,
        run: fn(&mut KernelSide) -> Finding,
    ) -> Self {
        Self { name, purpose, required: false, run }
    }
}

/// Name of the check on the events that show states of CPUs.
const POWER_EVENTS: &str = "power events";

/// All checks, in the order in which they run and are shown.
const CHECKS: [Check; 20] = [
    Check::required("privileges", "loading and attaching kernel programs", |_| host_checks::privileges()),
    Check::required("kernel programs", "everything that is measured live", KernelSide::programs),
    Check::required("uprobes", "marks, functions of engines, --call", KernelSide::uprobes),
    Check::optional("kernel options", "finding out what the kernel was built without", |_| {
        kernel_config::options()
    }),
    Check::optional("other users' processes", "--pid and --comm of processes of others", |_| {
        host_checks::other_users()
    }),
    Check::optional("hooks", "operators of a command, for tens of ns each", |_| host_checks::hooks()),
    Check::optional("open files", "tables, rings and probes of many files", |_| host_checks::descriptors()),
    Check::optional("BTF", "context switches, files that targets open, containers", |_| host_checks::btf()),
    Check::optional("tracefs", "following children, changes of frequency limits", |_| host_checks::tracefs()),
    Check::optional("child processes", "tracing what the targets start", KernelSide::child_processes),
    Check::optional(
        "context switches",
        "--level sched: waits for a CPU, `why`, `explain`",
        KernelSide::scheduling,
    ),
    Check::optional("trace_marker writes", "--marks syscall", KernelSide::trace_marker),
    Check::optional(POWER_EVENTS, "idle states and frequencies of CPUs", KernelSide::power),
    Check::optional(
        "further power events",
        "suspends, missed idle states, frequency limits",
        KernelSide::evidence,
    ),
    Check::optional("idle states", "how deep the CPUs slept", |_| host_checks::idle_states()),
    Check::optional("CPU frequencies", "running time by frequency, energy models", |_| {
        host_checks::frequencies()
    }),
    Check::optional("clusters", "idle time and energy by cluster", |_| host_checks::clusters()),
    Check::optional("hardware counters", "--counters with cycles, instructions, cache misses", |_| {
        host_checks::counters()
    }),
    Check::optional("power rails", "--rails: energy that sensors measured", |_| host_checks::rails()),
    Check::optional("device usage", "how busy accelerators and GPUs are, and who uses them", |_| {
        host_checks::devices()
    }),
];

/// Tries everything that a run can use on this machine. Kernel programs are loaded and attached for some milliseconds each; no
/// process is traced.
#[must_use]
pub fn examine() -> Diagnosis {
    let mut kernel = KernelSide::load();
    let capability = |check: &Check| Capability {
        name: check.name,
        purpose: check.purpose,
        required: check.required,
        finding: (check.run)(&mut kernel),
    };
    let capabilities: Vec<Capability> = CHECKS.iter().map(capability).collect();
    let lacks = |capability: &Capability| capability.required && capability.finding.status != Status::Present;
    let is_present = |name| {
        capabilities
            .iter()
            .any(|capability| capability.name == name && capability.finding.status == Status::Present)
    };
    let can_show_cpus = is_present(POWER_EVENTS);
    let names = uname().ok();
    let name = |text: Option<&OsStr>| {
        text.map_or_else(|| "unknown".into(), |text| text.to_string_lossy().into_owned())
    };
    Diagnosis {
        version: VERSION,
        kernel: name(names.as_ref().map(UtsName::release)),
        machine: name(names.as_ref().map(UtsName::machine)),
        cpus: sysfs::online(Path::new(sysfs::CPUS)).len(),
        can_show_cpus,
        can_trace: !capabilities.iter().any(lacks),
        capabilities,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_every_capability_has_a_purpose() {
        let names: BTreeSet<&str> = CHECKS.iter().map(|check| check.name).collect();
        assert_eq!(names.len(), CHECKS.len());
        assert!(CHECKS.iter().all(|check| !check.purpose.is_empty()));
    }

    #[test]
    fn a_status_has_the_same_name_in_text_and_json() {
        for status in [Status::Present, Status::Partial, Status::Absent, Status::Unknown] {
            assert_eq!(serde_json::to_value(status).unwrap(), status.name());
        }
    }
}
