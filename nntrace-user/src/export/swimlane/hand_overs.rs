//! Hand-overs of work: setup bars before the sections that do it, and flows from where it was handed over to where it was taken.
//!
//! A flow begins in the section of an interface call, or at an instant where the work was sent, and ends at the setup bar, or at
//! the section that does the work where there is none, or at an instant where it was taken. Work that was taken before it was
//! given has a flow of its own kind, between instants.

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
    io::Write,
};

use nntrace_common::{attributes::Handle, stamp::Stamp};

use super::encoder::{Encode, Flow, Label, ThreadTrack};
use crate::{
    model::{
        Findings,
        causality::hand_overs::{HandOver, Moment, Part, Source},
    },
    perfetto_schema::own::{HAND_OVER as CATEGORY, HANDLE, VIOLATION},
};

/// Hand-overs, as the tracks of their threads take them.
#[derive(Default)]
pub(super) struct HandOvers {
    /// Flows that begin at the section of a thread that begins then.
    calls: BTreeMap<(u32, u32, Stamp), Vec<u64>>,
    /// Work that a thread takes, in the order in which it does.
    arrivals: BTreeMap<(u32, u32), VecDeque<Arrival>>,
    /// Hand-overs that are shown by instants, with the numbers of their flows.
    instants: Vec<(u64, HandOver)>,
}

/// Work that arrives at a thread, and what it is shown by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// Its thread's own track.
    pub(super) track: ThreadTrack,
    /// Number of the flow, where it is known where the work came from.
    flow: Option<u64>,
    hand_over: HandOver,
    /// When the setup begins; `None` without a bar.
    pub(super) setup: Option<Stamp>,
    /// When the work begins.
    pub(super) start: Stamp,
}

impl HandOvers {
    /// Sorts the hand-overs of a run by where they are shown. Setups below one unit of the clock have no bar.
    pub(super) fn of(findings: &Findings<'_>) -> Self {
        let mut all = Self::default();
        let results = findings.marks.causality.hand_overs.as_ref().map(|hand_overs| hand_overs.results());
        for (number, hand_over) in (1..).zip(results.into_iter().flat_map(|results| results.list)) {
            all.add(number, hand_over);
        }
        // By when they arrive, and not by when they were sent.
        for arrivals in all.arrivals.values_mut() {
            arrivals
                .make_contiguous()
                .sort_by_key(|arrival| (arrival.setup.unwrap_or(arrival.start), arrival.start));
        }
        all
    }

    fn add(&mut self, number: u64, hand_over: HandOver) {
        let HandOver { source, dispatch, receive, .. } = hand_over;
        if hand_over.is_violation() {
            self.instants.push((number, hand_over));
            return;
        }
        let is_linked = dispatch.is_some() && receive.is_some();
        if let (Some(receive), Some(start)) = (receive, hand_over.start) {
            let setup = hand_over.part(Part::Setup).filter(|ns| *ns > 0).map(|_| receive.stamp());
            let flow = dispatch.map(|_| number);
            let arrivals = self.arrivals.entry((receive.pid, receive.tid)).or_default();
            let track = ThreadTrack::own(receive.pid, receive.tid);
            arrivals.push_back(Arrival { track, flow, hand_over, setup, start });
        } else if !is_linked {
            return;
        }
        match dispatch.filter(|_| is_linked) {
            Some(Moment { pid, tid, time, sequence }) if source == Source::Interface => {
                self.calls.entry((pid, tid, Stamp::new(time, sequence))).or_default().push(number);
                if hand_over.start.is_none() {
                    self.instants.push((number, HandOver { dispatch: None, ..hand_over }));
                }
            }
            Some(_) => {
                // Where the work is taken there is a section, or else an instant.
                let receive = receive.filter(|_| hand_over.start.is_none());
                self.instants.push((number, HandOver { receive, ..hand_over }));
            }
            None => {}
        }
    }

    /// Returns the threads that take part.
    pub(super) fn threads(&self) -> impl Iterator<Item = (u32, u32)> {
        let calls = self.calls.keys().map(|(pid, tid, _)| (*pid, *tid));
        let instants =
            self.instants.iter().flat_map(|(_, hand_over)| [hand_over.dispatch, hand_over.receive]);
        let instants = instants.flatten().map(|moment| (moment.pid, moment.tid));
        calls.chain(self.arrivals.keys().copied()).chain(instants)
    }

    /// Takes out what arrives at a thread.
    pub(super) fn arrivals(&mut self, pid: u32, tid: u32) -> VecDeque<Arrival> {
        self.arrivals.remove(&(pid, tid)).unwrap_or_default()
    }

