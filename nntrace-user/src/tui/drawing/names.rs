//! Names of processes and threads, and texts in the place of empty tables.

use crate::report::snapshot::{MarksSeen, Snapshot, SourceKind};

/// Text in the place of an empty table of marks.
pub(crate) fn no_marks(snapshot: &Snapshot, ended: bool) -> &'static str {
    if snapshot.source.marks == MarksSeen::None {
        "marks are not traced: started with --marks none"
    } else if ended {
        "no marks were seen; d shows notes that may say why"
    } else {
        "waiting for marks..."
    }
}

/// Text in the place of what only context switches show.
pub(crate) fn no_context_switches(snapshot: &Snapshot) -> &'static str {
    let is_traced = snapshot.usage.is_some();
    if is_traced && snapshot.source.kind == SourceKind::Live {
        "waiting for context switches..."
    } else if is_traced {
        "no traced process has context switches in this input"
    } else if snapshot.source.kind == SourceKind::Live {
        "context switches are not traced: start with --level sched"
    } else {
        "this input has no context switches; a run records them with --level sched"
    }
}

/// The name of a thread, where it is known, with its id.
pub(crate) fn thread_name(snapshot: &Snapshot, pid: u32, tid: u32) -> String {
    match snapshot.threads.iter().rev().find(|thread| (thread.pid, thread.tid) == (pid, tid)) {
        Some(thread) => format!("{} ({tid})", thread.comm),
        None => format!("thread {tid}"),
    }
}

/// The name of a process: `vision_app (1234)`, or its pid.
pub(crate) fn process_name(snapshot: &Snapshot, pid: u32) -> String {
    match snapshot.phases.iter().find(|row| row.pid == pid).map(|row| row.comm.as_str()) {
        None | Some("") => format!("pid {pid}"),
        Some(comm) => format!("{comm} ({pid})"),
    }
}
