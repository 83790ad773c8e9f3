//! State of the CPUs when the window begins: attach first, then read (the power contract, section 1).
//!
//! An event after attaching takes precedence over anything that is read, so the exact time of a reading does not
//! matter. No CPU is woken: frequencies come from sysfs, and a CPU's activity from its run queue, whose memory a
//! program reads on the CPU where this process runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use nntrace_common::{
    power::{Activity, Start},
    run_queue::RunQueueSample,
};

use super::{
    kernel::{Kernel, KernelError},
    sysfs,
};
use crate::model::{
    Topology,
    cpu_residency::CpuReading,
    initial_state::{FrequencySource, IdleSource, InitialCpu, InitialState},
};

/// Readings of the frequencies at most, while they differ from the last event: a policy may change meanwhile.
const READS: usize = 3;

/// State that was read when everything had been attached.
pub(crate) struct InitialReadings {
    online: BTreeSet<u32>,
    /// Frequencies from sysfs, of the CPUs without a frequency event.
    khz: BTreeMap<u32, u32>,
    /// CPUs that ran the idle task without a driver's idle state.
    idling: BTreeSet<u32>,
}

impl InitialReadings {
    /// Reads what can be read now that the programs are attached. `khz` and `online` are what the tables start from.
    ///
    /// # Errors
    /// When the kernel's maps cannot be read.
    pub(crate) fn read(
        kernel: &mut Kernel,
        root: &Path,
        online: BTreeSet<u32>,
        khz: BTreeMap<u32, u32>,
    ) -> Result<Self, KernelError> {
        let khz = settle_frequencies(kernel, root, khz)?;
        let idling = online
            .iter()
            .copied()
            .filter(|&cpu| kernel.sample_run_queue(cpu).seen == RunQueueSample::IDLE_TASK)
            .collect();
        Ok(Self { online, khz, idling })
    }

    /// Samples the CPUs at the begin of the window.
    ///
    /// # Errors
    /// When the kernel's maps cannot be read.
    pub(crate) fn begin(self, kernel: &mut Kernel, topology: &Topology) -> Result<InitialState, KernelError> {
        let samples: BTreeMap<u32, RunQueueSample> =
            topology.cpus.keys().map(|&cpu| (cpu, kernel.sample_run_queue(cpu))).collect();
        let readings = kernel.read_cpus()?;
        let mut state = InitialState::default();
        for reading in readings.iter().filter(|reading| samples.contains_key(&reading.cpu)) {
            let cpu = reading.cpu;
            let activity = if self.online.contains(&cpu) {
                activity(topology, cpu, &samples[&cpu], self.idling.contains(&cpu))
            } else {
                Some(Activity::Offline)
            };
            let read = self.khz.get(&cpu).copied();
            state.cpus.insert(cpu, initial_cpu(reading, activity, read));
        }
        Ok(state)
    }
}

/// Reads the policies' frequencies again; where one changed after it was read, and before its event could be seen,
/// updates the tables as if by an event. Returns the frequencies of the tables that are from sysfs.
fn settle_frequencies(
    kernel: &mut Kernel,
    root: &Path,
    mut told: BTreeMap<u32, u32>,
) -> Result<BTreeMap<u32, u32>, KernelError> {
    for _ in 0..READS {
        let read = sysfs::frequencies(root);
        let mut changed = false;
        for reading in kernel.read_cpus()? {
            let (cpu, khz) = (reading.cpu, reading.frequency.khz());
            let Some(&now) = read.get(&cpu) else { continue };
            // A frequency other than the one written here is from an event.
            if now != khz && told.get(&cpu).copied().unwrap_or(0) == khz {
                // A kernel that cannot run the program (before 5.10) keeps the first reading.
                changed |= kernel.tell_frequency(now, cpu).is_ok();
                told.insert(cpu, now);
            }
        }
        if !changed {
            break;
        }
    }
    Ok(told)
}

/// Derives the activity of an online CPU at the begin of the window from a run queue sample.
fn activity(topology: &Topology, cpu: u32, look: &RunQueueSample, idled_before: bool) -> Option<Activity> {
    match look.seen {
        RunQueueSample::TASK => Some(Activity::Running),
        RunQueueSample::IDLE_STATE => {
            let state = topology.idle_state_named(cpu, name_of(look));
            Some(state.map_or(Activity::IdleUnknown, Activity::Idle))
        }
        // The idle task also runs just after waking. If it ran before as well, with no event in between, the CPU has
        // been idle all the time, in a state that is not known.
        RunQueueSample::IDLE_TASK if idled_before => Some(Activity::IdleUnknown),
        _ => None,
    }
}

