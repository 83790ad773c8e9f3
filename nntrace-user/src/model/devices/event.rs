//! Events of the queues of devices: the kernel's `gpu_scheduler` and `dma_fence` events.
//!
//! Accelerators and GPUs whose driver uses the scheduler of DRM have rings. A program queues a job for a ring, the scheduler
//! hands it to the device once all fences that it depends on are signaled, and the device signals the job's own fence when it is
//! done.
//!
//! Source: `drivers/gpu/drm/scheduler/gpu_scheduler_trace.h`, `include/trace/events/dma_fence.h`.

/// Fence that identifies a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fence {
    /// Number in a context, in which fences are signaled in their order.
    Number {
        /// Context.
        context: u64,
        /// Number.
        seqno: u64,
    },
    /// Address, which is reused: before Linux 6.17.
    Address(u64),
}

/// Ring of a device: an instance of the scheduler. Those of one name are not told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingName<'a> {
    /// Name of the device; empty where the event does not have it: before Linux 6.17.
    pub device: &'a [u8],
    /// Name of the ring.
    pub ring: &'a [u8],
}

/// Job in an event that names its ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobName<'a> {
    /// Ring that it runs on.
    pub ring: RingName<'a>,
    /// Fence that it signals.
    pub fence: Fence,
    /// Number of the job on its ring, before Linux 6.17.
    pub id: Option<u64>,
}

/// Event of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceEvent<'a> {
    /// A thread queues a job.
    Queued(JobName<'a>),
    /// The scheduler hands a job to the device.
    HandedOver(JobName<'a>),
    /// A job is done.
    Done(Fence),
    /// A fence is signaled, that of a job or another one.
    Signaled(Fence),
    /// A job depends on a fence, which may be signaled already.
    Depends {
        /// Fence of the job.
        job: Fence,
        /// Fence that it depends on.
        on: Fence,
    },
    /// A job is the next one of its queue, and depends on a fence that is not signaled yet.
    Blocked {
        /// Fence of the job.
        job: Fence,
        /// Fence that it depends on.
        on: Fence,
    },
    /// A job is the next one of its queue, and depends on a fence, which may be signaled already: before Linux 6.17, where the
    /// job is known by its ring and its number.
    DependsById {
        /// Ring of the job.
        ring: RingName<'a>,
        /// Its number.
        id: u64,
        /// Address of the fence that it depends on, by which jobs are known.
        address: Fence,
        /// Its context and number, by which it is signaled.
        number: Option<Fence>,
    },
}
