//! Recording of a run while its model is fed.

use std::{
    cell::RefCell,
    fmt, fs, io,
    path::{Path, PathBuf},
    rc::Rc,
    time::{Duration, Instant},
};

use super::{
    disk::{Disk, PART},
    encode::{EventBlock, Unnamed},
    error::RecordError,
    facts::{Checkpoint, LateName, RunDescription},
    file_identity::ProbedFiles,
    files::{self, FileList},
    format::{BlockHeader, Content, EXTENSION, Stream, is_recording},
    initial_host::InitialHost,
    streams::Streams,
};
use crate::model::{
    Findings,
    function_names::Names,
    input::{Input, Observe, Observer},
    opened_files::FileObserver,
};

/// Bytes of a block's content from which it is written.
const FULL: usize = 64 << 10;

/// Multiple of the time that a checkpoint takes from one to the next at least.
const APART: u32 = 20;

/// Recording that is being written.
pub struct Recorder {
    writer: Rc<RefCell<Writer>>,
    run: RunDescription,
    folder: PathBuf,
    /// List of the files that the run opens, if it is wanted.
    files: Option<FileList>,
    /// End of the last checkpoint, and the time it took.
    last: Option<(Instant, Duration)>,
    probed: ProbedFiles,
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
        write!(formatter, "{events} events, {:.1} MB", *bytes as f64 / 1e6)
    }
}

struct Writer {
    disk: Option<Disk>,
    streams: Streams,
    /// Number of the last event.
    number: u64,
    unnamed: Unnamed,
    host_at_begin: Option<InitialHost>,
}

impl Recorder {
    /// Creates a recording in a folder, which is created if it does not exist. A recording that is there is removed first if
    /// it is to be replaced.
    ///
    /// # Errors
    /// When the folder has anything else in it, or cannot be written.
    pub fn create(folder: &Path, run: RunDescription, replace: bool) -> Result<Self, RecordError> {
        let error = |source| RecordError::write(folder, source);
        match fs::create_dir(folder) {
            Err(source) if source.kind() == io::ErrorKind::AlreadyExists => {
                if replace && is_recording(folder) {
                    remove_files(folder)?;
                }
                if fs::read_dir(folder).map_err(error)?.next().is_some() {
                    return Err(RecordError::Exists(folder.to_owned()));
                }
            }
            result => result.map_err(error)?,
        }
        let writer = Writer {
            disk: Some(Disk::start(folder, run.clocks.realtime_ns)?),
            streams: Streams::new(),
            number: 0,
            unnamed: Unnamed::default(),
            host_at_begin: None,
        };
        let writer = Rc::new(RefCell::new(writer));
        Ok(Self {
            writer,
            run,
            folder: folder.to_owned(),
            files: None,
            last: None,
            probed: ProbedFiles::default(),
        })
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
        Observer::new(Recording(Rc::clone(&self.writer)))
    }

    /// Returns an observer that lists the files of the run, of which at most so many bytes are hashed at the end.
    #[must_use]
    pub fn list_files(&mut self, hash_bytes: u64) -> FileObserver {
        self.files.insert(FileList::new(hash_bytes)).observer()
    }

    /// Returns the progress.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let writer = self.writer.borrow();
        Progress { events: writer.number, bytes: writer.disk.as_ref().map_or(0, Disk::written) }
    }

    /// Writes the state of the run, with all events before it, unless the last time was too short ago for what it takes. If
    /// the recorder is killed, nothing before it is lost.
    ///
    /// # Errors
    /// When the recording cannot be written any more.
    pub fn checkpoint(&mut self, findings: &Findings<'_>) -> Result<(), RecordError> {
        let begun = Instant::now();
        if self.last.is_some_and(|(end, took)| begun < end + took * APART) {
            return self.check();
        }
        self.write(findings, false)?;
        self.last = Some((Instant::now(), begun.elapsed()));
        Ok(())
    }

    /// Ends the recording with the last state of the run.
    ///
    /// # Errors
    /// When something could not be written.
    pub fn finish(mut self, findings: &Findings<'_>) -> Result<Progress, RecordError> {
        if let Some(files) = &self.files {
            let mut writer = self.writer.borrow_mut();
            files.examine();
            files.name_threads(|tgid, tid| writer.streams.thread_name(tgid, tid).to_owned());
        }
        self.write(findings, true)?;
        let mut writer = self.writer.borrow_mut();
        let bytes = writer.disk.take().map(Disk::finish).transpose()?.unwrap_or_default();
        Ok(Progress { events: writer.number, bytes })
    }

    fn write(&mut self, findings: &Findings<'_>, is_last: bool) -> Result<(), RecordError> {
        let mut writer = self.writer.borrow_mut();
        let names = &findings.marks.names;
        let late = writer
            .unnamed
            .iter()
            .filter_map(|hash| Some(LateName { hash: *hash, text: names.get(*hash)?.text.clone() }));
        let mut late: Vec<LateName> = late.collect();
        late.sort_unstable_by_key(|name| name.hash);
        let probed = self.probed.of(&findings.run.source);
        let state =
            Checkpoint::new(findings, self.run.clone(), writer.host_at_begin.clone(), probed, late, is_last);
        writer.checkpoint(&state)?;
        if let (Some(files), Some(disk)) = (&self.files, &writer.disk)
            && let Some(content) = files.changed()?
        {
            disk.write_whole(files::NAME, content);
        }
        drop(writer);
        self.check()
    }

    /// Checks that everything so far could be written.
    fn check(&self) -> Result<(), RecordError> {
        let error = self.writer.borrow().disk.as_ref().and_then(Disk::error);
        error.map_or(Ok(()), |error| Err(RecordError::Failed(error)))
    }
}

