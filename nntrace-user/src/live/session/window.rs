//! Begin and end of a run's window.

use std::{path::Path, time::Duration};

use super::Session;
use crate::{
    live::{
        clock::{self, nanoseconds, wait_until},
        kernel::{KernelError, detaching::StalledThread},
        power::{self, Beginning},
        sched, sysfs,
        verify::Verifier,
    },
    model::{Clusters, Scheduling, idle_stays::IdleStays, marks::OpenSection, timelines::TimelineRecorder},
};

/// From reading what the kernel counts to the end of the window, where both are compared.
const VERIFY_AHEAD: Duration = Duration::from_millis(20);

impl Session {
    /// Begins the window, of this length where it is known, when everything is attached; returns in its first moment. From
    /// here on all counts, to the end of the window.
    ///
    /// # Errors
    /// When the kernel refuses an attachment, or its maps cannot be used.
    pub fn begin(&mut self, duration: Option<Duration>) -> Result<(), KernelError> {
        let Self { kernel, topology, notes, .. } = self;
        let root = Path::new(sysfs::CPUS);
        if self.scheduling.is_some() {
            kernel.attach_scheduling()?;
        }
        let Beginning { window, attached_at, attached, evidence } =
            power::attach(kernel, root, topology, duration, notes)?;
        let begin = window.begin;
        log::info!("the window begins at {begin} ns, with {} CPUs", topology.cpus.len());
        if let Some(scheduling) = &mut self.scheduling {
            *scheduling = Scheduling::starting_at(begin).with_room_for(scheduling.room());
            self.alive.keys().try_for_each(|&pid| sched::watch(kernel, scheduling, pid))?;
        }
        wait_until(begin);
        let known = attached.begin(kernel, topology)?;
        let initial = known.for_clusters();
        self.clusters = Clusters::new(topology, begin, &initial);
        self.idle_stays = IdleStays::new(topology, begin);
        self.steps =
            self.with_steps.then(|| TimelineRecorder::new(topology, begin, &initial, &mut self.clusters));
        if self.verifies {
            let mut verifier = Verifier::begin(root, topology, begin, attached_at, &known);
            verifier.begun(&kernel.read_cpus()?);
            self.verifier = Some(verifier);
        }
        (self.window, self.known, self.evidence) = (window, known, evidence);
        Ok(())
    }

    /// How long the window goes on, if its end is set: until it is time for [`Session::finish`].
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        // What the kernel counts is read shortly before the end, too.
        let ahead = if self.verifies { VERIFY_AHEAD } else { Duration::ZERO };
        let end = self.window.end.checked_sub(nanoseconds(ahead)).filter(|end| *end > 0)?;
        Some(Duration::from_nanos(end.saturating_sub(clock::now())))
    }

    /// Ends the window, reads the tables of that moment, detaches, and takes the last records.
    ///
    /// # Errors
    /// When the kernel's maps cannot be read.
    pub fn finish(&mut self) -> Result<(), KernelError> {
        if self.last.is_none() {
            if let Some(verifier) = &mut self.verifier {
                verifier.before_end(&self.topology);
            }
            // Detaching takes a while: what comes meanwhile counts for nothing.
            let end = self.kernel.end_window(self.window)?;
            let counts = self.verifier.as_ref().map(|verifier| verifier.end(&self.topology, end));
            self.last = Some((self.kernel.read_cpus()?, end));
            self.told = Some(self.read_evidence(end)?);
            let stalled = self.kernel.detach_marks()?;
            self.notes.extend(stalled.iter().map(StalledThread::note));
            self.kernel.detach_power();
            self.take(true);
            self.kernel.drain_log();
            self.log_left_out();
            log::info!("the window ended at {end} ns");
            if let Some(scheduling) = &mut self.scheduling {
                for (cpu, count) in (0..).zip(self.kernel.read_ring_counts()?) {
                    scheduling.lost_by(cpu, count.sched_dropped as u32, end);
                }
            }
            if let (Some(verifier), Some(counts), Some((readings, _))) = (&self.verifier, counts, &self.last)
            {
                self.verified = Some(verifier.compare(readings, &self.known, end, &counts));
            }
            let records = &mut self.records;
            self.kernel.visit_threads(|tid, thread| {
                if thread.is_marked != 0 {
                    records.open.extend(thread.stack.open_frames().map(|frame| OpenSection::new(tid, frame)));
                }
            })?;
        }
        Ok(())
    }
}
