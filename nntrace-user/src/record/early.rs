//! Replay of a run whose older events were given up: what is known of the time before those that are kept.

use nntrace_common::record::Record;

use super::{
    cause::Seconds,
    decode::{Event, EventReader},
    facts::Checkpoint,
    format::{BlockHeader, Stream},
    kept::Kept,
    order::Visit,
};
use crate::model::{Model, findings::Sums, input::Input, plurals::counted, run_facts::Window};

/// Begins the windows of scheduling and of power where what is kept begins.
pub(super) fn begin(model: &mut Model, state: &Checkpoint, kept: &Kept, with_timelines: bool) {
    let begin = window(state).begin_ns;
    if state.run.scheduling {
        model.begin_scheduling(begin);
    }
    if let Some(host) = &state.host_at_begin {
        model.begin_power(&host.topology, begin, &kept.initial, with_timelines);
    }
}

/// Returns the window of what is kept.
pub(super) fn window(state: &Checkpoint) -> Window {
    let window = state.window.clone();
    match &state.kept {
        Some(kept) => {
            let begin_ns = kept.begin_ns.clamp(window.begin_ns, window.end_ns.max(window.begin_ns));
            Window { begin_ns, ..window }
        }
        None => window,
    }
}

/// Returns the sums of the events that are kept: those of the kernel are of the whole run.
pub(super) fn sums(model: &Model, window: &Window) -> Sums {
    let cpus = model.power.topology().cpus.keys().copied();
    Sums::recorded(model, cpus, window.end_ns)
}

/// Returns notes on which part of the run the recording has, and why.
pub(super) fn notes(state: &Checkpoint) -> Vec<String> {
    let mut notes = Vec::new();
    let run = &state.window;
    if state.kept.is_some() {
        let room = if state.lacks_room { "; there was no room for more" } else { "" };
        notes.push(format!(
            "the last {} of a run that had lasted {}: what came before was not kept{room}. Counts of the kernel's, as of losses, \
             diagnostics and the profiler's own time, are those of the whole run",
            Seconds(window(state).length_ns()),
            Seconds(run.length_ns())
        ));
    }
    if state.run_blocks_given_up > 0 {
        notes.push(format!(
            "there was no room for {} of the run's older changes: threads that began then may be unknown; record with a \
             larger --flight-memory",
            counted(state.run_blocks_given_up, "block")
        ));
    }
    notes.extend(
        state.cause.as_ref().map(|cause| format!("it was written because {}", cause.text(run.begin_ns))),
    );
    notes
}

/// Pass over what is left of the events before those that are kept: changes of the run, which later events need. They are
/// not counted, as most that were there are gone.
pub(super) struct EarlyPass<'a> {
    pub(super) model: &'a mut Model,
    pub(super) damage: &'a mut Vec<String>,
}

impl Visit for EarlyPass<'_> {
    fn event(&mut self, stream: Stream, event: &Event, reader: &EventReader) {
        if stream != Stream::Run {
            return;
        }
        for (hash, text) in reader.names() {
            self.model.marks.names.insert(hash, text);
        }
        // Windows begin later, states of threads and CPUs are known from later events only; limits hold until they change.
        if let Some(
            input @ (Input::Record(
                Record::Fork(_)
                | Record::Exec(_)
                | Record::Exit(_)
                | Record::Loader(_)
                | Record::TakesPart(_)
                | Record::FrequencyLimit(_)
                | Record::Cooling(_),
            )
            | Input::ThreadMarked { .. }
            | Input::AppEvent(_)),
        ) = event.input(reader.content(), false)
        {
            self.model.apply(&input);
        }
    }

    fn missing(&mut self, _stream: Stream, _block: Option<&BlockHeader>, reason: Option<String>) {
        self.damage.extend(reason);
    }
}
