//! Interface calls: the marks of both sides, put together.
//!
//! Marks name no call, so calls of one method are first in, first out: a server's section belongs to the earliest call that
//! was open when it began, or, of methods that never wait for the server, that had been made. Sections come when they end, so
//! both sides wait until as many have come that earlier ones are not to be expected.

use std::collections::{BTreeMap, VecDeque};

use memchr::memmem;
use nntrace_common::{
    hidl_calls::Side,
    layer::{Layer, Phase, Tag},
    record::SpanRecord,
    stamp::Stamp,
};

use super::{
    hand_over::{Function, HandOver, Moment, Source},
    threads::Work,
};

/// Sections that wait for their other side.
const MOST_WAITING: usize = 1 << 16;

/// Reports that wait for the call that they are of.
const MOST_REPORTS: usize = 1 << 12;

/// Calls of all methods.
#[derive(Clone, Debug, Default)]
pub(super) struct InterfaceCalls {
    methods: BTreeMap<u32, Method>,
    reports: Reports,
    waiting: usize,
    /// Calls of which no server was seen.
    pub(super) unserved: u64,
    /// Calls that were served of which no client was seen.
    pub(super) uncalled: u64,
}

/// Calls of a method that wait for their other side.
#[derive(Clone, Debug, Default)]
struct Method {
    clients: Vec<Client>,
    servers: Vec<Server>,
    /// Whether a call was open when its server began: the client waits.
    is_synchronous: bool,
    /// Callback that reports the results of its calls.
    callback: Option<Callback>,
}

/// Callback by which a driver reports the result of a call that has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Callback {
    PreparedModel,
    Execution,
}

impl Callback {
    /// Returns the callback that this is a method of.
    fn of(method: &[u8]) -> Option<Self> {
        let has = |part: &[u8]| memmem::find(method, part).is_some();
        if has(b"::IPreparedModelCallback::notify") {
            Some(Self::PreparedModel)
        } else {
            has(b"::IExecutionCallback::notify").then_some(Self::Execution)
        }
    }

    /// Returns the callback that reports the results of a method.
    fn of_results(method: &[u8]) -> Option<Self> {
        let rest = |part: &[u8]| memmem::find(method, part).map(|at| &method[at + part.len()..]);
        // Other ways of execution return when they are done.
        let is_version = |rest: &[u8]| rest.iter().all(|byte| byte.is_ascii_digit() || *byte == b'_');
        if rest(b"::IDevice::prepareModel").is_some() {
            Some(Self::PreparedModel)
        } else {
            rest(b"::IPreparedModel::execute").filter(|rest| is_version(rest)).map(|_| Self::Execution)
        }
    }
}

/// Processes and times (ns) at which callbacks came to them.
#[derive(Clone, Debug, Default)]
struct Reports(BTreeMap<Callback, VecDeque<(u32, u64)>>);

impl Reports {
    fn add(&mut self, callback: Callback, pid: u32, time: u64) {
        let all = self.0.entry(callback).or_default();
        if all.len() >= MOST_REPORTS {
            all.pop_front();
        }
        all.push_back((pid, time));
    }

    /// Returns when the result of a call was reported that a process made at `time` (ns), the earliest first.
    fn take(&mut self, callback: Callback, pid: u32, time: u64) -> Option<u64> {
        let all = self.0.get_mut(&callback)?;
        let place = all.iter().position(|report| report.0 == pid && report.1 >= time)?;
        all.remove(place).map(|(_, time)| time)
    }

    /// Whether such a callback ever came.
    fn has(&self, callback: Callback) -> bool {
        self.0.contains_key(&callback)
    }
}

/// Section of the one who calls.
#[derive(Clone, Copy, Debug)]
struct Client {
    begin: Moment,
    end: u64,
    tag: Option<Tag>,
}

/// Section of the one who is called.
#[derive(Clone, Copy, Debug)]
struct Server {
    begin: Moment,
    end: u64,
    tag: Option<Tag>,
    work: Option<Work>,
    gate: Option<Stamp>,
}

impl InterfaceCalls {
    /// The section of one side of a method has ended, which for a server had this work in it, and a gate that opened.
    pub(super) fn section(
        &mut self,
        (method, text): (u32, &[u8]),
        side: Side,
        span: &SpanRecord,
        (work, gate): (Option<Work>, Option<Stamp>),
    ) {
        let begin = Moment::of_begin(span);
        let (end, tag) = (span.end, span.tag());
        let calls = self.method(method, text);
        match side {
            Side::Client => calls.clients.push(Client { begin, end, tag }),
            Side::Server => calls.servers.push(Server { begin, end, tag, work, gate }),
        }
        self.waiting += 1;
    }

    /// One side of a callback begins. When it ends is not known.
    pub(super) fn callback(&mut self, (method, text): (u32, &[u8]), side: Side, begin: Moment) {
        let callback = Callback::of(text);
        let phase =
            if callback == Some(Callback::PreparedModel) { Phase::Compilation } else { Phase::Execution };
        let (end, tag) = (begin.time, |layer| Some(Tag::new(layer, phase)));
        let calls = self.method(method, text);
        match side {
            Side::Client => calls.clients.push(Client { begin, end, tag: tag(Layer::Driver) }),
            Side::Server => {
                let tag = tag(Layer::Runtime);
                calls.servers.push(Server { begin, end, tag, work: None, gate: None });
                if let Some(callback) = callback {
                    self.reports.add(callback, begin.pid, begin.time);
                }
            }
        }
        self.waiting += 1;
    }

