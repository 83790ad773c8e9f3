//! Traces of Perfetto: every section as a slice, events of CPUs, states of clusters, hand-overs. `docs/perfetto.md` lists
//! what they show.
//!
//! Messages are structures with the fields that are written, encoded by the crate `prost`: it is small, needs no compiler
//! of schemas, and reads in tests what was written. The crates with all of Perfetto's schema take minutes to compile.
//!
//! A trace is its head, which describes clocks and tracks, and the events behind it. Sections are written by thread and
//! begin; those of traces, which come by their ends, are sorted by way of a file. Of all else nothing is kept but what is
//! open. Equal runs give equal bytes.

mod by_begin;
mod clusters;
mod hand_overs;
mod packets;
mod power_events;
mod slices;
mod sorter;
#[cfg(test)]
mod tests;
mod tracks;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
    rc::Rc,
};

use bytes::Bytes;
use nntrace_common::record::{BeginRecord, Record};

use self::{
    by_begin::{Mark, SectionsByBegin},
    hand_overs::HandOvers,
    packets::{Packets, write_packet},
    power_events::PowerEvents,
    slices::Unfinished,
    sorter::{SectionSorter, Sorted},
};
use super::ThreadName;
use crate::{
    model::{
        Findings,
        causality::Origin,
        function_names::Names,
        input::{Input, Observe, Observer},
        section::{Section, SectionObserver},
        section_filter::Hidden,
        timeline::Timelines,
    },
    perfetto_schema::{
        BOOTTIME, Clock, ClockSnapshot, MONOTONIC, REALTIME, TraceAttribute, TraceAttributes, TracePacket,
        own::{POWER, PowerFacts, WINDOW_BEGIN, WINDOW_END},
    },
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

/// Writes the head of a trace. Without clocks, times are of a clock that the importer takes for its own.
///
/// # Errors
/// When it cannot be written.
pub fn write_head(
    out: &mut impl Write,
    findings: &Findings<'_>,
    clocks: Option<&Clocks>,
    threads: &[ThreadName],
) -> io::Result<()> {
    if let Some(Clocks { monotonic_ns, boottime_ns, realtime_ns }) = clocks {
        let clocks = [(REALTIME, realtime_ns), (MONOTONIC, monotonic_ns), (BOOTTIME, boottime_ns)];
        let clock =
            |(id, time): (u32, &u64)| Clock { id: Some(id), timestamp: Some(*time), ..Clock::default() };
        let snapshot = ClockSnapshot {
            clocks: clocks.map(clock).into(),
            // Times that people and queries see are those of all other results.
            primary_trace_clock: Some(MONOTONIC),
        };
        let packet = TracePacket { clock_snapshot: Some(snapshot), ..TracePacket::default() };
        write_packet(out, &packet, &mut Vec::new())?;
    }
    write_packet(out, &attributes(findings)?, &mut Vec::new())?;
    tracks::write(out, findings, &all_threads(findings, threads))
}

/// Returns the packet of the facts that no event shows, by which a replay has the same results.
fn attributes(findings: &Findings<'_>) -> io::Result<TracePacket> {
    let number = |key: &str, value: u64| TraceAttribute {
        key: Some(Bytes::copy_from_slice(key.as_bytes())),
        long_value: Some(value.cast_signed()),
        string_value: None,
    };
    let window = &findings.run.window;
    let mut attribute = vec![number(WINDOW_BEGIN, window.begin_ns), number(WINDOW_END, window.end_ns)];
    if !findings.sums.cpus.is_empty() {
        let facts =
            PowerFacts { topology: findings.topology.clone(), initial: findings.initial_state.clone() };
        attribute.push(TraceAttribute {
            key: Some(Bytes::from_static(POWER.as_bytes())),
            long_value: None,
            string_value: Some(serde_json::to_vec(&facts).map_err(io::Error::other)?.into()),
        });
    }
    let trace_attributes = Some(TraceAttributes { attribute });
    Ok(TracePacket { trace_attributes, ..TracePacket::default() })
}

/// Returns the threads that have a track: these, those of hand-overs, and those with a section that had not ended.
fn all_threads(findings: &Findings<'_>, threads: &[ThreadName]) -> Vec<ThreadName> {
    let mut all = threads.to_vec();
    let mut known: BTreeSet<(u32, u32)> = all.iter().map(|thread| (thread.pid, thread.tid)).collect();
    let hand_overs = HandOvers::of(findings);
    let unfinished = unfinished(findings, threads.iter().map(|thread| (thread.pid, thread.tid)));
    let others: BTreeSet<(u32, u32)> =
        hand_overs.threads().chain(unfinished.iter().map(|section| (section.pid, section.tid))).collect();
    let names = thread_names(findings);
    for (pid, tid) in others {
        if known.insert((pid, tid)) {
            let name = names.get(&(pid, tid)).copied().unwrap_or_default().to_owned();
            all.push(ThreadName { pid, tid, name });
        }
    }
    all
}

/// Returns the names of threads whose states are known.
fn thread_names<'a>(findings: &'a Findings<'_>) -> BTreeMap<(u32, u32), &'a str> {
    findings.run.threads.iter().map(|thread| ((thread.pid, thread.tid), &*thread.comm)).collect()
}

/// Returns the sections that had not ended, by thread and begin, as far as the processes of their threads are known.
fn unfinished(findings: &Findings<'_>, threads: impl Iterator<Item = (u32, u32)>) -> Vec<Unfinished> {
    let of_states = findings.run.threads.iter().map(|thread| (thread.tid, thread.pid));
    let of_processes = findings.run.processes.keys().map(|pid| (*pid, *pid));
    // Later ones win: those that have sections.
    let pids = of_processes.chain(of_states).chain(threads.map(|(pid, tid)| (tid, pid)));
    let pids: BTreeMap<u32, u32> = pids.collect();
    let open = findings.marks.open.iter().filter_map(|open| {
        let name = findings.marks.names.text(open.name);
        Some(Unfinished { pid: *pids.get(&open.tid)?, tid: open.tid, begin: open.begin, name, tag: open.tag })
    });
    let mut all: Vec<Unfinished> = open.collect();
    // Stable: those of one instant stay in their order, from the outermost in.
    all.sort_by_key(|section| (section.pid, section.tid, section.begin));
    all
}

/// Events of a trace that is being written.
pub struct Events<W> {
    packets: Packets<W>,
    sections: Sections,
    power: PowerEvents,
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

impl<W: Write> Events<W> {
    /// Begins the events of a recorded run, whose sections come one thread after the other, in the order of their begins;
    /// those shorter than `least_ns` are hidden, but for those that hand work over, or do such.
    pub fn of_recording(
        out: W,
        findings: &Findings<'_>,
        clocks: &Clocks,
        threads: &[ThreadName],
        least_ns: u64,
    ) -> Self {
        let unfinished = unfinished(findings, threads.iter().map(|thread| (thread.pid, thread.tid)));
        Self {
            packets: Packets::new(out, Some(MONOTONIC)),
            sections: Sections::ByBegin(SectionsByBegin::new(unfinished, HandOvers::of(findings), least_ns)),
            power: PowerEvents::new(clocks.boottime_ns.wrapping_sub(clocks.monotonic_ns).cast_signed()),
            least_ns,
        }
    }

    /// Begins the events of traces, whose sections come in the order of their ends, and are hidden as those of recordings.
    pub fn of_traces(out: W, least_ns: u64) -> Self {
        Self {
            packets: Packets::new(out, None),
            sections: Sections::ByEnd(SectionSorter::default()),
            power: PowerEvents::default(),
            least_ns,
        }
    }

    /// Takes a section of the thread with this number, where threads have numbers. A failure shows at the end.
    pub fn section(&mut self, section: &Section<'_>, thread: Option<u32>) {
        match &mut self.sections {
            Sections::ByBegin(sections) => sections.take(section, thread, &mut self.packets),
            Sections::ByEnd(sorter) => sorter.take(section),
        }
    }

    /// Takes a mark that is no section; of a recording, behind those of its thread that began before. A failure shows at the
    /// end.
    fn mark(&mut self, mark: &Mark<'_>) {
        match &mut self.sections {
            Sections::ByBegin(sections) => sections.mark(mark, &mut self.packets),
            Sections::ByEnd(sorter) => sorter.mark(mark),
        }
    }

    /// Takes an event of a CPU. A failure shows at the end.
    pub fn power(&mut self, record: &Record) {
        self.power.take(record, &mut self.packets);
    }

    /// Ends the events by what the findings have beside them.
    ///
    /// # Errors
    /// When something could not be written.
    pub fn finish(self, findings: &Findings<'_>, timelines: Option<&Timelines>) -> io::Result<Written<W>> {
        let Self { mut packets, sections, power, least_ns } = self;
        let mut threads = BTreeSet::new();
        let sections = match sections {
            Sections::ByBegin(sections) => sections,
            Sections::ByEnd(sorter) => {
                threads.clone_from(sorter.threads());
                let mut sections = SectionsByBegin::new(
                    unfinished(findings, threads.iter().copied()),
                    HandOvers::of(findings),
                    least_ns,
                );
                sorter.sorted(|sorted| match sorted {
                    Sorted::Section(section) => sections.take(section, None, &mut packets),
                    Sorted::Mark(mark) => sections.mark(mark, &mut packets),
                })?;
                sections
            }
        };
        let hidden = sections.finish(&mut packets);
        power.finish(&mut packets);
        if let Some(timelines) = timelines {
            clusters::write(timelines, &mut packets);
        }
        let names = thread_names(findings);
        let named = threads.into_iter().map(|(pid, tid)| {
            let name = names.get(&(pid, tid)).copied().unwrap_or_default().to_owned();
            ThreadName { pid, tid, name }
        });
        let threads = named.collect();
        Ok(Written { out: packets.finish()?, threads, hidden })
    }
}

/// Events of a pass through traces; none before the first pass.
pub type SharedEvents<W> = Rc<RefCell<Option<Events<W>>>>;

/// Returns an observer of a model that writes events as they come.
#[must_use]
pub fn observer<W: Write + 'static>(events: &SharedEvents<W>) -> Observer {
    let of_sections = Rc::clone(events);
    let sections = SectionObserver::new(move |section: &Section<'_>| {
        if let Some(events) = &mut *of_sections.borrow_mut() {
            events.section(section, None);
        }
    });
    Observer::new(EventObserver { sections, events: Rc::clone(events) })
}

