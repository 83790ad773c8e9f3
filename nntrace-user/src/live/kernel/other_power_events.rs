//! The programs on power events beside idle states and frequencies, and their tables.

use std::collections::BTreeMap;

use aya::{
    EbpfLoader,
    maps::{Array, HashMap},
};
use nntrace_common::{
    other_power_events::{CpuEvidence, OpenInterval, PsciKey, Suspends},
    time_count::TimeCount,
};

use super::{Kernel, KernelError, object::Object, tracepoint_links::Links};
use crate::live::clock;

/// Programs and their tracepoints, any of which a kernel may lack.
pub(super) const PROGRAMS: [(&str, &str); 4] = [
    ("psci_enter", "psci_domain_idle_enter"),
    ("psci_exit", "psci_domain_idle_exit"),
    ("idle_miss", "cpu_idle_miss"),
    ("suspend_resume", "suspend_resume"),
];

/// The programs and their attachments.
#[derive(Default)]
pub(super) struct EvidencePrograms {
    links: Links,
}

impl EvidencePrograms {
    /// Sizes the tables for the number of CPUs.
    pub(super) fn configure(loader: &mut EbpfLoader<'_>, cpus: u32) {
        loader.map_max_entries("EVIDENCE", cpus);
    }

    /// Attaches to the tracepoints that exist; returns their names.
    fn attach(&mut self, object: &mut Object) -> Vec<&'static str> {
        let mut attached = Vec::new();
        for (program, tracepoint) in PROGRAMS {
            // Whatever the reason: evidence that cannot be attached is not shown.
            if self.links.attach(object, program, tracepoint).is_ok() {
                attached.push(tracepoint);
            }
        }
        attached
    }

    pub(super) fn detach(&mut self, object: &mut Object) {
        self.links.detach(object);
    }
}

impl Kernel {
    /// Attaches to the tracepoints of evidence and of limits that the kernel has, for a window from `begin` (ns) on; returns
    /// their names.
    ///
    /// # Errors
    /// When the kernel refuses to write a map.
    pub(crate) fn attach_evidence(&mut self, begin: u64) -> Result<Vec<&'static str>, KernelError> {
        self.start_evidence(begin)?;
        let mut attached = self.evidence.attach(&mut self.object);
        attached.extend(self.limits.attach(&mut self.object));
        Ok(attached)
    }

    /// Resets the tables of evidence.
    ///
    /// # Errors
    /// When the kernel refuses to write a map.
    pub fn start_evidence(&mut self, begin: u64) -> Result<(), KernelError> {
        let cpus = self.cpus();
        let start = CpuEvidence { psci: OpenInterval::starting_at(begin), ..CpuEvidence::default() };
        let mut evidence: Array<_, CpuEvidence> = self.object.array("EVIDENCE")?;
        for cpu in 0..cpus {
            evidence.set(cpu, start, 0).map_err(KernelError::writing)?;
        }
        // `CLOCK_BOOTTIME` is ahead of our clock by the time of all earlier suspends.
        let ahead = clock::since_boot().saturating_sub(clock::now());
        let spell = OpenInterval::starting_at(begin + ahead);
        let mut suspends: Array<_, Suspends> = self.object.array("SUSPENDS")?;
        suspends.set(0, Suspends { spell, ..Suspends::default() }, 0).map_err(KernelError::writing)
    }

    /// Reads the current tables: by CPU, of the states requested from firmware by CPU and parameter, and of suspends.
    ///
    /// # Errors
    /// When the kernel's maps cannot be read.
    #[expect(clippy::type_complexity, reason = "three tables, read at once")]
    pub fn read_evidence(
        &self,
    ) -> Result<(Vec<CpuEvidence>, BTreeMap<u32, BTreeMap<u32, TimeCount>>, Suspends), KernelError> {
        let evidence: Array<_, CpuEvidence> = self.object.table("EVIDENCE")?;
        let by_cpu: Result<_, _> = (0..self.cpus()).map(|cpu| evidence.get(&cpu, 0)).collect();
        let mut psci: BTreeMap<u32, BTreeMap<u32, TimeCount>> = BTreeMap::new();
        let totals: HashMap<_, PsciKey, TimeCount> = self.object.table("PSCI")?;
        for (key, total) in totals.iter().flatten() {
            psci.entry(key.cpu).or_default().insert(key.parameter, total);
        }
        let suspends: Array<_, Suspends> = self.object.table("SUSPENDS")?;
        Ok((by_cpu.map_err(KernelError::reading)?, psci, suspends.get(&0, 0).map_err(KernelError::reading)?))
    }

    /// Runs a program of `PROGRAMS` on CPU `on` as if its event had come with these arguments.
    ///
    /// # Errors
    /// When the kernel refuses, or lacks the tracepoint; it can since 5.10.
    pub fn test_evidence(
        &mut self,
        program: &'static str,
        on: u32,
        arguments: &[u64],
    ) -> Result<(), KernelError> {
        self.object.load_raw(program)?;
        self.object.run(program, Some(on), arguments)
    }
}
