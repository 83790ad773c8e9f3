//! The programs on limits of frequencies: those of policies, and the states of cooling devices.

use aya::EbpfLoader;

use super::object::Object;
use crate::live::tracefs;

/// The programs. They stay attached until the end.
pub(super) struct LimitPrograms {
    /// On the limits of policies: lower limit, upper limit, CPU.
    policies: EventProgram<3>,
    /// On cooling devices: type, state. `None` where nobody wants them.
    cooling: Option<EventProgram<2>>,
    /// Whether changes are reported one by one: 1, or 0.
    is_recorded: u32,
}

/// Program on an event, and the fields that it reads.
struct EventProgram<const N: usize> {
    name: &'static str,
    /// Global with the offsets.
    global: &'static str,
    group: &'static str,
    event: &'static str,
    /// Offsets of the fields, bytes; `None` where tracefs lacks them.
    offsets: Option<[u32; N]>,
}

impl LimitPrograms {
    /// Prepares the programs; unless the run is recorded they keep the last limits of each CPU only.
    pub(super) fn new(is_recorded: bool) -> Self {
        Self {
            policies: EventProgram::on_policies(
                "power",
                "cpu_frequency_limits",
                ["min_freq", "max_freq", "cpu_id"],
            ),
            cooling: is_recorded
                .then(|| EventProgram::on_cooling("thermal", "cdev_update", ["type", "target"])),
            is_recorded: u32::from(is_recorded),
        }
    }

    pub(super) fn configure<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        loader.override_global("IS_RECORDED", &self.is_recorded, true);
        self.policies.configure(loader);
        if let Some(cooling) = &self.cooling {
            cooling.configure(loader);
        }
    }

    /// Attaches to the tracepoints that exist; returns their names.
    pub(super) fn attach(&self, object: &mut Object) -> impl Iterator<Item = &'static str> {
        let policies = self.policies.attach(object);
        let cooling = self.cooling.as_ref().and_then(|cooling| cooling.attach(object));
        policies.into_iter().chain(cooling)
    }
}

impl EventProgram<3> {
    fn on_policies(group: &'static str, event: &'static str, fields: [&str; 3]) -> Self {
        Self::new("frequency_limits", "LIMITS_OFFSETS", group, event, fields)
    }
}

impl EventProgram<2> {
    fn on_cooling(group: &'static str, event: &'static str, fields: [&str; 2]) -> Self {
        Self::new("cooling", "COOLING_OFFSETS", group, event, fields)
    }
}

impl<const N: usize> EventProgram<N> {
    fn new(
        name: &'static str,
        global: &'static str,
        group: &'static str,
        event: &'static str,
        fields: [&str; N],
    ) -> Self {
        let described = format!("{group}/{event}");
        let offsets = fields.map(|field| tracefs::field_offset(&described, field).ok());
        let offsets = offsets.into_iter().collect::<Option<Vec<u32>>>();
        Self { name, global, group, event, offsets: offsets.and_then(|offsets| offsets.try_into().ok()) }
    }

    fn configure<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        if let Some(offsets) = &self.offsets {
            loader.override_global(self.global, offsets, true);
        }
    }

    /// Attaches the program; returns the name of the event. Whatever the reason: limits that cannot be followed are not shown.
    fn attach(&self, object: &mut Object) -> Option<&'static str> {
        self.offsets?;
        object.load_event(self.name).ok()?;
        object.attach_event(self.name, self.group, self.event).ok()?;
        Some(self.event)
    }
}

#[cfg(test)]
mod tests;
