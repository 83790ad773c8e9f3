//! Processes and names of threads: from the recorder's trees, from descriptions of tracks, and from events.

use rustc_hash::FxHashMap;

use crate::{
    perfetto_schema::{
        ProcessTree, ThreadDescriptor, TracePacket,
        ftrace::{FtraceKind, TaskNewtask},
    },
    replay::tracedat::Comms,
};

/// Threads that are kept at most.
const MOST: usize = 1 << 20;
/// Bytes of a name at most; the kernel has 15 of them.
pub(super) const LONGEST_NAME: usize = 64;
/// Flag of a new task: it is a thread of its creator's process (`CLONE_THREAD`).
const CLONE_THREAD: u64 = 0x10000;

/// Threads, by id.
#[derive(Clone, Debug, Default)]
pub(super) struct Threads {
    processes: FxHashMap<u32, u32>,
    /// Processes by the kernel's ids. Descriptions of tracks have the ids of their writer, which may run in a container.
    in_kernel: FxHashMap<u32, u32>,
    names: Comms,
    named: usize,
}

impl Threads {
    /// Takes what a packet shows; `first` keeps what is known already.
    pub(super) fn packet(&mut self, packet: &TracePacket, first: bool) {
        if let Some(tree) = &packet.process_tree {
            self.tree(tree, first);
        }
        let track = packet.track_descriptor.as_ref().and_then(|track| track.thread.as_ref());
        for thread in track.into_iter().chain(&packet.thread_descriptor) {
            self.descriptor(thread, first);
        }
        for event in packet.ftrace_events.iter().flat_map(|bundle| &bundle.event) {
            if let Some(kind) = &event.kind {
                self.event(event.pid.unwrap_or(0), kind, first);
            }
        }
        let compact = packet.ftrace_events.iter().filter_map(|bundle| bundle.compact_sched.as_ref());
        for sched in compact {
            for (pid, name) in sched.switch_next_pid.iter().zip(&sched.switch_next_comm_index) {
                if let (Ok(tid), Some(name)) = (u32::try_from(*pid), sched.intern_table.get(*name as usize)) {
                    self.name(tid, name);
                }
            }
        }
    }

    fn tree(&mut self, tree: &ProcessTree, first: bool) {
        for thread in &tree.threads {
            let (Some(Ok(tid)), tgid) = (thread.tid.map(u32::try_from), thread.tgid) else { continue };
            if let Some(Ok(tgid)) = tgid.map(u32::try_from) {
                self.set_in_kernel(tid, tgid, first);
            }
            self.name(tid, thread.name.as_deref().unwrap_or_default());
        }
        for process in &tree.processes {
            let Some(Ok(pid)) = process.pid.map(u32::try_from) else { continue };
            self.set_in_kernel(pid, pid, first);
            // The program, where the thread has no name of its own.
            let program = process.cmdline.first().map(|path| &**path).unwrap_or_default();
            let file = program.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            self.name(pid, &file[..file.len().min(15)]);
        }
    }

    fn descriptor(&mut self, thread: &ThreadDescriptor, first: bool) {
        let (Some(Ok(tid)), Some(Ok(pid))) = (thread.tid.map(u32::try_from), thread.pid.map(u32::try_from))
        else {
            return;
        };
        self.set(tid, pid, first);
        self.name(tid, thread.thread_name.as_deref().unwrap_or_default());
    }

    /// Takes what an event of a thread shows about it, and about others.
    fn event(&mut self, tid: u32, kind: &FtraceKind, first: bool) {
        let mut name = |pid: Option<i32>, name: &Option<bytes::Bytes>| {
            if let (Some(Ok(tid)), Some(name)) = (pid.map(u32::try_from), name) {
                self.name(tid, name);
            }
        };
        match kind {
            FtraceKind::SchedSwitch(event) => {
                name(event.prev_pid, &event.prev_comm);
                name(event.next_pid, &event.next_comm);
            }
            FtraceKind::SchedWakeup(event) | FtraceKind::SchedWakeupNew(event) => {
                name(event.pid, &event.comm);
            }
            FtraceKind::TaskNewtask(event) => {
                name(event.pid, &event.comm);
                self.new_task(tid, event, first);
            }
            FtraceKind::TaskRename(event) => name(event.pid, &event.newcomm),
            _ => {}
        }
    }

    fn new_task(&mut self, creator: u32, event: &TaskNewtask, first: bool) {
        let Some(Ok(tid)) = event.pid.map(u32::try_from) else { return };
        if event.clone_flags.unwrap_or(0) & CLONE_THREAD == 0 {
            self.set_in_kernel(tid, tid, first);
        } else if let Some(process) = self.process(creator) {
            self.set_in_kernel(tid, process, first);
        }
    }

    fn set(&mut self, tid: u32, process: u32, first: bool) {
        set(&mut self.processes, tid, process, first);
    }

    fn set_in_kernel(&mut self, tid: u32, process: u32, first: bool) {
        self.set(tid, process, first);
        set(&mut self.in_kernel, tid, process, first);
    }

    fn name(&mut self, tid: u32, name: &[u8]) {
        if self.named < MOST && !name.is_empty() && tid != 0 {
            self.named += usize::from(self.names.learn(tid, &name[..name.len().min(LONGEST_NAME)]));
        }
    }

    /// Returns the process of a thread, if it is known.
    pub(super) fn process(&self, tid: u32) -> Option<u32> {
        self.processes.get(&tid).copied()
    }

    /// Whether a thread of another process has this id in the kernel.
    pub(super) fn is_of_other(&self, pid: u32, tid: u32) -> bool {
        self.in_kernel.get(&tid).is_some_and(|&process| process != pid)
    }

    /// Returns the name of a thread; `<...>` where it is not known.
    pub(super) fn comm(&self, tid: u32) -> &[u8] {
        self.names.get(tid)
    }
}

fn set(processes: &mut FxHashMap<u32, u32>, tid: u32, process: u32, first: bool) {
    let is_full = processes.len() >= MOST;
    match processes.get_mut(&tid) {
        Some(known) if !first => *known = process,
        None if !is_full => _ = processes.insert(tid, process),
        Some(_) | None => {}
    }
}
