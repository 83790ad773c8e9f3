//! A look at what a CPU is doing, taken in the kernel without waking it.

/// Where the kernel keeps what a look needs, bytes from the begin of each structure. They differ from build to build.
///
/// Source: kernel/sched/sched.h, include/linux/cpuidle.h. From the task that looks to any CPU's run queue there are two
/// ways. Up to Linux 7.1 a group has an array: `task_struct.sched_task_group`, `task_group.cfs_rq[cpu]`, `cfs_rq.rq`.
/// Where that array has become per-CPU memory: `task_struct.se.cfs_rq`, the same of the other CPU, `cfs_rq.rq`.
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

/// Bytes of the name of an idle state, its NUL included (`CPUIDLE_NAME_LEN`).
pub const IDLE_NAME_BYTES: usize = 16;

/// What was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RunQueueSample {
    /// One of the constants of this type.
    pub seen: u32,
    /// The name of the idle state with [`RunQueueSample::IDLE_STATE`].
    pub name: [u8; IDLE_NAME_BYTES],
}

impl RunQueueSample {
    /// Nothing: the run queue could not be read, or is not that CPU's.
    pub const NOTHING: u32 = 0;
    /// It runs a task.
    pub const TASK: u32 = 1;
    /// It runs the idle task, which has chosen no state of a driver: it sleeps without one, or has just woken, or is
    /// about to sleep.
    pub const IDLE_TASK: u32 = 2;
    /// It is in an idle state.
    pub const IDLE_STATE: u32 = 3;
}
