//! Scheduling events of threads.
//!
//! Source: include/trace/events/sched.h (`sched_switch`, `sched_waking`, `sched_wakeup`, `sched_wakeup_new`), and the states
//! of a task in include/linux/sched.h, and the fields of `preempt_count` in include/linux/preempt.h.

/// Offsets of fields, from the kernel's descriptions, bytes; 0 where unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SchedOffsets {
    /// `prev_state` of `sched_switch`.
    pub prev_state: u32,
    /// `next_pid` of `sched_switch`.
    pub next_pid: u32,
    /// `pid` of `sched_waking`, `sched_wakeup` and `sched_wakeup_new`.
    pub woken_pid: u32,
    /// `target_cpu` of the same.
    pub woken_cpu: u32,
    /// Id of a task (`task_struct.pid`).
    pub task_pid: u32,
    /// CPU of a task (`task_struct.thread_info.cpu`; before Linux 5.16 `task_struct.cpu`).
    pub task_cpu: u32,
}

/// Way to the counter by which a CPU knows that it handles an interrupt (`preempt_count`); all 0 where unknown. It is in the task
/// that runs, or in memory of the CPU, which its run queue is in, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PreemptCount {
    /// Offset in the task of its queue (`task_struct.se.cfs_rq`), bytes; 0 where the counter is in the task.
    pub queue: u32,
    /// Offset in that of the run queue (`cfs_rq.rq`), bytes.
    pub run_queue: u32,
    /// Offset of the counter from the run queue, or from the task, bytes; may be negative.
    pub counter: i64,
}

impl PreemptCount {
    /// Whether the place is known.
    #[must_use]
    #[inline(always)]
    pub const fn is_known(&self) -> bool {
        // In neither it is first.
        self.counter != 0
    }

    /// Whether a CPU with this value of the counter handles an interrupt, soft or hard.
    #[must_use]
    #[inline(always)]
    pub const fn is_in_interrupt(value: u32) -> bool {
        /// Hard interrupts and those that cannot be masked (`HARDIRQ_MASK`, `NMI_MASK`).
        const HARD: u32 = 0x00ff_0000;
        /// Handling of soft ones (`SOFTIRQ_OFFSET`): the bits above count where they are disabled.
        const SOFT: u32 = 0x0000_0100;
        value & (HARD | SOFT) != 0
    }
}

/// Change of a thread's scheduling state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Change {
    /// The thread gets the CPU.
    In = 0,
    /// The thread is taken off the CPU, but is still runnable.
    Preempted = 1,
    /// The thread leaves the CPU until it is woken: it waits, or is stopped.
    Sleeps = 2,
    /// The thread leaves the CPU for an uninterruptible wait (`D`).
    SleepsDeep = 3,
    /// The thread leaves the CPU for the last time.
    Ends = 4,
    /// The thread waits for a CPU from now on, unless it was already runnable.
    Woken = 5,
    /// The thread is new, and waits for a CPU.
    New = 6,
    /// The thread execs without being the leader of its process, and takes over the leader's id.
    Renamed = 7,
}

impl Change {
    /// All changes, by number.
    pub const ALL: [Self; 8] = [
        Self::In,
        Self::Preempted,
        Self::Sleeps,
        Self::SleepsDeep,
        Self::Ends,
        Self::Woken,
        Self::New,
        Self::Renamed,
    ];

    /// Returns the change with this number.
    #[must_use]
    pub fn from_code(code: u32) -> Option<Self> {
        Self::ALL.get(code as usize).copied()
    }

    /// Returns the change for the state of a task that gives up its CPU voluntarily.
    #[must_use]
    #[inline(always)]
    pub const fn of_task(state: u32) -> Self {
        /// `TASK_DEAD`.
        const DEAD: u32 = 0x80;
        /// `TASK_UNINTERRUPTIBLE`, `TASK_RTLOCK_WAIT`.
        const DEEP: u32 = 0x02 | 0x1000;
        if state & DEAD != 0 {
            Self::Ends
        } else if state & DEEP != 0 {
            Self::SleepsDeep
        } else if state != 0 {
            Self::Sleeps
        } else {
            Self::Preempted
        }
    }

    /// Returns the change for `prev_state` of `sched_switch`. 0, or a bit above those of the states
    /// (`TASK_REPORT_MAX`), is a thread that is still runnable.
    #[must_use]
    #[inline(always)]
    pub const fn of_state(state: u32) -> Self {
        /// `EXIT_DEAD`, `EXIT_ZOMBIE`, and the value of `TASK_DEAD` before Linux 4.14. In later kernels it is
        /// `TASK_PARKED`, which only kernel threads have.
        const ENDED: u32 = 0x10 | 0x20 | 0x40;
        /// `TASK_UNINTERRUPTIBLE`.
        const DEEP: u32 = 0x02;
        /// All states that the event reports.
        const ALL: u32 = 0xff;
        if state & ENDED != 0 {
            Self::Ends
        } else if state & DEEP != 0 {
            Self::SleepsDeep
        } else if state & ALL != 0 {
            Self::Sleeps
        } else {
            Self::Preempted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_those_of_the_event() {
        let cases = [
            (0, Change::Preempted),
            (0x100, Change::Preempted),
            (0x400, Change::Preempted),
            (1, Change::Sleeps),
            (2, Change::SleepsDeep),
            (4, Change::Sleeps),
            (8, Change::Sleeps),
            (0x10, Change::Ends),
            (0x20, Change::Ends),
            (0x40, Change::Ends),
            (0x80, Change::Sleeps),
            (0x82, Change::SleepsDeep),
        ];
        for (state, change) in cases {
            assert_eq!(Change::of_state(state), change, "{state:#x}");
        }
        for change in Change::ALL {
            assert_eq!(Change::from_code(change as u32), Some(change));
        }
        assert_eq!(Change::from_code(8), None);
    }

    #[test]
    fn only_interrupts_that_are_handled_count() {
        // Preemption disabled twice, soft interrupts disabled (a softirq lock), and needless bits above.
        for value in [0, 2, 0x200, 0x8000_0000] {
            assert!(!PreemptCount::is_in_interrupt(value), "{value:#x}");
        }
        for value in [0x100, 0x101, 0x1_0000, 0x10_0000] {
            assert!(PreemptCount::is_in_interrupt(value), "{value:#x}");
        }
    }
}
