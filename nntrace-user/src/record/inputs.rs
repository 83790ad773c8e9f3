//! Everything that the model of a recorded run took, one by one, and what is known of the run beside it.

use std::{collections::BTreeMap, path::Path};

use nntrace_common::{record::Record, stack::PathStep};
use rustc_hash::FxHashMap;

use super::{
    decode::{Event, EventReader},
    error::ReadError,
    format::{BlockHeader, Stream},
    order::{Ordered, Visit},
    read::Files,
};
use crate::model::{input::Input, marks::OpenSection};

/// Facts of a recorded run beside the inputs of its model.
pub(crate) struct RecordedFacts {
    /// Names of sections, by their hashes.
    pub(crate) names: FxHashMap<u64, String>,
    /// Innermost steps of paths.
    pub(crate) paths: FxHashMap<u64, PathStep>,
    /// Sections that were open at the end.
    pub(crate) open: Vec<OpenSection>,
    /// Names of processes.
    pub(crate) processes: BTreeMap<u32, String>,
    /// Names of threads, by process and thread.
    pub(crate) threads: BTreeMap<(u32, u32), String>,
    /// Texts on what is damaged.
    pub(crate) damage: Vec<String>,
}

/// Hands out the inputs that the last state of a recording covers, in their order, until one is refused; returns the facts
/// of the run.
///
/// # Errors
/// When the recording cannot be read.
pub(crate) fn inputs(
    folder: &Path,
    take: impl FnMut(&Input<'_>) -> bool,
) -> Result<RecordedFacts, ReadError> {
    let files = Files::open(folder)?;
    let (until, state, damage) = files.state()?;
    let late = state.late_names.iter().map(|name| (name.hash, name.text.clone()));
    let mut pass = Pass { names: late.collect(), damage, take, is_refused: false };
    Ordered::new(&files, state.first_event(), until).visit(until, &mut pass);
    let threads = state.threads.iter().map(|thread| ((thread.pid, thread.tid), thread.comm.clone()));
    Ok(RecordedFacts {
        names: pass.names,
        paths: state.path_steps().collect(),
        open: state.open_sections().collect(),
        processes: state.processes.clone(),
        threads: threads.collect(),
        damage: pass.damage,
    })
}

/// Hands out the events of idle states, frequencies, their limits and hotplug, and their losses, that the last state of a recording
/// covers, in their order.
/// Damage is among the notes of a replay.
///
/// # Errors
/// When the recording cannot be read.
pub fn power_events(folder: &Path, mut take: impl FnMut(&Record)) -> Result<(), ReadError> {
    inputs(folder, |input| {
        if let Input::Record(
            record @ (Record::Idle(_)
            | Record::Frequency(_)
            | Record::Hotplug(_)
            | Record::FrequencyLimit(_)
            | Record::Cooling(_)
            | Record::Lost { .. }),
        ) = input
        {
            take(record);
        }
        true
    })
    .map(drop)
}

/// Pass over the events.
struct Pass<T> {
    names: FxHashMap<u64, String>,
    damage: Vec<String>,
    take: T,
    is_refused: bool,
}

impl<T: FnMut(&Input<'_>) -> bool> Visit for Pass<T> {
    fn event(&mut self, _stream: Stream, event: &Event, reader: &EventReader) {
        if self.is_refused {
            return;
        }
        for (hash, text) in reader.names() {
            self.names.entry(hash).or_insert_with(|| String::from_utf8_lossy(text).into_owned());
        }
        if let Some(input) = event.input(reader.content(), false) {
            self.is_refused = !(self.take)(&input);
        }
    }

    fn missing(&mut self, _stream: Stream, _block: Option<&BlockHeader>, reason: Option<String>) {
        self.damage.extend(reason);
    }
}
