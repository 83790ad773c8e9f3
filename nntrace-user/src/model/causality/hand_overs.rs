//! Hand-overs of work: who gave it, who took it, and where the time between went.
//!
//! Each has up to five anchors on one clock: dispatch, receipt, start, end and finish. From marks with handles they are exact;
//! from the marks of both sides of an interface call, they are put together first in, first out; from binder transactions, exact;
//! from wake-ups, inferred.
//! A time without evidence is unknown, not 0.

mod asynchronous;
mod binder;
mod event;
mod hand_over;
mod interface_calls;
mod statistics;
mod threads;
mod wake_ups;

use std::{borrow::Cow, collections::BTreeMap};

use nntrace_common::{
    attributes::Handle,
    hidl_calls::{self, Side},
    layer::Tag,
    record::{SchedRecord, SpanRecord},
    sched::Change,
    stack::Class,
    stamp::Stamp,
};
use rustc_hash::FxHashMap;

use asynchronous::AsynchronousCalls;
pub(crate) use binder::BinderEvent;
use binder::{Change as Transition, Transactions};
pub(crate) use event::HandOverEvent;
pub(crate) use hand_over::{Function, HandOver, Moment, Part, Source};
use interface_calls::InterfaceCalls;
pub(crate) use statistics::{PairKey, PairSums};
use threads::{Known, Learn, Thread};
use wake_ups::WakeUps;

use super::{interned_texts::Texts, iterations::IterationId};
use crate::model::{capped_table::Capped, function_names::Names, limits::Limits};

/// Hand-overs, as they are put together.
#[derive(Clone, Debug)]
pub(crate) struct HandOvers {
    most_threads: usize,
    most_open: usize,
    threads: FxHashMap<u32, Thread>,
    /// Dispatches with handles.
    sent: BTreeMap<(Stamp, Moment), Sent>,
    /// Last hand-over of a handle, by process, or 0 for a handle of the system.
    by_handle: FxHashMap<(u32, Handle), u64>,
    /// Hand-overs of work that was taken and had not been given, by process and handle.
    early: FxHashMap<(u32, Handle), u64>,
    /// Names of interface methods, and of asynchronous slices.
    methods: Texts,
    calls: InterfaceCalls,
    transactions: Transactions,
    asynchronous: AsynchronousCalls,
    wake_ups: WakeUps,
    /// Hand-overs of which something may still become known, by number.
    open: BTreeMap<u64, HandOver>,
    next: u64,
    done: Done,
}

/// Dispatch with a handle.
#[derive(Clone, Debug, Default)]
struct Sent {
    /// Layer and phase of the section around it, once that has ended.
    from: Option<Tag>,
    /// Numbers of the hand-overs that it began.
    takers: Vec<u64>,
}

/// Hand-overs that are complete.
#[derive(Clone, Debug)]
struct Done {
    /// Begin of the window, ns: what was taken before is not in it.
    since: u64,
    list: Vec<HandOver>,
    most: usize,
    left_out: u64,
    violations: u64,
    without_setup: u64,
    rows: Capped<PairKey, PairSums>,
}

impl Done {
    fn add(&mut self, hand_over: HandOver) {
        if hand_over.receive.or(hand_over.dispatch).is_some_and(|at| at.time < self.since) {
            return;
        }
        self.without_setup += u64::from(hand_over.part(Part::Setup) == Some(0));
        self.violations += u64::from(hand_over.is_violation());
        statistics::add(&mut self.rows, &hand_over);
        if self.list.len() < self.most {
            self.list.push(hand_over);
        } else {
            self.left_out += 1;
        }
    }
}

/// Hand-overs of a run.
#[derive(Clone, Debug)]
pub(crate) struct HandOverResults {
    /// One by one, in the order of their first anchors.
    pub(crate) list: Vec<HandOver>,
    /// Sums.
    pub(crate) rows: Capped<PairKey, PairSums>,
    /// Hand-overs that were taken before they were given.
    pub(crate) violations: u64,
    /// Hand-overs whose setup is shorter than a unit of the clock.
    pub(crate) without_setup: u64,
    /// Calls of which no server was seen.
    pub(crate) unserved: u64,
    /// Calls that were served of which no client was seen.
    pub(crate) uncalled: u64,
    methods: Texts,
}

