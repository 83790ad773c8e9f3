//! The programs on limits of frequencies: those of policies, and the states of cooling devices.

use aya::EbpfLoader;

use super::object::Object;
use crate::live::tracefs;

/// The program on policies, and the group and name of its event.
const POLICIES: (&str, &str, &str) = ("frequency_limits", "power", "cpu_frequency_limits");
/// The program on cooling devices.
const COOLING: (&str, &str, &str) = ("cooling", "thermal", "cdev_update");

/// The programs. They stay attached until the end.
pub(super) struct LimitPrograms {
    /// Offsets of the lower limit, the upper limit and the CPU in the event of a policy. `None` where tracefs lacks them.
    policies: Option<[u32; 3]>,
    /// Offsets of type and state in that of a cooling device. `None` where tracefs lacks them, or nobody wants them.
    cooling: Option<[u32; 2]>,
    /// Whether changes are reported one by one: 1, or 0.
    reports: u32,
}

impl LimitPrograms {
    /// Prepares the programs; without `reports` they keep the last limits of each CPU only.
    pub(super) fn new(reports: bool) -> Self {
        let cooling = || offsets(COOLING, ["type", "target"]);
        Self {
            policies: offsets(POLICIES, ["min_freq", "max_freq", "cpu_id"]),
            cooling: reports.then(cooling).flatten(),
            reports: u32::from(reports),
        }
    }

    pub(super) fn configure<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        loader.override_global("EMIT_LIMITS", &self.reports, true);
        if let Some(offsets) = &self.policies {
            loader.override_global("LIMITS_OFFSETS", offsets, true);
        }
        if let Some(offsets) = &self.cooling {
            loader.override_global("COOLING_OFFSETS", offsets, true);
        }
    }

    /// Attaches to the tracepoints that exist; returns their names.
    pub(super) fn attach(&self, object: &mut Object) -> Vec<&'static str> {
        let programs = [(POLICIES, self.policies.is_some()), (COOLING, self.cooling.is_some())];
        let wanted = programs.into_iter().filter(|(_, is_wanted)| *is_wanted);
        // Whatever the reason: limits that cannot be followed are not shown.
        let attached = wanted.filter(|((program, group, event), _)| {
            object.load_event(program).is_ok() && object.attach_event(program, group, event).is_ok()
        });
        attached.map(|((_, _, event), _)| event).collect()
    }
}

/// Returns the offsets of the fields of a program's event.
fn offsets<const N: usize>(
    (_, group, event): (&str, &str, &str),
    fields: [&str; N],
) -> Option<[u32; N]> {
    let event = format!("{group}/{event}");
    let offsets = fields.map(|field| tracefs::field_offset(&event, field).ok());
    offsets.iter().copied().collect::<Option<Vec<u32>>>()?.try_into().ok()
}
