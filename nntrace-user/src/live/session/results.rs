//! Results of a run.

use std::{borrow::Cow, path::Path};

use nntrace_common::{diagnostic::DiagnosticKind, event_counts::EventCounts, record::RingCount};

use super::{MarkSource, Session};
use crate::{
    live::{
        clock,
        express::ExpressLane,
        host_readers::{HostReaders, HostReadings},
        kernel::KernelError,
        ring_drain::DrainCounts,
        sysfs,
    },
    model::{
        Findings, Scheduling,
        app_report_sums::ReportSums,
        app_reports::recorded_sums,
        cpu_residency::CpuResidency,
        findings::{RunFacts, Sums},
        plurals::one_or_many,
        run_facts::{Clock, Evidence, Host, KeptSums, Loss, MarksSeen, Overhead, Source, SourceKind, Window},
        scheduling::NamedThread,
        stacks::Totals,
        timeline::Timelines,
    },
};

impl Session {
    /// Returns the findings so far, the final ones after [`Session::finish`].
    ///
    /// # Errors
    /// When the kernel's maps cannot be read.
    pub fn findings(&mut self) -> Result<Findings<'_>, KernelError> {
        self.kernel.read_paths(&mut self.model.marks.paths)?;
        self.kernel.read_names(&mut self.model.marks.names)?;
        self.model.marks.seen_drivers.extend(self.kernel.read_drivers()?);
        self.model.marks.driver_callers.extend(self.kernel.read_driver_callers()?);
        let mut totals = self.kernel.read_totals()?;
        self.express.add_totals(&mut totals);
        let entries = totals.len();
        totals.retain(|key, _| self.model.marks.sites.counts_total(key));
        let leaves_out = totals.len() < entries;
        let (readings, end) = match &self.last {
            Some((readings, end)) => (readings.clone(), *end),
            None => (self.kernel.read_cpus()?, self.end_so_far()),
        };
        let read = self.readers.as_ref().map(HostReaders::read).or_else(|| self.measured.clone());
        let HostReadings { rails, usage: device_usage, clocks: device_clocks } = read.unwrap_or_default();
        let online = sysfs::online(Path::new(sysfs::CPUS));
        let cpus: Vec<CpuResidency> = readings
            .iter()
            .filter(|reading| self.topology.cpus.contains_key(&reading.cpu))
            .map(|reading| reading.since(&self.initial.of(reading.cpu), end))
            .collect();
        let mut diagnostics = self.kernel.read_diagnostics()?;
        self.express.add_diagnostics(&mut diagnostics);
        if self.last.is_some() {
            self.model.marks.add_unfinished(&mut diagnostics);
        }
        let loss = self.loss()?;
        let is_full = |(kind, _): &(DiagnosticKind, _)| *kind == DiagnosticKind::TableFull;
        // A thread whose part in the accounting comes only from records is complete only without lost records.
        let is_unsure = leaves_out && loss.records_dropped > 0;
        let express = self.express.facts(self.kernel.read_event_counts()?.forwards_lost);
        let totals_are_exact = !is_unsure
            && express.is_none_or(|express| express.is_complete())
            && !diagnostics.iter().any(is_full);
        let exact_sums = self.exact_report_sums(&totals)?;
        let kept = KeptSums {
            cpus: true,
            totals: totals_are_exact,
            reports: exact_sums.is_some()
                && !self.model.marks.names.has_asynchronous_calls()
                && self.kernel.read_app_event_counts()?.driver_events == 0,
        };
        let reports = exact_sums.unwrap_or_else(|| recorded_sums(&self.model.marks));
        let missing = self.model.scheduling.as_ref().and_then(|scheduling| scheduling.note_on_missing(&loss));
        let unnamed = note_on_unnamed(&self.kernel.read_event_counts()?);
        let misnamed = self.engines.notes_on_names(&self.kernel)?;
        let notes = self.notes.iter().cloned().chain(self.note_on_unsearched()).chain(missing).chain(unnamed);
        let calls = self.calls.notes(&self.kernel.read_call_counts()?);
        let notes = notes.chain(self.engines.notes_on_operators());
        let notes = notes.chain(misnamed).chain(calls).chain(self.express_notes(express.is_some()));
        let window = Window { clock: Clock::Monotonic, begin_ns: self.window.begin, end_ns: end };
        let evidence = match &self.kernel_evidence {
            Some(read) => read.clone(),
            None => self.read_evidence(end)?,
        };
        let run = RunFacts {
            host: host(&online),
            source: Source {
                kind: SourceKind::Live,
                marks: match self.marks {
                    MarkSource::None => MarksSeen::None,
                    MarkSource::Functions => MarksSeen::Uprobe,
                    MarkSource::Writes => MarksSeen::Syscall,
                },
                files: self.probes.files(),
                engines: self.engines.engines().to_vec(),
                express,
            },
            processes: &self.labels,
            threads: Cow::Owned(self.threads(&window)),
            window,
            thread_names: None,
            energy_model: self.energy_model.as_ref(),
            rails,
            device_usage,
            device_clocks,
            evidence: Some(evidence),
            verify: self.verified.clone(),
            perf_counts: self.perf_counts(&self.kernel.read_event_counts()?)?,
            overhead: self.overhead()?,
            loss: loss.with_incomplete(kept),
            diagnostics: Cow::Owned(diagnostics),
            notes: notes.collect(),
            with_details: self.with_details,
        };
        Ok(self.model.findings(run, Sums { cpus, totals, reports }))
    }

    /// Returns notes on the express lane, and on its absence where it was asked for.
    fn express_notes(&self, is_used: bool) -> Vec<String> {
        let mut notes: Vec<String> = self.express.notes().collect();
        if self.express_lane != ExpressLane::Auto {
            notes.extend(self.offers.notes());
        }
        if self.express_lane == ExpressLane::Wanted && !is_used {
            notes.push(
                "no thread used the express lane: it needs programs with the nntrace.h or nntrace-common of this \
                 version, whose threads write more than 64 marks"
                    .to_owned(),
            );
        }
        notes
    }

    /// Returns the states of threads in the window; none where context switches are not measured.
    fn threads(&self, window: &Window) -> Vec<NamedThread> {
        let named = |scheduling: &Scheduling| {
            scheduling.named_threads(window, |tid, pid| {
                let pid = pid.unwrap_or(tid);
                let of_process = || self.labels.get(&pid).map(|label| label.comm.clone());
                Some((pid, self.thread_names.get(&tid).cloned().or_else(of_process).unwrap_or_default()))
            })
        };
        self.model.scheduling.as_ref().map(named).unwrap_or_default()
    }

    pub(super) fn read_evidence(&self, end: u64) -> Result<Evidence, KernelError> {
        let cpus = self.topology.cpus.keys().copied();
        self.evidence.until(&self.kernel, cpus, end, self.last.is_some())
    }

    /// Returns the sequence of states of CPUs and clusters so far, all of it after [`Session::finish`]; `None` when
    /// it was not asked for.
    #[must_use]
    pub fn timelines(&self) -> Option<Timelines> {
        let end = self.last.as_ref().map_or_else(|| self.end_so_far(), |(_, end)| *end);
        self.model.timelines_until(end)
    }

    /// Returns the time up to which there are results, ns: now, or the end of a window that is over.
    fn end_so_far(&self) -> u64 {
        let now = clock::now();
        if self.window.is_over(now) { self.window.end } else { now }
    }

    /// Returns the sums of the reports by the kernel's totals; `None` where some of these are not kept by the
    /// application's phases.
    fn exact_report_sums(&self, totals: &Totals) -> Result<Option<ReportSums>, KernelError> {
        if self.kernel.read_app_event_counts()?.lost > 0 {
            return Ok(None);
        }
        let mut executions = self.kernel.read_executions()?;
        self.express.add_executions(&mut executions);
        Ok(self.model.marks.slots.sums(totals, &executions))
    }

    fn overhead(&self) -> Result<Overhead, KernelError> {
        let counts = self.kernel.read_event_counts()?;
        let (marks, power) = self.kernel.read_costs();
        let is_sched = self.model.scheduling.is_some();
        Ok(Overhead {
            marks: counts.marks + self.express.marks_by_lane(),
            ns_per_mark: marks.mean(),
            engine_calls: (counts.calls > 0).then_some(counts.calls),
            // The programs run at the begin and at the end, and longer for targets than in the trial.
            ns_per_engine_call: self
                .engines
                .call_ns()
                .filter(|_| counts.calls > 0)
                .map(|trap| trap + 2 * marks.mean().unwrap_or(0)),
            power_events: counts.power,
            ns_per_power_event: power.mean(),
            sched_events: is_sched.then_some(counts.sched),
            ns_per_sched_event: is_sched.then(|| self.kernel.read_scheduling_cost().mean()).flatten(),
            collector_cpu_ns: clock::own_cpu_time(),
            map_memory_bytes: Some(self.kernel.map_memory()),
            tables: self.kernel.read_table_uses(&counts)?,
        })
    }

    fn loss(&self) -> Result<Loss, KernelError> {
        Ok(loss(&self.kernel.read_ring_counts()?, self.rings.counts()))
    }
}