    fn method(&mut self, method: u32, text: &[u8]) -> &mut Method {
        let named = || Method { callback: Callback::of_results(text), ..Method::default() };
        self.methods.entry(method).or_insert_with(named)
    }

    /// Whether enough wait to put the earlier half together.
    pub(super) fn is_full(&self) -> bool {
        self.waiting >= MOST_WAITING
    }

    /// Returns how many sections wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Returns the time (ns) before which half of those that wait began.
    pub(super) fn middle(&self) -> u64 {
        let begins = self.methods.values().flat_map(|calls| {
            let clients = calls.clients.iter().map(|client| client.begin.time);
            clients.chain(calls.servers.iter().map(|server| server.begin.time))
        });
        let mut begins: Vec<u64> = begins.collect();
        let half = begins.len() / 2;
        if begins.is_empty() { 0 } else { *begins.select_nth_unstable(half).1 }
    }

    /// Puts together all that began up to `until` (ns).
    pub(super) fn put_together(&mut self, until: u64, mut take: impl FnMut(HandOver)) {
        let (mut unserved, mut uncalled) = (0, 0);
        for (&method, calls) in &mut self.methods {
            let mut done = |hand_over: HandOver| {
                unserved += u64::from(hand_over.receive.is_none());
                uncalled += u64::from(hand_over.dispatch.is_none());
                take(HandOver { function: Some(Function::Method(method)), ..hand_over });
            };
            self.waiting -= calls.put_together(until, &mut self.reports, &mut done);
        }
        self.unserved += unserved;
        self.uncalled += uncalled;
    }
}

impl Method {
    /// Returns how many sections do not wait any more.
    fn put_together(&mut self, until: u64, reports: &mut Reports, take: &mut impl FnMut(HandOver)) -> usize {
        let before = self.clients.len() + self.servers.len();
        self.clients.sort_by_key(|client| (client.begin.time, client.end, client.begin));
        self.servers.sort_by_key(|server| (server.begin.time, server.end, server.begin));
        let due = self.servers.partition_point(|server| server.begin.time <= until);
        let servers: Vec<Server> = self.servers.drain(..due).collect();
        let mut clients = std::mem::take(&mut self.clients).into_iter().peekable();
        let mut open: VecDeque<Client> = VecDeque::new();
        let mut early: Vec<Server> = Vec::new();
        for server in servers {
            let at = server.begin.time;
            while let Some(client) = clients.next_if(|client| client.begin.time <= at) {
                open.push_back(client);
            }
            let is_open = |client: &Client| client.end >= at && client.begin != server.begin;
            let place = open.iter().position(is_open);
            self.is_synchronous |= place.is_some();
            match place.or((!self.is_synchronous && !open.is_empty()).then_some(0)) {
                Some(place) => {
                    let client = open.remove(place);
                    take(self.hand_over(reports, client, Some(server)));
                }
                None => early.push(server),
            }
            // Who waits for the server, and has ended, was not served.
            while self.is_synchronous
                && let Some(client) = open.pop_front_if(|client| client.end < at)
            {
                take(self.hand_over(reports, Some(client), None));
            }
        }
        let mut later: VecDeque<Client> = open.into_iter().chain(clients).collect();
        for server in early {
            // Begun before the call that it must be of: one that began while the server ran.
            let is_late =
                |client: &Client| client.begin.time > server.begin.time && client.begin.time <= server.end;
            let client = later.iter().position(is_late).and_then(|place| later.remove(place));
            take(self.hand_over(reports, client, Some(server)));
        }
        while let Some(client) = later.pop_front_if(|client| client.end <= until) {
            take(self.hand_over(reports, Some(client), None));
        }
        self.clients = later.into();
        before - self.clients.len() - self.servers.len()
    }

    fn hand_over(&self, reports: &mut Reports, client: Option<Client>, server: Option<Server>) -> HandOver {
        let (received, work) = (server.map(|server| server.begin), server.and_then(|server| server.work));
        let gate = server.and_then(|server| server.gate);
        HandOver {
            from: client.and_then(|client| client.tag),
            to: work.map(|work| work.tag).or(server.and_then(|server| server.tag)),
            dispatch: client.map(|client| client.begin),
            receive: received.map(|at| gate.map_or(at, |gate| at.at(gate))),
            received_first: received.filter(|_| gate.is_some()).map(|at| at.stamp()),
            start: work.map(|work| work.begin),
            end: work.map(|work| work.end),
            finish: client.and_then(|client| self.finish(reports, &client, server.as_ref())),
            ..HandOver::new(Source::Interface)
        }
    }

    /// Returns when the one who called had the result, ns: when a callback reported it, or when the call returned, unless that
    /// was before the work was done.
    fn finish(&self, reports: &mut Reports, client: &Client, server: Option<&Server>) -> Option<u64> {
        if let Some(callback) = self.callback.filter(|callback| reports.has(*callback)) {
            return reports.take(callback, client.begin.pid, client.begin.time);
        }
        let done = server.map_or(client.begin.time, |server| server.end);
        // Of a callback, the end is not known.
        Some(client.end).filter(|end| *end >= done && *end > client.begin.time)
    }
}
