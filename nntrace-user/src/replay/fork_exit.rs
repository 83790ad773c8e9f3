//! Begins and ends of threads and processes: the events `sched_process_fork` and `sched_process_exit`.

use super::ftrace::number;

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

/// Parses `comm=make pid=12 child_comm=make child_pid=34` of a fork; an exit needs no field.
pub(crate) fn read(name: &[u8], fields: &[u8]) -> Option<TaskEvent> {
    match name {
        b"sched_process_fork" => {
            // A name may contain anything; the number is the last field.
            let at = fields.windows(KEY.len()).rposition(|window| window == KEY)?;
            number(&fields[at + KEY.len()..]).map(|(child, _)| TaskEvent::Fork { child })
        }
        b"sched_process_exit" => Some(TaskEvent::Exit),
        _ => None,
    }
}

const KEY: &[u8] = b"child_pid=";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_child_is_the_last_field() {
        let fields = b"comm=child_pid=7 pid=12 child_comm=child_pid=7 child_pid=34";
        assert_eq!(read(b"sched_process_fork", fields), Some(TaskEvent::Fork { child: 34 }));
        assert_eq!(read(b"sched_process_fork", b"comm=a pid=12"), None);
        assert_eq!(read(b"sched_process_exit", b"comm=a pid=12 prio=120"), Some(TaskEvent::Exit));
        assert_eq!(read(b"sched_switch", b""), None);
    }
}
