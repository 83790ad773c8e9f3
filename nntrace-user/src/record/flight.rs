//! The last seconds of a run, in memory: blocks by the cuts between which they were made. What is older than the time that is
//! kept, or has no room, is given up from the oldest on.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use super::{
    error::RecordError, facts::Checkpoint, folder::Folder, format::Stream, kept::Kept,
    stream_files::StreamFiles,
};

/// Bytes that a block takes in memory beside its content.
const BLOCK: u64 = 64;

/// Streams that have ended from which their names are looked through.
const MANY_ENDED: usize = 256;

/// The last seconds of a run.
pub(super) struct Flight {
    /// Time that is kept, ns.
    time: u64,
    /// Bytes that are kept at most.
    memory: u64,
    /// Blocks of all streams but that of the run, by the cuts between which they were made. The last one goes on.
    stretches: VecDeque<Stretch>,
    /// Blocks of the stream of the run.
    run: VecDeque<Block>,
    run_bytes: u64,
    /// Blocks of the stream of the run for which there was no room.
    run_blocks_given_up: u64,
    bytes: u64,
    /// Time of the last cut up to which there was no room for what should have been kept, ns.
    without_room: u64,
    names: BTreeMap<Stream, String>,
    ended: BTreeSet<Stream>,
}

/// Blocks between two cuts.
struct Stretch {
    /// Begin; `None` if that is the begin of the run.
    begin: Option<Kept>,
    blocks: Vec<Block>,
    bytes: u64,
    /// Whether all its blocks are there.
    is_whole: bool,
}

/// Block as it is stored. A recording that is being written shares it.
#[derive(Clone)]
struct Block {
    stream: Stream,
    stored: Arc<[u8]>,
}

impl Block {
    fn bytes(&self) -> u64 {
        self.stored.len() as u64 + BLOCK
    }
}

impl Stretch {
    fn new(begin: Option<Kept>) -> Self {
        Self { begin, blocks: Vec::new(), bytes: 0, is_whole: true }
    }

    /// Returns the begin, ns; that of the run is given.
    fn begin_ns(&self, run: u64) -> u64 {
        self.begin.as_ref().map_or(run, |begin| begin.begin_ns)
    }
}

impl Flight {
    /// Keeps so much time (ns) in this many bytes at most.
    pub(super) fn new(time: u64, memory: u64) -> Self {
        Self {
            time,
            memory,
            stretches: VecDeque::from([Stretch::new(None)]),
            run: VecDeque::new(),
            run_bytes: 0,
            run_blocks_given_up: 0,
            bytes: 0,
            without_room: 0,
            names: BTreeMap::new(),
            ended: BTreeSet::new(),
        }
    }

    /// Returns the bytes that are kept.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes + self.run_bytes
    }

    /// Names the stream of a thread.
    pub(super) fn name(&mut self, stream: Stream, name: String) {
        self.names.insert(stream, name);
    }

    /// Takes the end of a stream. Its name is needed as long as it has blocks here.
    pub(super) fn close(&mut self, stream: Stream) {
        self.ended.insert(stream);
        if self.ended.len() > MANY_ENDED {
            let blocks = self.stretches.iter().flat_map(|stretch| &stretch.blocks);
            let present: BTreeSet<Stream> = blocks.map(|block| block.stream).collect();
            let Self { names, ended, .. } = self;
            names.retain(|stream, _| !ended.contains(stream) || present.contains(stream));
            ended.retain(|stream| present.contains(stream));
        }
    }

    /// Takes a block.
    pub(super) fn block(&mut self, stream: Stream, stored: Vec<u8>) {
        let block = Block { stream, stored: stored.into() };
        if stream == Stream::Run {
            self.run_bytes += block.bytes();
            self.run.push_back(block);
            // The others are what matters.
            while self.run_bytes > self.memory / 8 {
                let Some(oldest) = self.run.pop_front() else { break };
                self.run_bytes -= oldest.bytes();
                self.run_blocks_given_up += 1;
            }
        } else if let Some(newest) = self.stretches.back_mut().filter(|newest| newest.is_whole) {
            newest.bytes += block.bytes();
            self.bytes += block.bytes();
            newest.blocks.push(block);
        }
        while self.bytes() > self.memory && self.bytes > 0 {
            self.give_up_one();
        }
    }

    /// Gives up the oldest stretch for want of room. Of the one that goes on the rest is given up as well.
    fn give_up_one(&mut self) {
        if self.stretches.len() > 1 {
            self.drop_oldest();
            self.without_room = self.stretches.front().map_or(0, |oldest| oldest.begin_ns(0));
        } else if let Some(newest) = self.stretches.back_mut() {
            self.bytes -= newest.bytes;
            *newest = Stretch { is_whole: false, ..Stretch::new(newest.begin.take()) };
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.stretches.pop_front() {
            self.bytes -= oldest.bytes;
        }
    }

    /// Takes a cut: all blocks so far are of events before it.
    pub(super) fn cut(&mut self, begin: Kept) {
        let newest = begin.begin_ns;
        if self.stretches.back().is_some_and(|stretch| !stretch.is_whole) {
            self.stretches.clear();
            self.without_room = newest;
        }
        self.stretches.push_back(Stretch::new(Some(begin)));
        let from = newest.saturating_sub(self.time);
        // What begins before that is needed, unless the next one does, too.
        while self.stretches.get(1).is_some_and(|second| second.begin_ns(0) <= from) {
            self.drop_oldest();
        }
    }

    /// Returns everything that a recording of the last seconds has, when everything up to a time (ns) was taken.
    pub(super) fn recording(&self, until: u64, mut state: Checkpoint) -> FlightRecording {
        let run = state.window.begin_ns;
        let from = until.saturating_sub(self.time);
        let is_older = |stretch: &Stretch| stretch.begin_ns(run) < from || !stretch.is_whole;
        let older = self.stretches.iter().take_while(|stretch| is_older(stretch)).count();
        // The newest is there in any case, however long it is.
        let older = older.min(self.stretches.len() - 1);
        state.kept = self.stretches.get(older).and_then(|oldest| oldest.begin.clone());
        state.lacks_room = self.without_room > from || self.stretches.iter().any(|stretch| !stretch.is_whole);
        state.run_blocks_given_up = self.run_blocks_given_up;
        if state.kept.is_some() {
            // Of what comes later not everything was taken.
            state.window.end_ns = until;
        }
        let blocks = self.stretches.iter().skip(older).flat_map(|stretch| &stretch.blocks);
        let mut blocks: Vec<Block> = self.run.iter().chain(blocks).cloned().collect();
        // Stable: those of a stream stay in their order.
        blocks.sort_by_key(|block| block.stream);
        FlightRecording { blocks, names: self.names.clone(), state }
    }
}

