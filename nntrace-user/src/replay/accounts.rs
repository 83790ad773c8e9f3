//! The marks of every thread of a trace, one stack each: the same accounting that runs in the kernel programs.

use std::collections::BTreeMap;

use nntrace_common::{
    mark::{self, Kind},
    record::{BeginRecord, Record, SpanRecord},
    stack::{Closed, Stack},
};
use rustc_hash::FxHashMap;

use super::{begins::Begins, ftrace::Event, oddities::Oddities};
use crate::model::{Marks, causality::Causality, marks::OpenSection, names::Names, stacks::Paths};

/// Thread ids that are looked up in a table; Linux has none that are larger.
const TABLE: usize = 1 << 22;

/// All threads of a trace.
#[derive(Default)]
pub struct Accounts {
    threads: Vec<Thread>,
    /// Number of a thread plus one, by its id.
    table: Vec<u32>,
    /// The same for ids that no Linux gives.
    others: FxHashMap<u32, u32>,
    /// What begins say.
    begins: Begins,
    /// Names of the threads of processes: that of the main thread, else of the one with the smallest id.
    comms: BTreeMap<u32, (u32, Box<[u8]>)>,
    /// Threads whose id went to another process.
    replaced: Vec<Thread>,
}

struct Thread {
    tid: u32,
    /// Process; `None` while nothing has told it.
    pid: Option<u32>,
    takes_part: bool,
    stack: Box<Stack>,
    /// Oddities of a thread that takes no part yet: they are nobody's loss unless it does.
    held: Option<Box<Oddities>>,
}

impl Thread {
    fn new(tid: u32) -> Self {
        Self { tid, pid: None, takes_part: false, stack: Box::new(Stack::EMPTY), held: None }
    }

    /// Its process. A trace without that column, and marks without a number, leave the thread's own id.
    fn process(&self) -> u32 {
        self.pid.unwrap_or(self.tid)
    }
}

/// What the accounting of one mark works with.
pub struct Context<'a> {
    /// Where names are kept.
    pub names: &'a mut Names,
    /// Where stacks are kept.
    pub paths: &'a mut Paths,
    /// Where oddities are counted.
    pub oddities: &'a mut Oddities,
    /// What is told what begins say.
    pub causality: &'a mut Causality,
    /// Whether it is told every begin.
    pub tells_begins: bool,
}

impl Accounts {
    /// Takes a mark that `event` brought at `now` (ns), and hands what comes of it to `sink`.
    pub fn mark(
        &mut self,
        event: &Event<'_>,
        payload: &[u8],
        now: u64,
        context: &mut Context<'_>,
        mut sink: impl FnMut(Record),
    ) {
        let Some(kind @ (Kind::Begin | Kind::End)) = mark::kind(payload) else { return };
        let number = self.number(event, payload, kind == Kind::Begin);
        let thread = &mut self.threads[number];
        let (tgid, tid) = (thread.process(), thread.tid);
        let diagnostics = if kind == Kind::Begin {
            let said = self.begins.read(payload, context.names);
            thread.takes_part |= said.takes_part;
            if said.label.is_tagged() && (said.has_attributes || context.tells_begins) {
                context.causality.begins((tgid, tid), now, payload, said.name_at);
            }
            if said.told {
                sink(Record::Begin(BeginRecord::new(tgid, tid, said.label, said.name, now)));
            }
            let takes_part = thread.takes_part;
            thread.stack.begin(now, said.prefix, said.label, said.name, |stack, closed| {
                close((tgid, tid, takes_part), stack, closed, context.paths, &mut sink);
            })
        } else {
            let takes_part = thread.takes_part;
            thread.stack.end(now, |stack, closed| {
                close((tgid, tid, takes_part), stack, closed, context.paths, &mut sink);
            })
        };
        if !diagnostics.is_empty() {
            let oddities =
                if thread.takes_part { &mut *context.oddities } else { thread.held.get_or_insert_default() };
            oddities.add_all(diagnostics, now, tid, payload);
        }
    }

