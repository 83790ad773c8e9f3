//! Collection of what a run's model takes, as far as predictions are made of it.

use std::{cell::RefCell, collections::BTreeSet, rc::Rc};

use nntrace_common::{
    attributes::{Attributes, Handle, RECEIVE, Reserved, SEND},
    mark,
    record::{Record, SchedRecord, SpanRecord},
    rivals::RivalRecord,
    sched::Change,
    stamp::Stamp,
};
use rustc_hash::FxHashMap;

use super::component::Components;
use crate::model::{
    Scheduling,
    causality::{Origin, instant_name_at},
    devices::DeviceJobs,
    function_names::Names,
    input::{Input, Observe, Observer},
};

/// Memory that each event takes at most until an answer is made, bytes: as collected, as a point with an edge, and its place
/// in two schedules.
const BYTES_PER_EVENT: u64 = 320;

/// Attribute of a section that holds a lock: its name.
const LOCK: &[u8] = b"lock";
/// Attribute of a dispatch: how many items its queue has room for.
const ROOM: &[u8] = b"cap";
/// Attribute of a dispatch: name of its queue.
const QUEUE: &[u8] = b"queue";

/// Section that ended.
#[derive(Clone, Copy, Debug)]
pub(in crate::analyze) struct Span {
    pub(in crate::analyze) tid: u32,
    pub(in crate::analyze) begin: Stamp,
    pub(in crate::analyze) end: Stamp,
    pub(in crate::analyze) depth: u8,
    pub(in crate::analyze) component: u32,
    pub(in crate::analyze) iteration: Option<u64>,
    /// Number of the lock that it holds.
    pub(in crate::analyze) lock: Option<u32>,
}

/// Dispatch or receipt of work with a handle.
#[derive(Clone, Copy, Debug)]
pub(in crate::analyze) struct Handed {
    pub(in crate::analyze) tid: u32,
    pub(in crate::analyze) at: Stamp,
    /// Handle, by process, or 0 for one of the system.
    pub(in crate::analyze) key: (u32, Handle),
    pub(in crate::analyze) is_send: bool,
    /// Number of the queue, where a dispatch names it.
    pub(in crate::analyze) queue: Option<u32>,
    /// Items that the queue has room for, where a dispatch says so.
    pub(in crate::analyze) room: Option<u32>,
}

/// Wake-up of a thread.
#[derive(Clone, Copy, Debug)]
pub(in crate::analyze) struct Wake {
    pub(in crate::analyze) tid: u32,
    pub(in crate::analyze) time: u64,
    /// Thread that ran where it was woken from.
    pub(in crate::analyze) by: u32,
}

/// Turn on a CPU of a thread that is not traced.
#[derive(Clone, Copy, Debug)]
pub(in crate::analyze) struct RivalTurn {
    pub(in crate::analyze) cpu: u32,
    /// Begin and end, ns.
    pub(in crate::analyze) times: (u64, u64),
    /// Number of the rival.
    pub(in crate::analyze) rival: u32,
}

/// Untraced threads of one name together: shells and compilers start many short processes.
#[derive(Clone, Debug, Default)]
pub(in crate::analyze) struct Rival {
    /// Their name; empty where it is not known.
    pub(in crate::analyze) name: String,
    /// Process and thread ids.
    pub(in crate::analyze) threads: BTreeSet<(u32, u32)>,
}

/// Attributes of a section that is open.
#[derive(Clone, Copy, Debug, Default)]
struct Attributed {
    iteration: Option<u64>,
    lock: Option<u32>,
}

/// Numbers of texts.
#[derive(Debug, Default)]
pub(in crate::analyze) struct Numbers(FxHashMap<Box<[u8]>, u32>);

impl Numbers {
    fn number(&mut self, text: &[u8]) -> u32 {
        let next = self.0.len() as u32;
        if let Some(number) = self.0.get(text) {
            return *number;
        }
        self.0.insert(text.into(), next);
        next
    }

    /// Returns all texts with their numbers.
    pub(in crate::analyze) fn iter(&self) -> impl Iterator<Item = (u32, String)> {
        self.0.iter().map(|(text, number)| (*number, String::from_utf8_lossy(text).into_owned()))
    }
}

