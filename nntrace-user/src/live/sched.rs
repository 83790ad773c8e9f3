//! Context switches and wake-ups: whether the kernel describes them, and which threads are traced from the start.

use std::{fs, path::Path};

use nntrace_common::sched::SchedOffsets;

use super::{
    btf::Btf,
    clock,
    kernel::{Kernel, KernelError},
    readings::ProgramCost,
    tracefs,
};
use crate::model::scheduling::{Found, Scheduling};

/// Tracepoints of group `sched`, with the program on the raw form and the one on the described form. The switch is the
/// first: whether its raw form tells enough is found out by attaching to it.
const PROGRAMS: [(&str, &str, &str); 3] = [
    ("sched_switch", "raw_sched_switch", "sched_switch"),
    ("sched_wakeup_new", "raw_sched_wakeup_new", "sched_wakeup_new"),
    ("sched_wakeup", "raw_sched_wakeup", "sched_wakeup"),
];

/// Where the programs find what they read: in tasks by BTF, in events by tracefs; 0 for what neither tells.
#[must_use]
pub(crate) fn offsets(btf: Option<&Btf>) -> SchedOffsets {
    let offset = |event, field| tracefs::field_offset(event, field).unwrap_or(0);
    SchedOffsets {
        prev_state: offset("sched/sched_switch", "prev_state"),
        next_pid: offset("sched/sched_switch", "next_pid"),
        // `sched_wakeup_new` is of the same class.
        woken_pid: offset("sched/sched_wakeup", "pid"),
        task_pid: btf.and_then(|btf| btf.offset("task_struct", "pid")).unwrap_or(0),
    }
}

impl Kernel {
    /// Attaches to context switches and wake-ups.
    ///
    /// # Errors
    /// When the kernel refuses, or does not describe these events.
    pub(crate) fn attach_scheduling(&mut self) -> Result<(), KernelError> {
        let SchedOffsets { prev_state, next_pid, woken_pid, task_pid } = self.sched_offsets();
        let [(point, raw, _), others @ ..] = PROGRAMS;
        // Before Linux 5.18 the raw form lacks the state, and is refused.
        if task_pid != 0 && self.attach_raw(raw, point).is_ok() {
            return others.iter().try_for_each(|(point, raw, _)| self.attach_raw(raw, point));
        }
        if [prev_state, next_pid, woken_pid].contains(&0) {
            return Err(KernelError::Attach {
                point: "sched_switch, sched_wakeup and sched_wakeup_new".into(),
                reason: match tracefs::mount_point() {
                    Some(mount) => {
                        format!("{} does not describe them: leave out --level sched", mount.display())
                    }
                    None => format!("{}; or leave out --level sched", tracefs::lacking()),
                },
            });
        }
        PROGRAMS.iter().try_for_each(|(event, _, program)| self.attach_event(program, "sched", event))
    }

    /// Runs and time of these programs, by the kernel's statistics.
    #[must_use]
    pub(crate) fn read_scheduling_cost(&self) -> ProgramCost {
        self.read_cost(PROGRAMS.map(|(_, raw, program)| [raw, program]).as_flattened())
    }
}

/// A thread as it was found.
pub(crate) struct FoundThread {
    /// Its id.
    pub tid: u32,
    /// Its name.
    pub comm: String,
    found: Found,
}

/// The threads of a process now; none of one that has ended.
#[must_use]
pub(crate) fn threads(pid: u32) -> Vec<FoundThread> {
    let folder = format!("/proc/{pid}/task");
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| thread(&entry.path())).collect()
}

fn thread(folder: &Path) -> Option<FoundThread> {
    let stat = fs::read(folder.join("stat")).ok()?;
    parse(&String::from_utf8_lossy(&stat))
}

/// Reads `TID (NAME) STATE ..`; a name may hold parentheses.
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

/// Traces every thread that a traced process has by now.
///
/// # Errors
/// When the table of targets is full.
pub(crate) fn watch(kernel: &mut Kernel, model: &mut Scheduling, pid: u32) -> Result<(), KernelError> {
    let known: Vec<u32> = threads(pid).iter().map(|thread| thread.tid).collect();
    for &tid in &known {
        kernel.add_target(tid)?;
    }
    // From here on no event of theirs is missed; so what they do is looked at after.
    let since = clock::now();
    let found = threads(pid);
    for thread in found.iter().filter(|thread| known.contains(&thread.tid)) {
        model.watch(pid, thread.tid, since, thread.found);
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
