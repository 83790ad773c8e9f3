//! Thread that compresses blocks and writes or keeps them, so that a slow disk does not keep the rings full.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, Sender, SyncSender, channel, sync_channel},
    },
    thread::{self, JoinHandle},
};

use super::{
    block,
    error::RecordError,
    facts::Checkpoint,
    flight::Flight,
    folder::Folder,
    format::{BlockHeader, Stream},
    kept::Kept,
    stream_files::StreamFiles,
};

/// Blocks that wait for the disk at most. With more, the recorder waits, and the rings fill meanwhile.
const MOST_WAITING: usize = 256;

/// Place where blocks go.
pub(super) enum Store {
    /// Files of a recording.
    Files(StreamFiles),
    /// Memory, for the last seconds of a run.
    Flight(Flight),
}

/// Work for the thread.
enum Job {
    /// Writes a block to the file of a stream, which is created if it is new.
    Block { stream: Stream, header: BlockHeader, content: Vec<u8> },
    /// Names the file of a thread's stream.
    Name { stream: Stream, name: String },
    /// Closes the file of a stream that has ended.
    Close { stream: Stream },
    /// Writes a file of the folder again.
    Whole { name: &'static str, content: Vec<u8> },
    /// Cuts: everything before may be given up from here on.
    Cut(Kept),
    /// Writes the state of the run after the event of this number.
    State { number: u64, state: Box<Checkpoint> },
    /// Writes the last seconds.
    Flight(Box<FlightJob>),
}

/// Recording of the last seconds that is to be written.
pub(super) struct FlightJob {
    /// Its folder.
    pub(super) folder: Folder,
    /// Its number.
    pub(super) recording: u64,
    /// Number of the last event.
    pub(super) number: u64,
    /// Time up to which everything was taken, ns.
    pub(super) until: u64,
    /// State of the run.
    pub(super) state: Checkpoint,
}

/// Recording of the last seconds that was written, or not.
pub(super) struct FlightWritten {
    /// Its folder.
    pub(super) folder: PathBuf,
    /// Its bytes.
    pub(super) result: Result<u64, RecordError>,
}

/// Handle on the thread.
pub(super) struct Disk {
    /// Taken at the end.
    jobs: Option<SyncSender<Job>>,
    /// Buffers of blocks that have been written.
    buffers: Receiver<Vec<u8>>,
    /// Taken at the end.
    thread: Option<JoinHandle<Result<(), RecordError>>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    size: AtomicU64,
    is_full: AtomicBool,
    error: Mutex<Option<String>>,
    flights: Mutex<Vec<FlightWritten>>,
}

impl Disk {
    /// Starts the thread.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn start(store: Store) -> Result<Self, RecordError> {
        let (jobs, received) = sync_channel(MOST_WAITING);
        let (done, buffers) = channel();
        let shared = Arc::new(Shared::default());
        let worker = Worker { store, shared: Arc::clone(&shared), writers: Vec::new() };
        let thread = thread::Builder::new().name("nntrace-record".into());
        let thread = thread.spawn(move || worker.work(&received, &done));
        let thread = thread.map_err(|error| RecordError::Failed(format!("no thread for it: {error}")))?;
        Ok(Self { jobs: Some(jobs), buffers, thread: Some(thread), shared })
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

    /// Has a file of the folder written again: it is there as a whole, as it was before or as it is now.
    pub(super) fn write_whole(&self, name: &'static str, content: Vec<u8>) {
        self.send(Job::Whole { name, content });
    }

    /// Cuts: all blocks so far are of events before, and of no later ones.
    pub(super) fn cut(&self, kept: Kept) {
        self.send(Job::Cut(kept));
    }

    /// Has the state of the run after the event of this number written.
    pub(super) fn state(&self, number: u64, state: Checkpoint) {
        self.send(Job::State { number, state: Box::new(state) });
    }

    /// Has the last seconds written.
    pub(super) fn flight(&self, job: FlightJob) {
        self.send(Job::Flight(Box::new(job)));
    }

    fn send(&self, job: Job) {
        // The thread ends early by an error only, which `error` and `finish` return.
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
    }

    /// Returns the bytes on disk, or in memory.
    pub(super) fn size(&self) -> u64 {
        self.shared.size.load(Ordering::Relaxed)
    }

    /// Whether there is no room for more in the size that a recording may have.
    pub(super) fn is_full(&self) -> bool {
        self.shared.is_full.load(Ordering::Relaxed)
    }