/// Collected events of a run.
#[derive(Debug, Default)]
pub(in crate::analyze) struct Events {
    pub(in crate::analyze) spans: Vec<Span>,
    pub(in crate::analyze) handed: Vec<Handed>,
    pub(in crate::analyze) wakes: Vec<Wake>,
    /// Threads that were created: time (ns), by whom, who.
    pub(in crate::analyze) created: Vec<(u64, u32, u32)>,
    /// Threads that ended, with the time, ns.
    pub(in crate::analyze) ended: Vec<(u64, u32)>,
    pub(in crate::analyze) components: Components,
    /// States of threads; `None` where there is no context switch.
    pub(in crate::analyze) scheduling: Option<Scheduling>,
    /// Jobs of devices.
    pub(in crate::analyze) devices: DeviceJobs,
    /// Process of each thread that has marks.
    pub(in crate::analyze) processes: FxHashMap<u32, u32>,
    /// How many events came, those beyond the limit included.
    count: u64,
    open: FxHashMap<(u32, Stamp, u8), Attributed>,
    /// Turns of rivals, by their ends.
    pub(in crate::analyze) rival_turns: Vec<RivalTurn>,
    /// Rivals by their numbers.
    pub(in crate::analyze) rivals: Vec<Rival>,
    rival_names: Numbers,
    /// Names of locks, by number.
    pub(in crate::analyze) locks: Numbers,
    queues: Numbers,
}

/// Collector of the events of a run.
pub struct Collector {
    events: Rc<RefCell<Events>>,
    most: u64,
}

impl Collector {
    /// Creates a collector that takes so much memory at most, with the prediction, bytes.
    #[must_use]
    pub fn new(memory: u64) -> Self {
        Self { events: Rc::default(), most: memory / BYTES_PER_EVENT }
    }

    /// Returns an observer of a model that collects again.
    #[must_use]
    pub fn observer(&self) -> Observer {
        self.events.take();
        Observer::new(EventObserver { events: Rc::clone(&self.events), most: self.most })
    }

    /// Returns the events.
    ///
    /// # Errors
    /// With the reason, when there were more than there is room for.
    pub(in crate::analyze) fn finish(&self) -> Result<Events, String> {
        let events = self.events.take();
        if events.count > self.most {
            return Err(format!(
                "{} sections, hand-overs and context switches are more than there is room for ({}): give {} with --memory, or choose \
                 a part of a trace with --time-range",
                events.count,
                self.most,
                megabytes(events.count.saturating_mul(BYTES_PER_EVENT))
            ));
        }
        Ok(events)
    }
}

/// Returns a size in megabytes, rounded up.
fn megabytes(bytes: u64) -> String {
    format!("{}M", bytes.div_ceil(1 << 20))
}

struct EventObserver {
    events: Rc<RefCell<Events>>,
    most: u64,
}

impl Observe for EventObserver {
    fn input(&mut self, input: &Input<'_>, names: &Names) {
        let events = &mut *self.events.borrow_mut();
        let count = match input {
            Input::Record(Record::Span(_)) | Input::SpanAnywhere(_) => 2,
            Input::Record(Record::Sched(_) | Record::Rival(_) | Record::Fork(_) | Record::Exit(_))
            | Input::AnnotatedBegin { .. }
            | Input::ThreadWatched { .. }
            | Input::Device { .. } => 1,
            _ => 0,
        };
        if count > 0 && !events.has_room(self.most, count) {
            return;
        }
        match *input {
            Input::Record(Record::Span(span)) | Input::SpanAnywhere(span) => events.span(span, names),
            Input::AnnotatedBegin { origin, time, payload, name_at } => {
                events.begin(origin, time, payload, name_at);
            }
            Input::Track { origin, time, payload } => events.track(self.most, origin, time, payload),
            Input::Record(Record::Sched(event)) => events.sched(event),
            Input::Record(Record::Rival(turn)) => events.rival(turn),
            Input::Record(Record::Fork(fork)) => events.created.push((fork.time, fork.detail, fork.tid)),
            Input::Record(Record::Exit(exit)) => events.ended.push((exit.time, exit.tid)),
            Input::SchedulingBegins { begin } => {
                events.scheduling = Some(Scheduling::keeping_all(begin));
                events.wakes.clear();
            }
            Input::ThreadWatched { pid, tid, since, found } => {
                events.scheduling().watch(pid, tid, since, found);
            }
            Input::Device { event, time, submitter, .. } => events.devices.take(event, time, submitter),
            Input::DevicesLost { time } => events.devices.lost(time),
            Input::SchedulingLost { cpu, lost, time } => events.scheduling().lost_by(cpu, lost, time),
            _ => {}
        }
    }
}

