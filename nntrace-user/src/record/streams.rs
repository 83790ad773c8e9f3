//! The streams of a recording that is being written: which one an event belongs to.

use nntrace_common::{
    record::{PowerRecord, Record, SchedRecord},
    rivals::RivalRecord,
};
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
    /// Threads that have ended, with the times when they did.
    ended: Vec<(u64, u32)>,
    own: usize,
    numbers: u32,
    /// Names of threads.
    ancestry: Ancestry,
}

#[derive(Clone, Copy, Default)]
struct Thread {
    events: u32,
    /// Place of its own block.
    own: Option<usize>,
}

/// Place of an input in the streams.
pub(super) struct Place {
    number: usize,
    /// Name of the stream, where the input is its first one and the stream is a thread's.
    pub(super) name: Option<String>,
}

const RUN: usize = 0;
const THREADS: usize = 1;

impl Streams {
    /// Creates the streams that each recording has.
    pub(super) fn new() -> Self {
        let blocks = [Stream::Run, Stream::Threads].map(|stream| (stream, EventBlock::default()));
        Self { blocks: blocks.into(), ..Self::default() }
    }

    /// Returns the place of an input.
    #[inline]
    pub(super) fn place(&mut self, input: &Input<'_>) -> Place {
        self.ancestry.take(input);
        let number = match *input {
            Input::Record(Record::Span(span)) | Input::SpanAnywhere(span) => {
                return self.thread(span.tgid, span.tid, span.end);
            }
            Input::Record(
                Record::Idle(PowerRecord { cpu, .. })
                | Record::Frequency(PowerRecord { cpu, .. })
                | Record::Hotplug(PowerRecord { cpu, .. })
                | Record::Sched(SchedRecord { cpu, .. })
                | Record::Rival(RivalRecord { cpu, .. })
                | Record::Lost { cpu, .. },
            ) => self.cpu(*cpu),
            Input::Record(Record::Begin(begin)) => return self.thread(begin.tgid, begin.tid, begin.time),
            Input::Call(call) => return self.thread(call.pid, call.tid, call.end),
            Input::Track { origin, time, .. } | Input::AnnotatedBegin { origin, time, .. } => {
                return self.thread(origin.pid, origin.tid, time);
            }
            Input::Record(Record::Exit(exit)) => {
                self.ended.push((exit.time, exit.tid));
                RUN
            }
            // Many, and needed only with the events before them.
            Input::Advance { .. } => THREADS,
            // Rare, and needed by whatever comes later: these are never given up.
            _ => RUN,
        };
        Place { number, name: None }
    }

    /// Returns the stream of a place, and its block.
    #[inline]
    pub(super) fn block(&mut self, place: &Place) -> (Stream, &mut EventBlock) {
        let (stream, block) = &mut self.blocks[place.number];
        (*stream, block)
    }

    /// Returns the blocks of all streams.
    pub(super) fn all(&mut self) -> impl Iterator<Item = (Stream, &mut EventBlock)> {
        self.blocks.iter_mut().map(|(stream, block)| (*stream, block))
    }

    /// Returns the name of a thread by its ancestry, once everything of its time has come.
    pub(super) fn thread_name(&mut self, tgid: u32, tid: u32) -> &str {
        self.ancestry.name(tgid, tid)
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

    /// Returns the place of an event of a thread at a time, ns. With many events it has a stream of its own.
    #[inline]
    fn thread(&mut self, tgid: u32, tid: u32, time: u64) -> Place {
        let thread = self.threads.entry(tid).or_default();
        if let Some(number) = thread.own {
            return Place { number, name: None };
        }
        thread.events = thread.events.saturating_add(1);
        if thread.events < MANY || self.own >= MOST_THREADS {
            return Place { number: THREADS, name: None };
        }
        self.own_stream(tgid, tid, time)
    }

    #[cold]
    fn own_stream(&mut self, tgid: u32, tid: u32, time: u64) -> Place {
        // Forks are handed out as soon as they are read, and so before later events of the threads that they create.
        self.ancestry.name_until(time);
        let name = self.ancestry.name(tgid, tid).to_owned();
        self.own += 1;
        self.numbers += 1;
        let number = self.add(Stream::Thread(self.numbers));
        self.threads.entry(tid).or_default().own = Some(number);
        Place { number, name: Some(name) }
    }

    fn add(&mut self, stream: Stream) -> usize {
        if let Some(place) = self.free.pop() {
            self.blocks[place].0 = stream;
            return place;
        }
        self.blocks.push((stream, EventBlock::default()));
        self.blocks.len() - 1
    }

    /// Takes the streams of threads that have ended, with their last blocks, at a time (ns) up to which everything has come.
    pub(super) fn take_ended(&mut self, until: u64) -> Vec<(Stream, EventBlock)> {
        let ended = self.ended.extract_if(.., |(time, _)| *time <= until).map(|(_, tid)| tid);
        let ended: Vec<u32> = ended.collect();
        let mut taken = Vec::new();
        for number in ended.iter().filter_map(|tid| self.threads.remove(tid)).filter_map(|thread| thread.own)
        {
            let (stream, block) = &mut self.blocks[number];
            taken.push((*stream, std::mem::take(block)));
            self.free.push(number);
            self.own -= 1;
        }
        taken
    }
}
