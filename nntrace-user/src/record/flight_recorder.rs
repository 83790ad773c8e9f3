//! Flight recorder: the last seconds of a run are kept in memory, and written when there is a cause.

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
    rc::Rc,
    time::Duration,
};

use super::{
    cause::Cause,
    cuts::Cuts,
    disk::{Disk, FlightJob, FlightWritten, Store},
    error::RecordError,
    facts::RunDescription,
    flight::Flight,
    folder::{self, Folder},
    trigger::{Trigger, Watch},
    writer::{Writer, observer},
};
use crate::model::{
    Findings,
    input::Observer,
    plurals::{counted, one_or_many},
};

/// Recordings of one run at most.
const MOST: u32 = 100;

/// Numbers of folders that are tried at most, where some are taken.
const MOST_FOLDERS: u32 = 10_000;

/// Cuts that there are in the time and in the memory that are kept at least.
const CUTS: u64 = 32;

/// Longest time between two cuts, ns.
const CUT_NS: u64 = 1_000_000_000;

/// Options of a flight recorder.
#[derive(Clone, Debug)]
pub struct FlightOptions {
    /// Time that is kept.
    pub time: Duration,
    /// Memory for it, bytes.
    pub memory: u64,
    /// Triggers that have it written.
    pub triggers: Vec<Trigger>,
    /// Whether recordings that are there are replaced.
    pub replace: bool,
}

/// Recorder of the last seconds of a run.
pub struct FlightRecorder {
    writer: Rc<RefCell<Writer>>,
    run: RunDescription,
    folder: PathBuf,
    replace: bool,
    /// Number of the last folder.
    number: u32,
    begun: u32,
    written: Vec<PathBuf>,
    failed: u32,
    /// Causes for which there was no recording left.
    too_many: u64,
}

impl FlightRecorder {
    /// Creates a recorder whose first recording goes to a folder, the second to `FOLDER-2`.
    ///
    /// # Errors
    /// When the folder has anything in it, or cannot be written.
    pub fn create(folder: &Path, run: RunDescription, options: FlightOptions) -> Result<Self, RecordError> {
        let FlightOptions { time, memory, triggers, replace } = options;
        Folder::new(folder, replace)?;
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let disk = Disk::start(Store::Flight(Flight::new(time, memory)))?;
        let cuts = Cuts::new((time / CUTS).min(CUT_NS), memory / CUTS);
        let watch = Watch::new(triggers, time);
        Ok(Self {
            writer: Rc::new(RefCell::new(Writer::new(disk, Some(cuts), Some(watch)))),
            run,
            folder: folder.to_owned(),
            replace,
            number: 0,
            begun: 0,
            written: Vec::new(),
            failed: 0,
            too_many: 0,
        })
    }

    /// Returns the observer that records what a model takes.
    #[must_use]
    pub fn observer(&self) -> Observer {
        observer(&self.writer)
    }

    /// Sets the exit status of the command, for what is written from here on.
    pub fn set_exit_status(&mut self, status: Option<i32>) {
        self.run.exit_status = status;
    }

    /// Returns the progress as text.
    #[must_use]
    pub fn progress(&self) -> String {
        let kept = self.writer.borrow().disk.as_ref().map_or(0, Disk::size);
        let recordings = counted(self.written.len() as u64, "recording");
        format!("{:.1} MB kept, {recordings} written", kept as f64 / 1e6)
    }

    /// Takes what has the last seconds written, if a trigger has fired.
    #[must_use]
    pub fn fired(&self) -> Option<Cause> {
        self.writer.borrow_mut().watch.as_mut()?.take()
    }

    /// Takes the losses of a run so far, for which a trigger may wait.
    pub fn watch_losses(&self, findings: &Findings<'_>) {
        if let Some(watch) = &mut self.writer.borrow_mut().watch {
            watch.losses(findings.run.loss.records_dropped, findings.run.window.end_ns);
        }
    }

    /// Has the last seconds written to the next folder, with the state that findings show. [`FlightRecorder::written`] tells
    /// when that is done.
    ///
    /// # Errors
    /// When that cannot be begun. What is kept stays.
    pub fn write(&mut self, findings: &Findings<'_>, cause: Cause) -> Result<(), RecordError> {
        if self.begun >= MOST {
            self.too_many += 1;
            return Ok(());
        }
        let folder = self.next_folder()?;
        self.begun += 1;
        // No two recordings have one number.
        let recording = self.run.clocks.realtime_ns.wrapping_add(u64::from(self.begun));
        self.writer.borrow_mut().flight(findings, &self.run, |mut state, number, until| {
            state.cause = Some(cause);
            FlightJob { folder, recording, number, until, state }
        })
    }

    /// Returns the next folder that is not taken.
    fn next_folder(&mut self) -> Result<Folder, RecordError> {
        loop {
            self.number += 1;
            match Folder::new(&folder::numbered(&self.folder, self.number), self.replace) {
                Ok(folder) => return Ok(folder),
                Err(RecordError::Exists(_) | RecordError::Foreign(_)) if self.number < MOST_FOLDERS => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns texts on recordings that were written, or not, since the last call.
    pub fn written(&mut self) -> Vec<String> {
        let written = self.writer.borrow().disk.as_ref().map(Disk::take_flights).unwrap_or_default();
        self.take_written(written)
    }

    fn take_written(&mut self, written: Vec<FlightWritten>) -> Vec<String> {
        let texts = written.into_iter().map(|FlightWritten { folder, result }| {
            let path = folder.display().to_string();
            match result {
                Ok(bytes) => {
                    self.written.push(folder);
                    format!(
                        "recorded {:.1} MB to {path}; look at it with: nntrace-bpf replay {path}",
                        bytes as f64 / 1e6
                    )
                }
                Err(error) => {
                    self.failed += 1;
                    format!("{error}")
                }
            }
        });
        texts.collect()
    }

    /// Ends the recorder when everything is written; returns texts on the last recordings and on all.
    ///
    /// # Errors
    /// When the thread that writes has ended early.
    pub fn finish(mut self) -> Result<Vec<String>, RecordError> {
        let disk = self.writer.borrow_mut().disk.take();
        let written = disk.map(Disk::finish).transpose()?;
        let mut texts = self.take_written(written.map(|(_, flights)| flights).unwrap_or_default());
        let count = match self.written.len() {
            0 => "no recording was written".to_owned(),
            count => {
                let count = count as u64;
                format!("{} {} written", counted(count, "recording"), one_or_many(count, "was", "were"))
            }
        };
        let repeated = self.writer.borrow().watch.as_ref().map_or(0, Watch::repeated);
        let more = [
            (u64::from(self.failed), ["could", "could"], "not be written"),
            (
                repeated,
                ["more time", "more times"],
                "a trigger fired within the time that was written already",
            ),
            (self.too_many, ["more was", "more were"], "asked for than one run may have"),
        ];
        let more = more
            .into_iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, [one, many], what)| format!("{count} {} {what}", one_or_many(count, one, many)));
        let parts: Vec<String> = [count].into_iter().chain(more).collect();
        texts.push(parts.join("; "));
        Ok(texts)
    }
}
