//! CPUs that go offline and come back: steps of the kernel's hotplug state machine, and what Android's old kernels write.
//!
//! Source: `cpuhp_enter` and `cpuhp_exit` (include/trace/events/cpuhp.h). A CPU that goes down first runs its own
//! steps; the first step that another CPU runs for it takes it down (`takedown_cpu` in kernel/cpu.c), and when that
//! step is done, the CPU is dead; further steps follow. A step that a CPU runs itself shows that it is alive. A trace may
//! have only one of the two events: `cpuhp_exit` alone shows the direction by its state, which is below the step on the way
//! down; of `cpuhp_enter` alone the next step shows that the one before was done.

use rustc_hash::FxHashMap;

use super::{event_fields::value, sched::field_number};

/// Hotplug steps of all CPUs.
#[derive(Debug, Default)]
pub(crate) struct Hotplug {
    /// Number of the step that is taking a CPU down, by CPU.
    takedown: FxHashMap<u32, u32>,
}

/// Event of hotplug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    cpu: u32,
    kind: Kind,
}

/// Kind of such an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A step begins; the target is the final state of the whole transition.
    Enter { target: Option<u32>, step: u32 },
    /// A step has ended in this state.
    Exit { state: Option<u32>, step: u32, has_failed: bool },
    /// The CPU is online, or it is not; `None` where the change failed.
    Done { is_online: Option<bool> },
}

impl Hotplug {
    /// Takes an event recorded on CPU `on`. Returns a CPU and whether it is online, if the event shows that.
    pub(crate) fn event(&mut self, on: u32, change: Change) -> Option<(u32, bool)> {
        let Change { cpu, kind } = change;
        let is_down = match kind {
            Kind::Done { is_online } => !is_online?,
            Kind::Enter { .. } | Kind::Exit { .. } if cpu == on => false,
            Kind::Enter { target, step } => {
                if target.is_none_or(|target| target >= step) {
                    self.takedown.remove(&cpu);
                    return None;
                }
                let former = self.takedown.insert(cpu, step);
                // Its end is not in the trace, but another one follows.
                if former.is_none_or(|former| former <= step) {
                    return None;
                }
                true
            }
            Kind::Exit { state, step, has_failed } => {
                let is_down = match self.takedown.remove(&cpu) {
                    Some(begun) => begun == step,
                    None => state.is_some_and(|state| state < step),
                };
                // A failed step is rolled back.
                if !is_down || has_failed {
                    return None;
                }
                true
            }
        };
        if !is_down {
            self.takedown.remove(&cpu);
        }
        Some((cpu, !is_down))
    }
}

/// Parses the fields of `cpuhp_enter`: `cpu: 0003 target:   0 step:  87 (takedown_cpu)`, or the bare fields of it,
/// `cpu=3 target=0 idx=87 ..`.
pub(crate) fn enter(fields: &[u8]) -> Option<Change> {
    let kind = Kind::Enter { target: number_of(fields, b"target"), step: step(fields)? };
    Some(Change { cpu: number_of(fields, b"cpu")?, kind })
}

/// Parses the fields of `cpuhp_exit`: `cpu: 0003  state:  86 step:  87 ret: 0`, or the bare fields of it.
pub(crate) fn exit(fields: &[u8]) -> Option<Change> {
    let has_failed = value(fields, b"ret").is_some_and(|ret| !matches!(ret, b"0" | b"0x0"));
    let kind = Kind::Exit { state: number_of(fields, b"state"), step: step(fields)?, has_failed };
    Some(Change { cpu: number_of(fields, b"cpu")?, kind })
}

/// Parses the fields of `sched_cpu_hotplug`: `cpu 1 offline error=0`, or the bare fields of it,
/// `affected_cpu=1 error=0 status=0`.
pub(crate) fn android(fields: &[u8]) -> Option<Change> {
    let cpu = number_of(fields, b"affected_cpu").or_else(|| number_of(fields, b"cpu"))?;
    let has = |word: &[u8]| fields.split(|byte| b" \t".contains(byte)).any(|other| other == word);
    let is_online = match number_of(fields, b"status") {
        Some(status) => status != 0,
        None if has(b"offline") => false,
        None if has(b"online") => true,
        None => return None,
    };
    let has_failed = value(fields, b"error").is_some_and(|error| !matches!(error, b"0" | b"0x0"));
    Some(Change { cpu, kind: Kind::Done { is_online: (!has_failed).then_some(is_online) } })
}

fn step(fields: &[u8]) -> Option<u32> {
    number_of(fields, b"step").or_else(|| number_of(fields, b"idx"))
}

