//! Events of the queues of devices: `drivers/gpu/drm/scheduler/gpu_scheduler_trace.h` and `include/trace/events/dma_fence.h`.

use super::{Description, Field, Value, elsewhere, word};

/// Event of a device's queue.
#[derive(Clone, Copy, Debug)]
pub enum DeviceEvent {
    /// A job is queued.
    Queue(Job),
    /// A job is handed to the device.
    Run(Job),
    /// A job is done.
    Done(Job),
    /// A job depends on a fence.
    AddDependency(Job, Fence),
    /// A job waits for a fence.
    Unschedulable(Job, Fence),
    /// A fence is signaled.
    Signaled(Fence),
}

/// Job.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Number, from which all else is made.
    pub number: u32,
    /// Number of its ring.
    pub ring: u32,
    /// Whether events are those before Linux 6.17.
    pub is_early: bool,
}

/// Fence: its context and its number.
pub type Fence = (u32, u32);

/// Address of the first fence, where events have addresses.
const FIRST_ADDRESS: u64 = 0xffff_8881_0000_0000;

impl Job {
    /// Returns the fence that it signals.
    #[must_use]
    pub const fn fence(&self) -> Fence {
        (20 + self.number % 3, 1 + self.number / 3)
    }

    const fn address(&self) -> u64 {
        FIRST_ADDRESS + self.number as u64 * 64
    }

    fn ring(&self) -> String {
        ["rq 1", "gfx_0.0.0"][self.ring as usize % 2].to_owned()
    }
}

fn long(name: &'static str, number: u32, value: u32) -> Field {
    Field { name, number: Some(number), value: Value::Long(value.into()) }
}

fn address(name: &'static str, number: u32, value: u64) -> Field {
    Field { name, number: Some(number), value: Value::Address(value) }
}

fn of_job(job: &Job, name: &'static str, message: u32) -> Description {
    let ((context, seqno), ring) = (job.fence(), job.ring());
    let text = format!(
        "dev=fdab0000.npu, fence={context}:{seqno}, ring={ring}, job count:1, hw job count:0, client_id:4"
    );
    let fields = vec![
        elsewhere("name", 1, &ring),
        word("job_count", 2, 1),
        word("hw_job_count", 3, 0),
        elsewhere("dev", 4, "fdab0000.npu"),
        long("fence_context", 5, context),
        long("fence_seqno", 6, seqno),
        long("client_id", 7, 4),
    ];
    Description { name, message, text, fields }
}

fn of_early_job(job: &Job, name: &'static str, message: u32) -> Description {
    let (Job { number, .. }, fence, ring) = (job, job.address(), job.ring());
    let text = format!(
        "entity={FIRST_ADDRESS:016x}, id={number}, fence={fence:016x}, ring={ring}, job count:1, hw job count:0"
    );
    let fields = vec![
        address("entity", 1, FIRST_ADDRESS),
        address("fence", 2, fence),
        elsewhere("name", 6, &ring),
        long("id", 4, *number),
        word("job_count", 5, 1),
        word("hw_job_count", 3, 0),
    ];
    Description { name, message, text, fields }
}

fn of_dependency(job: &Job, (context, seqno): Fence, name: &'static str, message: u32) -> Description {
    let own = job.fence();
    let unsignaled = if name == "drm_sched_job_unschedulable" { "unsignalled " } else { "" };
    let text = format!("fence={}:{} depends on {unsignaled}fence={context}:{seqno}", own.0, own.1);
    let fields = vec![
        long("fence_context", 1, own.0),
        long("fence_seqno", 2, own.1),
        long("ctx", 3, context),
        long("seqno", 4, seqno),
    ];
    Description { name, message, text, fields }
}

impl DeviceEvent {
    /// Returns what the formats say of it.
    pub(super) fn description(&self) -> Description {
        match self {
            Self::Queue(job) if job.is_early => of_early_job(job, "drm_sched_job", 411),
            Self::Queue(job) => of_job(job, "drm_sched_job_queue", 593),
            Self::Run(job) if job.is_early => of_early_job(job, "drm_run_job", 412),
            Self::Run(job) => of_job(job, "drm_sched_job_run", 594),
            Self::Done(job) if job.is_early => Description {
                name: "drm_sched_process_job",
                message: 413,
                text: format!("fence={:016x} signaled", job.address()),
                fields: vec![address("fence", 1, job.address())],
            },
            Self::Done(job) => {
                let (context, seqno) = job.fence();
                let fields = vec![long("fence_context", 1, context), long("fence_seqno", 2, seqno)];
                let text = format!("fence={context}:{seqno} signaled");
                Description { name: "drm_sched_job_done", message: 592, text, fields }
            }
            Self::AddDependency(job, on) => of_dependency(job, *on, "drm_sched_job_add_dep", 591),
            Self::Unschedulable(job, on) => of_dependency(job, *on, "drm_sched_job_unschedulable", 595),
            Self::Signaled((context, seqno)) => {
                let text = format!("driver=drm_sched timeline=rq 1 context={context} seqno={seqno}");
                let fields = vec![
                    elsewhere("driver", 2, "drm_sched"),
                    elsewhere("timeline", 4, "rq 1"),
                    word("context", 1, *context),
                    word("seqno", 3, *seqno),
                ];
                Description { name: "dma_fence_signaled", message: 416, text, fields }
            }
        }
    }
}

/// Returns what the formats say of a frequency of a device and the one before, Hz: `include/trace/events/devfreq.h`.
pub(super) fn frequency(device: &str, hz: u32, before: u32) -> Description {
    let text = format!("dev_name={device:<30} freq={hz:<12} prev_freq={before:<12} load=50");
    let fields = vec![
        elsewhere("dev_name", 1, device),
        long("freq", 2, hz),
        long("prev_freq", 3, before),
        long("busy_time", 4, 1),
        long("total_time", 5, 2),
    ];
    Description { name: "devfreq_frequency", message: 541, text, fields }
}
