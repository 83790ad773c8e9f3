//! Ids of tasks in the PID namespace that user space runs in.

use aya_ebpf::helpers::bpf_get_current_pid_tgid;
use nntrace_common::pid_namespace::PidNamespace;

use crate::{
    helpers::current_task,
    kernel_memory::read,
    maps::{PID_NAMESPACE, PID_NAMESPACE_NUMBER, SCHED_OFFSETS},
};

/// Namespaces within each other at most. Source: `MAX_PID_NS_LEVEL` of the kernel.
const MOST_LEVELS: u32 = 32;

/// Ids of a thread.
#[derive(Clone, Copy)]
pub struct Ids {
    /// Process id.
    pub tgid: u32,
    /// Thread id.
    pub tid: u32,
}

/// Returns the current thread; both ids are 0 where the namespace does not know it.
#[inline(always)]
pub fn current() -> Ids {
    let ids =
        if PID_NAMESPACE_NUMBER.load() == 0 { bpf_get_current_pid_tgid() } else { current_in_namespace() };
    Ids { tgid: (ids >> 32) as u32, tid: ids as u32 }
}

/// Returns the id of a task; 0 where it is not known.
#[inline(always)]
pub fn of_task(task: u64) -> u32 {
    if PID_NAMESPACE_NUMBER.load() == 0 {
        read(task, SCHED_OFFSETS.load().task_pid).unwrap_or(0)
    } else {
        in_namespace(task)
    }
}

/// Returns process and thread as the kernel's helper does for the host. A function to the verifier as well.
#[inline(never)]
fn current_in_namespace() -> u64 {
    let task = current_task();
    let Ok(leader) = read::<u64>(task, PID_NAMESPACE.load().group_leader) else { return 0 };
    u64::from(in_namespace(leader)) << 32 | u64::from(in_namespace(task))
}

/// Looks the namespace up among those that a task is in. A function to the verifier as well.
#[inline(never)]
fn in_namespace(task: u64) -> u32 {
    find(task, &PID_NAMESPACE.load()).unwrap_or_default()
}

#[inline(always)]
fn find(task: u64, wanted: &PidNamespace) -> Option<u32> {
    let pid: u64 = read(task, wanted.thread_pid).ok()?;
    let level: u32 = read(pid, wanted.level).ok()?;
    for at in 1..MOST_LEVELS {
        if at > level {
            return None;
        }
        let number = pid + u64::from(wanted.numbers + at * wanted.number_size);
        let namespace: u64 = read(number, wanted.namespace).ok()?;
        if read::<u32>(namespace, wanted.namespace_number).ok()? == PID_NAMESPACE_NUMBER.load() {
            return read(number, wanted.id).ok();
        }
    }
    None
}