    /// The process of the thread of an event, as far as it is known.
    pub fn process(&mut self, event: &Event<'_>, payload: &[u8]) -> u32 {
        let number = self.number(event, payload, false);
        self.threads[number].process()
    }

    /// The thread of an event; made when it is new. An id that another process has now is another thread.
    fn number(&mut self, event: &Event<'_>, payload: &[u8], begins: bool) -> usize {
        let number = match self.slot(event.tid) {
            Some(number) => number,
            None => self.make(event),
        };
        let thread = &mut self.threads[number];
        let told = match event.tgid {
            Some(tgid) => Some(tgid),
            // The number in a mark is the writer's own idea; it decides only where nothing else does.
            None if thread.pid.is_none() => mark::pid(payload),
            None if begins && thread.stack.is_empty() => mark::pid(payload).or(thread.pid),
            None => thread.pid,
        };
        if told != thread.pid && told.is_some() {
            if thread.pid.is_some() {
                let old = std::mem::replace(thread, Thread::new(event.tid));
                self.replaced.push(old);
            }
            self.threads[number].pid = told;
            self.name_process(number, event.comm);
        }
        number
    }

    #[inline]
    fn slot(&self, tid: u32) -> Option<usize> {
        let slot = match self.table.get(tid as usize) {
            Some(&slot) => slot,
            None if (tid as usize) < TABLE => return None,
            None => *self.others.get(&tid)?,
        };
        (slot as usize).checked_sub(1)
    }

    #[cold]
    fn make(&mut self, event: &Event<'_>) -> usize {
        let (tid, number) = (event.tid as usize, self.threads.len());
        self.threads.push(Thread::new(event.tid));
        let slot = number as u32 + 1;
        if tid < TABLE {
            if self.table.len() <= tid {
                self.table.resize(tid + 1, 0);
            }
            self.table[tid] = slot;
        } else {
            self.others.insert(event.tid, slot);
        }
        number
    }

    #[cold]
    fn name_process(&mut self, number: usize, comm: &[u8]) {
        let (pid, tid) = (self.threads[number].process(), self.threads[number].tid);
        // What the tracer did not know it writes as `<...>`.
        if comm.is_empty() || comm == b"<...>" {
            return;
        }
        let rank = |tid: u32| (tid != pid, tid);
        match self.comms.get(&pid) {
            Some((known, _)) if rank(*known) <= rank(tid) => {}
            _ => {
                self.comms.insert(pid, (tid, comm.into()));
            }
        }
    }

    /// The processes of the threads that have marks, by thread.
    #[must_use]
    pub fn processes(&self) -> BTreeMap<u32, u32> {
        self.replaced.iter().chain(&self.threads).map(|thread| (thread.tid, thread.process())).collect()
    }

    /// The names of the processes.
    pub fn names(&self) -> impl Iterator<Item = (u32, String)> {
        self.comms.iter().map(|(&pid, (_, comm))| (pid, String::from_utf8_lossy(comm).into_owned()))
    }

    /// The end of the trace: what is still open.
    pub fn finish(self, marks: &mut Marks, oddities: &mut Oddities) {
        for thread in self.threads.iter().chain(&self.replaced).filter(|thread| thread.takes_part) {
            if let Some(held) = &thread.held {
                oddities.merge(held);
            }
            let open = thread.stack.open_frames().map(|frame| OpenSection::new(thread.tid, frame));
            marks.open.extend(open);
            marks.sites.takes_part(thread.process(), thread.tid);
        }
        // As threads come in a file is no order to show.
        marks.open.sort_by_key(|open| (open.begin, open.tid));
    }
}

fn close(
    (tgid, tid, takes_part): (u32, u32, bool),
    stack: &Stack,
    closed: &Closed,
    paths: &mut Paths,
    sink: &mut impl FnMut(Record),
) {
    if !paths.contains(closed.path) {
        stack.steps(closed.depth, |path, step| paths.insert(path, step));
    }
    sink(Record::Span(SpanRecord::new(tgid, tid, takes_part, closed)));
}
