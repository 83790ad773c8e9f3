//! The programs on idle states, frequencies and hotplug, and the tables of CPUs that they keep.

use std::collections::{BTreeMap, BTreeSet};

use aya::{
    EbpfLoader,
    maps::{Array, HashMap, MapData},
};
use nntrace_common::{
    power::{Activity, CpuFrequency, CpuIdle, MAX_POLICY_CPUS},
    record::FrequencyKey,
    time_count::TimeCount,
};

use super::{Kernel, KernelError, object::Object, tracepoint_links::Links};
use crate::model::cpu_residency::CpuReading;

/// All programs of this feature.
pub(super) const PROGRAMS: [&str; 3] = ["cpu_idle", "cpu_frequency", "cpuhp_exit"];

/// The programs and their attachments.
#[derive(Default)]
pub(super) struct PowerPrograms {
    links: Links,
}

impl PowerPrograms {
    /// Sizes the tables for the number of CPUs.
    pub(super) fn configure(loader: &mut EbpfLoader<'_>, cpus: u32) {
        for map in ["CPU_IDLE", "CPU_FREQUENCY", "NEXT_IN_POLICY", "AWAITED_CPUS"] {
            loader.map_max_entries(map, cpus);
        }
    }

    pub(super) fn load(object: &mut Object) -> Result<(), KernelError> {
        PROGRAMS.iter().try_for_each(|program| object.load_raw(program))
    }

    fn attach(&mut self, object: &mut Object) -> Result<(), KernelError> {
        self.links.attach(object, "cpu_idle", "cpu_idle")?;
        self.links
            .attach(object, "cpu_frequency", "policy_frequency")
            .or_else(|_| self.links.attach(object, "cpu_frequency", "cpu_frequency"))?;
        // Without it, online CPUs are read from sysfs.
        let _ = self.links.attach(object, "cpuhp_exit", "cpuhp_exit");
        Ok(())
    }

    pub(super) fn detach(&mut self, object: &mut Object) {
        self.links.detach(object);
    }
}

impl Kernel {
    /// Resets every CPU's tables: nothing known since `begin` (ns), these frequencies requested (kHz).
    ///
    /// # Errors
    /// When the kernel refuses to write a map.
    pub fn start_cpus(&mut self, begin: u64, khz: &BTreeMap<u32, u32>) -> Result<(), KernelError> {
        self.start_cpus_without(begin, khz, &BTreeSet::new())
    }