    /// Returns the error that ended writing, if one did.
    pub(super) fn error(&self) -> Option<String> {
        self.shared.error.lock().ok()?.clone()
    }

    /// Takes the recordings of the last seconds that were written since the last call.
    pub(super) fn take_flights(&self) -> Vec<FlightWritten> {
        self.shared.take_flights()
    }

    /// Waits until everything is written; returns the number of bytes, and the recordings of the last seconds.
    ///
    /// # Errors
    /// When something could not be written.
    pub(super) fn finish(mut self) -> Result<(u64, Vec<FlightWritten>), RecordError> {
        self.end()?;
        Ok((self.shared.size.load(Ordering::Relaxed), self.shared.take_flights()))
    }

    fn end(&mut self) -> Result<(), RecordError> {
        self.jobs = None;
        let ended = self.thread.take().map(JoinHandle::join).transpose();
        ended.map_err(|_| RecordError::Failed("its writer has ended early".into()))?.unwrap_or(Ok(()))
    }
}

impl Drop for Disk {
    /// Waits until the thread has removed what is unfinished.
    fn drop(&mut self) {
        // Who wants to know of an error calls `finish`.
        let _ = self.end();
    }
}

impl Shared {
    fn take_flights(&self) -> Vec<FlightWritten> {
        std::mem::take(&mut self.flights.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add_flight(&self, written: FlightWritten) {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner).push(written);
    }
}

/// The thread's side.
struct Worker {
    store: Store,
    shared: Arc<Shared>,
    /// Threads that write the last seconds, so that meanwhile the next ones can be kept.
    writers: Vec<JoinHandle<()>>,
}

impl Worker {
    fn work(mut self, jobs: &Receiver<Job>, done: &Sender<Vec<u8>>) -> Result<(), RecordError> {
        let result = jobs.iter().try_for_each(|job| self.run(job, done));
        if let (Err(error), Ok(mut place)) = (&result, self.shared.error.lock()) {
            *place = Some(error.to_string());
        }
        for writer in self.writers {
            // What it wrote, or why it did not, is in `flights`.
            let _ = writer.join();
        }
        result
    }

    fn run(&mut self, job: Job, done: &Sender<Vec<u8>>) -> Result<(), RecordError> {
        let Self { store, shared, writers } = self;
        match (job, &mut *store) {
            (Job::Name { stream, name }, Store::Files(files)) => files.name(stream, name),
            (Job::Name { stream, name }, Store::Flight(flight)) => flight.name(stream, name),
            (Job::Close { stream }, Store::Files(files)) => files.close(stream),
            (Job::Close { stream }, Store::Flight(flight)) => flight.close(stream),
            (Job::Whole { name, content }, Store::Files(files)) => files.whole(name, &content)?,
            (Job::Cut(kept), Store::Files(files)) => files.cut(kept),
            (Job::Cut(kept), Store::Flight(flight)) => flight.cut(kept),
            (Job::Block { stream, header, content }, store) => {
                let stored = block::stored(&header, &content);
                match store {
                    Store::Files(files) => files.block(stream, &stored)?,
                    Store::Flight(flight) => flight.block(stream, stored),
                }
                // Nobody takes buffers back at the end.
                let _ = done.send(content);
            }
            (Job::State { number, state }, Store::Files(files)) => files.state(number, *state)?,
            (Job::Flight(job), Store::Flight(flight)) => {
                let FlightJob { folder, recording, number, until, state } = *job;
                let flight = flight.recording(until, state);
                let (place, of_writer) = (folder.path().to_owned(), Arc::clone(shared));
                let of_folder = place.clone();
                let writer = thread::Builder::new().name("nntrace-flight".into()).spawn(move || {
                    let result = flight.write(folder, recording, number);
                    of_writer.add_flight(FlightWritten { folder: of_folder, result });
                });
                match writer {
                    Ok(writer) => writers.push(writer),
                    Err(error) => {
                        let result = Err(RecordError::Failed(format!("no thread for it: {error}")));
                        shared.add_flight(FlightWritten { folder: place, result });
                    }
                }
            }
            // Each store has its own.
            (Job::Whole { .. } | Job::State { .. }, Store::Flight(_)) | (Job::Flight(_), Store::Files(_)) => {
            }
        }
        let size = match store {
            Store::Files(files) => files.size(),
            Store::Flight(flight) => flight.bytes(),
        };
        shared.size.store(size, Ordering::Relaxed);
        if matches!(store, Store::Files(files) if files.is_full()) {
            shared.is_full.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}
