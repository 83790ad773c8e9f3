//! The batches of a text in their order: parsed by threads of their own, where there are CPUs for them, while the
//! thread that asks for them accounts the events.
//!
//! A thread holds the file while it reads a chunk, with the number of the chunk, and parses it when others may read.
//! There is a limited number of batches, which go round, so neither side gets far ahead of the other.
//!
//! The chunks are read, not mapped: somebody who truncates a mapped file ends its readers with a signal, and copying
//! what is in the page cache takes a tenth of the time that parsing it does.

use std::{
    mem,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    thread::{self, Scope},
};

use super::{
    batch::{Batch, Parser},
    html,
    input::{Input, InputReader},
    lines::Chunks,
};

/// Threads that parse one text at most. Accounting takes longer than a half of what parsing does: more would wait.
const MOST_PARSERS: usize = 2;

/// Batches that wait, beside one for each thread.
const WAITING: usize = 6;

/// Batches that are handed back at once: waking a thread takes as long as accounting some ten lines.
const HANDED_BACK: usize = WAITING / 2;

/// Bytes read at once: enough that it does not matter what reads, and handing over batches, cost; few enough for the
/// caches.
const CHUNK: usize = 64 * 1024;

/// Division of the work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Division {
    /// Threads that parse; without any, the thread that accounts parses, too.
    pub parsers: usize,
    /// Bytes read at once.
    pub chunk: usize,
}

impl Division {
    /// Returns the division that suits this many texts on the CPUs that this process may use.
    pub(crate) fn suited(texts: usize) -> Self {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        Self { parsers: ((cpus - 1) / texts.max(1)).min(MOST_PARSERS), chunk: CHUNK }
    }
}

/// Batches of one text.
pub(crate) enum Batches {
    /// Parsed here.
    Here {
        /// Reader of the text.
        chunks: Chunks<InputReader>,
        /// Parser of the batches.
        parser: Parser,
    },
    /// Parsed by other threads.
    There(There),
}

/// Side of the thread that takes the batches.
pub(crate) struct There {
    /// Batches that were taken and are to be used again, and where they go.
    taken: Vec<Batch>,
    used: Sender<Batch>,
    parsed: Receiver<Numbered>,
    /// Batches that came before their turn.
    early: Vec<Numbered>,
    /// Number of the next batch.
    next: u64,
}

/// Batch with its number, or the end with that number.
struct Numbered {
    number: u64,
    content: Result<Batch, End>,
}

/// End of a text; the error that ended it, if any.
type End = Option<String>;

/// Side of the threads that parse.
struct Feed {
    chunks: Chunks<InputReader>,
    used: Receiver<Batch>,
    /// Number of the next batch.
    next: u64,
    ended: bool,
}

impl Batches {
    /// Begins to read an input, with threads in `scope` where the division has any.
    pub(crate) fn new<'scope>(input: &Input, division: Division, scope: &'scope Scope<'scope, '_>) -> Self {
        let is_html = html::looks_like_html(input.head());
        let chunks = Chunks::new(input.reader(), division.chunk);
        // Which text in a page is a trace depends on what came before.
        let parsers = if is_html { division.parsers.min(1) } else { division.parsers };
        if parsers == 0 {
            return Self::Here { chunks, parser: Parser::new(is_html) };
        }
        let (used, to_use) = channel();
        let (sender, parsed) = channel();
        for _ in 0..parsers + WAITING {
            // The other end is in this function.
            let _ = used.send(Batch::default());
        }
        let feed = Arc::new(Mutex::new(Feed { chunks, used: to_use, next: 0, ended: false }));
        for _ in 0..parsers {
            let (feed, sender) = (Arc::clone(&feed), sender.clone());
            scope.spawn(move || parse(&feed, &sender, Parser::new(is_html)));
        }
        Self::There(There { taken: Vec::new(), used, parsed, early: Vec::new(), next: 0 })
    }

    /// Replaces a batch by the next one.
    ///
    /// # Errors
    /// At the end, with the error of the reader, if it is one.
    pub(crate) fn next(&mut self, batch: &mut Batch) -> Result<(), End> {
        match self {
            Self::Here { chunks, parser } => {
                fill(chunks, batch)?;
                parser.parse(batch);
                Ok(())
            }
            Self::There(there) => there.next(batch),
        }
    }
}

impl There {
    fn next(&mut self, batch: &mut Batch) -> Result<(), End> {
        let content = loop {
            if let Some(at) = self.early.iter().position(|early| early.number == self.next) {
                break self.early.swap_remove(at).content;
            }
            match self.parsed.recv() {
                Ok(parsed) => self.early.push(parsed),
                // All have ended before the end, by a panic, which the scope passes on.
                Err(_) => break Err(None),
            }
        };
        self.next += 1;
        let taken = mem::replace(batch, content?);
        // The first one did not come from there.
        if self.next > 1 {
            self.taken.push(taken);
        }
        if self.taken.len() >= HANDED_BACK {
            self.taken.drain(..).for_each(|batch| _ = self.used.send(batch));
        }
        Ok(())
    }
}

/// Parses batches until the end, or until nobody takes them.
fn parse(feed: &Mutex<Feed>, parsed: &Sender<Numbered>, mut parser: Parser) {
    loop {
        let (number, content) = {
            let Ok(mut feed) = feed.lock() else { return };
            if feed.ended {
                return;
            }
            let Ok(mut batch) = feed.used.recv() else { return };
            let content = fill(&mut feed.chunks, &mut batch).map(|()| batch);
            let number = feed.next;
            feed.next += 1;
            feed.ended = content.is_err();
            (number, content)
        };
        let content = content.map(|mut batch| {
            parser.parse(&mut batch);
            batch
        });
        if parsed.send(Numbered { number, content }).is_err() {
            return;
        }
    }
}

/// Reads the text of a batch.
fn fill(chunks: &mut Chunks<InputReader>, batch: &mut Batch) -> Result<(), End> {
    match chunks.fill(&mut batch.text) {
        Ok(true) => Ok(()),
        Ok(false) => Err(None),
        Err(error) => Err(Some(error.to_string())),
    }
}
