//! The recorder's side of the model: inputs to blocks.

use std::{cell::RefCell, collections::BTreeSet, rc::Rc};

use nntrace_common::record::Record;

use super::{
    cuts::Cuts,
    disk::{Disk, FlightJob},
    encode::{EventBlock, Unnamed},
    error::RecordError,
    facts::{Checkpoint, LateName, RunDescription},
    file_identity::ProbedFiles,
    format::{BlockHeader, Content, Stream},
    initial_host::InitialHost,
    streams::Streams,
    trigger::Watch,
};
use crate::model::{
    Findings,
    function_names::Names,
    input::{Input, Observe, Observer},
};

/// Bytes of a block's content from which it is written.
const FULL: usize = 64 << 10;

/// Inputs to blocks.
pub(super) struct Writer {
    /// `None` when the recording has ended.
    pub(super) disk: Option<Disk>,
    streams: Streams,
    /// Number of the last event.
    pub(super) number: u64,
    /// Time up to which everything was taken, ns; the largest number at the end of a run.
    until: u64,
    unnamed: Unnamed,
    host_at_begin: Option<InitialHost>,
    probed: ProbedFiles,
    /// Cuts, where older events may be given up.
    cuts: Option<Cuts>,
    /// Watch over the sections, where some of them have something written.
    pub(super) watch: Option<Watch>,
}

impl Writer {
    /// Creates the writer to a disk.
    pub(super) fn new(disk: Disk, cuts: Option<Cuts>, watch: Option<Watch>) -> Self {
        Self {
            disk: Some(disk),
            streams: Streams::new(),
            number: 0,
            until: 0,
            unnamed: Unnamed::default(),
            host_at_begin: None,
            probed: ProbedFiles::default(),
            cuts,
            watch,
        }
    }

    #[inline]
    fn input(&mut self, input: &Input<'_>, names: &Names) {
        let Self { disk: Some(disk), streams, number, unnamed, cuts, watch, .. } = self else { return };
        *number += 1;
        let place = streams.place(input);
        let (stream, block) = streams.block(&place);
        if let Some(name) = place.name {
            disk.name(stream, name);
        }
        block.push(*number, input, names, unnamed);
        if block.bytes.len() >= FULL {
            flush(disk, stream, block, cuts.as_mut());
        }
        if let Some(cuts) = cuts {
            cuts.input(input);
        }
        match *input {
            Input::Record(Record::Span(span)) | Input::SpanAnywhere(span) => {
                if let Some(watch) = watch {
                    watch.section(span, names);
                }
            }
            Input::Advance { until } => self.advance(until),
            Input::PowerBegins { topology, initial, .. } => {
                let host = InitialHost { topology: topology.clone(), initial: initial.clone() };
                self.host_at_begin = Some(host);
            }
            _ => {}
        }
    }

    fn advance(&mut self, until: u64) {
        let Self { disk: Some(disk), streams, number, cuts, .. } = self else { return };
        for (stream, mut block) in streams.take_ended(until) {
            flush(disk, stream, &mut block, cuts.as_mut());
            disk.close(stream);
        }
        if cuts.as_ref().is_some_and(|cuts| cuts.is_due(until)) {
            for (stream, block) in streams.all() {
                flush(disk, stream, block, cuts.as_mut());
            }
            if let Some(cuts) = cuts {
                disk.cut(cuts.cut(until, *number));
            }
        }
        self.until = until;
    }

    /// Returns the state that findings show.
    fn state(&mut self, findings: &Findings<'_>, run: &RunDescription, is_last: bool) -> Checkpoint {
        let names = &findings.marks.names;
        // Of what has not ended, no event need have the name.
        let open = findings.marks.open.iter().map(|open| open.name);
        let late: BTreeSet<u64> = self.unnamed.iter().copied().chain(open).collect();
        let late = late.into_iter();
        let late = late.filter_map(|hash| Some(LateName { hash, text: names.get(hash)?.text.clone() }));
        let late: Vec<LateName> = late.collect();
        let probed = self.probed.of(&findings.run.source);
        Checkpoint::new(findings, run.clone(), self.host_at_begin.clone(), probed, late, is_last)
    }

    /// Returns the name of a thread by its ancestry, once everything of its time has come.
    pub(super) fn thread_name(&mut self, tgid: u32, tid: u32) -> &str {
        self.streams.thread_name(tgid, tid)
    }

    /// Has all events so far written.
    fn flush(&mut self) {
        let Self { disk: Some(disk), streams, cuts, .. } = self else { return };
        for (stream, block) in streams.all() {
            flush(disk, stream, block, cuts.as_mut());
        }
    }

    /// Has all events so far written, and the state after them, with a note if there is one.
    ///
    /// # Errors
    /// When something could not be written.
    pub(super) fn checkpoint(
        &mut self,
        findings: &Findings<'_>,
        run: &RunDescription,
        is_last: bool,
        note: Option<String>,
    ) -> Result<(), RecordError> {
        self.flush();
        let mut state = self.state(findings, run, is_last);
        state.notes.extend(note);
        if let Some(disk) = &self.disk {
            disk.state(self.number, state);
        }
        self.check()
    }

    /// Has the last seconds written, by a job that is made of the state, the number of the last event, and the time up to
    /// which everything was taken (ns).
    ///
    /// # Errors
    /// When nothing can be written any more.
    pub(super) fn flight(
        &mut self,
        findings: &Findings<'_>,
        run: &RunDescription,
        job: impl FnOnce(Checkpoint, u64, u64) -> FlightJob,
    ) -> Result<(), RecordError> {
        self.flush();
        let state = self.state(findings, run, true);
        // At the end of a run all there is was taken.
        let until = self.until.min(state.window.end_ns);
        if let Some(disk) = &self.disk {
            disk.flight(job(state, self.number, until));
        }
        self.check()
    }

    /// Checks that everything so far could be written.
    ///
    /// # Errors
    /// When it could not.
    pub(super) fn check(&self) -> Result<(), RecordError> {
        let error = self.disk.as_ref().and_then(Disk::error);
        error.map_or(Ok(()), |error| Err(RecordError::Failed(error)))
    }
}

/// Has a block written, if it has any event, and empties it. The thread of the disk fills in sizes and checksum.
fn flush(disk: &Disk, stream: Stream, block: &mut EventBlock, cuts: Option<&mut Cuts>) {
    if block.events == 0 {
        return;
    }
    let (first_time, last_time) = block.times.unwrap_or((u64::MAX, 0));
    let header = BlockHeader {
        content: Content::Events,
        is_compressed: false,
        stored: 0,
        plain: 0,
        events: block.events,
        first: block.first,
        last: block.last,
        first_time,
        last_time,
        checksum: 0,
    };
    let content = block.take(disk.buffer());
    if let Some(cuts) = cuts {
        cuts.block(content.len() as u64, last_time);
    }
    disk.write(stream, header, content);
}

/// Observer of a model that records what it takes.
pub(super) fn observer(writer: &Rc<RefCell<Writer>>) -> Observer {
    Observer::new(Recording(Rc::clone(writer)))
}

struct Recording(Rc<RefCell<Writer>>);

impl Observe for Recording {
    fn input(&mut self, input: &Input<'_>, names: &Names) {
        self.0.borrow_mut().input(input, names);
    }
}
