//! Losses that the recorder counted: in the buffers of the kernel, and in its own.

use std::collections::BTreeMap;

use super::queue::Queue;
use crate::{
    perfetto_schema::{TracePacket, ftrace::FtraceStats},
    replay::losses::Loss,
};

/// CPUs at most.
const MOST_CPUS: usize = 1 << 16;
/// Statistics of the begin of a trace.
const BEGIN: i32 = 1;

/// Counts of the recorder. Those of the kernel go on from before the trace.
#[derive(Debug, Default)]
pub(super) struct RecorderLosses {
    begin: BTreeMap<u32, u64>,
    end: BTreeMap<u32, u64>,
    /// Chunks of its own buffers, and packets that its writers had no room for.
    chunks: u64,
    packets: u64,
}

impl RecorderLosses {
    /// Takes the statistics of a packet: later ones replace those before.
    pub(super) fn packet(&mut self, packet: &TracePacket) {
        if let Some(stats) = &packet.ftrace_stats {
            self.kernel(stats);
        }
        if let Some(stats) = &packet.trace_stats {
            let sum = |counts: &dyn Fn(&crate::perfetto_schema::BufferStats) -> Option<u64>| {
                stats.buffer_stats.iter().filter_map(counts).fold(0, u64::saturating_add)
            };
            self.chunks = sum(&|buffer| buffer.chunks_overwritten)
                .saturating_add(sum(&|buffer| buffer.chunks_discarded));
            self.packets = sum(&|buffer| buffer.trace_writer_packet_loss);
        }
    }

    fn kernel(&mut self, stats: &FtraceStats) {
        let counts = if stats.phase == Some(BEGIN) { &mut self.begin } else { &mut self.end };
        for cpu in &stats.cpu_stats {
            let Ok(number) = u32::try_from(cpu.cpu.unwrap_or(0)) else { continue };
            let lost = [cpu.overrun, cpu.commit_overrun, cpu.dropped_events];
            let lost = lost.into_iter().flatten().fold(0, u64::saturating_add);
            if counts.len() < MOST_CPUS || counts.contains_key(&number) {
                counts.insert(number, lost);
            }
        }
    }

    /// Adds the losses to what is told before all events.
    pub(super) fn tell(&self, queue: &mut Queue) {
        for (cpu, lost) in &self.end {
            let events = lost.saturating_sub(self.begin.get(cpu).copied().unwrap_or(0));
            if events > 0 {
                queue.lost(Loss::Total { cpu: *cpu, events });
            }
        }
        let counts = [
            (
                self.chunks,
                "chunks of the recorder's own buffers were overwritten or discarded: larger buffers lose fewer",
            ),
            (self.packets, "times its writers had no room for packets"),
        ];
        for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
            queue.lost(Loss::OfNoCpu { events: count });
            queue.note(format!("{count} {what}"));
        }
    }
}
