//! What the scheduler does with a thread.
//!
//! Source: include/trace/events/sched.h (`sched_switch`, `sched_wakeup`, `sched_wakeup_new`), and the states of a task
//! in include/linux/sched.h.

/// Where the kernel's descriptions of the events place their fields, bytes; 0 where that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SchedOffsets {
    /// `prev_state` of `sched_switch`.
    pub prev_state: u32,
    /// `next_pid` of `sched_switch`.
    pub next_pid: u32,
    /// `pid` of `sched_wakeup` and `sched_wakeup_new`.
    pub woken_pid: u32,
    /// The id of a task.
    pub task_pid: u32,
}

/// What happens to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Change {
    /// It gets the CPU.
    In = 0,
    /// It is taken off the CPU, and would run on.
    Preempted = 1,
    /// It leaves the CPU until something wakes it: it waits, or is stopped.
    Sleeps = 2,
    /// It leaves the CPU until what it waits for has happened; signals do not wake it (`D`).
    SleepsDeep = 3,
    /// It leaves the CPU for the last time.
    Ends = 4,
    /// It waits for a CPU from now on, unless it was awake already.
    Woken = 5,
    /// It is new, and waits for a CPU.
    New = 6,
    /// It execs without being the leader of its process, and takes over the leader's id.
    Renamed = 7,
}

impl Change {
    /// All, by number.
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

    /// The one with this number.
    #[must_use]
    pub fn from_code(code: u32) -> Option<Self> {
        Self::ALL.get(code as usize).copied()
    }

    /// What the state of a task says that gives up its CPU of itself.
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

    /// What `prev_state` of `sched_switch` says of the thread that is taken off. 0, or a bit above those of the states
    /// (`TASK_REPORT_MAX`), is a thread that would run on.
    #[must_use]
    #[inline(always)]
    pub const fn of_state(state: u32) -> Self {
        /// `EXIT_DEAD`, `EXIT_ZOMBIE`, and what was `TASK_DEAD` before Linux 4.14. Of later ones it is `TASK_PARKED`,
        /// which kernel threads alone are.
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
