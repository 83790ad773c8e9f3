//! The programs on context switches and wake-ups.

use aya::EbpfLoader;
use nntrace_common::{
    sched::{PreemptCount, SchedOffsets},
    time_count::TimeCount,
};

use super::{Kernel, KernelError, btf::Btf, object::Object, preempt_count, tracepoint_links::Links};
use crate::live::tracefs;

/// Tracepoints of group `sched`, with the programs on the raw and on the described form. The switch is first:
/// attaching to it shows whether its raw form has all arguments.
const PROGRAMS: [(&str, &str, &str); 4] = [
    ("sched_switch", "raw_sched_switch", "sched_switch"),
    ("sched_waking", "raw_sched_waking", "sched_waking"),
    ("sched_wakeup_new", "raw_sched_wakeup_new", "sched_wakeup_new"),
    ("sched_wakeup", "raw_sched_wakeup", "sched_wakeup"),
];

/// The programs and their attachments.
pub(super) struct SchedulingPrograms {
    offsets: SchedOffsets,
    preempt_count: PreemptCount,
    links: Links,
}

impl SchedulingPrograms {
    pub(super) fn new(btf: Option<&Btf>) -> Self {
        Self { offsets: offsets(btf), preempt_count: preempt_count::find(btf), links: Links::default() }
    }

    pub(super) fn configure<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        loader.override_global("SCHED_OFFSETS", &self.offsets, true);
        loader.override_global("PREEMPT_COUNT", &self.preempt_count, true);
    }

    /// Whether a switch in its raw form shows which thread it is to.
    pub(super) fn knows_tasks(&self) -> bool {
        self.offsets.task_pid != 0
    }

    /// Whether a switch in its described form does.
    pub(super) fn knows_switches(&self) -> bool {
        self.offsets.next_pid != 0
    }

    fn attach(&mut self, object: &mut Object) -> Result<(), KernelError> {
        let SchedOffsets { prev_state, next_pid, woken_pid, task_pid, .. } = self.offsets;
        let [(point, raw, _), others @ ..] = PROGRAMS;
        // Before Linux 5.18 the raw form lacks the state, and attaching is refused.
        if task_pid != 0 && self.links.attach(object, raw, point).is_ok() {
            return others.iter().try_for_each(|(point, raw, _)| self.links.attach(object, raw, point));
        }
        if [prev_state, next_pid, woken_pid].contains(&0) {
            return Err(KernelError::Attach {
                point: "sched_switch, sched_waking, sched_wakeup and sched_wakeup_new".into(),
                reason: match tracefs::mount_point() {
                    Some(mount) => {
                        format!("{} does not describe them: leave out --level sched", mount.display())
                    }
                    None => format!("{}; or leave out --level sched", tracefs::lacking()),
                },
            });
        }
        PROGRAMS.iter().try_for_each(|(event, _, program)| {
            object.load_event(program)?;
            object.attach_event(program, "sched", event)
        })
    }

    /// Detaches the programs on raw tracepoints; the others stay until the end.
    pub(super) fn detach(&mut self, object: &mut Object) {
        self.links.detach(object);
    }
}

/// Returns the offsets that the programs need: in tasks from BTF, in events from tracefs; 0 for those in neither.
fn offsets(btf: Option<&Btf>) -> SchedOffsets {
    let offset = |event, field| tracefs::field_offset(event, field).unwrap_or(0);
    SchedOffsets {
        prev_state: offset("sched/sched_switch", "prev_state"),
        next_pid: offset("sched/sched_switch", "next_pid"),
        // `sched_waking` and `sched_wakeup_new` are of the same class.
        woken_pid: offset("sched/sched_wakeup", "pid"),
        woken_cpu: offset("sched/sched_wakeup", "target_cpu"),
        task_pid: btf.and_then(|btf| btf.offset("task_struct", "pid")).unwrap_or(0),
        task_cpu: btf.and_then(cpu_of_task).unwrap_or(0),
    }
}

/// Returns the offset of the CPU in a task.
fn cpu_of_task(btf: &Btf) -> Option<u32> {
    let in_thread = || Some(btf.offset("task_struct", "thread_info")? + btf.offset("thread_info", "cpu")?);
    btf.offset("task_struct", "cpu").or_else(in_thread)
}

impl Kernel {
    /// Attaches to context switches and wake-ups.
    ///
    /// # Errors
    /// When the kernel refuses, or does not describe these events.
    pub(crate) fn attach_scheduling(&mut self) -> Result<(), KernelError> {
        self.scheduling.attach(&mut self.object)
    }

    /// Returns runs and time of these programs from the kernel's statistics.
    #[must_use]
    pub(crate) fn read_scheduling_cost(&self) -> TimeCount {
        self.object.cost(PROGRAMS.into_iter().flat_map(|(_, raw, program)| [raw, program]))
    }
}
