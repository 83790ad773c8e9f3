//! Why work was done: which iteration it belongs to, on whose account, and what handed it over.
//!
//! Attributes of marks give it ([`nntrace_common::attributes`]); work without them inherits from the section around it,
//! from the section that created its thread, or from the one that handed the work over. Source: the mark contract,
//! section 1.
//!
//! Begins, hand-overs and the lives of threads may come in any order: they wait, and are taken in order of time
//! together with the spans, which come in that order.

pub(crate) mod accounts;
mod attribute_groups;
mod context;
mod event;
mod explain;
pub(crate) mod graph;
pub(crate) mod hand_overs;
mod in_order;
mod interned_texts;
pub(crate) mod iterations;
mod missing_time;
mod questions;
mod site;
mod thread_contexts;

use std::collections::BTreeMap;

use memchr::memmem;
use nntrace_common::{
    attributes::{Attributes, GATE, Handle, RECEIVE, Reserved, SEND},
    mark,
    record::{SchedRecord, SpanRecord, Total},
    stamp::Stamp,
};
use rustc_hash::FxHashMap;

use accounts::Accounts;
use attribute_groups::Groups;
use context::Context;
pub(crate) use context::Edge;
pub(crate) use event::instant_name_at;
use event::{Annotations, Event};
use explain::Explanation;
use graph::Graph;
use hand_overs::{HandOverEvent, HandOvers, Moment};
use iterations::Iterations;
use missing_time::{Missing, Roots};
pub use questions::Questions;
pub(crate) use site::Site;
use thread_contexts::Threads;

use super::{limits::Limits, scheduling::Scheduling, usage::Portion};

/// Where a mark was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Process.
    pub(crate) pid: u32,
    /// Thread.
    pub(crate) tid: u32,
    /// Number of sections, marked or foreign, that were open around a start or an end. Around another mark, that of
    /// those up to the innermost marked one: foreign ones are transparent, and their ends are never known here.
    pub(crate) depth: u8,
    /// [`Stamp::sequence`] of the mark.
    pub(crate) sequence: u32,
}

impl Origin {
    /// Returns the timestamp of the mark, which was written at `time` (ns).
    pub(crate) const fn at(self, time: u64) -> Stamp {
        Stamp::new(time, self.sequence)
    }
}

/// How much was handed over under a handle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HandleCounts {
    /// Hand-overs.
    pub(crate) sent: u64,
    /// Hand-overs that were taken.
    pub(crate) received: u64,
    /// Takes of what nobody had handed over, or so long ago that it was forgotten.
    pub(crate) unmatched: u64,
    /// Hand-overs that were forgotten, taken or not, as too many were kept.
    pub(crate) forgotten: u64,
}

/// The causes of work, and what it adds up to by them.
pub(crate) struct Causality {
    questions: Questions,
    /// Whether there was anything to keep, or a question; nothing is kept before.
    is_needed: bool,
    /// Begin of the window, ns: what begins before counts from here on.
    window_begin: u64,
    /// Events that are not taken yet, by timestamp and order of arrival.
    pending: BTreeMap<(Stamp, u64), Event>,
    arrivals: u64,
    threads: Threads,
    sent: FxHashMap<(u32, Handle), (Moment, Context)>,
    /// Beyond that many the oldest are forgotten.
    most_sent: usize,
    /// Work by account.
    pub(crate) accounts: Accounts,
    /// Iterations.
    pub(crate) iterations: Iterations,
    /// By the attribute that is asked for.
    pub(crate) groups: Groups,
    /// Time that no section covers.
    pub(crate) roots: Roots,
    /// Why a function takes now more, now less time.
    pub(crate) explanation: Option<Explanation>,
    /// Every section; empty unless it was asked for.
    pub(crate) graph: Graph,
    /// Portions of the section that ended last; none where all of it belongs to nothing, or they are not wanted.
    pub(crate) portions: Vec<Portion>,
    /// Whether portions are wanted.
    pub(crate) keeps_portions: bool,
    /// How much was handed over under a handle.
    pub(crate) handles: HandleCounts,
    /// Hand-overs with their anchors; none unless they were asked for.
    pub(crate) hand_overs: Option<Box<HandOvers>>,
}