/// Recording of the last seconds, to be written.
pub(super) struct FlightRecording {
    blocks: Vec<Block>,
    names: BTreeMap<Stream, String>,
    state: Checkpoint,
}

impl FlightRecording {
    /// Writes it to a folder, with the number of the recording and that of the last event; returns its bytes.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write(self, folder: Folder, recording: u64, number: u64) -> Result<u64, RecordError> {
        let mut files = StreamFiles::new(folder, recording, None);
        for of_stream in self.blocks.chunk_by(|one, other| one.stream == other.stream) {
            let Some(stream) = of_stream.first().map(|block| block.stream) else { continue };
            if let Some(name) = self.names.get(&stream) {
                files.name(stream, name.clone());
            }
            for block in of_stream {
                files.block(stream, &block.stored)?;
            }
            // As few as possible are open; that of the run gets the state.
            if stream != Stream::Run {
                files.close(stream);
            }
        }
        files.state(number, self.state)?;
        Ok(files.size())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: Stream = Stream::Cpu(0);

    fn cut(flight: &mut Flight, time: u64) {
        flight.cut(Kept { begin_ns: time, first_event: time, ..Kept::default() });
    }

    /// Returns the begins of what is kept.
    fn begins(flight: &Flight) -> Vec<u64> {
        flight.stretches.iter().map(|stretch| stretch.begin_ns(0)).collect()
    }

    #[test]
    fn what_is_older_than_the_time_is_given_up() {
        let mut flight = Flight::new(30, u64::MAX);
        for time in [10, 20, 30] {
            flight.block(CPU, vec![0; 36]);
            cut(&mut flight, time);
        }
        assert_eq!((begins(&flight), flight.bytes()), (vec![0, 10, 20, 30], 300));
        flight.block(CPU, vec![0; 36]);
        cut(&mut flight, 45);
        assert_eq!((begins(&flight), flight.bytes()), (vec![10, 20, 30, 45], 300));
        cut(&mut flight, 50);
        assert_eq!(begins(&flight), [20, 30, 45, 50]);
        assert_eq!(flight.without_room, 0);
    }

    #[test]
    fn the_oldest_goes_when_there_is_no_room() {
        let mut flight = Flight::new(u64::MAX, 250);
        for time in [10, 20, 30] {
            flight.block(CPU, vec![0; 36]);
            cut(&mut flight, time);
        }
        assert_eq!((begins(&flight), flight.bytes(), flight.without_room), (vec![10, 20, 30], 200, 10));
        // More than there is room for at once.
        flight.block(CPU, vec![0; 236]);
        assert_eq!((begins(&flight), flight.bytes()), (vec![30], 0));
        flight.block(CPU, vec![0; 36]);
        assert_eq!(flight.bytes(), 0, "it would not be whole");
        cut(&mut flight, 40);
        flight.block(CPU, vec![0; 36]);
        assert_eq!((begins(&flight), flight.bytes(), flight.without_room), (vec![40], 100, 40));
    }

    #[test]
    fn changes_of_the_run_stay_as_long_as_there_is_room() {
        let mut flight = Flight::new(10, 8 * 300);
        for time in 1..=3 {
            flight.block(Stream::Run, vec![0; 36]);
            cut(&mut flight, time * 100);
        }
        assert_eq!((flight.run.len(), flight.run_blocks_given_up), (3, 0));
        flight.block(Stream::Run, vec![0; 36]);
        assert_eq!((flight.run.len(), flight.run_blocks_given_up, flight.bytes()), (3, 1, 300));
    }

    #[test]
    fn names_of_threads_go_with_their_last_blocks() {
        let mut flight = Flight::new(100, u64::MAX);
        for thread in 0..1_000 {
            let stream = Stream::Thread(thread);
            flight.name(stream, format!("main_{thread}"));
            flight.block(stream, vec![0]);
            flight.close(stream);
            cut(&mut flight, u64::from(thread) * 10);
        }
        assert!(flight.names.len() < 2 * MANY_ENDED, "{} names", flight.names.len());
        assert!(flight.names.contains_key(&Stream::Thread(999)));
    }
}