/// Removes the files of a recording; others stay.
fn remove_files(folder: &Path) -> Result<(), RecordError> {
    let error = |source| RecordError::write(folder, source);
    for entry in fs::read_dir(folder).map_err(error)? {
        let path = entry.map_err(error)?.path();
        let is_list = || ["", PART].iter().any(|end| path.ends_with(format!("{}{end}", files::NAME)));
        if path.extension().is_some_and(|extension| extension == EXTENSION) || is_list() {
            fs::remove_file(&path).map_err(|source| RecordError::write(&path, source))?;
        }
    }
    Ok(())
}

impl Writer {
    #[inline]
    fn input(&mut self, input: &Input<'_>, names: &Names) {
        let Self { disk: Some(disk), streams, number, unnamed, host_at_begin } = self else { return };
        *number += 1;
        let place = streams.place(input);
        let (stream, block) = streams.block(&place);
        if let Some(name) = place.name {
            disk.name(stream, name);
        }
        block.push(*number, input, names, unnamed);
        if block.bytes.len() >= FULL {
            flush(disk, stream, block);
        }
        match *input {
            Input::Advance { until } => {
                for (stream, mut block) in streams.take_ended(until) {
                    flush(disk, stream, &mut block);
                    disk.close(stream);
                }
            }
            Input::PowerBegins { topology, initial, .. } => {
                *host_at_begin = Some(InitialHost { topology: topology.clone(), initial: initial.clone() });
            }
            _ => {}
        }
    }

    fn checkpoint(&mut self, state: &Checkpoint) -> Result<(), RecordError> {
        let Self { disk: Some(disk), streams, number, .. } = self else { return Ok(()) };
        for (stream, block) in streams.all() {
            flush(disk, stream, block);
        }
        let content = serde_json::to_vec(state).map_err(|error| RecordError::Failed(error.to_string()))?;
        let longest = Content::Checkpoint.longest() as usize;
        if content.len() > longest {
            let length = content.len();
            return Err(RecordError::Failed(format!(
                "the state of the run takes {length} bytes, more than the {longest} of a block: use smaller tables with --memory"
            )));
        }
        let header = BlockHeader {
            content: Content::Checkpoint,
            is_compressed: false,
            stored: 0,
            plain: content.len() as u32,
            events: 0,
            first: *number,
            last: *number,
            first_time: state.window.end_ns,
            last_time: state.window.end_ns,
            checksum: 0,
        };
        disk.write(Stream::Run, header, content);
        Ok(())
    }
}

/// Has a block written, if it has any event, and empties it. The thread of the disk fills in sizes and checksum.
fn flush(disk: &Disk, stream: Stream, block: &mut EventBlock) {
    if block.events == 0 {
        return;
    }
    let (first_time, last_time) = block.times.unwrap_or((u64::MAX, 0));
    let header = BlockHeader {
        content: Content::Events,
        is_compressed: false,
        stored: 0,
        plain: 0,
        events: block.events,
        first: block.first,
        last: block.last,
        first_time,
        last_time,
        checksum: 0,
    };
    disk.write(stream, header, block.take(disk.buffer()));
}

/// The recorder's side of the model.
struct Recording(Rc<RefCell<Writer>>);

impl Observe for Recording {
    fn input(&mut self, input: &Input<'_>, names: &Names) {
        self.0.borrow_mut().input(input, names);
    }
}
