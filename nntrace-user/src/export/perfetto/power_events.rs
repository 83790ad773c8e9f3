//! Events of CPUs, as the kernel's own tracing would have had them: so the importer fills its tracks of CPUs.

use std::{collections::BTreeMap, io::Write};

use nntrace_common::record::{PowerRecord, Record};

use super::{
    messages::{CpuState, FtraceEvent, FtraceEventBundle, TracePacket},
    packets::Packets,
};

/// Events of a CPU that are written at once.
const AT_ONCE: usize = 512;

/// Events that wait, by CPU.
#[derive(Default)]
pub(super) struct PowerEvents {
    cpus: BTreeMap<u32, Vec<FtraceEvent>>,
    /// Time from the clock of the events to the boot time, which events of the kernel are of, ns.
    to_boottime: i64,
}

impl PowerEvents {
    /// Creates the events of a clock that is so far behind the boot time, ns.
    pub(super) fn new(to_boottime: i64) -> Self {
        Self { cpus: BTreeMap::new(), to_boottime }
    }

    /// Takes an event of an idle state or a frequency; others are none of its business.
    pub(super) fn take<W: Write>(&mut self, record: &Record, packets: &mut Packets<W>) {
        let (Record::Idle(event) | Record::Frequency(event)) = record else { return };
        let PowerRecord { cpu, time, state, .. } = *event;
        let state = CpuState { state: Some(state), cpu_id: Some(cpu) };
        let (cpu_idle, cpu_frequency) =
            if matches!(record, Record::Idle(_)) { (Some(state), None) } else { (None, Some(state)) };
        let events = self.cpus.entry(cpu).or_default();
        events.push(FtraceEvent {
            timestamp: Some(time.saturating_add_signed(self.to_boottime)),
            // The idle thread's.
            pid: Some(0),
            cpu_frequency,
            cpu_idle,
        });
        if events.len() >= AT_ONCE {
            put(cpu, std::mem::take(events), packets);
        }
    }

    /// Writes what is left.
    pub(super) fn finish<W: Write>(self, packets: &mut Packets<W>) {
        for (cpu, events) in self.cpus.into_iter().filter(|(_, events)| !events.is_empty()) {
            put(cpu, events, packets);
        }
    }
}

fn put<W: Write>(cpu: u32, event: Vec<FtraceEvent>, packets: &mut Packets<W>) {
    packets.put(&TracePacket {
        ftrace_events: Some(FtraceEventBundle { cpu: Some(cpu), event }),
        ..TracePacket::default()
    });
}
