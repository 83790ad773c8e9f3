//! Links of spans: from the section that does work to the one that handed it over.

use std::collections::BTreeMap;

use nntrace_common::stamp::Stamp;

use super::{
    ids::SpanContext,
    messages::Link,
    resource::{number, text},
};
use crate::model::{
    Findings,
    causality::hand_overs::{HandOver, Moment, Part},
    section::Section,
};

/// Process, thread.
type Thread = (u32, u32);

/// Hand-overs of a run, and the sections at their ends.
#[derive(Default)]
pub(super) struct Links {
    /// Innermost sections around the moments at which threads handed work over, with their begins.
    dispatches: BTreeMap<Thread, BTreeMap<Stamp, Option<(Stamp, SpanContext)>>>,
    /// Hand-overs by the thread that does the work, and the begin of the section that does.
    work: BTreeMap<(Thread, Stamp), Vec<HandOver>>,
    /// Hand-overs that no link shows: one of their ends is not known, or in no section.
    pub(super) left_out: u64,
}

impl Links {
    /// Returns the hand-overs of a run, with no section yet.
    pub(super) fn of(findings: &Findings<'_>) -> Self {
        let results = findings.marks.causality.hand_overs.as_ref().map(|hand_overs| hand_overs.results());
        let mut links = Self::default();
        for hand_over in results.into_iter().flat_map(|results| results.list) {
            links.add(hand_over);
        }
        links
    }

    fn add(&mut self, hand_over: HandOver) {
        let ends = hand_over.dispatch.zip(hand_over.receive).zip(hand_over.start);
        match ends.filter(|_| !hand_over.is_violation()) {
            Some(((dispatch, receive), start)) => {
                self.dispatches.entry(thread(dispatch)).or_default().insert(dispatch.stamp(), None);
                self.work.entry((thread(receive), start)).or_default().push(hand_over);
            }
            None => self.left_out += 1,
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    /// Sees a section of a thread, each after those around it.
    pub(super) fn see(&mut self, section: &Section<'_>, context: SpanContext) {
        let Some(moments) = self.dispatches.get_mut(&(section.pid, section.tid)) else { return };
        for (at, around) in moments.range_mut(section.begin_stamp()..=section.end_stamp()) {
            // The call of an interface is handed over where its own section begins: none in it is meant.
            if around.is_none_or(|(begin, _)| begin < *at) {
                *around = Some((section.begin_stamp(), context));
            }
        }
    }

    /// Takes the links of a section, all of which were seen before.
    pub(super) fn take(&mut self, section: &Section<'_>) -> Vec<Link> {
        let work = self.work.remove(&((section.pid, section.tid), section.begin_stamp()));
        let mut links = Vec::new();
        for hand_over in work.into_iter().flatten() {
            let around = hand_over
                .dispatch
                .and_then(|dispatch| *self.dispatches.get(&thread(dispatch))?.get(&dispatch.stamp())?);
            match around {
                Some((_, context)) => links.push(link(&hand_over, context)),
                None => self.left_out += 1,
            }
        }
        links
    }

    /// Returns how many hand-overs no link shows, now that all sections have come.
    pub(super) fn finish(self) -> u64 {
        let rest: usize = self.work.values().map(Vec::len).sum();
        self.left_out + rest as u64
    }
}

const fn thread(moment: Moment) -> Thread {
    (moment.pid, moment.tid)
}

fn link(hand_over: &HandOver, context: SpanContext) -> Link {
    let propagation = hand_over.part(Part::Propagation).map(|ns| number("nntrace.propagation_ns", ns));
    let mut attributes = vec![text("nntrace.evidence", hand_over.source.name())];
    attributes.extend(propagation);
    Link { trace_id: context.trace.to_vec(), span_id: context.span.to_vec(), attributes }
}
