//! A run from files: traces, or a recording.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use anyhow::Result;
use nntrace_user::{
    export::{
        ThreadName,
        html::{self, Sections, SharedSections, Shown},
    },
    model::{Findings, causality::Questions, input::Observer, limits::Limits, timeline::Timelines},
    record::{self, OrderedSections, Recorded},
    replay::{self, Replayed, TimeRange},
};

use crate::{
    arguments::{HostOptions, default_memory, usage},
    output::shell_words::shell_words,
};

/// Request for a run.
pub struct Request<'a> {
    /// Files, or the folder of a recording.
    pub files: &'a [PathBuf],
    /// Part of the time of traces.
    pub range: Option<TimeRange>,
    /// Drivers.
    pub drivers: &'a [u32],
    /// Host.
    pub host: &'a HostOptions,
    /// Questions about the causes of work.
    pub questions: Questions,
    /// Memory of the tables, bytes, if it was given.
    pub memory: Option<u64>,
    /// Whether every function of every thread is shown separately.
    pub with_details: bool,
    /// Whether the sequence of states of CPUs and clusters is kept.
    pub with_timelines: bool,
}

/// Parts of a swimlane that no other result needs.
#[derive(Default)]
pub struct SwimlaneParts {
    /// Sections.
    pub sections: Sections,
    /// Names of their threads, as far as they are known.
    pub threads: Vec<ThreadName>,
}

/// Run from files.
pub enum Run {
    /// Run from traces.
    Traces(Box<Replayed>),
    /// Run from a recording.
    Recording(Box<Recorded>),
}

impl Run {
    /// Replays the files.
    pub fn of(request: &Request<'_>) -> Result<Self> {
        Ok(match request.recording()? {
            Some(folder) => Self::Recording(Box::new(record::replay(folder, &request.of_recording())?)),
            None => Self::Traces(Box::new(replay::replay(&request.of_traces())?)),
        })
    }

    /// Replays the files, and shows everything to an observer; each pass through traces has one of its own.
    pub fn observed(request: &Request<'_>, mut observer: impl FnMut() -> Observer) -> Result<Self> {
        if let Some(folder) = request.recording()? {
            let recorded = record::replay_with_observer(folder, &request.of_recording(), observer())?;
            return Ok(Self::Recording(Box::new(recorded)));
        }
        let replayed = replay::replay_with_observer(&request.of_traces(), &mut observer)?;
        Ok(Self::Traces(Box::new(replayed)))
    }

    /// Replays the files, and collects their sections; returns the names of threads, too, as far as they are known.
    pub fn with_sections(request: &Request<'_>, shown: Shown) -> Result<(Self, SwimlaneParts)> {
        let sections = SharedSections::new(Sections::new(shown).into());
        let mut threads = Vec::new();
        let run = if let Some(folder) = request.recording()? {
            let run = record::replay(folder, &request.of_recording())?;
            let ordered = OrderedSections::open(folder)?;
            // What is damaged is among the notes of the replay.
            let _ = ordered.visit_by_thread(|section, _| {
                sections.borrow_mut().take(section);
                ControlFlow::Continue(())
            });
            let named = ordered.threads().all().iter();
            threads.extend(named.map(|thread| ThreadName {
                pid: thread.pid,
                tid: thread.tid,
                name: thread.name.clone(),
            }));
            Self::Recording(Box::new(run))
        } else {
            // Each pass through the traces collects again.
            let mut start = || {
                sections.replace(Sections::new(shown));
                html::observer(&sections)
            };
            Self::Traces(Box::new(replay::replay_with_observer(&request.of_traces(), &mut start)?))
        };
        let sections = sections.take();
        Ok((run, SwimlaneParts { sections, threads }))
    }

