//! Begins of the kernel's buffers, one per CPU: in a buffer that was overwritten, one CPU has events from a later time on than
//! another.

use std::collections::BTreeMap;

use crate::perfetto_schema::ftrace::FtraceEventBundle;

/// CPUs that are kept at most.
const MOST_CPUS: usize = 1 << 16;

/// Begins of the buffers of all CPUs.
#[derive(Debug, Default)]
pub(super) struct RingBegins {
    /// Time from which the buffer of a CPU has events, on the clock of the events, ns.
    begins: BTreeMap<u32, u64>,
    /// Earliest event of any CPU, ns.
    first: Option<u64>,
}

impl RingBegins {
    /// Takes a bundle.
    pub(super) fn bundle(&mut self, bundle: &FtraceEventBundle) {
        let cpu = bundle.cpu.unwrap_or(0);
        if self.begins.len() < MOST_CPUS || self.begins.contains_key(&cpu) {
            self.begins.entry(cpu).or_insert_with(|| bundle.previous_bundle_end.unwrap_or(0));
        }
        let compact = bundle.compact_sched.iter();
        let of_columns = compact.flat_map(|compact| {
            compact.switch_timestamp.first().into_iter().chain(compact.waking_timestamp.first()).copied()
        });
        let of_events = bundle.event.iter().filter_map(|event| event.timestamp);
        for time in of_events.chain(of_columns) {
            self.first = Some(self.first.map_or(time, |first| first.min(time)));
        }
    }

    /// Whether the buffer of a CPU begins after the first event of the trace: until then nothing is known of the CPU.
    pub(super) fn begin_late(&self, cpu: u32) -> bool {
        let begin = self.begins.get(&cpu).copied().unwrap_or(0);
        self.first.is_some_and(|first| begin > first)
    }
}
