//! Statistics of the sections of a recording, in one pass.

use std::{collections::BTreeMap, path::Path};

use nntrace_common::record::{ProcessRecord, Record};
use rustc_hash::FxHashMap;

use super::{
    blocks::{VisitBlocks, visit_blocks},
    decode::{Event, EventReader},
    error::ReadError,
    format::Stream,
    read::Files,
    sections::{late_names, section_name},
    threads::{ThreadUse, Threads, ThreadsSeen},
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
    /// Events of the recording, without those that are missing.
    pub events: u64,
    /// Whether it has context switches.
    pub has_switches: bool,
    /// Events of the recording that are missing.
    pub missing: u64,
    /// Texts on what is damaged.
    pub damage: Vec<String>,
}

/// Adds the sections of a recording to statistics: all events of one that was not ended, too, which its last state need not
/// cover.
///
/// # Errors
/// When the recording cannot be read.
pub fn statistics(folder: &Path, statistics: SectionStatistics) -> Result<RecordedStatistics, ReadError> {
    let files = Files::open(folder)?;
    let (covered, state, mut damage) = files.state()?;
    let until = files.last_event_with(&state, covered);
    let mut pass = Pass {
        first: state.first_event(),
        late_names: late_names(&state),
        statistics,
        threads: ThreadsSeen::default(),
        places: Vec::new(),
        events: 0,
    };
    damage.extend(visit_blocks(&files, until, &mut pass));
    let missing = state.count_to(until).saturating_sub(pass.events);
    Ok(RecordedStatistics {
        statistics: pass.statistics,
        threads: pass.threads.named().0,
        processes: state.processes.clone(),
        loss: state.loss.clone(),
        events: pass.events,
        has_switches: state.run.scheduling,
        missing,
        damage,
    })
}

/// Pass over the events of one block after the other.
struct Pass {
    /// First event from which on every one should be there.
    first: u64,
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
}

impl VisitBlocks for Pass {
    #[inline]
    fn section(&mut self, stream: Stream, site: usize, times: SectionTimes, reader: &EventReader) {
        self.count(reader.number());
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
                threads.sections(&ThreadUse::new(stream, reader.number(), &span));
            }
            Some((span, section_name(&span, reader, late_names)))
        });
    }

    fn other(&mut self, stream: Stream, event: &Event, reader: &EventReader) {
        self.count(reader.number());
        match event {
            Event::Record(Record::TakesPart(ProcessRecord { tgid, tid, .. }))
            | Event::ThreadMarked { tgid, tid } => self.statistics.mark_thread(*tgid, *tid),
            event => self.threads.other(stream, reader.number(), event),
        }
    }

    fn end(&mut self, _stream: Stream, _reader: &EventReader) {
        self.places.clear();
    }
}

#[cfg(test)]
mod tests;
