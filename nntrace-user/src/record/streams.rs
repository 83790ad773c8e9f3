//! The streams of a recording that is being written: which one an event belongs to.

use nntrace_common::record::{PowerRecord, Record, SchedRecord};
use rustc_hash::FxHashMap;

use super::{ancestry::Ancestry, encode::EventBlock, format::Stream};
use crate::model::{MAX_CPU, input::Input};

/// Events from which a thread has a stream of its own.
const MANY: u32 = 1_024;

/// Threads with streams of their own at most: as many files are open.
const MOST_THREADS: usize = 128;

/// Blocks that are being written, by stream.
#[derive(Default)]
pub(super) struct Streams {
    blocks: Vec<(Stream, EventBlock)>,
    /// Places of blocks without a stream.
    free: Vec<usize>,
    cpus: FxHashMap<u32, usize>,
    threads: FxHashMap<u32, Thread>,
    /// Threads that have had many events since the last look.
    candidates: Vec<u32>,
    /// Threads that have ended, with the times when they did.
    ended: Vec<(u64, u32)>,
    own: usize,
    numbers: u32,
    /// Names of threads.
    ancestry: Ancestry,
}

#[derive(Clone, Copy, Default)]
struct Thread {
    tgid: u32,
    events: u32,
    /// Place of its own block.
    own: Option<usize>,
}

/// Change of the streams between two events.
pub(super) enum Change {
    /// A thread has a stream of its own from here on, with this name.
    Named(Stream, String),
    /// The stream ends with this block.
    Ended(Stream, EventBlock),
}

const RUN: usize = 0;
const THREADS: usize = 1;

impl Streams {
    /// Creates the streams that each recording has.
    pub(super) fn new() -> Self {
        let blocks = [Stream::Run, Stream::Threads].map(|stream| (stream, EventBlock::default()));
        Self { blocks: blocks.into(), ..Self::default() }
    }

    /// Returns the stream of an input, and its block.
    #[inline]
    pub(super) fn of(&mut self, input: &Input<'_>) -> (Stream, &mut EventBlock) {
        let place = match *input {
            Input::Record(Record::Span(span)) | Input::SpanAnywhere(span) => self.thread(span.tgid, span.tid),
            Input::Record(
                Record::Idle(PowerRecord { cpu, .. })
                | Record::Frequency(PowerRecord { cpu, .. })
                | Record::Hotplug(PowerRecord { cpu, .. })
                | Record::Sched(SchedRecord { cpu, .. })
                | Record::Lost { cpu, .. },
            ) => self.cpu(*cpu),
            Input::Record(Record::Begin(begin)) => self.thread(begin.tgid, begin.tid),
            Input::Record(Record::TakesPart(thread)) => self.thread(thread.tgid, thread.tid),
            Input::ThreadMarked { tgid, tid } => self.thread(tgid, tid),
            Input::Call(call) => self.thread(call.pid, call.tid),
            Input::Track { origin, .. } | Input::AnnotatedBegin { origin, .. } => {
                self.thread(origin.pid, origin.tid)
            }
            Input::Record(Record::Exit(exit)) => {
                self.ended.push((exit.time, exit.tid));
                RUN
            }
            _ => RUN,
        };
        self.ancestry.take(input);
        let (stream, block) = &mut self.blocks[place];
        (*stream, block)
    }

    /// Returns the blocks of all streams.
    pub(super) fn all(&mut self) -> impl Iterator<Item = (Stream, &mut EventBlock)> {
        self.blocks.iter_mut().map(|(stream, block)| (*stream, block))
    }

    fn cpu(&mut self, cpu: u32) -> usize {
        if cpu > MAX_CPU {
            return RUN;
        }
        if let Some(place) = self.cpus.get(&cpu) {
            return *place;
        }
        let place = self.add(Stream::Cpu(cpu));
        self.cpus.insert(cpu, place);
        place
    }

    #[inline]
    fn thread(&mut self, tgid: u32, tid: u32) -> usize {
        let thread = self.threads.entry(tid).or_insert(Thread { tgid, ..Thread::default() });
        thread.events = thread.events.saturating_add(1);
        if let Some(place) = thread.own {
            return place;
        }
        if thread.events == MANY {
            self.candidates.push(tid);
        }
        THREADS
    }

    fn add(&mut self, stream: Stream) -> usize {
        if let Some(place) = self.free.pop() {
            self.blocks[place].0 = stream;
            return place;
        }
        self.blocks.push((stream, EventBlock::default()));
        self.blocks.len() - 1
    }

    /// Gives threads with many events streams of their own, and takes those of threads that have ended, at a time (ns) up to
    /// which everything has come.
    pub(super) fn settle(&mut self, until: u64) -> Vec<Change> {
        let mut changes = Vec::new();
        if !self.ended.is_empty() {
            let ended: Vec<u32> = self.ended.extract_if(.., |(time, _)| *time <= until).map(|(_, tid)| tid).collect();
            for thread in ended.iter().filter_map(|tid| self.threads.remove(tid)) {
                if let Some(place) = thread.own {
                    let (stream, block) = &mut self.blocks[place];
                    changes.push(Change::Ended(*stream, std::mem::take(block)));
                    self.free.push(place);
                    self.own -= 1;
                }
            }
        }
        for tid in std::mem::take(&mut self.candidates) {
            let Some(&Thread { tgid, .. }) = self.threads.get(&tid) else { continue };
            if self.own >= MOST_THREADS {
                break;
            }
            self.own += 1;
            self.numbers += 1;
            let stream = Stream::Thread(self.numbers);
            let own = Some(self.add(stream));
            self.threads.insert(tid, Thread { tgid, events: MANY, own });
            changes.push(Change::Named(stream, self.ancestry.name(tgid, tid).to_owned()));
        }
        changes
    }
}