fn number_of(fields: &[u8], key: &[u8]) -> Option<u32> {
    field_number(value(fields, key)?).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::{
        super::kernel_events::{self, KernelEvent, Reading},
        *,
    };

    fn events(lines: &[(u32, &str)]) -> Vec<(u32, bool)> {
        let mut hotplug = Hotplug::default();
        let split = |line: &str| line.split_once(' ').map(|(name, rest)| (name.to_owned(), rest.to_owned()));
        let events = lines.iter().filter_map(|(on, line)| {
            let (name, fields) = split(line)?;
            match kernel_events::read(name.as_bytes(), fields.as_bytes()) {
                Reading::Event(KernelEvent::Hotplug(change)) => hotplug.event(*on, change),
                _ => None,
            }
        });
        events.collect()
    }

    #[test]
    fn down_when_another_cpu_has_taken_it_down_and_back_by_its_own_step() {
        let lines = [
            (1, "cpuhp_enter cpu: 0001 target:   0 step: 236 (sched_cpu_deactivate)"),
            (1, "cpuhp_exit cpu: 0001  state: 235 step: 236 ret: 0"),
            (0, "cpuhp_enter cpu: 0001 target:   0 step:  87 (takedown_cpu)"),
            (0, "cpuhp_exit cpu: 0001  state:  86 step:  87 ret: 0"),
            (0, "cpuhp_enter cpu: 0001 target:   0 step:  60 (page_alloc_cpu_dead)"),
            (0, "cpuhp_exit cpu: 0001  state:  59 step:  60 ret: 0"),
            (0, "cpuhp_enter cpu: 0001 target: 238 step:  60 (page_alloc_cpu_online)"),
            (0, "cpuhp_exit cpu: 0001  state:  60 step:  60 ret: 0"),
            (1, "cpuhp_enter cpu: 0001 target: 238 step: 147 (sched_cpu_starting)"),
            (1, "cpuhp_exit cpu: 0001  state: 147 step: 147 ret: 0"),
        ];
        let (alive, down) = ((1, true), (1, false));
        assert_eq!(events(&lines), [alive, alive, down, down, alive, alive]);
    }

    #[test]
    fn bare_fields_count_and_a_step_that_failed_does_not() {
        let down = [
            (0, "cpuhp_enter cpu=3 target=0 idx=87 fun=0xffffffff81000000"),
            (2, "cpuhp_exit cpu=3 state=86 idx=87 ret=0"),
        ];
        assert_eq!(events(&down), [(3, false)]);
        let failed = [
            (0, "cpuhp_enter cpu: 0003 target: 0 step: 87"),
            (0, "cpuhp_exit cpu: 0003 state: 87 step: 87 ret: -16"),
        ];
        assert_eq!(events(&failed), []);
        assert_eq!(events(&[(0, "cpuhp_exit cpu: x"), (0, "sched_switch cpu: 1 step: 2")]), []);
    }
    #[test]
    fn the_ends_of_steps_alone_show_it() {
        let lines = [
            (1, "cpuhp_exit cpu: 0001  state: 235 step: 236 ret: 0"),
            (0, "cpuhp_exit cpu: 0001  state:  86 step:  87 ret: 0"),
            (0, "cpuhp_exit cpu: 0001  state:  59 step:  60 ret: 0"),
            (0, "cpuhp_exit cpu: 0001  state:  60 step:  60 ret: 0"),
            (1, "cpuhp_exit cpu: 0001  state: 147 step: 147 ret: 0"),
        ];
        assert_eq!(events(&lines), [(1, true), (1, false), (1, false), (1, true)]);
        assert_eq!(events(&[(0, "cpuhp_exit cpu: 0003 state: 86 step: 87 ret: -16")]), []);
    }

    #[test]
    fn the_begins_of_steps_alone_show_it_with_the_next_one() {
        let lines = [
            (0, "cpuhp_enter cpu: 0001 target:   0 step:  87 (takedown_cpu)"),
            (0, "cpuhp_enter cpu: 0001 target:   0 step:  60 (page_alloc_cpu_dead)"),
            (0, "cpuhp_enter cpu: 0001 target: 238 step:  60 (page_alloc_cpu_online)"),
            (1, "cpuhp_enter cpu: 0001 target: 238 step: 147 (sched_cpu_starting)"),
        ];
        assert_eq!(events(&lines), [(1, false), (1, true)]);
    }

    #[test]
    fn the_event_of_old_android_kernels() {
        let lines = [
            (0, "sched_cpu_hotplug cpu 1 offline error=0"),
            (0, "sched_cpu_hotplug cpu 2 offline error=-16"),
            (0, "sched_cpu_hotplug affected_cpu=1 error=0 status=1"),
        ];
        assert_eq!(events(&lines), [(1, false), (1, true)]);
    }
}
