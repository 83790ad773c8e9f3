//! Way to the counter by which a CPU knows that it handles an interrupt.
//!
//! Source: arch/x86/include/asm/preempt.h: in memory of each CPU, alone or (6.2 to 6.14) in `pcpu_hot`; and
//! arch/arm64/include/asm/preempt.h: in the task that runs.

use nntrace_common::sched::PreemptCount;

use super::btf::Btf;

/// Finds the counter; all 0 where that is not possible.
pub(super) fn find(btf: Option<&Btf>) -> PreemptCount {
    btf.and_then(|btf| in_task(btf).or_else(|| beside_run_queue(btf))).unwrap_or_default()
}

fn in_task(btf: &Btf) -> Option<PreemptCount> {
    let at = btf.offset("task_struct", "thread_info")? + btf.offset("thread_info", "preempt_count")?;
    Some(PreemptCount { queue: 0, run_queue: 0, counter: at.into() })
}

fn beside_run_queue(btf: &Btf) -> Option<PreemptCount> {
    let own_queue = btf.pointer_offset("sched_entity", "cfs_rq", 1, "cfs_rq")?;
    let in_hot = || Some(btf.per_cpu("pcpu_hot")? + btf.offset("pcpu_hot", "preempt_count")?);
    let counter = btf.per_cpu("__preempt_count").or_else(in_hot)?;
    Some(PreemptCount {
        queue: btf.offset("task_struct", "se")? + own_queue,
        run_queue: btf.pointer_offset("cfs_rq", "rq", 1, "rq")?,
        counter: i64::from(counter) - i64::from(btf.per_cpu("runqueues")?),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::live::kernel::btf;

    #[test]
    fn the_kernel_that_runs_shows_the_way() {
        let path = Path::new(btf::KERNEL);
        if path.exists() {
            let way = find(Btf::read(path).as_ref());
            assert!(way.is_known(), "{way:?}");
            assert_eq!(way.queue == 0, cfg!(target_arch = "aarch64"), "{way:?}");
        }
    }
}
