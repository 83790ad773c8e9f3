//! Statistics of the sections of a recording, in one pass.

use std::{collections::BTreeMap, path::Path};

use nntrace_common::record::{ProcessRecord, Record, SpanRecord};
use rustc_hash::FxHashMap;

use super::{
    contents::Contents,
    decode::{Event, EventReader, Unreadable},
    error::ReadError,
    format::Stream,
    read::{Block, Files},
    sections::{late_names, section_name},
    threads::{Threads, ThreadsSeen},
};
use crate::model::{
    run_facts::Loss,
    section_statistics::{Place, SectionStatistics, SectionTimes},
};

/// Statistics of a recording.
pub struct RecordedStatistics {
    /// Rows.
    pub statistics: SectionStatistics,
    /// Threads that have sections.
    pub threads: Threads,
    /// Names of processes.
    pub processes: BTreeMap<u32, String>,
    /// Losses of the run.
    pub loss: Loss,
    /// Events of the recording that are missing.
    pub missing: u64,
    /// Texts on what is damaged.
    pub damage: Vec<String>,
}

/// Adds the sections of a recording, as far as its last state covers it, to statistics.
///
/// # Errors
/// When the recording cannot be read.
pub fn statistics(folder: &Path, statistics: SectionStatistics) -> Result<RecordedStatistics, ReadError> {
    let files = Files::open(folder)?;
    let (until, state, mut damage) = files.state()?;
    let blocks: Vec<Block> =
        files.blocks.iter().filter(|block| block.header.first <= until).copied().collect();
    let mut contents = Contents::read(&files, blocks.clone());
    let mut pass = Pass {
        first: state.first_event(),
        until,
        late_names: late_names(&state),
        statistics,
        threads: ThreadsSeen::default(),
        places: Vec::new(),
        events: 0,
    };
    // Sums do not depend on the order of streams: blocks are read one after the other.
    for block in &blocks {
        let stream = files.stream(block);
        let read = contents.next().and_then(|content| {
            let mut reader = EventReader::new(content, block.header.first);
            pass.block(stream, &mut reader).map_err(|unreadable| format!("stream {stream}: {unreadable}"))
        });
        damage.extend(read.err());
    }
    let missing = state.count_to(until).saturating_sub(pass.events);
    Ok(RecordedStatistics {
        statistics: pass.statistics,
        threads: pass.threads.named().0,
        processes: state.processes.clone(),
        loss: state.loss.clone(),
        missing,
        damage,
    })
}

/// Pass over the events of one block after the other.
struct Pass {
    /// First event from which on every one should be there.
    first: u64,
    until: u64,
    late_names: FxHashMap<u64, String>,
    statistics: SectionStatistics,
    threads: ThreadsSeen,
    /// Rows of the sites of the block.
    places: Vec<Place>,
    events: u64,
}

impl Pass {
    /// Counts an event, if it should be there.
    #[inline]
    fn count(&mut self, number: u64) {
        self.events += u64::from(number >= self.first);
    }

    fn block(&mut self, stream: Stream, reader: &mut EventReader) -> Result<(), Unreadable> {
        self.places.clear();
        loop {
            // Most events are sections.
            while let Some((site, times)) = reader.next_times() {
                if reader.number() > self.until {
                    return Ok(());
                }
                self.count(reader.number());
                self.section(stream, site, times, reader);
            }
            let Some((number, event)) = reader.next()? else { return Ok(()) };
            if number > self.until {
                return Ok(());
            }
            self.count(number);
            match &event {
                // What stands behind definitions.
                Event::Record(Record::Span(span)) | Event::SpanAnywhere(span) => {
                    let SpanRecord { begin, end, own, exclusive, .. } = *span;
                    self.section(stream, reader.site(), SectionTimes { begin, end, own, exclusive }, reader);
                }
                Event::Record(Record::TakesPart(ProcessRecord { tgid, tid, .. }))
                | Event::ThreadMarked { tgid, tid } => {
                    self.statistics.mark_thread(*tgid, *tid);
                }
                event => self.threads.other(stream, number, event),
            }
        }
    }

    #[inline]
    fn section(&mut self, stream: Stream, site: usize, times: SectionTimes, reader: &EventReader) {
        if site >= self.places.len() {
            self.places.resize(site + 1, Place::default());
        }
        let Self { statistics, threads, places, late_names, .. } = self;
        let place = &mut places[site];
        let is_new = place.is_new();
        statistics.add(place, times, || {
            let span = reader.section_at(site, times)?;
            if is_new {
                // A site is of one thread.
                threads.section(stream, reader.number(), &span);
            }
            Some((span, section_name(&span, reader, late_names)))
        });
    }
}

#[cfg(test)]
mod tests;
