//! Swimlanes: every section as a slice, setup bars, hand-overs as flows, counters, and the order of them all; in
//! no format. What writes a format is an encoder of these events.
//!
//! Sections are written by thread and begin; those of traces, which come by their ends, are sorted by way of a file. Of all
//! else nothing is kept but what is open. Equal runs give equal events.

mod by_begin;
mod counters;
mod encoder;
mod hand_overs;
pub(crate) mod layout;
mod slices;
mod sorter;
#[cfg(test)]
mod tests;

use std::{
    cell::RefCell,
    collections::BTreeSet,
    io::{self, Write},
    rc::Rc,
};

use nntrace_common::record::Record;
use rustc_hash::FxHashMap;

pub(crate) use self::counters::Group;
use self::{
    by_begin::SectionsByBegin,
    counters::Counter,
    hand_overs::HandOvers,
    sorter::{SectionSorter, Sorted},
};
pub use self::{
    counters::{CounterValue, Counters},
    encoder::{Encode, EventOfDevice, Flow, Format, Label, ThreadTrack, Value},
};
use super::ThreadName;
use crate::model::{
    Findings,
    function_names::Names,
    input::{Input, Observe, Observer},
    section::{Mark, Section, SectionObserver},
    section_filter::Hidden,
};

/// Clocks of a recorded run, read at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// `CLOCK_MONOTONIC`, the clock of all times, ns.
    pub monotonic_ns: u64,
    /// `CLOCK_BOOTTIME`, ns.
    pub boottime_ns: u64,
    /// `CLOCK_REALTIME`, ns since 1970.
    pub realtime_ns: u64,
}

/// Events of a swimlane that are being written in a format.
pub struct Events<F: Format, W: Write> {
    encoder: F::Encoder<W>,
    sections: Sections,
    /// Duration below which sections are hidden, ns.
    least_ns: u64,
}

/// Events that are written.
pub struct Written<W> {
    /// Where they were written.
    pub out: W,
    /// Threads of sections that came by their ends, in the order of their ids.
    pub threads: Vec<ThreadName>,
    /// Sections that were hidden.
    pub hidden: Hidden,
}

/// Sections by the order in which they come.
enum Sections {
    ByBegin(SectionsByBegin),
    ByEnd(SectionSorter),
}

impl<F: Format, W: Write> Events<F, W> {
    /// Begins the events of a recorded run, whose sections come one thread after the other, in the order of their begins;
    /// those shorter than `least_ns` are hidden, but for those that hand work over, or do such.
    pub fn of_recording(
        out: W,
        findings: &Findings<'_>,
        clocks: &Clocks,
        threads: &[ThreadName],
        least_ns: u64,
    ) -> Self {
        let unfinished = findings.unfinished_sections(threads.iter().map(|thread| (thread.pid, thread.tid)));
        Self {
            encoder: F::Encoder::new(out, Some(clocks)),
            sections: Sections::ByBegin(SectionsByBegin::new(unfinished, HandOvers::of(findings), least_ns)),
            least_ns,
        }
    }

    /// Begins the events of a run whose sections come in the order of their ends, and are hidden as those of recordings. Without
    /// clocks, times are of a clock that is not known.
    pub fn by_end(out: W, clocks: Option<&Clocks>, least_ns: u64) -> Self {
        Self {
            encoder: F::Encoder::new(out, clocks),
            sections: Sections::ByEnd(SectionSorter::default()),
            least_ns,
        }
    }

    /// Takes a section of the thread with this number, where threads have numbers. A failure shows at the end.
    pub fn section(&mut self, section: &Section<'_>, thread: Option<u32>) {
        match &mut self.sections {
            Sections::ByBegin(sections) => sections.take(section, thread, &mut self.encoder),
            Sections::ByEnd(sorter) => sorter.take(section),
        }
    }

