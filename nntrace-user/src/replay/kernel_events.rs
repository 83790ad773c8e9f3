//! Kernel events that a replay reads: one row each, for the text of ftrace, `trace.dat` and Perfetto alike.
//!
//! A row has the name of the event, the numbers that Perfetto gives to it and to its fields, and the function that reads
//! the fields. Readers of binary files format the fields of these events, and of no others, as `NAME=VALUE`, as the kernel's
//! text has them. A name that several drivers use for marks of their own is in [`driver_marks`](super::driver_marks).
//!
//! Source of the numbers: `protos/perfetto/trace/ftrace/` of Perfetto.

use super::{
    binder, device_clocks,
    device_clocks::DeviceFrequency,
    device_events, fork_exit,
    fork_exit::TaskEvent,
    frequency_limits::{self, Limit},
    ftrace, hotplug,
    hotplug::Change,
    sched,
    sched::SchedEvent,
    window_markers::{self, Marker},
};
use crate::{
    model::{causality::hand_overs::BinderEvent, devices::event::DeviceEvent},
    perfetto_schema::{device_events as schema, ftrace::EventMessage},
};

/// Kernel event with its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum KernelEvent<'a> {
    /// A context switch, a wake-up or an exec.
    Sched(SchedEvent<'a>),
    /// A new thread, or one that exits.
    Task(TaskEvent),
    /// A step of CPU hotplug.
    Hotplug(Change),
    /// A limit of a frequency, or the state of a cooling device.
    Limit(Limit),
    /// A transaction of the binder driver.
    Binder(BinderEvent),
    /// A frequency of a device.
    DeviceFrequency(DeviceFrequency<'a>),
    /// An event of the queue of a device.
    Device(DeviceEvent<'a>),
    /// An idle state of a CPU; `u32::MAX` where it leaves one.
    Idle {
        /// Idle state.
        state: u32,
        /// CPU concerned.
        cpu: u32,
    },
    /// A requested frequency.
    Frequency {
        /// Frequency, kHz.
        khz: u32,
        /// CPU concerned.
        cpu: u32,
    },
    /// A word about the trace itself.
    Marker(Marker),
    /// An event that counts for nothing, although its name is known.
    Nothing,
}

/// Result of reading an event by its name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reading<'a> {
    /// The event.
    Event(KernelEvent<'a>),
    /// An event of a known name, with fields that cannot be used.
    Unusable,
    /// An event that a replay does not read.
    Unknown,
}

/// Row of the table.
pub(crate) struct Row {
    /// Name of the event.
    pub name: &'static str,
    /// Perfetto's message, where it has one that is not read otherwise (`perfetto/ftrace_bundles.rs`).
    pub message: Option<EventMessage>,
    read: for<'a> fn(&'a [u8]) -> Option<KernelEvent<'a>>,
}

/// Creates a row without a message of Perfetto's.
const fn row(name: &'static str, read: for<'a> fn(&'a [u8]) -> Option<KernelEvent<'a>>) -> Row {
    Row { name, message: None, read }
}

impl Row {
    /// Adds Perfetto's message.
    const fn with(self, number: u32, fields: &'static [(u32, &'static str)]) -> Self {
        self.with_message(EventMessage { number, fields })
    }

    /// Adds Perfetto's message.
    const fn with_message(self, message: EventMessage) -> Self {
        Self { message: Some(message), ..self }
    }
}