impl HandOverResults {
    /// Returns the name of a function.
    #[must_use]
    pub(crate) fn function_name<'a>(&'a self, function: Function, names: &'a Names) -> Cow<'a, str> {
        match function {
            Function::Section(name) => names
                .get(name)
                .map_or_else(|| Cow::Owned(names.text(name)), |name| Cow::Borrowed(&*name.text)),
            Function::Method(number) => Cow::Borrowed(self.methods.text(number)),
        }
    }
}

impl HandOvers {
    /// Creates the state without any hand-overs.
    #[must_use]
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            most_threads: limits.threads,
            most_open: limits.hand_overs,
            threads: FxHashMap::default(),
            sent: BTreeMap::new(),
            by_handle: FxHashMap::default(),
            early: FxHashMap::default(),
            methods: Texts::new(limits.causes),
            calls: InterfaceCalls::default(),
            transactions: Transactions::default(),
            asynchronous: AsynchronousCalls::default(),
            wake_ups: WakeUps::new(limits.hand_overs),
            open: BTreeMap::new(),
            next: 0,
            done: Done {
                since: 0,
                list: Vec::new(),
                most: limits.sections,
                left_out: 0,
                violations: 0,
                without_setup: 0,
                rows: Capped::new(limits.causes),
            },
        }
    }

    /// The window begins at `begin` (ns).
    pub(super) fn since(&mut self, begin: u64) {
        self.done.since = begin;
    }

    /// Work with a handle is handed over; perhaps it was taken before.
    pub(super) fn sent(&mut self, key: (u32, Handle), at: Moment) {
        let early = self.early.remove(&key).filter(|number| self.open.contains_key(number));
        let sent = self.sent.entry((at.stamp(), at)).or_default();
        if let Some(number) = early {
            sent.takers.push(number);
            self.open.entry(number).and_modify(|hand_over| hand_over.dispatch = Some(at));
        }
        if self.sent.len() > self.most_open {
            self.sent.pop_first();
        }
        self.on_thread(at.tid, |thread, _| thread.dispatches(at));
    }

    /// Work with a handle is taken that nobody has handed over, when this many sections are open.
    pub(super) fn received_early(&mut self, key: (u32, Handle), receive: Moment, depth: u8) {
        let receipt =
            HandOver { handle: Some(key.1), receive: Some(receive), ..HandOver::new(Source::Handle) };
        let number = self.begin(receipt);
        if self.early.len() >= self.most_open {
            self.early.clear();
        }
        self.early.insert(key, number);
        self.on_thread(receive.tid, |thread, learn| {
            thread.receives(number, receive.stamp(), Some(depth), learn);
        });
    }

    /// Work with a handle is taken, when this many sections are open. Handed back under its handle, it is a result.
    pub(super) fn received(
        &mut self,
        key: (u32, Handle),
        dispatch: Moment,
        receive: Moment,
        depth: u8,
        iteration: Option<IterationId>,
    ) {
        let last = self.by_handle.get(&key).and_then(|number| self.open.get_mut(number));
        let is_back = |call: &HandOver| {
            let threads = |at: Option<Moment>| at.map(|at| at.tid);
            threads(call.dispatch) == Some(receive.tid) && threads(call.receive) == Some(dispatch.tid)
        };
        if let Some(call) = last.filter(|call| call.finish.is_none() && is_back(call)) {
            call.finish = Some(receive.time);
            return;
        }
        let number = self.begin(HandOver {
            handle: Some(key.1),
            from: self.sent.get(&(dispatch.stamp(), dispatch)).and_then(|sent| sent.from),
            dispatch: Some(dispatch),
            receive: Some(receive),
            iteration,
            ..HandOver::new(Source::Handle)
        });
        if let Some(sent) = self.sent.get_mut(&(dispatch.stamp(), dispatch)) {
            sent.takers.push(number);
        }
        self.by_handle.insert(key, number);
        self.on_thread(receive.tid, |thread, learn| {
            thread.receives(number, receive.stamp(), Some(depth), learn);
        });
    }

    /// A gate opens for a thread.
    pub(super) fn gate(&mut self, tid: u32, at: Stamp) {
        self.on_thread(tid, |thread, _| thread.gate(at));
    }

    fn begin(&mut self, hand_over: HandOver) -> u64 {
        let number = self.next;
        self.next += 1;
        self.open.insert(number, hand_over);
        if self.open.len() > self.most_open
            && let Some((oldest, hand_over)) = self.open.pop_first()
        {
            self.done.add(hand_over);
            // Not with each one: it looks at all.
            if self.by_handle.len() > 2 * self.most_open {
                self.by_handle.retain(|_, number| *number > oldest);
            }
        }
        number
    }

    /// Does something with the state of a thread, and takes what becomes known by it.
    fn on_thread(&mut self, tid: u32, act: impl FnOnce(&mut Thread, Learn<'_>)) {
        if self.threads.len() >= self.most_threads && !self.threads.contains_key(&tid) {
            self.forget_threads();
        }
        let Self { threads, sent, open, .. } = self;
        act(threads.entry(tid).or_default(), &mut |known| learn(sent, open, known));
    }

    /// Forgets the threads on which nothing waits, or else all.
    #[cold]
    fn forget_threads(&mut self) {
        self.threads.retain(|_, thread| !thread.is_idle());
        if self.threads.len() > self.most_threads / 2 {
            self.finish_threads();
            self.threads.clear();
        }
    }

    fn finish_threads(&mut self) {
        let Self { threads, sent, open, .. } = self;
        for thread in threads.values_mut() {
            thread.finish(&mut |known| learn(sent, open, known));
        }
    }

    /// A section with this name ended; those of one thread come in the order of their ends.
    pub(super) fn section(&mut self, span: &SpanRecord, tag: Tag, name: &[u8]) {
        // It is not what the thread did: the calls are that start it and wait for it.
        if span.class == Class::Asynchronous as u8 {
            return;
        }
        let method = hidl_calls::method(name);
        let (mut served, mut received) = ((None, None), None);
        self.on_thread(span.tid, |thread, learn| {
            received = thread.received();
            thread.section(span, tag, learn);
            match method {
                Some((_, Side::Server)) => served = thread.served(span),
                Some((_, Side::Client)) => {}
                None => thread.keep_work(span, tag),
            }
        });
        if let Some((text, side)) = method {
            let number = self.methods.number(text);
            self.calls.section((number, text), side, span, served);
            self.make_room_for_calls();
        }
        self.asynchronous.section(span, tag, name, |hand_over| self.done.add(hand_over));
        // The work of a call is that of its client.
        let received = if method.is_some() { Some(u64::MAX) } else { received.map(|at| at.time) };
        self.wake_ups.section(span, tag, received, &mut |hand_over| self.done.add(hand_over));
    }

    /// A callback begins on one side.
    pub(super) fn callback(&mut self, name: &[u8], begin: Moment) {
        if let Some((text, side)) = hidl_calls::method(name).filter(|(text, _)| hidl_calls::is_callback(text))
        {
            let number = self.methods.number(text);
            self.calls.callback((number, text), side, begin);
            self.make_room_for_calls();
        }
    }

    /// An asynchronous slice with this name begins.
    pub(super) fn slice_begins(&mut self, slice: u64, name: &[u8], at: Moment) {
        let function = self.methods.number(name);
        self.asynchronous.slice_begins(slice, function, at);
    }

    /// An asynchronous slice ends.
    pub(super) fn slice_ends(&mut self, slice: u64, at: Moment) {
        self.asynchronous.slice_ends(slice, at, |hand_over| self.done.add(hand_over));
    }

    /// A binder transaction is sent or received.
    pub(super) fn binder(&mut self, event: BinderEvent, at: Moment) {
        match self.transactions.event(event, at) {
            Some(Transition::Began(dispatch)) => {
                let number = self.begin(HandOver {
                    dispatch: Some(dispatch),
                    receive: Some(at),
                    ..HandOver::new(Source::Binder)
                });
                self.sent.entry((dispatch.stamp(), dispatch)).or_default().takers.push(number);
                self.transactions.began(number, dispatch, at);
                self.on_thread(dispatch.tid, |thread, _| thread.dispatches(dispatch));
                self.on_thread(at.tid, |thread, learn| thread.receives(number, at.stamp(), None, learn));
            }
            Some(Transition::Finished(number)) => {
                if let Some(call) = self.open.get_mut(&number) {
                    call.finish = Some(at.time);
                }
            }
            None => {}
        }
    }

    /// Something happened to a thread. Records come in order of time, among those of sections.
    pub(super) fn thread_changes(&mut self, record: &SchedRecord) {
        let SchedRecord { tid, tgid, time, change, .. } = *record;
        match Change::from_code(change) {
            Some(Change::Woken) if tgid != 0 && tgid != tid => {
                self.wake_ups.woken(tid, tgid, time, &mut |hand_over| self.done.add(hand_over));
            }
            Some(Change::In) => self.wake_ups.runs(tid, time),
            _ => {}
        }
    }

    fn make_room_for_calls(&mut self) {
        if self.calls.is_full() {
            self.put_together(self.calls.middle());
        }
    }

    fn put_together(&mut self, until: u64) {
        let Self { calls, transactions, open, done, .. } = self;
        calls.put_together(until, |call| {
            // The kernel's own anchors are nearer to what happened than marks are.
            let transaction = transactions.of(&call).and_then(|number| open.remove(&number));
            done.add(match transaction {
                Some(HandOver { dispatch, receive, finish, .. }) => HandOver {
                    source: Source::Binder,
                    dispatch,
                    receive: if call.received_first.is_some() { call.receive } else { receive },
                    finish: call.finish.and(finish).or(call.finish),
                    ..call
                },
                None => call,
            });
        });
    }

    /// Returns all hand-overs, with what is known by now of those that are not complete.
    #[must_use]
    pub(crate) fn results(&self) -> HandOverResults {
        let mut all = self.clone();
        all.put_together(u64::MAX);
        all.finish_threads();
        let Self { open, mut done, methods, calls, wake_ups, .. } = all;
        // A transaction that no section gave or took is none of ours.
        let is_ours = |hand_over: &HandOver| {
            hand_over.source != Source::Binder || hand_over.from.is_some() || hand_over.to.is_some()
        };
        let open = open.into_values().filter(is_ours);
        open.chain(wake_ups.into_open()).for_each(|hand_over| done.add(hand_over));
        done.list.sort_by_key(|hand_over| {
            let received = hand_over.receive.map(|at| at.time);
            (hand_over.first_time(), received, hand_over.dispatch, hand_over.receive, hand_over.source)
        });
        let Done { list, violations, without_setup, rows, .. } = done;
        let (unserved, uncalled) = (calls.unserved, calls.uncalled);
        HandOverResults { list, rows, violations, without_setup, unserved, uncalled, methods }
    }

    /// Returns how many hand-overs there were beyond those that are kept one by one.
    #[must_use]
    pub(crate) fn left_out(&self) -> u64 {
        self.done.left_out
    }

    /// Returns the names of functions that are kept.
    pub(super) fn names(&self) -> impl Iterator<Item = u64> {
        let rows = self.done.rows.iter().map(|(key, ..)| key.function);
        let open = self.open.values().map(|hand_over| hand_over.function);
        let names = rows.chain(open).filter_map(|function| match function {
            Some(Function::Section(name)) => Some(name),
            _ => None,
        });
        names.chain(self.wake_ups.names())
    }

    /// Returns how many rows were summed for want of room.
    #[must_use]
    pub(super) fn summed(&self) -> u64 {
        self.done.rows.summed()
    }
}

/// Takes what became known of hand-overs.
fn learn(sent: &mut BTreeMap<(Stamp, Moment), Sent>, open: &mut BTreeMap<u64, HandOver>, known: Known) {
    match known {
        Known::From(at, tag) => {
            let Some(sent) = sent.get_mut(&(at.stamp(), at)) else { return };
            sent.from = Some(tag);
            for number in &sent.takers {
                if let Some(hand_over) = open.get_mut(number) {
                    hand_over.from = Some(tag);
                }
            }
        }
        Known::Work(number, work, gate) => {
            let Some(hand_over) = open.get_mut(&number) else { return };
            if let Some(work) = work {
                hand_over.to = Some(work.tag);
                hand_over.function = Some(Function::Section(work.name));
                (hand_over.start, hand_over.end) = (Some(work.begin), Some(work.end));
            }
            if let (Some(receive), Some(gate)) = (&mut hand_over.receive, gate) {
                hand_over.received_first = Some(receive.stamp());
                *receive = receive.at(gate);
            }
        }
    }
}

#[cfg(test)]
mod tests;
