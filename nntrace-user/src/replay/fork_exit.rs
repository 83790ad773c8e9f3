//! Begins and ends of threads and processes: the events `sched_process_fork` and `sched_process_exit`.

use super::sched::field_number;

/// Begin or end of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskEvent {
    /// The thread of the event creates this thread or process.
    Fork {
        /// Thread id of the new task.
        child: u32,
    },
    /// The thread of the event exits.
    Exit,
}

/// Parses the fields of `sched_process_fork`, `comm=make pid=12 child_comm=make child_pid=34`.
pub(crate) fn fork(fields: &[u8]) -> Option<TaskEvent> {
    // A name may contain anything; the number is the last field.
    let at = fields.windows(KEY.len()).rposition(|window| window == KEY)?;
    field_number(&fields[at + KEY.len()..]).map(|(child, _)| TaskEvent::Fork { child })
}

const KEY: &[u8] = b"child_pid=";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_child_is_the_last_field() {
        let fields = b"comm=child_pid=7 pid=12 child_comm=child_pid=7 child_pid=34";
        assert_eq!(fork(fields), Some(TaskEvent::Fork { child: 34 }));
        assert_eq!(fork(b"comm=a pid=12"), None);
    }
}
