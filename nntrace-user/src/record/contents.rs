//! Contents of blocks in a given order. Threads of their own read, check and decompress them ahead, so that a reader only
//! waits where it is faster than they are.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use super::read::{Block, Files, RecordedFile};

/// Blocks from which threads are worth their start.
const MANY: usize = 32;
/// Threads at most: they are faster than what any reader does with the contents.
const MOST_THREADS: usize = 3;
/// Contents that each thread is ahead at most.
const AHEAD: usize = 8;
/// Bytes of the contents that are read ahead at most: larger ones are no recorder's, and would take much memory at once.
const LARGEST_AHEAD: u32 = 1 << 20;

type Content = Result<Vec<u8>, String>;
type Jobs = Arc<[(Arc<RecordedFile>, Block)]>;

/// Contents of blocks, in their order.
pub(super) struct Contents {
    jobs: Jobs,
    /// Contents of each thread: the first has those of the blocks 0, n, 2n ..; `None` stands for one that it has not read.
    ahead: Vec<Receiver<Option<Content>>>,
    next: usize,
}

impl Contents {
    /// Starts to read the contents of blocks.
    pub(super) fn read(files: &Files, blocks: Vec<Block>) -> Self {
        let jobs: Jobs = blocks.into_iter().map(|block| (Arc::clone(files.file(&block)), block)).collect();
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let threads = if jobs.len() < MANY { 0 } else { (cpus - 1).min(MOST_THREADS) };
        Self::with_threads(jobs, threads)
    }

    fn with_threads(jobs: Jobs, threads: usize) -> Self {
        let mut ahead = Vec::new();
        for first in 0..threads {
            let (sender, receiver) = sync_channel(AHEAD);
            let jobs = Arc::clone(&jobs);
            let read = move || read_ahead(&jobs, first, threads, &sender);
            // Without the thread, nothing comes from it, and its blocks are read when they are needed.
            let _ = thread::Builder::new().name("nntrace-read".into()).spawn(read);
            ahead.push(receiver);
        }
        Self { jobs, ahead, next: 0 }
    }

    /// Returns the content of the next block.
    ///
    /// # Errors
    /// When it is damaged, with a text that says where.
    pub(super) fn next(&mut self) -> Content {
        let number = self.next;
        self.next += 1;
        let threads = self.ahead.len().max(1);
        let ahead = self.ahead.get(number % threads).and_then(|thread| thread.recv().ok().flatten());
        ahead.unwrap_or_else(|| {
            let (file, block) = self.jobs.get(number).ok_or("there is no further block")?;
            file.content(block)
        })
    }
}

/// Reads every so manieth content, until nobody takes them any more.
fn read_ahead(jobs: &Jobs, first: usize, threads: usize, done: &SyncSender<Option<Content>>) {
    for (file, block) in jobs.iter().skip(first).step_by(threads) {
        let content = (block.header.plain <= LARGEST_AHEAD).then(|| file.content(block));
        if done.send(content).is_err() {
            return;
        }
    }
}