    /// Whether flows begin at a section of a thread that begins then.
    pub(super) fn departs(&self, (pid, tid): (u32, u32), begin: Stamp) -> bool {
        self.calls.contains_key(&(pid, tid, begin))
    }

    /// Lets flows begin at a section with this label.
    pub(super) fn depart(&mut self, (pid, tid): (u32, u32), begin: Stamp, label: &mut Label<'_>) {
        let flows = self.calls.remove(&(pid, tid, begin));
        label.flows.extend(flows.into_iter().flatten().map(Flow::Begin));
    }

    /// Writes what is shown by instants. Work may be taken several times.
    pub(super) fn finish<W: Write>(self, encoder: &mut impl Encode<W>) {
        let mut sent: BTreeMap<(Moment, Option<Handle>, bool), Vec<Flow>> = BTreeMap::new();
        // Where no section began: callbacks have none.
        for ((pid, tid, Stamp { time, sequence }), flows) in self.calls {
            let flows = flows.into_iter().map(Flow::Begin).collect();
            sent.insert((Moment { pid, tid, time, sequence }, None, false), flows);
        }
        for (number, hand_over) in &self.instants {
            let Some(at) = hand_over.dispatch else { continue };
            let is_violation = hand_over.is_violation();
            let flows = sent.entry((at, hand_over.handle, is_violation)).or_default();
            // What was taken before it was given is given at the end of its flow, which goes on with the time.
            if is_violation {
                flows.extend(hand_over.receive.map(|_| Flow::End(*number)));
            } else {
                flows.push(Flow::Begin(*number));
            }
        }
        for ((at, handle, is_violation), flows) in sent {
            let name = if handle.is_some() { "nn.send" } else { "dispatch" };
            let label = Label { flows, ..instant(name, handle, is_violation) };
            encoder.instant(at.time, ThreadTrack::own(at.pid, at.tid), &label);
        }
        for (number, hand_over) in self.instants {
            let Some(at) = hand_over.receive else { continue };
            let is_violation = hand_over.is_violation();
            let name = if hand_over.handle.is_some() { "nn.recv" } else { "receive" };
            let mut label = instant(name, hand_over.handle, is_violation);
            if let Some(ns) = hand_over.part(Part::Propagation) {
                label.number("latency_ns", ns);
            }
            label.flows.push(if is_violation { Flow::Begin(number) } else { Flow::End(number) });
            encoder.instant(at.time, ThreadTrack::own(at.pid, at.tid), &label);
        }
    }
}

impl Arrival {
    /// Returns when the work is done.
    pub(super) fn end(&self) -> Option<Stamp> {
        self.hand_over.end
    }

    /// Lets the flow end at the section that does the work, which has this label.
    pub(super) fn arrive(&self, label: &mut Label<'_>) {
        self.terminate("start", label);
    }

    /// Returns the label of the setup bar, which begins at a time (ns).
    pub(super) fn bar(&self, begin: u64) -> Label<'static> {
        let mut label = Label { name: Cow::Borrowed("setup"), categories: &[CATEGORY], ..Label::default() };
        label.number("setup_ns", self.start.time.saturating_sub(begin));
        label.text("evidence", self.hand_over.source.name());
        let handle = self.hand_over.handle.map(number_of);
        let propagation = self.hand_over.part(Part::Propagation);
        for (key, number) in [
            (HANDLE, handle),
            ("received_first_ns", self.hand_over.received_first.map(|at| at.time)),
            ("propagation_ns", propagation),
        ] {
            if let Some(number) = number {
                label.number(key, number);
            }
        }
        self.terminate("receive", &mut label);
        label
    }

    fn terminate(&self, anchor: &'static str, label: &mut Label<'_>) {
        if let Some(flow) = self.flow {
            label.text("flow_anchor", anchor);
            label.flows.push(Flow::End(flow));
        }
    }
}

/// Returns the label of an instant at which work is given or taken.
fn instant(name: &'static str, handle: Option<Handle>, is_violation: bool) -> Label<'static> {
    let (name, categories): (_, &[&str]) =
        if is_violation { (VIOLATION, &[VIOLATION]) } else { (name, &[CATEGORY]) };
    let mut label = Label { name: Cow::Borrowed(name), categories, ..Label::default() };
    if let Some(handle) = handle {
        label.number(HANDLE, number_of(handle));
    }
    label
}

const fn number_of(handle: Handle) -> u64 {
    let (Handle::OfProcess(number) | Handle::OfSystem(number)) = handle;
    number
}