    /// Returns the findings.
    pub fn findings(&self) -> Findings<'_> {
        match self {
            Self::Traces(run) => run.findings(),
            Self::Recording(run) => run.findings(),
        }
    }

    /// Returns the states of CPUs and clusters over time, if they were kept.
    pub fn timelines(&self) -> Option<Timelines> {
        match self {
            Self::Traces(run) => run.timelines().cloned(),
            Self::Recording(run) => run.timelines(),
        }
    }

    /// Returns what the run was of: the command of a recording, or the names of files.
    pub fn title(&self, files: &[PathBuf]) -> String {
        if let Self::Recording(run) = self
            && !run.run().command.is_empty()
        {
            return shell_words(&run.run().command);
        }
        let names = files.iter().map(|file| file.file_name().unwrap_or(file.as_os_str()).to_string_lossy());
        names.collect::<Vec<_>>().join(", ")
    }

    /// Returns the name of the host, where a recording has it.
    pub fn host_name(&self) -> Option<&str> {
        match self {
            Self::Traces(_) => None,
            Self::Recording(run) => Some(run.run().host_name.as_str()).filter(|name| !name.is_empty()),
        }
    }

    /// Returns how many events there are.
    pub fn events(&self) -> u64 {
        match self {
            Self::Traces(run) => run.events(),
            Self::Recording(run) => run.events(),
        }
    }

    /// Returns a time of the run as time since 1970, ns; `None` for a trace, which does not tell.
    pub fn real_time(&self, time: u64) -> Option<u64> {
        match self {
            Self::Traces(_) => None,
            Self::Recording(run) => run.run().clocks.real_time(time),
        }
    }
}

impl Request<'_> {
    /// Returns the folder of the recording; `None` for traces.
    ///
    /// # Errors
    /// When the recording cannot be replayed so: the command line is wrong.
    pub fn recording(&self) -> Result<Option<&Path>> {
        let folder = self.files.iter().find(|file| record::is_recording(file));
        if let (Some(folder), Some(reason)) = (folder, self.refusal()) {
            let message = format!("cannot replay the recording {} {reason}", folder.display());
            return Err(usage(message));
        }
        Ok(folder.map(PathBuf::as_path))
    }

    /// Returns the options of replaying traces.
    pub fn of_traces(&self) -> replay::Options {
        replay::Options {
            files: self.files.to_vec(),
            range: self.range,
            topology: self.host.topology.clone(),
            clusters: self.host.clusters.clone(),
            energy_model: self.host.energy_model.clone(),
            drivers: self.drivers.iter().copied().collect(),
            questions: self.questions.clone(),
            limits: Limits::of_memory(self.memory.unwrap_or_else(default_memory)),
            with_details: self.with_details,
            with_steps: self.with_timelines,
        }
    }

    /// Returns the options of replaying a recording.
    pub fn of_recording(&self) -> record::ReplayOptions {
        // Without a question of its own, a replay answers those of the recording.
        let asked =
            Questions { hand_overs: false, every_iteration: false, slowest: None, ..self.questions.clone() };
        record::ReplayOptions {
            questions: (asked != Questions::default()).then_some(asked),
            limits: self.memory.map(Limits::of_memory),
            energy_model: self.host.energy_model.clone(),
            with_details: self.with_details,
            with_timelines: self.with_timelines,
            with_hand_overs: self.questions.hand_overs,
            with_iterations: self.questions.every_iteration,
            slowest: self.questions.slowest,
        }
    }

    /// Returns the reason why a recording cannot be replayed so: it knows its host and its drivers, and its totals are those
    /// of the whole run.
    fn refusal(&self) -> Option<&'static str> {
        if self.files.len() > 1 {
            Some("together with other files: name it alone")
        } else if self.range.is_some() {
            Some("in part: --time-range is for traces")
        } else if self.host.topology.is_some() || !self.host.clusters.is_empty() {
            Some("on another host: --topology and --cluster are for traces, as a recording has its own")
        } else if !self.drivers.is_empty() {
            Some("with other drivers: --driver is for traces; give it to `record`")
        } else {
            None
        }
    }
}
