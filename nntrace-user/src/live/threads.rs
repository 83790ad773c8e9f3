//! Threads of traced processes, with their names and states, from /proc.

use std::{fs, path::Path};

use super::{
    clock,
    kernel::{Kernel, KernelError},
};
use crate::model::{Model, scheduling::Found};

/// Thread as it was found.
pub(crate) struct FoundThread {
    /// Thread id.
    pub tid: u32,
    /// Name.
    pub comm: String,
    found: Found,
}

/// Returns the current threads of a process; none of one that has ended.
#[must_use]
pub(crate) fn threads(pid: u32) -> Vec<FoundThread> {
    let folder = format!("/proc/{pid}/task");
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| thread(&entry.path())).collect()
}

/// Whether a thread is one of a process.
pub(crate) fn is_of(pid: u32, tid: u32) -> bool {
    Path::new(&format!("/proc/{pid}/task/{tid}")).exists()
}

fn thread(folder: &Path) -> Option<FoundThread> {
    let stat = fs::read(folder.join("stat")).ok()?;
    parse(&String::from_utf8_lossy(&stat))
}

/// Parses `TID (NAME) STATE ..`; a name may contain parentheses.
fn parse(stat: &str) -> Option<FoundThread> {
    let (head, rest) = stat.rsplit_once(')')?;
    let (tid, comm) = head.split_once(" (")?;
    let found = match rest.trim_start().chars().next()? {
        'R' => Found::Awake,
        'D' => Found::Uninterruptible,
        'X' | 'Z' => return None,
        _ => Found::Sleeping,
    };
    Some(FoundThread { tid: tid.parse().ok()?, comm: comm.to_owned(), found })
}

/// Traces all current threads of a target.
///
/// # Errors
/// When the table of targets is full.
pub(crate) fn watch(kernel: &mut Kernel, model: &mut Model, pid: u32) -> Result<(), KernelError> {
    let known: Vec<u32> = threads(pid).iter().map(|thread| thread.tid).collect();
    // The process itself is a target already; it may be one that is stopped while it loads libraries, and has to stay so.
    for &tid in known.iter().filter(|tid| **tid != pid) {
        kernel.add_target(tid)?;
    }
    // From here on none of their events is missed; so their states are read afterwards.
    let since = clock::now();
    let found = threads(pid);
    for thread in found.iter().filter(|thread| known.contains(&thread.tid)) {
        model.watch_thread(pid, thread.tid, since, thread.found);
    }
    for tid in known.into_iter().filter(|tid| *tid != pid && !found.iter().any(|thread| thread.tid == *tid)) {
        kernel.remove_target(tid)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_found_with_their_names_and_states() {
        let thread = parse("12 (a) b (c) S 1 12 12 0 -1 4194304\n").unwrap();
        assert_eq!((thread.tid, thread.comm.as_str(), thread.found), (12, "a) b (c", Found::Sleeping));
        let state = |letter| parse(&format!("1 (x) {letter} 0")).map(|thread| thread.found);
        assert_eq!(
            ['R', 'D', 't', 'Z'].map(state),
            [Some(Found::Awake), Some(Found::Uninterruptible), Some(Found::Sleeping), None]
        );
        let pid = std::process::id();
        assert!(threads(pid).iter().any(|thread| thread.tid == pid));
    }
}
