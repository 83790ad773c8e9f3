//! Events of CPUs and devices, as the kernel's own tracing would have had them: so the importer fills its own tracks of them.

use std::{collections::BTreeMap, io::Write};

use nntrace_common::record::{PowerRecord, Record};

use super::{device_events, packets::Packets};
use crate::{
    export::swimlane::EventOfDevice,
    perfetto_schema::{
        TracePacket,
        ftrace::{CpuState, CpuhpEnter, CpuhpExit, FtraceEvent, FtraceEventBundle, FtraceKind},
    },
};

/// Events of a CPU that are written at once.
const AT_ONCE: usize = 512;

/// Step of the hotplug state machine that takes a CPU down, and one that a CPU runs itself when it is up, with the final
/// states of both: their numbers differ from kernel to kernel, and only their order matters.
const TAKEDOWN: i32 = 87;
const STARTING: i32 = 147;
const OFFLINE: i32 = 0;
const ONLINE: i32 = 238;

/// Events that wait, by CPU.
#[derive(Default)]
pub(super) struct KernelEvents {
    cpus: BTreeMap<u32, Waiting>,
    /// Time from the clock of the events to the boot time, which events of the kernel are of, ns.
    to_boottime: i64,
}

/// Events of a CPU that wait.
#[derive(Default)]
struct Waiting {
    events: Vec<FtraceEvent>,
    /// Time of its last event, written or not, boot time, ns.
    last: Option<u64>,
    /// Whether events are missing before the first one.
    is_after_loss: bool,
}

impl KernelEvents {
    /// Creates the events of a clock that is so far after the boot time, ns.
    pub(super) fn new(to_boottime: i64) -> Self {
        Self { cpus: BTreeMap::new(), to_boottime }
    }

    /// Takes an event of an idle state, a frequency or hotplug, or a loss; others are none of its business.
    pub(super) fn take<W: Write>(&mut self, record: &Record, packets: &mut Packets<W>) {
        match record {
            Record::Idle(PowerRecord { cpu, time, state, .. }) => {
                let state = CpuState { state: Some(*state), cpu_id: Some(*cpu) };
                self.add(*cpu, *time, Some(FtraceKind::CpuIdle(state)), packets);
            }
            Record::Frequency(PowerRecord { cpu, time, state, .. }) => {
                let state = CpuState { state: Some(*state), cpu_id: Some(*cpu) };
                self.add(*cpu, *time, Some(FtraceKind::CpuFrequency(state)), packets);
            }
            Record::Hotplug(PowerRecord { cpu, time, state, .. }) => {
                self.hotplug(*cpu, *time, *state != 0, packets);
            }
            Record::Lost { cpu, time } => {
                // A gap begins at the event before it, or with the trace.
                let since = self.boottime(*time);
                if self.waiting(*cpu).last.is_some_and(|last| last != since) {
                    self.add(*cpu, *time, None, packets);
                }
                let waiting = self.waiting(*cpu);
                put(*cpu, waiting, packets);
                waiting.is_after_loss = true;
            }
            _ => {}
        }
    }

    /// Takes an event of a device's queue.
    pub(super) fn device<W: Write>(&mut self, event: &EventOfDevice<'_>, packets: &mut Packets<W>) {
        if let Some(other) = device_events::encoded(event.event) {
            let timestamp = Some(self.boottime(event.time));
            let of_kernel = FtraceEvent { timestamp, pid: Some(event.tid), kind: None, other: Some(other) };
            self.push(event.cpu, of_kernel, packets);
        }
    }

    /// Adds the steps by which a CPU goes offline, which another one takes for it, or shows that it is online.
    fn hotplug<W: Write>(&mut self, cpu: u32, time: u64, is_online: bool, packets: &mut Packets<W>) {
        let step = |idx, target| CpuhpEnter { cpu: Some(cpu), idx: Some(idx), target: Some(target) };
        if is_online {
            self.add(cpu, time, Some(FtraceKind::CpuhpEnter(step(STARTING, ONLINE))), packets);
            return;
        }
        let other = u32::from(cpu == 0);
        let done = CpuhpExit { cpu: Some(cpu), idx: Some(TAKEDOWN), ret: Some(0), state: Some(TAKEDOWN - 1) };
        self.add(other, time, Some(FtraceKind::CpuhpEnter(step(TAKEDOWN, OFFLINE))), packets);
        self.add(other, time, Some(FtraceKind::CpuhpExit(done)), packets);
    }

    fn waiting(&mut self, cpu: u32) -> &mut Waiting {
        self.cpus.entry(cpu).or_default()
    }

    fn boottime(&self, time: u64) -> u64 {
        time.saturating_add_signed(self.to_boottime)
    }

    fn add<W: Write>(&mut self, cpu: u32, time: u64, kind: Option<FtraceKind>, packets: &mut Packets<W>) {
        // The idle thread's.
        let event = FtraceEvent { timestamp: Some(self.boottime(time)), pid: Some(0), kind, other: None };
        self.push(cpu, event, packets);
    }

    fn push<W: Write>(&mut self, cpu: u32, event: FtraceEvent, packets: &mut Packets<W>) {
        let waiting = self.waiting(cpu);
        waiting.last = event.timestamp;
        waiting.events.push(event);
        if waiting.events.len() >= AT_ONCE {
            put(cpu, waiting, packets);
        }
    }

    /// Writes what is left.
    pub(super) fn finish<W: Write>(self, packets: &mut Packets<W>) {
        for (cpu, mut waiting) in self.cpus {
            put(cpu, &mut waiting, packets);
        }
    }
}

/// Writes the events of a CPU that wait, and the loss before them, if there is something.
fn put<W: Write>(cpu: u32, waiting: &mut Waiting, packets: &mut Packets<W>) {
    let (event, lost) = (std::mem::take(&mut waiting.events), std::mem::take(&mut waiting.is_after_loss));
    if event.is_empty() && !lost {
        return;
    }
    let bundle = FtraceEventBundle {
        cpu: Some(cpu),
        event,
        lost_events: lost.then_some(true),
        ..FtraceEventBundle::default()
    };
    packets.put(&TracePacket { ftrace_events: Some(bundle), ..TracePacket::default() });
}
