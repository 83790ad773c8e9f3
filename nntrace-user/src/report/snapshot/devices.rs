//! Jobs of accelerators and GPUs.

use nntrace_common::layer::{Layer, Phase};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DurationsRow;
use crate::model::devices::full_name;

/// Ring of a device: an instance of the kernel's scheduler. Rings of one device and name are one row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceRow {
    /// Name of the device in the kernel; null where events do not have it: before Linux 6.17.
    pub device: Option<String>,
    /// Name of the ring.
    pub ring: String,
    /// Time with at least one job on the device, ns.
    pub busy_ns: u64,
    /// Jobs with a missing event: never seen to be handed to the device, or ended by a later job. Excluded from the other figures.
    pub lost: u64,
    /// Part of the busy time in which they were the oldest on the device, ns.
    pub lost_ns: u64,
    /// Jobs that completed before an older one: the device runs several at once, and the busy time is charged to the oldest.
    pub out_of_order: u64,
    /// Processes that queued.
    pub processes: Vec<DeviceProcessRow>,
}

/// Jobs of a process on a ring. A job depends on fences, then waits for the ring, then runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceProcessRow {
    /// Process that queued; null for jobs that were queued before the trace began.
    pub pid: Option<u32>,
    /// Name of the process; empty where it is not known.
    pub comm: String,
    /// Jobs that the device has done.
    pub jobs: u64,
    /// Jobs that ended before they were handed to the device.
    pub canceled: u64,
    /// Jobs that had not ended when the window did.
    pub open: u64,
    /// Time blocked on fences, ns.
    pub blocked_ns: u64,
    /// Time ready but not running, ns.
    pub waiting_ns: u64,
    /// Part of the waiting time in which the ring ran jobs of other processes, ns.
    pub behind_others_ns: u64,
    /// Time in which a job was the oldest one of the device on the ring, ns.
    pub running_ns: u64,
    /// Running times of the jobs that were queued and done in the window.
    pub running: DurationsRow,
    /// Times of these jobs from when they were queued until they were done.
    pub latency: DurationsRow,
    /// Sections that queued jobs, those whose jobs ran longest first.
    pub sections: Vec<DeviceSectionRow>,
}

/// Jobs that were queued in a section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceSectionRow {
    /// Layer.
    pub layer: Layer,
    /// Phase.
    pub phase: Phase,
    /// Name of the section.
    pub function: String,
    /// Jobs that the device has done.
    pub jobs: u64,
    /// Time from queued until running, blocked time included, ns.
    pub waiting_ns: u64,
    /// Time in which they ran, ns.
    pub running_ns: u64,
}

impl DeviceRow {
    /// Returns the name of the ring with that of its device.
    #[must_use]
    pub(crate) fn name(&self) -> String {
        full_name(self.device.as_deref().unwrap_or_default(), &self.ring)
    }

    /// Returns the jobs that the device has done.
    #[must_use]
    pub(crate) fn jobs(&self) -> u64 {
        self.processes.iter().map(|row| row.jobs).sum()
    }
}

#[cfg(test)]
impl DeviceRow {
    /// Ring of an NPU with two processes, and one of a kernel that does not name its device.
    pub(crate) fn samples() -> Vec<Self> {
        let durations = |count: u64, ns: u64| DurationsRow {
            count,
            total_ns: count * ns,
            p50_ns: Some(ns),
            p95_ns: Some(ns),
            p99_ns: Some(ns + ns / 5),
            max_ns: Some(2 * ns),
        };
        let camera = DeviceProcessRow {
            pid: Some(812),
            comm: "camera".into(),
            jobs: 80,
            canceled: 1,
            open: 1,
            blocked_ns: 500_000,
            waiting_ns: 4_100_000,
            behind_others_ns: 3_200_000,
            running_ns: 30_000_000,
            running: durations(80, 370_000),
            latency: durations(80, 420_000),
            sections: vec![DeviceSectionRow {
                layer: Layer::Driver,
                phase: Phase::Execution,
                function: "rknn_run".into(),
                jobs: 80,
                waiting_ns: 4_600_000,
                running_ns: 30_000_000,
            }],
        };
        let unknown = DeviceProcessRow {
            pid: None,
            comm: String::new(),
            jobs: 1,
            canceled: 0,
            open: 0,
            blocked_ns: 0,
            waiting_ns: 0,
            behind_others_ns: 0,
            running_ns: 2_000_000,
            running: DurationsRow::default(),
            latency: DurationsRow::default(),
            sections: Vec::new(),
        };
        let npu = Self {
            device: Some("fdab0000.npu".into()),
            ring: "rknn".into(),
            busy_ns: 33_000_000,
            lost: 1,
            lost_ns: 1_000_000,
            out_of_order: 2,
            processes: vec![camera.clone(), unknown],
        };
        let camera = DeviceProcessRow { canceled: 0, open: 0, sections: Vec::new(), ..camera };
        let gpu = Self {
            device: None,
            ring: "pp".into(),
            busy_ns: 30_000_000,
            lost: 0,
            lost_ns: 0,
            out_of_order: 0,
            processes: vec![camera],
        };
        vec![npu, gpu]
    }
}