    /// Like [`Kernel::start_cpus`], with these CPUs offline.
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
            let mut idles: Array<_, CpuIdle> = self.object.array("CPU_IDLE")?;
            idles.set(cpu, idle, 0).map_err(KernelError::writing)?;
            let mut frequencies: Array<_, CpuFrequency> = self.object.array("CPU_FREQUENCY")?;
            frequencies.set(cpu, frequency, 0).map_err(KernelError::writing)?;
        }
        Ok(())
    }

    /// Sets the groups of CPUs that change frequency together. Returns the policies that are too large for the
    /// programs: the frequency of their CPUs changes by events of their own only.
    ///
    /// # Errors
    /// When the kernel refuses to write a map.
    pub fn set_policies<'a>(&mut self, policies: &'a [Vec<u32>]) -> Result<Vec<&'a [u32]>, KernelError> {
        let cpus = self.cpus();
        let mut ring: Array<_, u32> = self.object.array("NEXT_IN_POLICY")?;
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

    /// Attaches to `cpu_idle` and `cpu_frequency`, and to hotplug where the kernel has its event. Call
    /// [`Kernel::start_cpus`] first.
    ///
    /// Kernels that report a policy's frequency by one event, `policy_frequency`, use the same first two arguments.
    ///
    /// # Errors
    /// When the kernel refuses, or has no such tracepoint (`cpu_frequency` needs `CONFIG_PM`).
    pub(crate) fn attach_power(&mut self) -> Result<(), KernelError> {
        self.power.attach(&mut self.object)
    }

    /// Runs the `cpu_frequency` program here as if the event had come with these arguments.
    pub(in crate::live) fn tell_frequency(&mut self, khz: u32, cpu: u32) -> Result<(), KernelError> {
        self.object.run("cpu_frequency", None, &[u64::from(khz), u64::from(cpu)])
    }

    /// Runs the `cpu_idle` program on CPU `on` as if the event had come with these arguments.
    ///
    /// # Errors
    /// When the kernel refuses; it can since 5.10.
    pub fn test_cpu_idle(&mut self, on: u32, state: u32, cpu: u32) -> Result<(), KernelError> {
        self.object.run("cpu_idle", Some(on), &[u64::from(state), u64::from(cpu)])
    }

    /// Runs the `cpu_frequency` program on CPU `on` as if the event had come with these arguments.
    ///
    /// # Errors
    /// When the kernel refuses; it can since 5.10.
    pub fn test_cpu_frequency(&mut self, on: u32, khz: u32, cpu: u32) -> Result<(), KernelError> {
        self.object.run("cpu_frequency", Some(on), &[u64::from(khz), u64::from(cpu)])
    }

    /// Reads the current tables of each CPU.
    ///
    /// A change of frequency moves time from one table to another: if one came during the reading, that time may be
    /// in neither, and they are read again.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub fn read_cpus(&self) -> Result<Vec<CpuReading>, KernelError> {
        let mut before = self.frequency_changes()?;
        let mut readings = self.read_cpus_once()?;
        for _ in 0..TRIES {
            let after = self.frequency_changes()?;
            if before == after && before.iter().all(|changes| changes.is_multiple_of(2)) {
                return Ok(readings);
            }
            before = after;
            readings = self.read_cpus_once()?;
        }
        log::warn!(
            "frequencies changed during each of {TRIES} readings: times of the last frequencies may be off by one change"
        );
        Ok(readings)
    }

    /// Reads the sequence number of frequency changes by CPU; odd while a change is being written.
    fn frequency_changes(&self) -> Result<Vec<u64>, KernelError> {
        let frequencies: Array<_, CpuFrequency> = self.object.table("CPU_FREQUENCY")?;
        let changes =
            (0..self.cpus()).map(|cpu| Ok(frequencies.get(&cpu, 0).map_err(KernelError::reading)?.sequence));
        changes.collect()
    }

    fn read_cpus_once(&self) -> Result<Vec<CpuReading>, KernelError> {
        let frequency_totals: HashMap<_, FrequencyKey, TimeCount> = self.object.table("FREQUENCY_TOTALS")?;
        let mut by_cpu: BTreeMap<u32, Vec<(FrequencyKey, TimeCount)>> = BTreeMap::new();
        for (key, total) in frequency_totals.iter().flatten() {
            by_cpu.entry(key.cpu).or_default().push((key, total));
        }
        let idles: Array<_, CpuIdle> = self.object.table("CPU_IDLE")?;
        let frequencies: Array<_, CpuFrequency> = self.object.table("CPU_FREQUENCY")?;
        (0..self.cpus())
            .map(|cpu| {
                Ok(CpuReading {
                    cpu,
                    idle: consistent(&idles, cpu)?,
                    frequency: frequencies.get(&cpu, 0).map_err(KernelError::reading)?,
                    slices: by_cpu.remove(&cpu).unwrap_or_default(),
                })
            })
            .collect()
    }

    /// Reads the activity of each CPU.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(crate) fn read_activities(&self) -> Result<Vec<(u32, Activity)>, KernelError> {
        let idles: Array<_, CpuIdle> = self.object.table("CPU_IDLE")?;
        (0..self.cpus()).map(|cpu| Ok((cpu, consistent(&idles, cpu)?.activity()))).collect()
    }
}

/// Most readings of a table that changes meanwhile.
const TRIES: usize = 16;

/// Reads an entry until two readings in a row are equal. The sequence number alone does not show every write: on arm64, its stores may
/// become visible before or after those of the other fields.
fn consistent(idles: &Array<&MapData, CpuIdle>, cpu: u32) -> Result<CpuIdle, KernelError> {
    let mut reading = idles.get(&cpu, 0).map_err(KernelError::reading)?;
    for _ in 0..TRIES {
        let again = idles.get(&cpu, 0).map_err(KernelError::reading)?;
        if reading.sequence.is_multiple_of(2) && again == reading {
            return Ok(reading);
        }
        reading = again;
    }
    log::warn!("the state of CPU {cpu} changed during each of {TRIES} readings: it may be off by one change");
    Ok(reading)
}
