//! Following of targets: forks, execs and libraries loaded at run time.

use std::os::fd::AsFd as _;

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use nntrace_common::record::{ProcessRecord, Record, TARGET, TARGET_TO_HOLD};

use super::{MarkSource, Session};
use crate::{
    live::{
        clock,
        engine_probes::Mapping,
        kernel::KernelError,
        probes::MissedSince,
        stop_guard::StopGuard,
        target::{LaneFunction, ProcessError},
        trace_marker,
    },
    model::plurals::one_or_many,
};

impl Session {
    /// Probes the files that a process maps now, and follows the drivers that it uses; returns whether it is still there.
    pub(super) fn probe(&mut self, pid: u32, missed: MissedSince) -> bool {
        self.driver_calls.look(&mut self.kernel, &self.processes, pid);
        self.notes.append(&mut self.driver_calls.take_notes());
        if !self.follows_functions() {
            return true;
        }
        let is_there = match self.probes.follow(&mut self.kernel, &self.processes, pid, missed) {
            Ok(mapped) => {
                let engines = self.engines.engines().len();
                let process = Mapping { processes: &self.processes, pid };
                let names = &mut self.model.marks.names;
                self.engines.follow(&mut self.kernel, names, Some(process), &mapped.objects);
                if let Some(since) = mapped.missed_since
                    && !self.engines.is_waited_for(process, &mapped.objects)
                {
                    self.engines.note_late(pid, engines, clock::now().saturating_sub(since));
                }
                let mapped = mapped.objects;
                if self.marks == MarkSource::Functions {
                    // Hooks have lanes in all processes.
                    let is_own =
                        |lane: &&LaneFunction| !self.engines.is_hooks_library(lane.object, &lane.path);
                    let lanes: Vec<_> = self.probes.lanes().iter().filter(is_own).collect();
                    self.offers.offer(&mut self.kernel, pid, &mapped, &lanes);
                }
                self.engines.touch_literals(&self.processes, pid);
                self.calls.follow(&mut self.kernel, &mut self.model, &self.processes, pid, &mapped);
                // All that they wait for is probed.
                self.engines.answer(&mapped);
                true
            }
            // There is nothing left to probe.
            Err(ProcessError::NoSuchProcess { .. } | ProcessError::Ended { .. }) => false,
            Err(error) => {
                self.notes.push(error.to_string());
                true
            }
        };
        self.notes.append(&mut self.probes.take_failures());
        self.notes.append(&mut self.engines.take_notes_so_far());
        self.notes.append(&mut self.calls.take_notes());
        if self.marks == MarkSource::Functions
            && !self.writers.contains(&pid)
            && trace_marker::has_marker_open(&self.processes, pid)
        {
            self.writers.insert(pid);
            self.notes.push(format!(
                "process {pid} has trace_marker open: what it writes there is not counted, --marks syscall counts \
                 that (instead of functions)"
            ));
        }
        is_there
    }

    /// Whether functions are probed in the files that targets map.
    pub(super) fn follows_functions(&self) -> bool {
        self.marks == MarkSource::Functions || self.calls.are_wanted()
    }

    /// Prepares for mark functions that no target has yet: targets run on while these are probed.
    pub fn expect_libraries(&mut self) {
        self.probes.expect_libraries(&mut self.kernel);
    }

    /// Has a launched command stopped whenever its loader maps something, until that is probed. The command is our
    /// child, so nobody else is notified of its stops.
    ///
    /// # Errors
    /// When the table of targets cannot be written.
    pub(super) fn hold_while_loading(&mut self, pid: u32, guard: StopGuard) -> Result<(), KernelError> {
        if self.follows_functions() {
            // Notifications of its start are done with.
            self.drain();
            if let Err(error) = guard.watch(pid, self.kernel.take_stops()?.as_fd()) {
                self.notes.push(format!(
                    "the command runs on while libraries that it loads are searched, as nobody would continue it if we did not \
                     ({error}): their first marks may be missing"
                ));
                return Ok(());
            }
            self.stop_guard = Some(guard);
            self.kernel.set_target(pid, TARGET_TO_HOLD)?;
            self.held = Some(pid);
        }
        Ok(())
    }

    /// Stops the command no more, and lets it continue: to be called before it is asked to end.
    pub fn hold_no_more(&mut self) {
        if let Some(pid) = self.held.take()
            && let Err(error) = self.kernel.set_target(pid, TARGET)
        {
            self.notes.push(error.to_string());
        }
        self.drain();
    }

