//! Executions that go on while nobody waits for them: in flight between two calls of the runtime, and in a driver
//! between the call that starts them and the notification.
//!
//! Source: the mark contract, section 3. First in, first out per process: the marks name no execution.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::{app_phases::ReportSlot, limits::Limits, section_sites::Place};

/// All executions.
pub(crate) struct Executions {
    processes: HashMap<u32, Process>,
    /// Executions of which the other end has not come, and the most that are kept of them.
    open: usize,
    most_open: usize,
    /// Executions that were forgotten before their other end came, as too many were open.
    pub(crate) forgotten: u64,
    /// Calls of the last instant, with their processes and threads: they count in the order of the threads, so that the order of
    /// a file does not matter.
    calls: Vec<(u32, u32, Call)>,
    /// Time of the last instant, ns.
    now: u64,
}

/// Call of the runtime.
#[derive(Clone, Copy)]
enum Call {
    /// Starts an execution.
    Start { stretch: ReportSlot, returned: u64 },
    /// Waits for one.
    Wait { begin: u64 },
}

/// Places of sections that one execution in a driver may cover.
const MOST_PLACES: usize = 1 << 10;

impl Default for Executions {
    fn default() -> Self {
        Self::new(&Limits::default())
    }
}

/// Executions of one process.
#[derive(Default)]
struct Process {
    /// Started by the runtime and not waited for yet.
    started: VecDeque<Started>,
    /// Time in flight, ns, by where the execution was started.
    in_flight: BTreeMap<ReportSlot, i64>,
    /// Begun in the driver and not done yet.
    begun: VecDeque<Begun>,
    /// Time in the driver, ns, by where it began.
    in_driver: BTreeMap<ReportSlot, i64>,
    /// When the last of those in the driver was done, ns.
    last_done: u64,
}

struct Started {
    stretch: ReportSlot,
    tid: u32,
    /// When the call that started it returned, ns.
    returned: u64,
}

struct Begun {
    stretch: ReportSlot,
    tid: u32,
    time: u64,
    /// Sections of the driver that this execution covers if it is ever done.
    sections: Vec<(Place, u64)>,
}

/// An execution of which the other end never came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unfinished {
    /// The process.
    pub pid: u32,
    /// The thread that started it.
    pub tid: u32,
    /// When, ns.
    pub time: u64,
    /// Whether that was in a driver.
    pub in_driver: bool,
}

