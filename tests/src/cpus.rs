//! CPUs of this machine: their frequencies and idle states, which tests may change, and threads that stay on one of them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use nix::{
    sched::{CpuSet, sched_setaffinity},
    unistd::Pid,
};
use nntrace_user::live::sysfs;

/// Governor that switches on request.
const ON_REQUEST: &str = "userspace";

/// CPUs that share a clock.
#[derive(Clone)]
pub struct Policy {
    folder: PathBuf,
    /// Numbers of the CPUs.
    pub cpus: Vec<u32>,
    /// Available frequencies, kHz, the lowest first.
    pub khz: Vec<u32>,
}

/// Returns all policies, by their first CPU.
///
/// # Errors
/// When one has no CPU.
pub fn policies() -> Result<Vec<Policy>> {
    let root = Path::new(sysfs::CPUS).join("cpufreq");
    let mut policies = Vec::new();
    for (cpus, mut khz) in sysfs::opps(Path::new(sysfs::CPUS)) {
        let first = cpus.first().context("a policy without CPUs")?;
        khz.sort_unstable();
        policies.push(Policy { folder: root.join(format!("policy{first}")), cpus, khz });
    }
    Ok(policies)
}

/// Returns the policies of the slowest and of the fastest CPUs, which are the same one where there is no other; `None` where there
/// is none with frequencies to choose from.
///
/// # Errors
/// When a policy has no CPU.
pub fn slowest_and_fastest() -> Result<Option<(Policy, Policy)>> {
    let mut all = policies()?;
    all.retain(|policy| policy.lowest() < policy.highest());
    all.sort_by_key(Policy::highest);
    Ok(all.first().cloned().zip(all.last().cloned()))
}

impl Policy {
    /// Returns the lowest frequency, kHz; 0 if there is none.
    #[must_use]
    pub fn lowest(&self) -> u32 {
        self.khz.first().copied().unwrap_or(0)
    }

    /// Returns the highest frequency, kHz; 0 if there is none.
    #[must_use]
    pub fn highest(&self) -> u32 {
        self.khz.last().copied().unwrap_or(0)
    }

    /// Selects a governor.
    ///
    /// # Errors
    /// When the kernel has none of this name.
    pub fn govern(&self, governor: &str) -> Result<()> {
        write(&self.folder.join("scaling_governor"), governor)
    }

    /// Switches to a frequency by the governor `userspace`.
    ///
    /// # Errors
    /// When another governor is in charge.
    pub fn switch(&self, khz: u32) -> Result<()> {
        write(&self.folder.join("scaling_setspeed"), &khz.to_string())
    }

    /// Keeps the CPUs at a frequency, as far as limits allow, until the result is dropped.
    ///
    /// # Errors
    /// When the kernel does not switch on request.
    pub fn hold(&self, khz: u32) -> Result<Kept> {
        let governor = Kept::set(self.folder.join("scaling_governor"), ON_REQUEST)?;
        self.switch(khz)?;
        Ok(governor)
    }

    /// Limits the frequency until the result is dropped. Another thread of the kernel then switches.
    ///
    /// # Errors
    /// When the kernel does not take the limit.
    pub fn limit(&self, khz: u32) -> Result<Kept> {
        Kept::set(self.folder.join("scaling_max_freq"), &khz.to_string())
    }
}

/// Returns the frequency that a CPU's policy is at, kHz.
///
/// # Errors
/// When the CPU has no policy.
pub fn khz(cpu: u32) -> Result<u32> {
    // Not `cpuinfo_cur_freq`: asking the hardware also corrects what the kernel takes for the frequency.
    let path = Path::new(sysfs::CPUS).join(format!("cpu{cpu}/cpufreq/scaling_cur_freq"));
    read(&path)?.parse().with_context(|| path.display().to_string())
}

/// Deepest idle state of a CPU.
pub struct IdleState {
    /// CPU.
    pub cpu: u32,
    /// Number of the state.
    pub number: u32,
    /// Name of the state.
    pub name: String,
}

impl IdleState {
    /// Returns the deepest state of the last CPU that is online; `None` where it has no other state to choose instead.
    #[must_use]
    pub fn deepest() -> Option<Self> {
        let cpu = *online().last()?;
        let (topology, _) = sysfs::topology(Path::new(sysfs::CPUS));
        let states = &topology.cpus.get(&cpu)?.idle_states;
        let [_, .., deepest] = &states[..] else { return None };
        Some(Self { cpu, number: states.len() as u32 - 1, name: deepest.name.clone() })
    }

    /// Keeps the CPU out of the state until the result is dropped.
    ///
    /// # Errors
    /// When the kernel does not let it be switched off.
    pub fn forbid(&self) -> Result<Kept> {
        Kept::set(self.switch(), "1")
    }

    /// Lets the CPU go into the state until the result is dropped.
    ///
    /// # Errors
    /// When the kernel does not let it be switched on.
    pub fn allow(&self) -> Result<Kept> {
        Kept::set(self.switch(), "0")
    }

    fn switch(&self) -> PathBuf {
        Path::new(sysfs::CPUS).join(format!("cpu{}/cpuidle/state{}/disable", self.cpu, self.number))
    }
}

/// Setting of the kernel, which has its former value again when this is dropped.
#[must_use = "the setting has its former value again when this is dropped"]
pub struct Kept {
    path: PathBuf,
    before: String,
}

impl Kept {
    fn set(path: PathBuf, value: &str) -> Result<Self> {
        let before = read(&path)?;
        write(&path, value)?;
        Ok(Self { path, before })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Err(error) = write(&self.path, &self.before) {
            eprintln!("{error:#}");
        }
    }
}

fn read(path: &Path) -> Result<String> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Ok(text.trim().to_owned())
}

fn write(path: &Path, value: &str) -> Result<()> {
    fs::write(path, value).with_context(|| format!("{} does not take {value}", path.display()))
}

/// Returns the CPUs that are online.
#[must_use]
pub fn online() -> Vec<u32> {
    sysfs::online(Path::new(sysfs::CPUS))
}

/// Keeps the calling thread on one CPU.
///
/// # Errors
/// When nothing runs on that CPU.
pub fn pin(cpu: u32) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu as usize)?;
    sched_setaffinity(Pid::from_raw(0), &set).with_context(|| format!("nothing runs on CPU {cpu}"))
}
