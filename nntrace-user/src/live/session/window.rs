//! Begin and end of a session's window.

use std::{path::Path, time::Duration};

use super::Session;
use crate::live::{
    clock::{self, nanoseconds, wait_until},
    host_readers::HostReaders,
    kernel::{KernelError, detaching::StalledThread},
    kernel_comparison::Verifier,
    power::{self, StartedWindow},
    sysfs, threads,
};

/// Time from reading the kernel's counts to the end of the window, where both are compared.
const VERIFY_AHEAD: Duration = Duration::from_millis(20);

impl Session {
    /// Begins the window once everything is attached, with this duration if it is known; returns in its first moment.
    /// Everything counts from here to the end of the window.
    ///
    /// # Errors
    /// When the kernel refuses an attachment, or its maps cannot be used.
    pub fn begin(&mut self, duration: Option<Duration>) -> Result<(), KernelError> {
        let Self { kernel, topology, notes, .. } = self;
        let root = Path::new(sysfs::CPUS);
        if self.model.scheduling.is_some() {
            kernel.attach_scheduling()?;
        }
        let StartedWindow { window, attached_at, attached, limits, evidence } =
            power::attach(kernel, root, topology, duration, notes)?;
        for limit in limits {
            self.rings.push(limit);
        }
        let begin = window.begin;
        if self.model.scheduling.is_some() {
            self.model.begin_scheduling(begin);
            self.alive.keys().try_for_each(|&pid| threads::watch(kernel, &mut self.model, pid))?;
        }
        log::info!("the window begins at {begin} ns, with {} CPUs", topology.cpus.len());
        wait_until(begin);
        let initial = attached.begin(kernel, topology)?;
        self.model.begin_power(topology, begin, &initial, self.with_steps);
        if self.verifies {
            let mut verifier = Verifier::begin(root, topology, begin, attached_at, &initial);
            verifier.begun(&kernel.read_cpus()?);
            self.verifier = Some(verifier);
        }
        if let Some(readers) = &mut self.readers {
            readers.begin();
        }
        (self.window, self.initial, self.evidence) = (window, initial, evidence);
        Ok(())
    }

    /// Returns the time until [`Session::finish`] is due, if the window's end is set.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        // The kernel's counts are also read shortly before the end.
        let ahead = if self.verifies { VERIFY_AHEAD } else { Duration::ZERO };
        let end = self.window.end.checked_sub(nanoseconds(ahead)).filter(|end| *end > 0)?;
        Some(Duration::from_nanos(end.saturating_sub(clock::now())))
    }

    /// Ends the window, reads the tables of that time, detaches, and takes the last records.
    ///
    /// # Errors
    /// When the kernel's maps cannot be read.
    pub fn finish(&mut self) -> Result<(), KernelError> {
        if self.last.is_none() {
            // Nothing is examined from here on, so no process may wait for it.
            self.engines.end_hooking();
            if let Some(verifier) = &mut self.verifier {
                verifier.before_end(&self.topology);
            }
            // Detaching takes a while: events in the meantime do not count.
            let end = self.kernel.end_window(self.window)?;
            log::info!("the window ended at {end} ns");
            let counts = self.verifier.as_ref().map(|verifier| verifier.end(&self.topology, end));
            self.last = Some((self.kernel.read_cpus()?, end));
            self.kernel_evidence = Some(self.read_evidence(end)?);
            self.measured = self.readers.take().map(HostReaders::end);
            self.express.release();
            self.offers.end();
            self.leave_changed_files();
            let stalled = self.kernel.detach_marks()?;
            self.notes.extend(stalled.iter().map(StalledThread::note));
            self.kernel.detach_power();
            self.kernel.detach_files();
            self.take(true);
            if let Some(files) = &mut self.files {
                files.probed(self.probes.files());
            }
            for call in self.kernel.read_open_calls()? {
                self.calls.take(&call, end, &mut self.model);
            }
            self.kernel.drain_log();
            self.log_left_out();
            if self.model.scheduling.is_some() {
                for (cpu, count) in (0..).zip(self.kernel.read_ring_counts()?) {
                    self.model.lose_scheduling(cpu, count.sched_dropped as u32, end);
                }
            }
            if let (Some(verifier), Some(counts), Some((readings, _))) = (&self.verifier, counts, &self.last)
            {
                self.verified = Some(verifier.compare(readings, &self.initial, end, &counts));
            }
            self.express.check_numbers(self.kernel.forwarding()?);
            let mut open = self.open_sections()?;
            for section in &mut open {
                section.pid = section.pid.or_else(|| self.process_of(section.tid));
                // A missing text costs the name only its words.
                let _ = self.kernel.read_name(section.name, &mut self.model.marks.names);
            }
            self.model.marks.open.extend(open);
        }
        Ok(())
    }
}
