//! Rows of accelerators and GPUs.

use std::cmp::Reverse;

use super::language_models::row as durations;
use crate::{
    model::{
        devices::{ProcessSums, Sums},
        findings::Findings,
        plurals::one_or_many,
    },
    report::snapshot::{DeviceClock, DeviceProcessRow, DeviceRow, DeviceSectionRow},
};

impl Findings<'_> {
    pub(super) fn devices(&self) -> Vec<DeviceRow> {
        if self.devices.is_empty() {
            return Vec::new();
        }
        let sums = self.devices.sums_until(self.run.window.end_ns);
        let rings = (0..).zip(self.devices.rings()).zip(&sums.rings);
        let mut rows: Vec<_> = rings
            .map(|((number, ring), of_ring)| DeviceRow {
                device: (!ring.device.is_empty()).then(|| ring.device.clone()),
                ring: ring.name.clone(),
                busy_ns: of_ring.busy_ns,
                lost: of_ring.lost,
                lost_ns: of_ring.lost_ns,
                out_of_order: of_ring.out_of_order,
                processes: self.processes_of_ring(number, &sums),
            })
            .collect();
        rows.sort_by(|a, b| (&a.device, &a.ring).cmp(&(&b.device, &b.ring)));
        rows
    }

    /// Returns the clocks of devices: as the kernel counted them, or by events.
    pub(super) fn device_clocks(&self) -> Vec<DeviceClock> {
        let counted = &self.run.device_clocks;
        if counted.is_empty() { self.device_clocks.until(self.window()) } else { counted.clone() }
    }

    /// Returns the processes of a ring, those whose jobs ran longest first.
    fn processes_of_ring(&self, ring: u32, sums: &Sums) -> Vec<DeviceProcessRow> {
        let of_ring = sums.processes.range((ring, None)..=(ring, Some(u32::MAX)));
        let mut rows: Vec<_> =
            of_ring.map(|((_, pid), process)| self.device_process(ring, *pid, process, sums)).collect();
        rows.sort_by_key(|row| (Reverse(row.running_ns), row.pid));
        rows
    }

    fn device_process(
        &self,
        ring: u32,
        pid: Option<u32>,
        process: &ProcessSums,
        sums: &Sums,
    ) -> DeviceProcessRow {
        let of_process =
            sums.sections.iter().filter(|((of_ring, of, ..), _)| *of_ring == ring && Some(*of) == pid);
        let mut sections: Vec<_> = of_process
            .map(|((_, _, tag, name), row)| DeviceSectionRow {
                layer: tag.layer(),
                phase: tag.phase(),
                function: self.devices.section_name(*name).to_owned(),
                jobs: row.jobs,
                waiting_ns: row.waiting_ns,
                running_ns: row.running_ns,
            })
            .collect();
        sections.sort_by(|a, b| {
            (b.running_ns, a.layer, a.phase, &a.function).cmp(&(a.running_ns, b.layer, b.phase, &b.function))
        });
        let known = pid.and_then(|pid| self.run.processes.get(&pid)).map(|process| &*process.comm);
        let comm = known.filter(|comm| !comm.is_empty()).or_else(|| pid.map(|pid| self.devices.comm(pid)));
        DeviceProcessRow {
            pid,
            comm: comm.unwrap_or_default().to_owned(),
            jobs: process.jobs,
            canceled: process.canceled,
            open: process.open,
            blocked_ns: process.blocked_ns,
            waiting_ns: process.waiting_ns,
            behind_others_ns: process.behind_others_ns,
            running_ns: process.running_ns,
            running: durations(&process.running),
            latency: durations(&process.latency),
            sections,
        }
    }

    /// Returns what is not seen of devices, in words.
    pub(super) fn notes_on_devices(&self) -> Vec<String> {
        let unmatched = self.devices.unmatched();
        let note = (unmatched > 0).then(|| {
            format!(
                "{unmatched} {} only an end event: queued before the trace, or events were lost",
                one_or_many(unmatched, "device job has", "device jobs have")
            )
        });
        note.into_iter().collect()
    }
}