    /// Acts on the events of processes. The oldest comes first: the time from which a library may have missed marks
    /// is that of the first notification.
    pub(super) fn on_process_events(&mut self, mut events: Vec<Record>) {
        events.sort_by_key(Record::time);
        if events.is_empty() {
            return;
        }
        self.engines.set_busy(true);
        self.act_on(&events);
        self.engines.set_busy(false);
    }

    /// Acts on events in the order of time.
    fn act_on(&mut self, events: &[Record]) {
        let _answer = self.stop_guard.as_ref().map(StopGuard::answer);
        for event in events {
            match *event {
                // The new task of a fork is a thread unless it leads a process.
                Record::Fork(ProcessRecord { tid, time, .. }) => self.on_new_program(tid, time),
                Record::Exec(ProcessRecord { tgid, time, .. }) => {
                    self.offers.forget(tgid);
                    self.kernel.forget_async_runs(tgid);
                    self.on_new_program(tgid, time);
                }
                Record::Loader(event) => self.on_loader(&event),
                // An exit is noticed at the next refresh.
                _ => {}
            }
        }
    }

    /// Notes the processes of a command that are still alive: the run ends with the command, and they are traced no
    /// more. To be called when the command has ended, but before [`Session::finish`], as its last children are not
    /// known after that.
    pub fn note_survivors(&mut self) {
        /// Number of processes that the note names.
        const NAMED: usize = 10;
        if self.last.is_none() {
            self.drain();
        }
        let living = self.alive.keys().filter_map(|&pid| self.processes.by_pid(pid).ok());
        let living: Vec<String> =
            living.map(|process| format!("{} ({})", process.pid, process.comm)).collect();
        if living.is_empty() {
            return;
        }
        self.engines.keep_hooks_library();
        let more = living.len().saturating_sub(NAMED);
        let names = living.iter().take(NAMED).cloned().chain((more > 0).then(|| format!("{more} more")));
        self.notes.push(format!(
            "the run ended with its command, and {} of the processes that it started {} on, traced no more: {}; \
             --pid traces a process to its own end",
            living.len(),
            one_or_many(living.len() as u64, "lives", "live"),
            names.collect::<Vec<_>>().join(", ")
        ));
    }

    /// Returns a note on processes that were gone too soon to be searched.
    pub(super) fn note_on_unsearched(&self) -> Option<String> {
        let count = self.unsearched.len();
        (count > 0).then(|| {
            let they = one_or_many(count as u64, "it", "they");
            format!(
                "{count} of the targets' processes ended before the libraries that {they} loaded could be searched: \
                 what {they} marked is counted only where another process had the same file probed, or --lib named it"
            )
        })
    }

    fn on_new_program(&mut self, pid: u32, time: u64) {
        if self.last.is_some() {
            return;
        }
        match self.processes.by_pid(pid) {
            Ok(process) => {
                log::info!("target {pid} runs {}", process.comm);
                self.label(pid, &process.comm, process.started);
                // A process that is stopped by its loader has run nothing of its own yet.
                let is_held = self.held == Some(pid) && self.probes.hears_loader(&self.processes, pid);
                self.probe(pid, if is_held { MissedSince::Nothing } else { MissedSince::Since(time) });
            }
            Err(ProcessError::Permission { .. }) => self.notes.push(format!(
                "process {pid} runs a program that you may not trace without this one, such as a setuid program: it is \
                 traced no more"
            )),
            Err(_) => {}
        }
    }

    fn on_loader(&mut self, event: &ProcessRecord) {
        let is_held = event.detail != 0;
        // One look covers all earlier notifications of the loader.
        if self.last.is_none() && !self.probes.looked_after(event.tgid, event.time) {
            let has_run_on =
                self.stop_guard.as_ref().is_some_and(|guard| guard.has_released_since(event.time));
            let missed =
                if is_held && !has_run_on { MissedSince::Nothing } else { MissedSince::Since(event.time) };
            if !self.probe(event.tgid, missed) {
                self.unsearched.insert(event.tgid);
            }
        }
        if is_held {
            // It may have been killed in the meantime.
            let _ = kill(Pid::from_raw(event.tgid.cast_signed()), Signal::SIGCONT);
        }
    }
}
