//! Events of devices' queues in Perfetto's schema: `protos/perfetto/trace/ftrace/{gpu_scheduler,dma_fence}.proto`.

use super::ftrace::EventMessage;

/// Fields of an event of a job, from Linux 6.17 on.
const JOB: &[(u32, &str)] = &[(1, "name"), (4, "dev"), (5, "fence_context"), (6, "fence_seqno")];
/// Fields of an event of a dependency.
const DEPENDENCY: &[(u32, &str)] = &[(1, "fence_context"), (2, "fence_seqno"), (3, "ctx"), (4, "seqno")];
/// Fields of an event of a job before.
const JOB_BY_ADDRESS: &[(u32, &str)] = &[(2, "fence"), (4, "id"), (6, "name")];

/// `drm_sched_job_queue`.
pub(crate) const QUEUE: EventMessage = EventMessage { number: 593, fields: JOB };
/// `drm_sched_job_run`.
pub(crate) const RUN: EventMessage = EventMessage { number: 594, fields: JOB };
/// `drm_sched_job_done`.
pub(crate) const DONE: EventMessage =
    EventMessage { number: 592, fields: &[(1, "fence_context"), (2, "fence_seqno")] };
/// `drm_sched_job_add_dep`.
pub(crate) const ADD_DEPENDENCY: EventMessage = EventMessage { number: 591, fields: DEPENDENCY };
/// `drm_sched_job_unschedulable`.
pub(crate) const UNSCHEDULABLE: EventMessage = EventMessage { number: 595, fields: DEPENDENCY };
/// `drm_sched_job`, before Linux 6.17.
pub(crate) const QUEUE_BY_ADDRESS: EventMessage = EventMessage { number: 411, fields: JOB_BY_ADDRESS };
/// `drm_run_job`, before Linux 6.17.
pub(crate) const RUN_BY_ADDRESS: EventMessage = EventMessage { number: 412, fields: JOB_BY_ADDRESS };
/// `drm_sched_process_job`, before Linux 6.17.
pub(crate) const DONE_BY_ADDRESS: EventMessage = EventMessage { number: 413, fields: &[(1, "fence")] };
/// `dma_fence_signaled`.
pub(crate) const FENCE_SIGNALED: EventMessage =
    EventMessage { number: 416, fields: &[(1, "context"), (2, "driver"), (3, "seqno"), (4, "timeline")] };
