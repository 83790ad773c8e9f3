//! Begin of measuring power states: the order of reading, starting and attaching.

use std::{collections::BTreeSet, path::Path, time::Duration};

use nntrace_common::{power::MAX_POLICY_CPUS, record::Record, window::Window};

use super::{
    clock::{self, nanoseconds},
    frequency_limits,
    initial_state::InitialReadings,
    kernel::{Kernel, KernelError},
    other_power_events::Baseline,
    sysfs,
};
use crate::model::Topology;

/// Time from starting the tables to the begin of the window, in which the programs are attached.
const LEAD: Duration = Duration::from_millis(20);

/// The programs are attached; the window begins soon.
pub(crate) struct StartedWindow {
    /// When it begins, and when it ends, where that is known.
    pub window: Window,
    /// Time when everything that residency needs had been attached, ns.
    pub attached_at: u64,
    /// State that was read then.
    pub attached: InitialReadings,
    /// Limits of frequencies that were read then, as events.
    pub limits: Vec<Record>,
    /// Facts from the kernel's files.
    pub evidence: Baseline,
}

/// Attaches the programs that measure the power states of the system that sysfs, under `root`, describes, and sets a
/// window that begins when that is done, with this duration where it is known. Anything that fails is added to the
/// notes.
///
/// # Errors
/// When the kernel refuses; see [`Kernel::attach_power`].
pub(crate) fn attach(
    kernel: &mut Kernel,
    root: &Path,
    topology: &Topology,
    duration: Option<Duration>,
    notes: &mut Vec<String>,
) -> Result<StartedWindow, KernelError> {
    let online: BTreeSet<u32> = sysfs::online(root).into_iter().collect();
    let khz = sysfs::frequencies(root);
    if khz.is_empty() {
        notes.push("this machine has no cpufreq policy: running time by frequency is unavailable".into());
    }
    for policy in kernel.set_policies(&topology.policies)? {
        notes.push(format!(
            "a frequency policy has {} CPUs, more than {MAX_POLICY_CPUS}: each shows the frequency of its own events",
            policy.len()
        ));
    }
    let offline = topology.cpus.keys().copied().filter(|cpu| !online.contains(cpu)).collect();
    // Attaching takes time. Events before the begin only set the state, so that nothing is missed after it.
    let begin = clock::now() + nanoseconds(LEAD);
    let end = duration.map_or(0, |duration| begin.saturating_add(nanoseconds(duration)));
    let window = Window { begin, end };
    kernel.set_window(window)?;
    kernel.start_cpus_without(begin, &khz, &offline)?;
    kernel.attach_power()?;
    let attached_at = clock::now();
    if attached_at > begin {
        notes.push(format!(
            "attaching took {} ms longer than is planned for: what CPUs did in the first {0} ms is taken from what they \
             did after",
            (attached_at - begin).div_ceil(1_000_000)
        ));
    }
    let evidence = Baseline::read(kernel.attach_evidence(begin)?);
    let limits = frequency_limits::read(root, Path::new(frequency_limits::THERMAL));
    let attached = InitialReadings::read(kernel, root, online, khz)?;
    Ok(StartedWindow { window, attached_at, attached, limits, evidence })
}