/// All events that a replay reads, the frequent ones first.
static ROWS: [Row; 40] = [
    row("sched_switch", |fields| sched::switch(fields).map(KernelEvent::Sched)),
    row("sched_waking", |fields| sched::woken(fields).map(KernelEvent::Sched)),
    row("sched_wakeup", |fields| sched::woken(fields).map(KernelEvent::Sched)),
    row("sched_wakeup_new", |fields| sched::new(fields).map(KernelEvent::Sched)),
    row("cpu_idle", idle),
    row("cpu_frequency", frequency),
    row("sched_process_exec", |fields| sched::exec(fields).map(KernelEvent::Sched)),
    row("sched_process_fork", |fields| fork_exit::fork(fields).map(KernelEvent::Task)),
    row("sched_process_exit", |_| Some(KernelEvent::Task(TaskEvent::Exit))),
    row("binder_transaction", |fields| binder::sent(fields).map(KernelEvent::Binder)),
    row("binder_transaction_received", |fields| binder::received(fields).map(KernelEvent::Binder)),
    // Binder in Rust.
    row("rust_binder_transaction", |fields| binder::sent(fields).map(KernelEvent::Binder)),
    row("rust_binder_transaction_received", |fields| binder::received(fields).map(KernelEvent::Binder)),
    row("cpu_frequency_limits", |fields| frequency_limits::limit(fields).map(KernelEvent::Limit))
        .with(12, &[(1, "min_freq"), (2, "max_freq"), (3, "cpu_id")]),
    row("cdev_update", |fields| frequency_limits::cooling(fields).map(KernelEvent::Limit))
        .with(342, &[(1, "target"), (2, "type")]),
    row("cpuhp_enter", |fields| hotplug::enter(fields).map(KernelEvent::Hotplug)),
    row("cpuhp_exit", |fields| hotplug::exit(fields).map(KernelEvent::Hotplug)),
    // Android's kernels 3.x and 4.x.
    row("sched_cpu_hotplug", |fields| hotplug::android(fields).map(KernelEvent::Hotplug))
        .with(19, &[(1, "affected_cpu"), (2, "error"), (3, "status")]),
    row("drm_sched_job_queue", |fields| device_events::queued(fields).map(KernelEvent::Device))
        .with_message(schema::QUEUE),
    row("drm_sched_job_run", |fields| device_events::handed_over(fields).map(KernelEvent::Device))
        .with_message(schema::RUN),
    row("drm_sched_job_done", |fields| device_events::done(fields).map(KernelEvent::Device))
        .with_message(schema::DONE),
    row("drm_sched_job_add_dep", |fields| device_events::depends(fields).map(KernelEvent::Device))
        .with_message(schema::ADD_DEPENDENCY),
    row("drm_sched_job_unschedulable", |fields| device_events::blocked(fields).map(KernelEvent::Device))
        .with_message(schema::UNSCHEDULABLE),
    // Linux before 6.17.
    row("drm_sched_job", |fields| device_events::queued(fields).map(KernelEvent::Device))
        .with_message(schema::QUEUE_BY_ADDRESS),
    row("drm_run_job", |fields| device_events::handed_over(fields).map(KernelEvent::Device))
        .with_message(schema::RUN_BY_ADDRESS),
    row("drm_sched_process_job", |fields| device_events::done(fields).map(KernelEvent::Device))
        .with_message(schema::DONE_BY_ADDRESS),
    row("drm_sched_job_wait_dep", |fields| device_events::depends_by_id(fields).map(KernelEvent::Device)),
    row("dma_fence_signaled", |fields| device_events::signaled(fields).map(KernelEvent::Device))
        .with_message(schema::FENCE_SIGNALED),
    row("devfreq_frequency", |fields| device_clocks::frequency(fields).map(KernelEvent::DeviceFrequency))
        .with(541, &[(1, "dev_name"), (2, "freq"), (3, "prev_freq"), (4, "busy_time"), (5, "total_time")]),
    // Linux before 2.6.38, and later ones with CONFIG_EVENT_POWER_TRACING_DEPRECATED.
    row("power_start", power_start),
    row("power_end", power_end),
    row("power_frequency", frequency),
    // Drivers' own, without the fields that a mark needs: others come as marks.
    row("tracing_mark_write", |_| None),
    row("suspend_resume", |_| Some(KernelEvent::Nothing)),
    row("idlestat_frequency", |fields| marker(b"idlestat_frequency", fields)),
    row("cpu_frequency_devlib", |fields| marker(b"cpu_frequency_devlib", fields)),
    row("nntrace_start", |fields| marker(b"nntrace_start", fields)),
    row("nntrace_end", |fields| marker(b"nntrace_end", fields)),
    row("idlestat_start", |fields| marker(b"idlestat_start", fields)),
    row("idlestat_end", |fields| marker(b"idlestat_end", fields)),
];

