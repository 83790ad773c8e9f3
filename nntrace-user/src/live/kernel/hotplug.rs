//! CPUs that go offline and come back: from events and, where there are none, by comparing with sysfs.

use std::{collections::BTreeSet, fs, path::Path};

use aya::EbpfLoader;
use nntrace_common::power::Activity;

use super::{Kernel, KernelError};
use crate::live::sysfs;

/// Placeholder for an unknown step; the kernel counts up from 0.
const NO_STEP: u32 = u32::MAX;

/// Returns the number of the step that takes a CPU down (`takedown_cpu` in kernel/cpu.c), from the kernel's list
/// under `root`; [`NO_STEP`] when it is not listed.
fn takedown_step(root: &Path) -> u32 {
    let text = fs::read_to_string(root.join("hotplug/states")).unwrap_or_default();
    let step = text.lines().find_map(|line| {
        let (number, name) = line.split_once(':')?;
        (name.trim() == "cpu:teardown").then(|| number.trim().parse().ok())?
    });
    step.unwrap_or(NO_STEP)
}

/// The program on hotplug events, with the step that means that a CPU goes down.
pub(super) struct Hotplug {
    takedown_step: u32,
}

impl Hotplug {
    pub(super) fn new() -> Self {
        Self { takedown_step: takedown_step(Path::new(sysfs::CPUS)) }
    }

    pub(super) fn configure<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        loader.override_global("TAKEDOWN_STEP", &self.takedown_step, true);
    }
}

impl Kernel {
    /// Runs the program on hotplug events as if the kernel had just taken this CPU down, or on that CPU as if it had
    /// just been brought up.
    ///
    /// # Errors
    /// When the kernel refuses; it can since 5.10.
    pub fn tell_hotplug(&mut self, cpu: u32, online: bool) -> Result<(), KernelError> {
        let (on, step) = if online { (Some(cpu), 0) } else { (None, self.hotplug.takedown_step) };
        self.object.run("cpuhp_exit", on, &[u64::from(cpu), 0, u64::from(step), 0])
    }

    /// Updates the tables of CPUs that are online or offline in sysfs, under `root`, but not in the tables: where the
    /// kernel has no such events, or the step is unknown.
    ///
    /// # Errors
    /// When the kernel's maps cannot be read, or it refuses.
    pub(crate) fn compare_online(&mut self, root: &Path) -> Result<(), KernelError> {
        let online: BTreeSet<u32> = sysfs::online(root).into_iter().collect();
        let present: BTreeSet<u32> = sysfs::present(root).into_iter().collect();
        if online.is_empty() {
            return Ok(());
        }
        for (cpu, activity) in self.read_activities()?.into_iter().filter(|(cpu, _)| present.contains(cpu)) {
            let is_online = online.contains(&cpu);
            // During a transition sysfs may lag behind: it is read again before it is believed.
            if (activity == Activity::Offline) == is_online && sysfs::online(root).contains(&cpu) == is_online
            {
                self.tell_hotplug(cpu, is_online)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_is_found_by_its_name() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(takedown_step(root.path()), NO_STEP);
        fs::create_dir(root.path().join("hotplug")).unwrap();
        let states = "  0: offline\n143: ap:online\n144: cpu:teardown\n236: online\n";
        fs::write(root.path().join("hotplug/states"), states).unwrap();
        assert_eq!(takedown_step(root.path()), 144);
    }
}
