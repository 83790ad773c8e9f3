//! Scheduling events of threads.
//!
//! Source: include/trace/events/sched.h (`sched_switch`, `sched_waking`, `sched_wakeup`, `sched_wakeup_new`), and the states
//! of a task in include/linux/sched.h.

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
    /// Id of a task (`task_struct.pid`).
    pub task_pid: u32,
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
}