/// Returns a note on calls of engines' functions whose names could not be had.
fn note_on_unnamed(counts: &EventCounts) -> Option<String> {
    let EventCounts { calls, unnamed, .. } = *counts;
    (unnamed > 0).then(|| {
        format!(
            "{unnamed} of {calls} calls of engines {} of the function or class: what the map describes was empty, no plausible \
             text (offsets of another version), or not in memory when the call began",
            one_or_many(unnamed, "has the name", "have the names")
        )
    })
}

/// Adds up the losses, from the counts of each CPU's ring and those of the drained records.
fn loss(rings: &[RingCount], drained: DrainCounts) -> Loss {
    let lossy = (0..).zip(rings).filter(|(_, ring)| ring.dropped > 0);
    Loss {
        records_produced: rings.iter().map(|ring| ring.produced).sum(),
        records_drained: drained.drained,
        records_dropped: rings.iter().map(|ring| ring.dropped).sum(),
        records_late: drained.late,
        records_unreadable: drained.unreadable,
        dropped_by_cpu: lossy.map(|(cpu, ring)| (cpu, ring.dropped)).collect(),
        ..Loss::default()
    }
}

fn host(online: &[u32]) -> Host {
    let system = nix::sys::utsname::uname().ok();
    let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    Host {
        kernel: text(system.as_ref().map(nix::sys::utsname::UtsName::release)),
        machine: text(system.as_ref().map(nix::sys::utsname::UtsName::machine)),
        cpus: online.len() as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_read_is_a_loss_of_its_own() {
        let ring = |produced, dropped| RingCount { produced, dropped, sched_dropped: 0 };
        let loss = loss(&[ring(10, 0), ring(7, 3)], DrainCounts { drained: 14, late: 1, unreadable: 2 });
        let seen = (loss.records_produced, loss.records_drained, loss.records_dropped, loss.records_late);
        assert_eq!(seen, (17, 14, 3, 1));
        assert_eq!(loss.records_unreadable, 2);
        assert_eq!(loss.dropped_by_cpu, [(1, 3)].into());
    }
}