    /// Takes a mark that is no section, of the thread with this number, where threads have numbers; of a recording, after those of
    /// its thread that began before. A failure shows at the end.
    pub fn mark(&mut self, mark: &Mark<'_>, thread: Option<u32>) {
        match &mut self.sections {
            Sections::ByBegin(sections) => sections.mark(mark, thread, &mut self.encoder),
            Sections::ByEnd(sorter) => sorter.mark(mark),
        }
    }

    /// Takes an event of a CPU; others are none of its business. Those before the window belong to it, as they set the state that
    /// it begins with. A failure shows at the end.
    pub fn power(&mut self, record: &Record) {
        self.encoder.power(record);
    }

    /// Ends the events by what the findings have beside them.
    ///
    /// # Errors
    /// When something could not be written.
    pub fn finish(self, findings: &Findings<'_>, counters: &Counters<'_>) -> io::Result<Written<W>> {
        let Self { mut encoder, sections, least_ns, .. } = self;
        let mut threads = BTreeSet::new();
        let sections = match sections {
            Sections::ByBegin(sections) => sections,
            Sections::ByEnd(sorter) => {
                threads.clone_from(sorter.threads());
                let mut sections = SectionsByBegin::new(
                    findings.unfinished_sections(threads.iter().copied()),
                    HandOvers::of(findings),
                    least_ns,
                );
                sorter.sorted(|sorted| match sorted {
                    Sorted::Section(section) => sections.take(section, None, &mut encoder),
                    Sorted::Mark(mark) => sections.mark(mark, None, &mut encoder),
                })?;
                sections
            }
        };
        let hidden = sections.finish(&mut encoder);
        write_counters(counters, &mut encoder);
        let threads = layout::named(findings, threads.into_iter()).collect();
        Ok(Written { out: encoder.finish()?, threads, hidden })
    }
}

/// Hands all samples of counters to an encoder.
fn write_counters<W: Write>(counters: &Counters<'_>, encoder: &mut impl Encode<W>) {
    let names: FxHashMap<Counter, String> =
        counters.all().into_iter().map(|counter| (counter, counters.name(counter))).collect();
    counters.visit(&mut |counter, time, value| {
        if let Some(name) = names.get(&counter) {
            encoder.counter(time, name, value);
        }
    });
}

/// Events of a pass through traces; none before the first pass.
pub type SharedEvents<F, W> = Rc<RefCell<Option<Events<F, W>>>>;

/// Returns an observer of a model that writes events as they come.
#[must_use]
pub fn observer<F: Format + 'static, W: Write + 'static>(events: &SharedEvents<F, W>) -> Observer {
    let of_sections = Rc::clone(events);
    let sections = SectionObserver::new(move |section: &Section<'_>| {
        if let Some(events) = &mut *of_sections.borrow_mut() {
            events.section(section, None);
        }
    });
    Observer::new(EventObserver { sections, events: Rc::clone(events) })
}

/// Observer of sections and of events of CPUs.
struct EventObserver<F: Format, W: Write, T> {
    sections: SectionObserver<T>,
    events: SharedEvents<F, W>,
}

impl<F: Format, W: Write, T: FnMut(&Section<'_>)> Observe for EventObserver<F, W, T> {
    fn input(&mut self, input: &Input<'_>, names: &Names) {
        let text = |hash| names.get(hash).map(|name| name.text.as_str());
        if let Some(mark) = Mark::of(input, text) {
            if let Some(events) = &mut *self.events.borrow_mut() {
                events.mark(&mark, None);
            }
            return;
        }
        // It borrows the events itself.
        self.sections.input(input, names);
        let mut events = self.events.borrow_mut();
        let Some(events) = &mut *events else { return };
        match input {
            Input::Record(record) => events.power(record),
            &Input::Device { event, time, cpu, submitter, .. } => {
                events.encoder.device(&EventOfDevice { event, time, cpu, tid: submitter.tid });
            }
            _ => {}
        }
    }
}