impl Default for Causality {
    fn default() -> Self {
        Self::new(Questions::default(), &Limits::default())
    }
}

impl Causality {
    /// Nothing yet.
    #[must_use]
    pub(crate) fn new(questions: Questions, limits: &Limits) -> Self {
        Self {
            is_needed: questions.need_all_spans(),
            explanation: questions.explain.as_deref().map(|function| Explanation::of(function, limits)),
            hand_overs: questions.hand_overs.then(|| Box::new(HandOvers::new(limits))),
            iterations: Iterations::new(limits, questions.every_iteration, questions.slowest()),
            questions,
            window_begin: 0,
            pending: BTreeMap::new(),
            arrivals: 0,
            threads: Threads::new(limits),
            sent: FxHashMap::default(),
            most_sent: limits.hand_overs,
            accounts: Accounts::new(limits),
            groups: Groups::new(limits),
            roots: Roots::new(limits),
            graph: Graph::new(limits),
            portions: Vec::new(),
            keeps_portions: false,
            handles: HandleCounts::default(),
        }
    }

    /// The questions that are asked.
    #[must_use]
    pub(crate) fn questions(&self) -> &Questions {
        &self.questions
    }

    /// Whether sections have causes to keep, or there is a question about all of them.
    #[must_use]
    #[inline]
    pub(crate) fn is_needed(&self) -> bool {
        self.is_needed
    }

    /// Whether every section matters, in order of time.
    #[must_use]
    #[inline]
    pub(crate) fn needs_spans(&self) -> bool {
        self.is_needed || self.hand_overs.is_some()
    }

    /// Charges the sections from before causes were kept, by function, to no account.
    pub(crate) fn charge_to_none(&mut self, functions: impl Iterator<Item = (Site, Total)>) {
        for (site, total) in functions {
            self.accounts.charge_to_none(site, &total);
        }
    }

    /// The window begins at `begin` (ns): what is open then counts from there on.
    #[must_use]
    pub(crate) fn since(self, begin: u64) -> Self {
        let mut since = Self { window_begin: begin, ..self };
        if let Some(hand_overs) = &mut since.hand_overs {
            hand_overs.since(begin);
        }
        since
    }

    /// A section with a layer and a phase begins at `time` (ns) whose mark has attributes (or any, see
    /// [`Questions::need_all_begins`]). Its name starts at `name_at` of the payload.
    pub(crate) fn begins(&mut self, origin: Origin, time: u64, payload: &[u8], name_at: u16) {
        let annotations = self.read(payload, name_at);
        self.is_needed = true;
        self.wait(
            origin.at(time),
            Event::Begin { origin, name: mark::name_hash(payload, name_at), annotations },
        );
    }

    /// A section that began before the window ended at `time` (ns), before the window too.
    pub(crate) fn ended_before(&mut self, origin: Origin, time: u64) {
        self.wait(origin.at(time), Event::End { origin });
    }

    /// Takes an instant, if it is a hand-over. Other marks mean nothing here.
    pub(crate) fn instant(&mut self, origin: Origin, time: u64, payload: &[u8]) {
        let Some(at) = instant_name_at(payload) else { return };
        let is_send = match mark::name(payload, at) {
            SEND => true,
            RECEIVE => false,
            GATE => {
                self.hand_over_event(HandOverEvent::Gate, Moment::new(origin, time));
                return;
            }
            _ => return,
        };
        if let Some(handle) = Reserved::read(Attributes::of(payload, at)).handle {
            self.is_needed = true;
            self.wait(
                origin.at(time),
                if is_send { Event::Send { origin, handle } } else { Event::Receive { origin, handle } },
            );
        }
    }