impl Events {
    /// Counts events; returns whether there is room for them.
    fn has_room(&mut self, most: u64, count: u64) -> bool {
        self.count += count;
        self.count <= most
    }

    fn scheduling(&mut self) -> &mut Scheduling {
        self.scheduling.get_or_insert_with(|| Scheduling::keeping_all(0))
    }

    fn span(&mut self, span: &SpanRecord, names: &Names) {
        let Some(tag) = span.tag() else { return };
        let attributed = if self.open.is_empty() {
            None
        } else {
            self.open.remove(&(span.tid, span.begin_stamp(), span.depth))
        };
        let Attributed { iteration, lock } = attributed.unwrap_or_default();
        self.processes.insert(span.tid, span.tgid);
        self.spans.push(Span {
            tid: span.tid,
            begin: span.begin_stamp(),
            end: span.end_stamp(),
            depth: span.depth,
            component: self.components.number(tag, span.name, || names.text(span.name)),
            iteration,
            lock,
        });
    }

    fn rival(&mut self, turn: &RivalRecord) {
        let RivalRecord { tid, tgid, cpu, begin, end, .. } = *turn;
        let rival = self.rival_names.number(turn.name());
        if self.rivals.len() <= rival as usize {
            let name = String::from_utf8_lossy(turn.name()).into_owned();
            self.rivals.push(Rival { name, ..Rival::default() });
        }
        self.rivals[rival as usize].threads.insert((tgid, tid));
        self.rival_turns.push(RivalTurn { cpu, times: (begin, end), rival });
    }

    fn begin(&mut self, origin: Origin, time: u64, payload: &[u8], name_at: u16) {
        let attributes = Attributes::of(payload, name_at);
        let reserved = Reserved::read(attributes.clone());
        if let Some(handle) = reserved.handle {
            self.handed(origin, time, handle, false, attributes.clone());
        }
        let lock = attributes.filter(|(key, _)| *key == LOCK).last();
        let lock = lock.map(|(_, name)| self.locks.number(name));
        if reserved.iteration.is_some() || lock.is_some() {
            let attributed = Attributed { iteration: reserved.iteration, lock };
            self.open.insert((origin.tid, origin.at(time), origin.depth), attributed);
        }
    }

    fn track(&mut self, most: u64, origin: Origin, time: u64, payload: &[u8]) {
        let Some(at) = instant_name_at(payload) else { return };
        let is_send = match mark::name(payload, at) {
            SEND => true,
            RECEIVE => false,
            _ => return,
        };
        let attributes = Attributes::of(payload, at);
        if let Some(handle) = Reserved::read(attributes.clone()).handle.filter(|_| self.has_room(most, 1)) {
            self.handed(origin, time, handle, is_send, attributes);
        }
    }

    fn handed(
        &mut self,
        origin: Origin,
        time: u64,
        handle: Handle,
        is_send: bool,
        attributes: Attributes<'_>,
    ) {
        let pid = if matches!(handle, Handle::OfSystem(_)) { 0 } else { origin.pid };
        let mut handed = Handed {
            tid: origin.tid,
            at: origin.at(time),
            key: (pid, handle),
            is_send,
            queue: None,
            room: None,
        };
        for (key, value) in attributes.filter(|_| is_send) {
            match key {
                QUEUE => handed.queue = Some(self.queues.number(value)),
                ROOM => handed.room = str::from_utf8(value).ok().and_then(|room| room.parse().ok()),
                _ => {}
            }
        }
        self.processes.insert(origin.tid, origin.pid);
        self.handed.push(handed);
    }

    fn sched(&mut self, event: &SchedRecord) {
        let scheduling = self.scheduling();
        // What shows a wake-up a second time may come from another CPU.
        if Change::from_code(event.change) == Some(Change::Woken) && scheduling.sleeps(event.tid) {
            let known = Some(event.tgid).filter(|by| *by != 0);
            let by = known.or_else(|| scheduling.runs_on(event.cpu)).filter(|by| *by != event.tid);
            self.wakes.extend(by.map(|by| Wake { tid: event.tid, time: event.time, by }));
        }
        self.scheduling().record(event);
    }
}
