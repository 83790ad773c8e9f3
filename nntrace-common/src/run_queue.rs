//! Samples of a CPU's activity, taken in the kernel without waking it.

/// Offsets in the kernel's structures that a sample needs, bytes. They differ from build to build.
///
/// Source: kernel/sched/sched.h, include/linux/cpuidle.h. There are two ways from the sampling task to any CPU's run
/// queue. Up to Linux 7.1 a group has an array: `task_struct.sched_task_group`, `task_group.cfs_rq[cpu]`,
/// `cfs_rq.rq`. Where that array has become per-CPU memory: `task_struct.se.cfs_rq`, the same of the other CPU,
/// `cfs_rq.rq`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RunQueueOffsets {
    /// `task_struct.sched_task_group`.
    pub task_group: u32,
    /// `task_group.cfs_rq`, an array by CPU of pointers.
    pub group_queues: u32,
    /// `task_struct.se.cfs_rq`.
    pub own_queue: u32,
    /// `cfs_rq.rq`.
    pub queue: u32,
    /// `rq.cpu`.
    pub cpu: u32,
    /// `rq.curr`.
    pub current: u32,
    /// `rq.idle`.
    pub idle: u32,
    /// `rq.idle_state`; 0 in kernels without it.
    pub idle_state: u32,
    /// `cpuidle_state.name`.
    pub name: u32,
}

/// Size of the name of an idle state, its NUL included (`CPUIDLE_NAME_LEN`), bytes.
pub const IDLE_NAME_BYTES: usize = 16;

/// Sample of a CPU's run queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RunQueueSample {
    /// One of the constants of this type.
    pub seen: u32,
    /// Name of the idle state, with [`RunQueueSample::IDLE_STATE`].
    pub name: [u8; IDLE_NAME_BYTES],
}

impl RunQueueSample {
    /// Unknown: the run queue could not be read, or is not that CPU's.
    pub const NOTHING: u32 = 0;
    /// The CPU runs a task.
    pub const TASK: u32 = 1;
    /// The CPU runs the idle task, without an idle state of a driver: it is idle without one, or has just woken, or
    /// is about to become idle.
    pub const IDLE_TASK: u32 = 2;
    /// The CPU is in an idle state.
    pub const IDLE_STATE: u32 = 3;
}