/// Returns the row of an event.
#[inline]
pub(crate) fn row_of(name: &[u8]) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name.as_bytes() == name)
}

/// Returns the row of the event that has this number in Perfetto's `FtraceEvent`.
pub(crate) fn row_of_message(number: u32) -> Option<(&'static Row, &'static EventMessage)> {
    ROWS.iter().find_map(|row| {
        let message = row.message.as_ref().filter(|message| message.number == number)?;
        Some((row, message))
    })
}

/// Reads an event by its name and its fields.
#[inline]
pub(crate) fn read<'a>(name: &[u8], fields: &'a [u8]) -> Reading<'a> {
    let Some(row) = row_of(name) else { return Reading::Unknown };
    (row.read)(fields).map_or(Reading::Unusable, Reading::Event)
}

fn idle(fields: &[u8]) -> Option<KernelEvent<'_>> {
    let (state, cpu) = ftrace::cpu_fields(fields)?;
    Some(KernelEvent::Idle { state, cpu })
}

fn frequency(fields: &[u8]) -> Option<KernelEvent<'_>> {
    let (khz, cpu) = ftrace::cpu_fields(fields)?;
    Some(KernelEvent::Frequency { khz, cpu })
}

/// Reads `type=1 state=3 cpu_id=0`: type 1 is an idle state (`POWER_CSTATE`), others are frequencies.
fn power_start(fields: &[u8]) -> Option<KernelEvent<'_>> {
    const IDLE: u32 = 1;
    match ftrace::named_number(fields, b"type=")? {
        IDLE => idle(fields),
        _ => Some(KernelEvent::Nothing),
    }
}

/// Reads `cpu_id=0`: the CPU leaves its idle state.
fn power_end(fields: &[u8]) -> Option<KernelEvent<'_>> {
    Some(KernelEvent::Idle { state: u32::MAX, cpu: ftrace::named_number(fields, b"cpu_id=")? })
}

fn marker<'a>(name: &[u8], fields: &[u8]) -> Option<KernelEvent<'a>> {
    window_markers::of_event(name, fields).map(KernelEvent::Marker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_unique() {
        for (at, row) in ROWS.iter().enumerate() {
            assert!(ROWS[..at].iter().all(|other| other.name != row.name), "{}", row.name);
            let number = |row: &Row| row.message.as_ref().map(|message| message.number);
            let same = ROWS[..at].iter().any(|other| number(row).is_some() && number(other) == number(row));
            assert!(!same, "{}", row.name);
        }
    }

    #[test]
    fn fields_that_cannot_be_used_are_told_from_unknown_events() {
        assert_eq!(read(b"irq_handler_entry", b"irq=7 name=x"), Reading::Unknown);
        for row in &ROWS {
            let without_fields = row.name.ends_with("_start") && row.name != "power_start"
                || row.name.ends_with("_end") && row.name != "power_end"
                || ["sched_process_exit", "suspend_resume"].contains(&row.name);
            let damaged = read(row.name.as_bytes(), b"x=y");
            assert_eq!(damaged == Reading::Unusable, !without_fields, "{}: {damaged:?}", row.name);
        }
    }

    #[test]
    fn power_events_of_old_kernels() {
        let of = |name: &str, fields: &'static str| read(name.as_bytes(), fields.as_bytes());
        let idle = |state| Reading::Event(KernelEvent::Idle { state, cpu: 2 });
        assert_eq!(of("power_start", "type=1 state=3 cpu_id=2"), idle(3));
        assert_eq!(of("power_start", "type=2 state=3 cpu_id=2"), Reading::Event(KernelEvent::Nothing));
        assert_eq!(of("power_end", "cpu_id=2"), idle(u32::MAX));
        let frequency = Reading::Event(KernelEvent::Frequency { khz: 800_000, cpu: 2 });
        assert_eq!(of("power_frequency", "type=2 state=800000 cpu_id=2"), frequency);
    }
}
