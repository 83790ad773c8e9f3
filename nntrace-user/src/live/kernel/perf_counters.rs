//! The programs that count performance events by section, and their tables.

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use aya::{
    EbpfLoader,
    maps::{Array, ArrayOfMaps, MapData, PerCpuHashMap},
};
use aya_obj::generated::bpf_map_type::BPF_MAP_TYPE_PERF_EVENT_ARRAY;
use nntrace_common::perf_counters::{CounterTrial, CountsKey, MAX_COUNTERS, Reading, SectionCounts};

use super::{
    Kernel, KernelError,
    error::{map_error, refused},
    multi_probes,
    object::Object,
    tracepoint_links::Links,
};
use crate::live::tracefs;

/// Program on context switches, on the raw and on the described form.
const PROGRAMS: [&str; 2] = ["raw_counter_switch", "counter_switch"];
/// Program that measures what reading the events costs.
const TRIAL: &str = "counter_trial";
/// Tables that are of use only where events are counted.
const TABLES: [&str; 2] = ["THREAD_COUNTERS", "SECTION_COUNTS"];
/// Threads whose counts are kept at most: each takes some 10 KB.
const THREADS: u32 = 1024;
/// Memory for the counts of functions, bytes.
const FUNCTIONS_MEMORY: u32 = 8 << 20;
/// Functions whose counts are kept, at least and at most.
const FUNCTIONS: [u32; 2] = [256, 4096];

/// The programs and their events.
pub(super) struct CounterPrograms {
    counters: u32,
    cpus: u32,
    /// Events by number. The kernel takes those of an array away when the descriptor is closed by which they were put there.
    arrays: Vec<MapData>,
    events: Vec<OwnedFd>,
    links: Links,
}

impl CounterPrograms {
    /// Creates the programs, not loaded yet, for this number of events on this number of possible CPUs.
    pub(super) fn new(counters: usize, cpus: u32) -> Self {
        // There are no more, or the events would not have been opened.
        let counters = counters.min(MAX_COUNTERS) as u32;
        Self { counters, cpus, arrays: Vec::new(), events: Vec::new(), links: Links::default() }
    }

    pub(super) fn configure<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        loader.override_global("COUNTERS", &self.counters, true);
        let sizes = if self.counters == 0 { [1, 1] } else { [THREADS, functions(self.cpus)] };
        for (table, size) in TABLES.into_iter().zip(sizes) {
            loader.map_max_entries(table, size);
        }
    }

    /// Detaches from context switches; the described form stays until the end.
    pub(super) fn detach(&mut self, object: &mut Object) {
        self.links.detach(object);
    }
}

/// Returns the number of functions whose counts are kept.
fn functions(cpus: u32) -> u32 {
    let entry = cpus.saturating_mul(size_of::<SectionCounts>() as u32).max(1);
    let [least, most] = FUNCTIONS;
    (FUNCTIONS_MEMORY / entry).clamp(least, most)
}

impl Kernel {
    /// Starts counting: hands the events, which are open, to the programs, and attaches to context switches. Each is the
    /// number of an event, a CPU, and its descriptor.
    ///
    /// # Errors
    /// When the kernel refuses, or does not describe context switches.
    pub(in crate::live) fn start_counters(
        &mut self,
        events: Vec<(u32, u32, OwnedFd)>,
    ) -> Result<(), KernelError> {
        let CounterPrograms { counters, cpus, arrays, events: kept, .. } = &mut self.counters;
        let map = self.object.map_mut("COUNTER_EVENTS").ok_or(KernelError::Missing("map COUNTER_EVENTS"))?;
        let mut slots: ArrayOfMaps<_> = map.try_into().map_err(map_error("use the table of events"))?;
        for number in 0..*counters {
            let array = aya_obj::Map::new_from_params(BPF_MAP_TYPE_PERF_EVENT_ARRAY as u32, 4, 4, *cpus, 0);
            let array =
                MapData::create(array, &format!("event{number}"), None).map_err(map_error("make a table"))?;
            slots.set(number, &array, 0).map_err(map_error("put events into their table"))?;
            arrays.push(array);
        }
        for (number, cpu, descriptor) in events {
            if let Some(array) = arrays.get(number as usize) {
                let value = descriptor.as_raw_fd().cast_unsigned();
                multi_probes::set_descriptor(array.fd().as_fd(), cpu, value)
                    .map_err(|error| refused(&error))?;
            }
            kept.push(descriptor);
        }
        let [raw, described] = PROGRAMS;
        if self.scheduling.knows_tasks() {
            return self.counters.links.attach(&mut self.object, raw, "sched_switch");
        }
        if !self.scheduling.knows_switches() {
            return Err(KernelError::Attach {
                point: "sched_switch".into(),
                reason: format!("{}; or leave out --counters", tracefs::lacking()),
            });
        }
        self.object.load_event(described)?;
        self.object.attach_event(described, "sched", "sched_switch")
    }

    /// Measures what reading the events costs; `None` on kernels that cannot run a program (before 5.10).
    pub(in crate::live) fn try_counters(&mut self) -> Option<CounterTrial> {
        self.object.load_raw(TRIAL).ok()?;
        self.object.run(TRIAL, None, &[]).ok()?;
        let trial: Array<_, CounterTrial> = self.object.table("COUNTER_TRIAL").ok()?;
        trial.get(&0, 0).ok().filter(|trial| trial.count > 0)
    }

    /// Reads the counts of sections that ended.
    ///
    /// # Errors
    /// When a map is missing or of another shape.
    pub(in crate::live) fn read_section_counts(
        &self,
    ) -> Result<Vec<(CountsKey, SectionCounts)>, KernelError> {
        let map: PerCpuHashMap<_, CountsKey, SectionCounts> = self.object.table("SECTION_COUNTS")?;
        let sums = map.iter().flatten().map(|(key, values)| {
            let mut sum = SectionCounts::default();
            for value in values.iter() {
                sum.sections += value.sections;
                for (sum, reading) in sum.readings.iter_mut().zip(value.readings) {
                    *sum = Reading::plus(*sum, reading);
                }
            }
            (key, sum)
        });
        Ok(sums.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_take_bounded_memory() {
        assert_eq!(functions(1), 4096);
        assert_eq!(functions(4096), 256);
        let size = size_of::<SectionCounts>() as u32;
        assert!(
            (64..1024)
                .all(|cpus| functions(cpus) == 256 || functions(cpus) * cpus * size <= FUNCTIONS_MEMORY)
        );
    }
}
