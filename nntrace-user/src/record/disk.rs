//! Writing of blocks: compressed and written by a thread of its own, so that a slow disk does not keep the rings full.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender, SyncSender, channel, sync_channel},
    },
    thread::{self, JoinHandle},
};

use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::{
    error::RecordError,
    format::{BlockHeader, EXTENSION, FileHeader, RUN_FILE, Stream},
};

/// Blocks that wait for the disk at most. With more, the recorder waits, and the rings fill meanwhile.
const MOST_WAITING: usize = 256;

/// End of the name of a file that is not written to its end.
pub(super) const PART: &str = ".part";

/// Work for the thread.
enum Job {
    /// Writes a block to the file of a stream, which is created if it is new.
    Block { stream: Stream, header: BlockHeader, content: Vec<u8> },
    /// Names the file of a thread's stream.
    Name { stream: Stream, name: String },
    /// Closes the file of a stream that has ended.
    Close { stream: Stream },
    /// Writes a file of the folder anew.
    Whole { name: &'static str, content: Vec<u8> },
}

/// Files of a recording that is being written.
pub(super) struct Disk {
    jobs: SyncSender<Job>,
    /// Buffers of blocks that have been written.
    buffers: Receiver<Vec<u8>>,
    thread: JoinHandle<Result<(), RecordError>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    written: AtomicU64,
    error: Mutex<Option<String>>,
}

impl Disk {
    /// Starts the thread, for a recording of this number in a folder that exists.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn start(folder: &Path, recording: u64) -> Result<Self, RecordError> {
        let (jobs, received) = sync_channel(MOST_WAITING);
        let (done, buffers) = channel();
        let shared = Arc::new(Shared::default());
        let files = Files {
            folder: folder.to_owned(),
            recording,
            open: BTreeMap::new(),
            names: BTreeMap::new(),
            shared: Arc::clone(&shared),
        };
        let thread = thread::Builder::new().name("nntrace-record".into());
        let thread = thread.spawn(move || files.write_all(&received, &done));
        let thread = thread.map_err(|source| RecordError::write(folder, source))?;
        Ok(Self { jobs, buffers, thread, shared })
    }

    /// Returns an empty buffer, one that has been written where there is any.
    pub(super) fn buffer(&self) -> Vec<u8> {
        let mut buffer = self.buffers.try_recv().unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// Has a block written.
    pub(super) fn write(&self, stream: Stream, header: BlockHeader, content: Vec<u8>) {
        self.send(Job::Block { stream, header, content });
    }

    /// Names the file of a thread, before its first block.
    pub(super) fn name(&self, stream: Stream, name: String) {
        self.send(Job::Name { stream, name });
    }

    /// Closes the file of a thread that has ended.
    pub(super) fn close(&self, stream: Stream) {
        self.send(Job::Close { stream });
    }

    /// Has a file of the folder written anew: it is there as a whole, as it was before or as it is now.
    pub(super) fn write_whole(&self, name: &'static str, content: Vec<u8>) {
        self.send(Job::Whole { name, content });
    }

    fn send(&self, job: Job) {
        // The thread ends early by an error only, which `error` and `finish` return.
        let _ = self.jobs.send(job);
    }

    /// Returns the bytes written so far.
    pub(super) fn written(&self) -> u64 {
        self.shared.written.load(Ordering::Relaxed)
    }

    /// Returns the error that ended writing, if one did.
    pub(super) fn error(&self) -> Option<String> {
        self.shared.error.lock().ok()?.clone()
    }

    /// Waits until everything is written; returns the number of bytes.
    ///
    /// # Errors
    /// When something could not be written.
    pub(super) fn finish(self) -> Result<u64, RecordError> {
        let Self { jobs, thread, shared, .. } = self;
        drop(jobs);
        thread.join().map_err(|_| RecordError::Failed("its writer has ended early".into()))??;
        Ok(shared.written.load(Ordering::Relaxed))
    }
}

/// Files as the thread has them.
struct Files {
    folder: PathBuf,
    recording: u64,
    open: BTreeMap<Stream, OpenFile>,
    names: BTreeMap<Stream, String>,
    shared: Arc<Shared>,
}

struct OpenFile {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Files {
    fn write_all(mut self, jobs: &Receiver<Job>, done: &Sender<Vec<u8>>) -> Result<(), RecordError> {
        let result = jobs.iter().try_for_each(|job| self.run(job, done));
        if let (Err(error), Ok(mut place)) = (&result, self.shared.error.lock()) {
            *place = Some(error.to_string());
        }
        result
    }

