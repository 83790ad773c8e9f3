//! Files of a recording that is being written. Where its size is bounded, they are cut in segments, the oldest of which are
//! removed when there is no room for more.

use std::{
    collections::{BTreeMap, VecDeque},
    fs::File,
    io::{self, Write as _},
};

use super::{
    block::stored_state,
    error::RecordError,
    facts::Checkpoint,
    folder::Folder,
    format::{EXTENSION, FileHeader, RUN_FILE, STATES, Stream},
    kept::Kept,
};

/// Segments that a recording of bounded size has at least.
const SEGMENTS: u64 = 8;

/// Files of a recording.
pub(super) struct StreamFiles {
    folder: Folder,
    recording: u64,
    open: BTreeMap<Place, OpenFile>,
    names: BTreeMap<Stream, String>,
    /// Bytes of all files of streams.
    size: u64,
    /// Bytes of the files that are written again, by their names. No events are given up for them: they come after the state
    /// that says where these begin.
    whole: BTreeMap<&'static str, u64>,
    segments: Option<Segments>,
}

/// Content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// Events of a stream.
    Stream(Stream),
    /// States of the run, where they are removed with a segment: else they are beside its events.
    States,
}

struct OpenFile {
    name: String,
    file: File,
    length: u64,
}

/// Segments of a recording of bounded size. Events of the stream of the run are in none of them.
struct Segments {
    /// Bytes of the recording at most.
    most: u64,
    /// Number of the newest one.
    number: u32,
    /// All that are there, the newest at the end.
    kept: VecDeque<Segment>,
}

#[derive(Default)]
struct Segment {
    /// Begin; `None` if it is the first one.
    begin: Option<Kept>,
    /// Names.
    files: Vec<String>,
    bytes: u64,
}

impl StreamFiles {
    /// Creates the files of a recording of this number in a folder; with `most`, the oldest events are given up
    /// beyond this many bytes.
    pub(super) fn new(folder: Folder, recording: u64, most: Option<u64>) -> Self {
        let segments = |most| Segments { most, number: 1, kept: VecDeque::from([Segment::default()]) };
        Self {
            folder,
            recording,
            open: BTreeMap::new(),
            names: BTreeMap::new(),
            size: 0,
            whole: BTreeMap::new(),
            segments: most.map(segments),
        }
    }

    /// Names the files of a thread, before its first block.
    pub(super) fn name(&mut self, stream: Stream, name: String) {
        self.names.insert(stream, name);
    }

    /// Closes the file of a stream that has ended.
    pub(super) fn close(&mut self, stream: Stream) {
        self.open.remove(&Place::Stream(stream));
        self.names.remove(&stream);
    }

    /// Returns the bytes of all files.
    pub(super) fn size(&self) -> u64 {
        self.size + self.whole.values().sum::<u64>()
    }

    /// Whether there is no room left, even without older segments.
    pub(super) fn is_full(&self) -> bool {
        self.segments.as_ref().is_some_and(|segments| segments.kept.len() == 1 && self.size > segments.most)
    }

    /// Begins another segment, if the newest one is large enough: every block so far is of events before.
    pub(super) fn cut(&mut self, kept: Kept) {
        let Some(segments) = &mut self.segments else { return };
        if segments.kept.back().is_some_and(|newest| newest.bytes >= segments.most / SEGMENTS) {
            segments.number += 1;
            segments.kept.push_back(Segment { begin: Some(kept), ..Segment::default() });
            self.open.retain(|place, _| *place == Place::Stream(Stream::Run));
        }
    }

