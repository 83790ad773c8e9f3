//! The program that reads run queues, to sample a CPU's activity without waking it.

use aya::{EbpfLoader, maps::Array};
use nntrace_common::run_queue::{RunQueueOffsets, RunQueueSample};

use super::{Kernel, KernelError, btf::Btf, object::Object};

/// The program, with the offsets that it needs.
pub(super) struct RunQueues {
    sampler: Option<(&'static str, RunQueueOffsets)>,
}

impl RunQueues {
    pub(super) fn new(btf: Option<&Btf>) -> Self {
        Self { sampler: btf.and_then(sampler) }
    }

    pub(super) fn configure<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        if let Some((_, offsets)) = &self.sampler {
            loader.override_global("RUN_QUEUE_OFFSETS", offsets, true);
        }
    }

    pub(super) fn load(&mut self, object: &mut Object) -> Result<(), KernelError> {
        if let Some((program, _)) = self.sampler
            && object.raw_tracepoint(program)?.load().is_err()
        {
            // Without it, a CPU's first event shows its previous state.
            self.sampler = None;
        }
        Ok(())
    }
}

/// Returns the program that fits this kernel, with the offsets that it needs; `None` when BTF lacks them, or the
/// kernel is built differently: the path from a task to the run queues needs `CONFIG_FAIR_GROUP_SCHED`.
fn sampler(btf: &Btf) -> Option<(&'static str, RunQueueOffsets)> {
    let queues = |levels| btf.pointer_offset("task_group", "cfs_rq", levels, "cfs_rq");
    let offsets = RunQueueOffsets {
        queue: btf.pointer_offset("cfs_rq", "rq", 1, "rq")?,
        cpu: btf.offset("rq", "cpu")?,
        current: btf.pointer_offset("rq", "curr", 1, "task_struct")?,
        idle: btf.pointer_offset("rq", "idle", 1, "task_struct")?,
        idle_state: btf.pointer_offset("rq", "idle_state", 1, "cpuidle_state").unwrap_or(0),
        name: btf.offset("cpuidle_state", "name").unwrap_or(0),
        ..RunQueueOffsets::default()
    };
    if let Some(group_queues) = queues(2) {
        let task_group = btf.pointer_offset("task_struct", "sched_task_group", 1, "task_group")?;
        return Some(("sample_run_queue", RunQueueOffsets { task_group, group_queues, ..offsets }));
    }
    queues(1)?;
    let entity = btf.offset("task_struct", "se")?;
    let own_queue = entity + btf.pointer_offset("sched_entity", "cfs_rq", 1, "cfs_rq")?;
    Some(("sample_run_queue_from_own", RunQueueOffsets { own_queue, ..offsets }))
}

impl Kernel {
    /// Samples the activity of a CPU; [`RunQueueSample::NOTHING`] where that is not possible.
    #[must_use]
    pub fn sample_run_queue(&mut self, cpu: u32) -> RunQueueSample {
        let Some((program, _)) = self.run_queues.sampler else { return RunQueueSample::default() };
        let seen = self.object.run(program, None, &[u64::from(cpu)]).and_then(|()| {
            let looks: Array<_, RunQueueSample> = self.object.array("RUN_QUEUE_SAMPLE")?;
            looks.get(&0, 0).map_err(KernelError::reading)
        });
        seen.unwrap_or_default()
    }
}
