//! CPUs that go offline and come back, from the steps of the kernel's hotplug state machine.
//!
//! Source: `cpuhp_enter` and `cpuhp_exit` (include/trace/events/cpuhp.h). A CPU that goes down first runs its own
//! steps; the first step that another CPU runs for it takes it down (`takedown_cpu` in kernel/cpu.c), and when that
//! step is done, the CPU is dead; further steps follow. A step that a CPU runs itself shows that it is alive.

use rustc_hash::FxHashMap;

use super::{event_fields::value, ftrace::number};

/// Hotplug steps of all CPUs.
#[derive(Debug, Default)]
pub(crate) struct Hotplug {
    /// Number of the step that is taking a CPU down, by CPU.
    takedown: FxHashMap<u32, u32>,
}

/// Step of a CPU.
struct Step {
    cpu: u32,
    /// Final state of the whole transition, given when a step begins.
    target: Option<u32>,
    number: u32,
}

impl Hotplug {
    /// Takes an event recorded on CPU `on`. Returns a CPU and whether it is online, if the event shows that.
    pub(crate) fn event(&mut self, on: u32, name: &[u8], fields: &[u8]) -> Option<(u32, bool)> {
        let begins = match name {
            b"cpuhp_enter" => true,
            b"cpuhp_exit" => false,
            _ => return None,
        };
        let Step { cpu, target, number } = step(fields)?;
        if cpu == on {
            return Some((cpu, true));
        }
        if begins {
            if target.is_some_and(|target| target < number) {
                self.takedown.insert(cpu, number);
            }
            return None;
        }
        let is_down = self.takedown.get(&cpu) == Some(&number);
        self.takedown.remove(&cpu);
        // A failed step is rolled back.
        let failed = value(fields, b"ret").is_some_and(|ret| ret != b"0");
        (is_down && !failed).then_some((cpu, false))
    }
}

/// Parses `cpu: 0003 target:   0 step:  87 (takedown_cpu)`, or the bare fields of it, `cpu=3 target=0 idx=87 ..`.
fn step(fields: &[u8]) -> Option<Step> {
    let of = |key: &[u8]| number(value(fields, key)?).map(|(value, _)| value);
    Some(Step { cpu: of(b"cpu")?, target: of(b"target"), number: of(b"step").or_else(|| of(b"idx"))? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(lines: &[(u32, &str)]) -> Vec<(u32, bool)> {
        let mut hotplug = Hotplug::default();
        let split = |line: &str| line.split_once(' ').map(|(name, rest)| (name.to_owned(), rest.to_owned()));
        let events = lines.iter().filter_map(|(on, line)| {
            let (name, fields) = split(line)?;
            hotplug.event(*on, name.as_bytes(), fields.as_bytes())
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
}