    /// Writes a block to the file of a stream, which is created if it is new.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn block(&mut self, stream: Stream, stored: &[u8]) -> Result<(), RecordError> {
        self.append(Place::Stream(stream), stored)?;
        self.make_room(0)
    }

    /// Writes the state of the run after the event of this number.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn state(&mut self, number: u64, mut state: Checkpoint) -> Result<(), RecordError> {
        let mut stored = stored_state(number, &state)?;
        // Segments go before it, as it says where the first one that is left begins.
        self.make_room(stored.len() as u64)?;
        let oldest = self.segments.as_ref().and_then(|segments| segments.kept.front());
        if let Some(begin) = oldest.and_then(|oldest| oldest.begin.clone()) {
            state.kept = Some(begin);
            stored = stored_state(number, &state)?;
        }
        let place = if self.segments.is_some() { Place::States } else { Place::Stream(Stream::Run) };
        self.append(place, &stored)?;
        // With a state, it can be read.
        self.folder.settle()
    }

    /// Writes a file of the folder again: it is there as a whole, as it was before or as it is now.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn whole(&mut self, name: &'static str, content: &[u8]) -> Result<(), RecordError> {
        self.folder.replace_file(name, content)?;
        self.whole.insert(name, content.len() as u64);
        Ok(())
    }

    /// Removes the oldest segments until there is room for this many bytes.
    fn make_room(&mut self, bytes: u64) -> Result<(), RecordError> {
        let Some(segments) = &mut self.segments else { return Ok(()) };
        while self.size + bytes > segments.most && segments.kept.len() > 1 {
            let Some(oldest) = segments.kept.pop_front() else { break };
            for name in oldest.files {
                self.folder.remove_file(&name)?;
            }
            self.size -= oldest.bytes;
        }
        Ok(())
    }

    fn append(&mut self, place: Place, bytes: &[u8]) -> Result<(), RecordError> {
        if !self.open.contains_key(&place) {
            let opened = self.create(place)?;
            self.open.insert(place, opened);
        }
        let Some(file) = self.open.get_mut(&place) else { return Ok(()) };
        file.append(&self.folder, bytes)?;
        self.count(place, bytes.len() as u64, None);
        Ok(())
    }

    fn create(&mut self, place: Place) -> Result<OpenFile, RecordError> {
        let name = self.file_name(place);
        let file = self.folder.create_file(&name)?;
        let stream = match place {
            Place::Stream(stream) => stream,
            Place::States => Stream::Run,
        };
        let header = FileHeader::new(stream, self.recording).bytes();
        let mut opened = OpenFile { name: name.clone(), file, length: 0 };
        opened.append(&self.folder, &header)?;
        self.count(place, header.len() as u64, Some(name));
        Ok(opened)
    }

    /// Counts bytes, and a file that is new.
    fn count(&mut self, place: Place, bytes: u64, file: Option<String>) {
        self.size += bytes;
        let newest = self.segments.as_mut().and_then(|segments| segments.kept.back_mut());
        if let Some(newest) = newest.filter(|_| place != Place::Stream(Stream::Run)) {
            newest.bytes += bytes;
            newest.files.extend(file);
        }
    }

    fn file_name(&self, place: Place) -> String {
        let number = self.segments.as_ref().map_or(1, |segments| segments.number);
        let ending = if number == 1 { EXTENSION.to_owned() } else { format!("{number}.{EXTENSION}") };
        match place {
            Place::Stream(Stream::Run) => RUN_FILE.into(),
            Place::States => format!("{STATES}.{ending}"),
            Place::Stream(Stream::Threads) => format!("threads.{ending}"),
            Place::Stream(Stream::Cpu(cpu)) => format!("cpu{cpu}.{ending}"),
            Place::Stream(Stream::Other(kind, number)) => format!("stream{kind}_{number}.{ending}"),
            Place::Stream(stream @ Stream::Thread(number)) => {
                let name = self.names.get(&stream).cloned().unwrap_or_else(|| format!("thread{number}"));
                let plain = format!("{name}.{ending}");
                // An id may come again: its second thread was found without its fork.
                if self.folder.has(&plain) { format!("{name}~{number}.{ending}") } else { plain }
            }
        }
    }
}

impl OpenFile {
    /// Appends bytes, or nothing: what is written stays valid when there is no room for more.
    fn append(&mut self, folder: &Folder, bytes: &[u8]) -> Result<(), RecordError> {
        let written: io::Result<()> = self.file.write_all(bytes);
        if let Err(source) = written {
            // A part of a block is no harm where this fails, too: a reader leaves it out.
            let _ = self.file.set_len(self.length);
            return Err(folder.error(&self.name, source));
        }
        self.length += bytes.len() as u64;
        Ok(())
    }
}
