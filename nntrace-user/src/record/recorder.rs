//! Recording of a run while its model is fed.

use std::{
    cell::RefCell,
    fmt,
    path::{Path, PathBuf},
    rc::Rc,
    time::{Duration, Instant},
};

use super::{
    cuts::Cuts,
    disk::{Disk, Store},
    error::RecordError,
    facts::RunDescription,
    files::{self, FileList},
    folder::Folder,
    stream_files::StreamFiles,
    writer::{Writer, observer},
};
use crate::model::{Findings, input::Observer, opened_files::FileObserver, plurals::counted};

/// Multiple of the time that a checkpoint takes from one to the next at least.
const APART: u32 = 20;

/// Time between two cuts of a recording that gives up its oldest events, ns.
const CUT_NS: u64 = 1_000_000_000;

/// Cuts that there are in the size of such a recording at least.
const CUTS: u64 = 32;

/// Bound of a recording's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MostSize {
    /// It ends when it has this many bytes.
    Ends(u64),
    /// Its oldest events are given up beyond this many bytes.
    Rotates(u64),
}

/// Recording that is being written.
pub struct Recorder {
    writer: Rc<RefCell<Writer>>,
    run: RunDescription,
    folder: PathBuf,
    most: Option<MostSize>,
    /// List of the files that the run opens, if it is wanted.
    files: Option<FileList>,
    /// End of the last checkpoint, and the time it took.
    last: Option<(Instant, Duration)>,
}

/// Progress of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Events.
    pub events: u64,
    /// Bytes that were written.
    pub bytes: u64,
}

impl fmt::Display for Progress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { events, bytes } = self;
        write!(formatter, "{}, {:.1} MB", counted(*events, "event"), *bytes as f64 / 1e6)
    }
}

impl Recorder {
    /// Creates a recording in a folder that is new or empty, or that holds a recording to be replaced. Nothing is changed
    /// there before the run has begun, and the first of its states is written.
    ///
    /// # Errors
    /// When the folder has anything else in it, or cannot be written.
    pub fn create(
        folder: &Path,
        run: RunDescription,
        replace: bool,
        most: Option<MostSize>,
    ) -> Result<Self, RecordError> {
        let place = Folder::new(folder, replace)?;
        let rotated = match most {
            Some(MostSize::Rotates(bytes)) => Some(bytes),
            Some(MostSize::Ends(_)) | None => None,
        };
        let disk = Disk::start(Store::Files(StreamFiles::new(place, run.clocks.realtime_ns, rotated)))?;
        let cuts = rotated.map(|bytes| Cuts::new(CUT_NS, bytes / CUTS));
        let writer = Rc::new(RefCell::new(Writer::new(disk, cuts, None)));
        Ok(Self { writer, run, folder: folder.to_owned(), most, files: None, last: None })
    }

    /// Returns the folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sets the exit status of the command, for the states from here on.
    pub fn set_exit_status(&mut self, status: Option<i32>) {
        self.run.exit_status = status;
    }

    /// Returns the observer that records what a model takes.
    #[must_use]
    pub fn observer(&self) -> Observer {
        observer(&self.writer)
    }

    /// Returns an observer that lists the files of the run, and hashes at most this many bytes of them at the end.
    #[must_use]
    pub fn list_files(&mut self, hash_bytes: u64) -> FileObserver {
        self.files.insert(FileList::new(hash_bytes)).observer()
    }

    /// Returns the progress.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let writer = self.writer.borrow();
        Progress { events: writer.number, bytes: writer.disk.as_ref().map_or(0, Disk::size) }
    }

    /// Returns a text on why the recording is to be ended, if it has the size that it may have.
    #[must_use]
    pub fn is_full(&self) -> Option<String> {
        let writer = self.writer.borrow();
        let disk = writer.disk.as_ref()?;
        let most = match self.most? {
            MostSize::Ends(most) => (disk.size() >= most).then_some(most),
            MostSize::Rotates(most) => disk.is_full().then_some(most),
        };
        most.map(|most| format!("the recording has the {:.1} MB that --max-size allows", most as f64 / 1e6))
    }

    /// Writes the state of the run, with all events before it, unless the last time was too short ago for what it takes. If
    /// the recorder is killed, nothing before it is lost.
    ///
    /// # Errors
    /// When the recording cannot be written any more.
    pub fn checkpoint(&mut self, findings: &Findings<'_>) -> Result<(), RecordError> {
        let begun = Instant::now();
        let mut writer = self.writer.borrow_mut();
        if self.last.is_some_and(|(end, took)| begun < end + took * APART) {
            return writer.check();
        }
        writer.checkpoint(findings, &self.run, false, None)?;
        self.write_files(&writer)?;
        self.last = Some((Instant::now(), begun.elapsed()));
        Ok(())
    }

    /// Ends the recording with the last state of the run, and a note on why it ends before the run, if it does: then its files
    /// are not examined, which would take the run's time.
    ///
    /// # Errors
    /// When something could not be written.
    pub fn finish(self, findings: &Findings<'_>, note: Option<String>) -> Result<Progress, RecordError> {
        let mut writer = self.writer.borrow_mut();
        if let Some(files) = &self.files {
            if note.is_none() {
                files.examine();
            }
            files.name_threads(|tgid, tid| writer.thread_name(tgid, tid).to_owned());
        }
        writer.checkpoint(findings, &self.run, true, note)?;
        self.write_files(&writer)?;
        let written = writer.disk.take().map(Disk::finish).transpose()?;
        Ok(Progress { events: writer.number, bytes: written.map_or(0, |(bytes, _)| bytes) })
    }

    /// Has the list of files written, if it has changed.
    fn write_files(&self, writer: &Writer) -> Result<(), RecordError> {
        if let (Some(files), Some(disk)) = (&self.files, &writer.disk)
            && let Some(content) = files.changed()?
        {
            disk.write_whole(files::NAME, content);
        }
        Ok(())
    }
}
