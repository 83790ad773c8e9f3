//! Jobs of accelerators and GPUs, as a page draws them.

use serde::Serialize;

use crate::model::{Findings, devices::job::Job};

/// Jobs of a ring in columns, in the order in which they ended. Times are ns; begins from that of the run's window on.
#[derive(Serialize)]
pub(super) struct DeviceLane {
    /// Name of the device; empty where it is not known.
    device: String,
    ring: String,
    /// Process that queued; null where that was not seen.
    process: Vec<Option<u32>>,
    /// When the job began to run.
    begin: Vec<i64>,
    running: Vec<u64>,
    /// Time from when it was queued until it ran; null where that was not seen.
    waiting: Vec<Option<u64>>,
}

/// Lanes of all rings, and the number of jobs that they do not have.
#[derive(Serialize)]
pub(super) struct DeviceLanes {
    lanes: Vec<DeviceLane>,
    left_out: u64,
}

impl DeviceLanes {
    /// Returns the lanes of the rings that had a job of their device.
    pub(super) fn new(findings: &Findings<'_>) -> Self {
        let (origin, end) = findings.window();
        let (jobs, left_out) = findings.devices.list_until(end);
        let ring = |job: &Job| job.ring;
        let mut lanes: Vec<_> =
            jobs.chunk_by(|a, b| ring(a) == ring(b)).map(|jobs| lane(findings, jobs, origin)).collect();
        lanes.retain(|lane| !lane.begin.is_empty());
        lanes.sort_by(|a, b| (&a.device, &a.ring).cmp(&(&b.device, &b.ring)));
        Self { lanes, left_out }
    }
}

/// Returns the lane of the jobs of a ring: at least one.
fn lane(findings: &Findings<'_>, jobs: &[Job], origin: u64) -> DeviceLane {
    let ring = jobs.first().and_then(|job| findings.devices.rings().get(job.ring as usize));
    let (device, ring) = ring.map(|ring| (ring.device.clone(), ring.name.clone())).unwrap_or_default();
    let (process, begin) = (Vec::new(), Vec::new());
    let mut lane = DeviceLane { device, ring, process, begin, running: Vec::new(), waiting: Vec::new() };
    for job in jobs {
        if let Some(started) = job.started {
            lane.process.push(job.submitter.map(|submitter| submitter.pid));
            lane.begin.push(started.wrapping_sub(origin).cast_signed());
            lane.running.push(job.running_ns());
            lane.waiting.push(job.queued.map(|queued| started.saturating_sub(queued)));
        }
    }
    lane
}