    fn run(&mut self, job: Job, done: &Sender<Vec<u8>>) -> Result<(), RecordError> {
        match job {
            Job::Name { stream, name } => drop(self.names.insert(stream, name)),
            Job::Close { stream } => drop(self.open.remove(&stream)),
            Job::Whole { name, content } => self.whole(name, &content)?,
            Job::Block { stream, header, content } => {
                self.block(stream, header, &content)?;
                // Nobody takes buffers back at the end.
                let _ = done.send(content);
            }
        }
        Ok(())
    }

    fn whole(&self, name: &str, content: &[u8]) -> Result<(), RecordError> {
        let (part, path) = (self.folder.join(format!("{name}{PART}")), self.folder.join(name));
        fs::write(&part, content).map_err(|source| RecordError::write(&part, source))?;
        fs::rename(&part, &path).map_err(|source| RecordError::write(&path, source))?;
        self.shared.written.fetch_add(content.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn block(&mut self, stream: Stream, header: BlockHeader, content: &[u8]) -> Result<(), RecordError> {
        let compressed = compress_to_vec(content, CompressionLevel::Fastest);
        let is_compressed = compressed.len() < content.len();
        let stored = if is_compressed { &compressed } else { content };
        let header = BlockHeader {
            is_compressed,
            stored: stored.len() as u32,
            plain: content.len() as u32,
            checksum: crc32fast::hash(stored),
            ..header
        };
        let written = [&header.bytes()[..], stored].concat();
        if !self.open.contains_key(&stream) {
            let opened = self.create(stream)?;
            self.open.insert(stream, opened);
        }
        let Some(file) = self.open.get_mut(&stream) else { return Ok(()) };
        let bytes = file.append(&written)?;
        self.shared.written.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn create(&mut self, stream: Stream) -> Result<OpenFile, RecordError> {
        let name = self.file_name(stream);
        let path = self.folder.join(name);
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.map_err(|source| RecordError::write(&path, source))?;
        let mut opened = OpenFile { path, file, length: 0 };
        let bytes = opened.append(&FileHeader::new(stream, self.recording).bytes())?;
        self.shared.written.fetch_add(bytes, Ordering::Relaxed);
        Ok(opened)
    }

    fn file_name(&mut self, stream: Stream) -> String {
        match stream {
            Stream::Run => RUN_FILE.into(),
            Stream::Threads => format!("threads.{EXTENSION}"),
            Stream::Cpu(cpu) => format!("cpu{cpu}.{EXTENSION}"),
            Stream::Other(kind, number) => format!("stream{kind}_{number}.{EXTENSION}"),
            Stream::Thread(number) => {
                let name = self.names.remove(&stream).unwrap_or_else(|| format!("thread{number}"));
                let plain = format!("{name}.{EXTENSION}");
                // An id may come again: its second thread was found without its fork.
                if self.folder.join(&plain).exists() { format!("{name}~{number}.{EXTENSION}") } else { plain }
            }
        }
    }
}

impl OpenFile {
    /// Appends bytes, or nothing: what is written stays valid when there is no room for more.
    fn append(&mut self, bytes: &[u8]) -> Result<u64, RecordError> {
        let written: io::Result<()> = self.file.write_all(bytes);
        if let Err(source) = written {
            // A part of a block is no harm where this fails, too: a reader leaves it out.
            let _ = self.file.set_len(self.length);
            return Err(RecordError::write(&self.path, source));
        }
        self.length += bytes.len() as u64;
        Ok(bytes.len() as u64)
    }
}