    /// Takes an event that hand-overs are made of, in any order of time, where they are put together.
    pub(crate) fn hand_over_event(&mut self, event: HandOverEvent, at: Moment) {
        if self.hand_overs.is_some() {
            self.is_needed = true;
            self.wait(at.stamp(), Event::HandOver { event, at });
        }
    }

    /// A callback with this name begins, which no table counts.
    pub(crate) fn callback(&mut self, name: &[u8], at: Moment) {
        if let Some(hand_overs) = &mut self.hand_overs {
            hand_overs.callback(name, at);
        }
    }

    /// A section with this name ended, for hand-overs: after [`Causality::span`].
    #[inline]
    pub(crate) fn hand_over_section<'a>(
        &mut self,
        span: &SpanRecord,
        name: impl FnOnce() -> Option<&'a str>,
    ) {
        if let (Some(hand_overs), Some(tag)) = (&mut self.hand_overs, span.tag()) {
            hand_overs.section(span, tag, name().unwrap_or_default().as_bytes());
        }
    }

    /// Something happened to a thread, for hand-overs.
    #[inline]
    pub(crate) fn thread_changes(&mut self, record: &SchedRecord) {
        if let Some(hand_overs) = &mut self.hand_overs {
            hand_overs.thread_changes(record);
        }
    }

    /// A thread creates another one, or a process. What it inherits may come later, even if it is the first mark with
    /// attributes: another CPU's ring, or a lane, is read after this one.
    pub(crate) fn create(&mut self, at: Stamp, by: u32, child: u32) {
        self.wait(at, Event::Create { by, child });
    }

    /// A thread ends: another one may get its id.
    pub(crate) fn exit(&mut self, at: Stamp, tid: u32) {
        self.wait(at, Event::Exit { tid });
    }

    fn wait(&mut self, at: Stamp, event: Event) {
        self.arrivals += 1;
        self.pending.insert((at, self.arrivals), event);
    }

    fn read(&mut self, payload: &[u8], name_at: u16) -> Annotations {
        let attributes = Attributes::of(payload, name_at);
        let reserved = Reserved::read(attributes.clone());
        let by = self.questions.by.as_ref().map(String::as_bytes);
        let value = by.and_then(|by| attributes.filter(|(key, _)| *key == by).last());
        Annotations {
            iteration: reserved.iteration,
            account: reserved.account.map(|account| self.accounts.names.number(account)),
            handle: reserved.handle,
            // Between the process and the tag there is nothing else.
            is_switch: memmem::find(payload.get(..usize::from(name_at)).unwrap_or_default(), b"[SW]")
                .is_some(),
            group: value.map(|(_, value)| self.groups.values.number(value)),
            is_root: match &self.questions.iteration_root {
                Some(root) => mark::name(payload, name_at) == root.as_bytes(),
                None => reserved.iteration.is_some(),
            },
        }
    }

    /// A section ended. Spans come in order of their ends. `scheduling` has the states of threads, where they are known.
    pub(crate) fn span(&mut self, span: &SpanRecord, scheduling: Option<&Scheduling>) {
        self.portions.clear();
        if !self.is_needed {
            return;
        }
        self.take_until(span.end_stamp());
        let Some(tag) = span.tag() else { return };
        let site = Site { pid: span.tgid, tag, name: span.name };
        let closed = self.threads.close(span);
        if let Some(node) = closed.begin.and_then(|begin| begin.node) {
            self.graph.close(node, tag, span.end);
        }
        // On a thread that takes no part it is a section like others, but nothing of it counts.
        if span.is_provisional() {
            return;
        }
        if self.keeps_portions {
            let taken_over =
                closed.taken_over.iter().map(|piece| (piece.begin, piece.context, piece.exclusive));
            let own = std::iter::once((span.begin, closed.context, closed.charged));
            self.portions.extend(own.chain(taken_over).map(|(begin, context, exclusive)| Portion {
                begin,
                exclusive,
                account: context.charge.map(|charge| charge.account),
                iteration_root: context.iteration.map(|iteration| iteration.root),
            }));
        }
        let own = (closed.context, closed.charged);
        let pieces = std::iter::once(own).chain(closed.taken_over.iter().map(|p| (p.context, p.exclusive)));
        for (context, exclusive) in pieces {
            self.accounts.charge(site, context.charge, exclusive);
            if let Some(group) = context.group {
                self.groups.charge(group, site, exclusive);
            }
            if let Some(iteration) = context.iteration {
                self.iterations.charge(iteration, site, exclusive);
            }
        }
        let (context, duration) = (closed.context, span.end - span.begin);
        let is_outermost = !span.adds.is_in_itself();
        if is_outermost {
            self.accounts.count(site, context.charge);
        }
        if let Some(group) = context.group.filter(|_| is_outermost) {
            self.groups.count(group, site, duration);
        }
        if let Some(iteration) = context.iteration {
            let is_root = closed.begin.is_some_and(|begin| begin.is_root);
            self.iterations.count(iteration, site, span, is_root);
            if is_root {
                let gaps = closed.gaps(self.iterations.helpers(iteration));
                let missing = Missing::of(span.tid, &gaps, scheduling);
                self.roots.add(site, duration, &missing);
                self.iterations.miss(iteration, missing.time);
            } else if closed.comes_from_elsewhere {
                self.iterations.help(iteration, (span.begin, span.end));
            }
        }
        if self.questions.missing && span.is_outermost() {
            let missing = Missing::of(span.tid, &closed.gaps(&[]), scheduling);
            self.roots.add_outermost(site, duration, &missing);
        }
        if let Some(explanation) = &mut self.explanation {
            explanation.span(span);
        }
    }

    /// The names of what is kept.
    pub(crate) fn names(&self) -> impl Iterator<Item = u64> {
        let accounts = self.accounts.sites().chain(self.groups.sites()).map(|site| site.name);
        let roots = self.roots.all().map(|(site, _)| site.name);
        let iterations = self.iterations.names();
        let explained = self.explanation.iter().flat_map(Explanation::names);
        let graph = self.graph.nodes().iter().map(|node| node.name);
        let waiting = self.pending.values().filter_map(|event| match event {
            Event::Begin { name, .. } => Some(*name),
            _ => None,
        });
        let open = self.threads.names().chain(waiting);
        let hand_overs = self.hand_overs.iter().flat_map(|hand_overs| hand_overs.names());
        accounts.chain(roots).chain(iterations).chain(explained).chain(graph).chain(open).chain(hand_overs)
    }

    /// How many rows of causes were summed as others.
    #[must_use]
    pub(crate) fn summed(&self) -> u64 {
        let explained = self.explanation.as_ref().map_or(0, Explanation::summed);
        let hand_overs = self.hand_overs.as_ref().map_or(0, |hand_overs| hand_overs.summed());
        let iterations = self.iterations.summed;
        self.accounts.summed()
            + self.groups.summed()
            + self.roots.summed()
            + iterations
            + explained
            + hand_overs
    }

    /// Begins and takes that were forgotten before the section that they were in ended.
    #[must_use]
    pub(crate) fn forgotten(&self) -> u64 {
        self.threads.forgotten
    }

    /// Iteration and account of a section of the graph, in words.
    pub(crate) fn labels<'a>(
        &'a self,
        node: &graph::Node,
    ) -> impl Iterator<Item = (&'static str, String)> + use<'a> {
        let account = node.account.map(|account| self.accounts.names.text(account));
        let iteration = node.iteration.map(|iter| ("iteration", iter.to_string()));
        iteration.into_iter().chain(account.map(|account| ("account", account.to_owned())))
    }

    /// Everything up to this moment (ns) has come: takes the events that wait. A section that ends does the same, so this is for
    /// when none does.
    pub(crate) fn advance(&mut self, until: u64) {
        self.take_until(Stamp::new(until, u32::MAX));
    }
}

#[cfg(test)]
mod tests;