/// Observer of sections and of events of CPUs.
struct EventObserver<W, T> {
    sections: SectionObserver<T>,
    events: SharedEvents<W>,
}

impl<W: Write, T: FnMut(&Section<'_>)> Observe for EventObserver<W, T> {
    fn input(&mut self, input: &Input<'_>, names: &Names) {
        let mut events = self.events.borrow_mut();
        match (&mut *events, input) {
            (
                Some(events),
                Input::Record(
                    record @ (Record::Idle(_)
                    | Record::Frequency(_)
                    | Record::Hotplug(_)
                    | Record::Lost { .. }),
                ),
            ) => events.power(record),
            (Some(events), Input::Track { origin, time, payload }) => {
                let payload = &String::from_utf8_lossy(payload);
                let Origin { pid, tid, depth } = *origin;
                events.mark(&Mark { pid, tid, time: *time, depth, payload });
            }
            // Callbacks are no sections, and yet their begins count.
            (Some(events), Input::Record(Record::Begin(begin))) if !begin.label.is_tagged() => {
                let Some(name) = names.get(begin.name) else { return };
                let BeginRecord { tgid: pid, tid, time, .. } = *begin;
                let payload = &format!("B|{pid}|{}", name.text);
                events.mark(&Mark { pid, tid, time, depth: u8::MAX, payload });
            }
            _ => {
                drop(events);
                self.sections.input(input, names);
            }
        }
    }
}