impl Executions {
    /// Creates the state without any executions.
    #[must_use]
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            processes: HashMap::new(),
            open: 0,
            most_open: limits.open_slices,
            forgotten: 0,
            calls: Vec::new(),
            now: 0,
        }
    }

    /// The runtime's call that starts an execution returned at `returned` (ns). Calls come in order of that time.
    pub(crate) fn started(&mut self, pid: u32, tid: u32, stretch: ReportSlot, returned: u64) {
        self.call(pid, tid, Call::Start { stretch, returned }, returned);
    }

    fn call(&mut self, pid: u32, tid: u32, call: Call, returned: u64) {
        if returned > self.now {
            self.settle();
            self.now = returned;
        }
        self.calls.push((pid, tid, call));
    }

    /// Everything up to this time (ns) has come.
    #[inline]
    pub(crate) fn advance(&mut self, until: u64) {
        if !self.calls.is_empty() && until >= self.now {
            self.settle();
        }
    }

    fn settle(&mut self) {
        let mut calls = std::mem::take(&mut self.calls);
        calls.sort_by_key(|(pid, tid, _)| (*pid, *tid));
        for (pid, tid, call) in calls.drain(..) {
            match call {
                Call::Start { stretch, returned } => {
                    let started = Started { stretch, tid, returned };
                    self.processes.entry(pid).or_default().started.push_back(started);
                    self.opens();
                }
                Call::Wait { begin } => self.has_waited(pid, begin),
            }
        }
        self.calls = calls;
    }

    fn opens(&mut self) {
        self.open += 1;
        if self.open > self.most_open {
            self.forget_oldest();
        }
    }

    /// Forgets the older half of each process's.
    #[cold]
    fn forget_oldest(&mut self) {
        for process in self.processes.values_mut() {
            let (started, begun) = (process.started.len().div_ceil(2), process.begun.len().div_ceil(2));
            process.started.drain(..started);
            process.begun.drain(..begun);
            self.open -= started + begun;
            self.forgotten += (started + begun) as u64;
        }
    }

    /// A wait for an execution that began at `begin` (ns) is over.
    pub(crate) fn waited(&mut self, pid: u32, tid: u32, begin: u64, returned: u64) {
        self.call(pid, tid, Call::Wait { begin }, returned);
    }

    fn has_waited(&mut self, pid: u32, begin: u64) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        // A wait without an execution started by a call: a burst, or what was started before anybody listened.
        if let Some(started) = process.started.pop_front() {
            self.open -= 1;
            let sum = process.in_flight.entry(started.stretch).or_default();
            *sum = sum.saturating_add(length(started.returned, begin));
        }
    }

    /// An execution begins in a driver at `time` (ns). Calls come in order of time.
    pub(crate) fn driver_begins(&mut self, pid: u32, tid: u32, stretch: ReportSlot, time: u64) {
        let begun = Begun { stretch, tid, time, sections: Vec::new() };
        self.processes.entry(pid).or_default().begun.push_back(begun);
        self.opens();
    }

    /// A driver reports an execution done at `time` (ns). Returns the sections that it covers.
    pub(crate) fn driver_done(&mut self, pid: u32, time: u64) -> Vec<(Place, u64)> {
        let Some(process) = self.processes.get_mut(&pid) else { return Vec::new() };
        let Some(begun) = process.begun.pop_front() else { return Vec::new() };
        self.open -= 1;
        let sum = process.in_driver.entry(begun.stretch).or_default();
        *sum = sum.saturating_add(length(begun.time, time));
        process.last_done = process.last_done.max(time);
        begun.sections
    }

    /// A section of a process that began at `begin` (ns) has ended now: whether an execution covers it. If that is
    /// not known yet, its place and own time (ns) are kept until it is.
    pub(crate) fn covers(&mut self, pid: u32, begin: u64, place: Place, own: u64) -> bool {
        let Some(process) = self.processes.get_mut(&pid) else { return false };
        if process.last_done > begin {
            return true;
        }
        // All of them began before now. If any is ever done, the oldest is.
        if let Some(oldest) = process.begun.front_mut() {
            let is_full = oldest.sections.len() >= MOST_PLACES;
            match oldest.sections.iter_mut().rev().take(4).find(|(known, _)| *known == place) {
                Some((_, sum)) => *sum = sum.saturating_add(own),
                None if is_full => self.forgotten += 1,
                None => oldest.sections.push((place, own)),
            }
        }
        false
    }

    /// Time in flight, ns, by process and by where the execution was started.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = (u32, ReportSlot, i64)> {
        self.processes.iter().flat_map(|(&pid, process)| {
            process.in_flight.iter().map(move |(&stretch, &ns)| (pid, stretch, ns))
        })
    }

    /// Time in drivers, ns, by process and by where the execution began.
    pub(crate) fn in_driver(&self) -> impl Iterator<Item = (u32, ReportSlot, i64)> {
        self.processes.iter().flat_map(|(&pid, process)| {
            process.in_driver.iter().map(move |(&stretch, &ns)| (pid, stretch, ns))
        })
    }

    /// Returns the executions whose other end never came, in no order.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = Unfinished> {
        self.processes.iter().flat_map(|(&pid, process)| {
            let end = move |tid, time, in_driver| Unfinished { pid, tid, time, in_driver };
            let started = process.started.iter().map(move |e| end(e.tid, e.returned, false));
            started.chain(process.begun.iter().map(move |e| end(e.tid, e.time, true)))
        })
    }
}

/// Returns the time from `begin` to `end`, ns; 0 if the one is after the other, as when a wait begins before the start
/// returned.
fn length(begin: u64, end: u64) -> i64 {
    i64::try_from(end.saturating_sub(begin)).unwrap_or(i64::MAX)
}
