//! Draining: records from the rings and from lanes to the model, in order of time.

use nntrace_common::{
    hidl_calls,
    record::{BeginRecord, Record, SpanRecord},
};

use super::Session;
use crate::{
    live::{
        clock,
        decode::Track,
        kernel::Kernel,
        kernel_comparison::Verifier,
        ring_drain::{Rings, Unordered},
        target::examiner,
    },
    model::Model,
};

/// Time of accounting after which the rings are read again, ns: probed marks, of a microsecond or more each, fill about half of
/// a ring in it.
const READ_AGAIN_NS: u64 = 2_000_000;

impl Session {
    /// Drains the rings, and acts on the records.
    pub fn drain(&mut self) {
        // First, as somebody may wait for it.
        self.leave_changed_files();
        self.take(false);
        self.offers.review();
        self.kernel.drain_log();
        self.kernel.sample_statistics();
        examiner::end_if_idle();
    }

    /// Detaches the probes on files that have been written to, or that somebody waits to write to, with a note.
    pub(super) fn leave_changed_files(&mut self) {
        for file in self.kernel.detach_changed() {
            self.notes.push(format!(
                "{} was opened for writing while it was probed, so its probes were removed: they would corrupt the new code; start \
                 again to profile the new file",
                file.display()
            ));
        }
    }

    pub(super) fn log_left_out(&mut self) {
        if let Err(error) = self.kernel.log_left_out() {
            log::warn!("how many lines of the kernel programs were left out is not known: {error}");
        }
    }

    /// Takes all records that no earlier one can precede any more, or all there are.
    pub(super) fn take(&mut self, everything: bool) {
        self.take_files();
        let until = if everything { u64::MAX } else { Rings::watermark() };
        self.express.look();
        self.note_lost_marks();
        let put = if self.express.is_used() { self.kernel.count_put_records() } else { Ok(Vec::new()) };
        self.read_rings();
        if put.is_ok_and(|put| self.rings.are_read(&put)) {
            self.express.confirm_look();
        }
        // Before the marks: a section belongs to the phase of the application that it began in, and all that began before
        // the records that were read are in the table now.
        follow_phases(&self.kernel, &mut self.model);
        let end =
            self.last.as_ref().map(|(_, end)| *end).or((self.window.end != 0).then_some(self.window.end));
        let in_window = end.unwrap_or(u64::MAX);
        let mut read_at = clock::now();
        for part in self.express.plan(in_window) {
            let Self { rings, express, model, kernel, verifier, .. } = self;
            express.account(part, everything, model, &mut |record| rings.push(record));
            rings.hand_out(until.min(part), |record| hand_over(record, kernel, model, verifier));
            // Accounting takes longer than it takes threads without lanes, or without room in them, to fill the rings.
            if part < in_window && clock::now() > read_at + READ_AGAIN_NS {
                self.read_rings();
                follow_phases(&self.kernel, &mut self.model);
                read_at = clock::now();
            }
        }
        // After the window there may still be events of power.
        let Self { rings, model, kernel, verifier, .. } = self;
        rings.hand_out(until, |record| hand_over(record, kernel, model, verifier));
        follow_phases(&self.kernel, &mut self.model);
        self.model.advance(until);
        // Names of open marks of other threads are not passed: the kernel still has them, if it ever had.
        if self.model.forget_names(|| self.express.names()) {
            self.express.read_names_again();
        }
        self.answer_names();
        let events = self.rings.take_process_events();
        self.on_process_events(events);
    }

    /// Takes the reports of opened files. They come first, as what is in them is looked up in `/proc`.
    fn take_files(&mut self) {
        let Self { kernel, files: Some(files), .. } = self else { return };
        kernel.take_opened_files(|report| files.take(report));
        files.lost(kernel.lost_opened_files().unwrap_or_default());
    }

    /// Takes all records from the rings, without handing out those that have an order.
    fn read_rings(&mut self) {
        // Read before the records, so that a loss seen here is placed after the records that it came after.
        let lost = self.kernel.read_lost().unwrap_or_default();
        let Self { rings, express, calls, model, .. } = self;
        rings.read(&lost, |aside| match aside {
            Unordered::Track(Track { origin, time, name_at: Some(name_at), payload }) => {
                model.annotated_begin(origin, time, payload, name_at);
            }
            Unordered::Track(Track { origin, time, name_at: None, payload }) => {
                model.track(origin, time, payload);
            }
            Unordered::Process(record) => model.record(record),
            Unordered::Call(call) => calls.take(call, call.end, model),
        });
        let events = rings.take_express_events();
        express.take(events, model, &mut |record| rings.push(record));
    }

    /// Notes the marks that threads with lanes have lost, by their states: between the look at the lanes and the reading of the
    /// rings. A loss before what was seen in a lane is either in the state still, or in the rings already.
    fn note_lost_marks(&mut self) {
        if self.express.is_used()
            && let Ok(counts) = self.kernel.read_event_counts()
            && let Ok(forwarding) = self.kernel.forwarding()
        {
            self.express.note_lost(counts.forwards_lost, forwarding);
        }
    }

    /// Passes the meanings of the names that the programs have asked for.
    fn answer_names(&mut self) {
        let asked = self.kernel.read_unknown_names().unwrap_or_default();
        if asked == self.unanswered {
            return;
        }
        self.unanswered = asked;
        for hash in self.kernel.read_names(&mut self.model.marks.names).unwrap_or_default() {
            let text = self.model.marks.names.text(hash);
            if hidl_calls::is_interface_call(text.as_bytes())
                && let Err(error) = self.kernel.add_meaning(hash, hidl_calls::meaning(text.as_bytes()))
            {
                self.notes.push(error.to_string());
            }
        }
    }
}

/// Hands a record to the model, with what it needs from the kernel's tables.
fn hand_over(record: &Record, kernel: &Kernel, model: &mut Model, verifier: &mut Option<Verifier>) {
    match *record {
        Record::Span(SpanRecord { name, .. }) | Record::Begin(BeginRecord { name, .. }) => {
            // A missing text costs the name only its words.
            let _ = kernel.read_name(name, &mut model.marks.names);
        }
        Record::Frequency(event) => {
            if let Some(verifier) = verifier {
                verifier.frequency_event(event.time, event.cpu, event.state);
            }
        }
        Record::Lost { .. } => {
            if let Some(verifier) = verifier {
                verifier.lost();
            }
        }
        _ => {}
    }
    model.record(record);
}

/// Takes the new changes of the application's phases from the kernel's table. They do not come as records: none is
/// lost, and a section whose record comes later began after the changes that are read here.
fn follow_phases(kernel: &Kernel, model: &mut Model) {
    // Changes that cannot be read now are read the next time.
    for event in kernel.read_app_events(model.marks.slots.last()).unwrap_or_default() {
        let _ = kernel.read_name(event.name, &mut model.marks.names);
        model.app_event(&event);
    }
}
