//! The programs on power events: how their tables start, what they are attached to, and in which order.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::Duration,
};

use aya::maps::Array;
use nntrace_common::{
    power::{Activity, CpuFrequency, CpuIdle, MAX_POLICY_CPUS},
    window::Window,
};

use super::{
    clock,
    evidence::{self, Baseline},
    initial::Attached,
    kernel::{Kernel, KernelError},
    sysfs,
    window::nanoseconds,
};
use crate::model::Topology;

/// From starting the tables to the begin of the window: time to attach the programs in.
const LEAD: Duration = Duration::from_millis(20);

/// The programs are attached; the window begins soon.
pub(crate) struct Beginning {
    /// When it begins, and when it ends, where that is known.
    pub window: Window,
    /// When everything that residency is made of had been attached, ns.
    pub attached_at: u64,
    /// What was read then.
    pub attached: Attached,
    /// What the kernel tells beside.
    pub evidence: Baseline,
}

/// Attaches what measures power states of the machine that sysfs, under `root`, describes, and sets a window that begins
/// when that is done, of this length where it is known. What could not be done goes to the notes.
///
/// # Errors
/// When the kernel refuses; see [`Kernel::attach_power`].
pub(crate) fn attach(
    kernel: &mut Kernel,
    root: &Path,
    topology: &Topology,
    duration: Option<Duration>,
    notes: &mut Vec<String>,
) -> Result<Beginning, KernelError> {
    let online: BTreeSet<u32> = sysfs::online(root).into_iter().collect();
    let khz = sysfs::frequencies(root);
    if khz.is_empty() {
        notes.push("this machine shows no CPU frequency (no cpufreq policy): running time has none".into());
    }
    for policy in kernel.set_policies(&topology.policies)? {
        notes.push(format!(
            "a frequency policy has {} CPUs, more than {MAX_POLICY_CPUS}: each shows the frequency of its own events",
            policy.len()
        ));
    }
    let offline = topology.cpus.keys().copied().filter(|cpu| !online.contains(cpu)).collect();
    // Attaching takes its time. What comes before the begin only sets the state, so that nothing is missed after.
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
    let attached = Attached::read(kernel, root, online, khz)?;
    Ok(Beginning { window, attached_at, attached, evidence })
}

impl Kernel {
    /// Puts every CPU's tables to their start: nothing known since `begin` (ns), these frequencies requested (kHz).
    ///
    /// # Errors
    /// When the kernel refuses to write a map.
    pub fn start_cpus(&mut self, begin: u64, khz: &BTreeMap<u32, u32>) -> Result<(), KernelError> {
        self.start_cpus_without(begin, khz, &BTreeSet::new())
    }

    /// Like [`Kernel::start_cpus`], where these CPUs are offline.
    ///
    /// # Errors
    /// When the kernel refuses to write a map.
    pub(crate) fn start_cpus_without(
        &mut self,
        begin: u64,
        khz: &BTreeMap<u32, u32>,
        offline: &BTreeSet<u32>,
    ) -> Result<(), KernelError> {
        for cpu in 0..self.cpus() {
            let mut idle = CpuIdle::starting_at(begin);
            if offline.contains(&cpu) {
                idle.set(begin, Activity::Offline);
            }
            let frequency = CpuFrequency::requested(khz.get(&cpu).copied().unwrap_or(0));
            let mut idles: Array<_, CpuIdle> = self.array("CPU_IDLE")?;
            idles.set(cpu, idle, 0).map_err(KernelError::writing)?;
            let mut frequencies: Array<_, CpuFrequency> = self.array("CPU_FREQUENCY")?;
            frequencies.set(cpu, frequency, 0).map_err(KernelError::writing)?;
        }
        Ok(())
    }

    /// Tells which CPUs change frequency together. Returns those policies that are too large for the programs: the
    /// frequency of their CPUs changes by events of their own only.
    ///
    /// # Errors
    /// When the kernel refuses to write a map.
    pub fn set_policies<'a>(&mut self, policies: &'a [Vec<u32>]) -> Result<Vec<&'a [u32]>, KernelError> {
        let cpus = self.cpus();
        let mut ring: Array<_, u32> = self.array("NEXT_IN_POLICY")?;
        let mut too_large = Vec::new();
        for policy in policies {
            if policy.len() > MAX_POLICY_CPUS {
                too_large.push(policy.as_slice());
                continue;
            }
            let members: Vec<u32> = policy.iter().copied().filter(|&cpu| cpu < cpus).collect();
            for (&cpu, &next) in members.iter().zip(members.iter().cycle().skip(1)) {
                ring.set(cpu, next.wrapping_sub(cpu), 0).map_err(KernelError::writing)?;
            }
        }
        Ok(too_large)
    }

    /// Attaches to `cpu_idle` and `cpu_frequency`, and to hotplug where the kernel tells of it. Call
    /// [`Kernel::start_cpus`] first.
    ///
    /// Kernels that tell of a policy's frequency by one event, `policy_frequency`, do so with the same first two
    /// arguments.
    ///
    /// # Errors
    /// When the kernel refuses, or has no such tracepoint (`cpu_frequency` needs `CONFIG_PM`).
    pub(crate) fn attach_power(&mut self) -> Result<(), KernelError> {
        self.attach_raw("cpu_idle", "cpu_idle")?;
        self.attach_raw("cpu_frequency", "policy_frequency")
            .or_else(|_| self.attach_raw("cpu_frequency", "cpu_frequency"))?;
        // Without it, sysfs tells which CPUs are online.
        let _ = self.attach_raw("cpuhp_exit", "cpuhp_exit");
        Ok(())
    }

    /// Attaches to the limits of frequencies, where the kernel describes that event.
    pub(super) fn attach_limits(&mut self) -> Result<(), KernelError> {
        let (program, event) = evidence::LIMITS;
        if !self.reads_limits() {
            return Err(KernelError::Missing("offset in cpu_frequency_limits"));
        }
        self.attach_event(program, "power", event)
    }

    /// Runs the `cpu_idle` program on CPU `on` as if the event had come with these arguments.
    ///
    /// # Errors
    /// When the kernel refuses; it can since 5.10.
    pub fn test_cpu_idle(&mut self, on: u32, state: u32, cpu: u32) -> Result<(), KernelError> {
        self.run_program("cpu_idle", Some(on), &[u64::from(state), u64::from(cpu)])
    }

    /// Runs the `cpu_frequency` program on CPU `on` as if the event had come with these arguments.
    ///
    /// # Errors
    /// When the kernel refuses; it can since 5.10.
    pub fn test_cpu_frequency(&mut self, on: u32, khz: u32, cpu: u32) -> Result<(), KernelError> {
        self.run_program("cpu_frequency", Some(on), &[u64::from(khz), u64::from(cpu)])
    }
}
