//! Asynchronous executions: one call of an engine starts an execution, another one waits for its end, on any thread. They are
//! paired by the object that both have as an argument.
//!
//! An execution counts once, from the begin of the call that starts it to the end of the wait; both calls are
//! [parts](crate::stack::Class::Part) of it. What is subtracted from the calls is not subtracted from it. If it ends by a callback,
//! nobody waits: the next start of the same object shows that it has ended, but not when. From then on each start of that
//! object counts when it returns, with the time of the call, until somebody waits again. A wait for an execution whose start
//! was not seen counts as nothing: it may be the second one.
//!
//! A call in another one of its layer is a part of that one, and starts nothing of its own. On threads with a lane
//! ([`crate::express`]) the programs know only of the sections of probes there: an execution that the application marks itself,
//! with the runtime's layer, counts twice.

/// Name of an execution from start to wait.
pub const ASYNC_RUN: &[u8] = b"asynchronous run";

/// Name of an execution whose end was not seen: its time is that of the call which started it.
pub const ASYNC_RUN_UNSEEN: &[u8] = b"asynchronous run, end not seen";

/// Key of the last execution of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct AsyncRunKey {
    /// Object of the execution: its address.
    pub object: u64,
    /// Process id.
    pub tgid: u32,
    /// Always 0.
    pub reserved: u32,
}

/// Last execution of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct AsyncRun {
    /// Begin of the call that started it, ns; 0 once it is counted.
    pub begin: u64,
    /// End of that call, ns.
    pub returned: u64,
    /// Number of the last change of the application's phases before that call returned ([`crate::app_events`]).
    pub slot: u32,
    /// 1 when the execution before it ended unseen, else 0.
    pub ends_unseen: u32,
}

/// What the return of a call shows about executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// No execution has ended.
    Nothing,
    /// The execution that was started, with the time of that call only.
    Unseen,
    /// That one, and the one before it, with the time of its own call.
    UnseenAndOneBefore,
}

impl AsyncRun {
    /// State of an object that has not been seen.
    pub const NONE: Self = Self { begin: 0, returned: 0, slot: 0, ends_unseen: 0 };

    /// Returns what is known of an object after a call has started an execution from `begin` to `returned` (ns), and what that
    /// shows about executions. `self` is what was known before.
    #[must_use]
    #[inline(always)]
    pub const fn started(self, begin: u64, returned: u64, slot: u32) -> (Self, Counted) {
        let is_first_unseen = self.begin != 0;
        if is_first_unseen || self.ends_unseen != 0 {
            let counted = if is_first_unseen { Counted::UnseenAndOneBefore } else { Counted::Unseen };
            (Self { begin: 0, returned, slot, ends_unseen: 1 }, counted)
        } else {
            (Self { begin, returned, slot, ends_unseen: 0 }, Counted::Nothing)
        }
    }

    /// Returns the time of the call that started it, ns.
    #[must_use]
    #[inline(always)]
    pub const fn call_ns(&self) -> u64 {
        self.returned.saturating_sub(self.begin)
    }

    /// Returns how long (ns) it was in flight between the two calls, when the wait for it began at `waits` (ns).
    #[must_use]
    #[inline(always)]
    pub const fn in_flight(&self, waits: u64) -> u64 {
        waits.saturating_sub(self.returned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts executions of an object, each 100 ns after the one before, without a wait; returns what each has shown.
    fn starts(count: u64) -> (AsyncRun, Vec<Counted>) {
        let mut run = AsyncRun::NONE;
        let shown = (1..=count).map(|number| {
            let counted;
            (run, counted) = run.started(100 * number, 100 * number + 10, 0);
            counted
        });
        let shown = shown.collect();
        (run, shown)
    }

    #[test]
    fn an_execution_that_is_waited_for_counts_at_the_end_of_the_wait() {
        let (run, shown) = starts(1);
        assert_eq!(shown, [Counted::Nothing]);
        assert_eq!((run.begin, run.in_flight(140)), (100, 30));
        assert_eq!(run.call_ns(), 10);
        assert_eq!(run.in_flight(105), 0, "another thread waited before the call returned");
    }

    #[test]
    fn each_start_counts_once_where_nobody_waits() {
        let (run, shown) = starts(4);
        let unseen = Counted::Unseen;
        assert_eq!(shown, [Counted::Nothing, Counted::UnseenAndOneBefore, unseen, unseen]);
        assert_eq!(run.begin, 0, "a wait from here on finds one that has been counted");
    }
}