fn name_of(look: &RunQueueSample) -> &[u8] {
    look.name.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Returns the initial state of a CPU: the readings, unless an event came before.
fn initial_cpu(reading: &CpuReading, activity: Option<Activity>, khz: Option<u32>) -> InitialCpu {
    let had_event = reading.idle.start() != Start::Open && reading.idle.activity() != Activity::Offline;
    let (activity, idle) = match activity {
        Some(Activity::Offline) if !had_event => (activity, IdleSource::Sysfs),
        _ if had_event => (None, IdleSource::Event),
        Some(_) => (activity, IdleSource::Kernel),
        None => (None, IdleSource::Unknown),
    };
    let frequency = match reading.frequency.khz() {
        0 => FrequencySource::Unknown,
        now if Some(now) == khz => FrequencySource::Sysfs,
        _ => FrequencySource::Event,
    };
    let khz = Some(reading.frequency.khz()).filter(|&khz| khz != 0);
    InitialCpu { activity, idle, khz, frequency }
}

#[cfg(test)]
mod tests {
    use nntrace_common::power::{CpuFrequency, CpuIdle, IDLE_EXIT};

    use super::*;
    use crate::model::topology::{CpuDescription, IdleStateDescription};

    fn machine(names: &[&str]) -> Topology {
        let state =
            |name: &&str| IdleStateDescription { name: (*name).into(), ..IdleStateDescription::default() };
        let cpu = CpuDescription { idle_states: names.iter().map(state).collect() };
        Topology { cpus: BTreeMap::from([(0, cpu)]), ..Topology::default() }
    }

    fn look(seen: u32, name: &str) -> RunQueueSample {
        let mut look = RunQueueSample { seen, ..RunQueueSample::default() };
        look.name[..name.len()].copy_from_slice(name.as_bytes());
        look
    }

    #[test]
    fn a_state_is_known_by_its_name_when_only_one_has_it() {
        let seen = |names: &[&str], name| {
            activity(&machine(names), 0, &look(RunQueueSample::IDLE_STATE, name), false)
        };
        assert_eq!(seen(&["WFI", "cpu-sleep"], "cpu-sleep"), Some(Activity::Idle(1)));
        assert_eq!(seen(&["WFI", "sleep", "sleep"], "sleep"), Some(Activity::IdleUnknown));
        assert_eq!(seen(&["WFI"], "other"), Some(Activity::IdleUnknown));
        assert_eq!(seen(&[], "WFI"), Some(Activity::IdleUnknown));
        // Names are cut to the size of the kernel's field.
        assert_eq!(seen(&["a name of 18 bytes"], "a name of 18 by"), Some(Activity::Idle(0)));
    }

    #[test]
    fn the_idle_task_sleeps_for_certain_only_when_it_did_before() {
        let seen = |seen, before| activity(&machine(&[]), 0, &look(seen, ""), before);
        assert_eq!(seen(RunQueueSample::IDLE_TASK, false), None);
        assert_eq!(seen(RunQueueSample::IDLE_TASK, true), Some(Activity::IdleUnknown));
        assert_eq!(seen(RunQueueSample::TASK, true), Some(Activity::Running));
        assert_eq!(seen(RunQueueSample::NOTHING, true), None);
    }

    #[test]
    fn events_since_attaching_win() {
        let frequency = CpuFrequency::requested(500);
        let silent = CpuReading { cpu: 0, idle: CpuIdle::starting_at(10), frequency, slices: Vec::new() };
        let read = Some(Activity::Idle(1));
        let known = initial_cpu(&silent, read, Some(500));
        assert_eq!(
            known,
            InitialCpu {
                activity: read,
                idle: IdleSource::Kernel,
                khz: Some(500),
                frequency: FrequencySource::Sysfs
            }
        );
        let mut later = silent.clone();
        later.idle.event(5, IDLE_EXIT);
        let known = initial_cpu(&later, read, Some(400));
        assert_eq!(
            known,
            InitialCpu {
                activity: None,
                idle: IdleSource::Event,
                khz: Some(500),
                frequency: FrequencySource::Event
            }
        );
        let mut offline = silent.clone();
        offline.idle.set(10, Activity::Offline);
        assert_eq!(initial_cpu(&offline, Some(Activity::Offline), None).idle, IdleSource::Sysfs);
        offline.idle.hotplug(12, true);
        assert_eq!(initial_cpu(&offline, Some(Activity::Offline), None).activity, None, "it came back");
    }
}
