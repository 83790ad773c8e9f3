//! Stacks of marks, one per thread of a trace: the same accounting that runs in the kernel programs.

use std::collections::{BTreeMap, BTreeSet};

use nntrace_common::{
    diagnostic::DiagnosticKind,
    mark::{self, Kind},
    record::{BeginRecord, ProcessRecord, Record, RecordKind, SpanRecord},
    stamp::Stamp,
};
use rustc_hash::FxHashMap;

use super::ftrace::Event;
use crate::model::{
    Marks,
    begin_parsing::Begins,
    causality::{Causality, Origin},
    devices::job::Submitter,
    diagnostics::DiagnosticCounts,
    function_names::Names,
    input::{Input, Observer},
    limits::Limits,
    marks::OpenSection,
    plurals::one_or_many,
    stacks::Paths,
    thread_marks::{self, ThreadMarks},
};

/// Number of thread ids that are looked up in a table; larger than any id in Linux.
const TABLE: usize = 1 << 22;

/// First id for threads whose own id is that of a thread of another process: beyond all ids of Linux.
const FIRST_TWIN: u32 = 0xc000_0000;

/// All threads of a trace.
pub(crate) struct ThreadStacks {
    threads: Vec<Thread>,
    /// Number of a thread plus one, by its id.
    table: Vec<u32>,
    /// Number of a thread plus one, by its id, for ids larger than any in Linux.
    others: FxHashMap<u32, u32>,
    /// Ids of threads whose id another process has for a thread with open sections, by that id and their process: two pid
    /// namespaces have equal ids.
    twins: FxHashMap<(u32, u32), u32>,
    /// Parser of begins.
    begins: Begins,
    /// Names of the threads of processes: that of the main thread, else of the one with the smallest id.
    comms: BTreeMap<u32, (u32, Box<[u8]>)>,
    /// Threads that are no longer kept.
    parted: Parted,
    most_threads: usize,
    most_processes: usize,
    /// Threads without room since the last attempt to make room.
    refused: usize,
}

/// Threads whose id was given to another process, or that had nothing open when room was needed.
#[derive(Default)]
struct Parted {
    /// Their processes, by thread: the last one of each id.
    processes: BTreeMap<u32, u32>,
    /// All processes of these threads.
    all_processes: BTreeSet<u32>,
    /// Diagnostics of the threads that took part.
    diagnostics: DiagnosticCounts,
    /// Their open sections, and the number of those without room.
    open: Vec<OpenSection>,
    left_out: u64,
}

struct Thread {
    tid: u32,
    /// Process id; `None` while it is unknown.
    pid: Option<u32>,
    marks: ThreadMarks,
    begins: BeginNumbers,
}

/// Numbers of the events that began the open sections of a thread, by depth.
#[derive(Default)]
struct BeginNumbers(Vec<u32>);

impl BeginNumbers {
    /// A section begins at this depth.
    #[inline]
    fn began(&mut self, depth: u8, sequence: u32) {
        let depth = usize::from(depth);
        if self.0.len() <= depth {
            self.0.resize(depth + 1, 0);
        }
        self.0[depth] = sequence;
    }

    /// Returns the number of the last begin at this depth.
    #[inline]
    fn of(&self, depth: u8) -> u32 {
        self.0.get(usize::from(depth)).copied().unwrap_or_default()
    }

    /// Numbers the begin and the end of a section that ends with this event.
    #[inline]
    fn number(&self, span: SpanRecord, end_sequence: u32) -> SpanRecord {
        SpanRecord { begin_sequence: self.of(span.depth), end_sequence, ..span }
    }
}

impl Thread {
    fn new(tid: u32) -> Self {
        Self { tid, pid: None, marks: ThreadMarks::default(), begins: BeginNumbers::default() }
    }

    /// Returns the process id. In a trace without that column, and with marks without a number, it is the thread's
    /// own id.
    fn process(&self) -> u32 {
        self.pid.unwrap_or(self.tid)
    }
}

/// Context for accounting one mark.
pub(crate) struct Context<'a> {
    /// Names of sections.
    pub names: &'a mut Names,
    /// Paths of stacks.
    pub paths: &'a mut Paths,
    /// Counts of diagnostics.
    pub diagnostics: &'a mut DiagnosticCounts,
    /// Receiver of the texts of begins.
    pub causality: &'a mut Causality,
    /// Whether it needs every begin.
    pub emits_begins: bool,
    /// Consumer of what the model takes.
    pub observer: Option<&'a mut Observer>,
}

impl ThreadStacks {
    /// Creates the state without any thread.
    #[must_use]
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            threads: Vec::new(),
            table: Vec::new(),
            others: FxHashMap::default(),
            twins: FxHashMap::default(),
            begins: Begins::default(),
            comms: BTreeMap::new(),
            parted: Parted::default(),
            most_threads: limits.threads,
            most_processes: limits.processes,
            refused: 0,
        }
    }

    /// Takes a mark from `event`, which counts from this time on, and passes the resulting records to `sink`.
    pub(crate) fn mark(
        &mut self,
        event: &Event<'_>,
        payload: &[u8],
        Stamp { time: now, sequence }: Stamp,
        context: &mut Context<'_>,
        mut sink: impl FnMut(&mut Causality, Record),
    ) {
        let Some(kind @ (Kind::Begin | Kind::End)) = mark::kind(payload) else { return };
        let Some(number) = self.number(event, payload, kind == Kind::Begin) else {
            context.diagnostics.add(DiagnosticKind::TableFull, now, event.tid, payload);
            return;
        };
        let thread = &mut self.threads[number];
        let (tgid, tid) = (thread.process(), thread.tid);
        let found = if kind == Kind::Begin {
            let begin = self.begins.read(payload, context.names);
            if thread.marks.join(&begin) {
                let kind = RecordKind::TakesPart as u32;
                let record = ProcessRecord { kind, tgid, tid, detail: 0, time: now };
                sink(context.causality, Record::TakesPart(record));
            }
            if begin.label.is_tagged()
                && (begin.has_attributes || context.emits_begins)
                && let Some(depth) = thread.marks.stack().depth_of_next(begin.prefix)
            {
                let origin = Origin { pid: tgid, tid, depth, sequence };
                context.causality.begins(origin, event.time, payload, begin.name_at);
                if let Some(observer) = &mut context.observer {
                    let name_at = begin.name_at;
                    // A section that began before the window begins with it.
                    observer
                        .input(&Input::AnnotatedBegin { origin, time: now, payload, name_at }, context.names);
                }
            }
            if begin.is_reported {
                let record = BeginRecord::new(tgid, tid, begin.label, begin.name, now);
                let record = BeginRecord { sequence, ..record };
                sink(context.causality, Record::Begin(record));
            }
            let depth = thread.marks.stack().depth_of_next(begin.prefix);
            let Thread { marks, begins, .. } = thread;
            let ids = (tgid, tid, marks.is_marked());
            let found = marks.begin(now, &begin, |stack, closed| {
                let span = thread_marks::span(ids, stack, closed, context.paths);
                sink(context.causality, Record::Span(begins.number(span, sequence)));
            });
            if let Some(depth) = depth {
                begins.began(depth, sequence);
            }
            found
        } else {
            let Thread { marks, begins, .. } = thread;
            let ids = (tgid, tid, marks.is_marked());
            marks.end(now, |stack, closed| {
                let span = thread_marks::span(ids, stack, closed, context.paths);
                sink(context.causality, Record::Span(begins.number(span, sequence)));
            })
        };
        thread.marks.diagnose(found, now, tid, payload, context.diagnostics);
    }

    /// Returns where an event with this number was written: its thread and process, as far as they are known.
    pub(crate) fn origin(&mut self, event: &Event<'_>, payload: &[u8], sequence: u32) -> Origin {
        let Some(number) = self.number(event, payload, false) else {
            let pid = event.tgid.or_else(|| mark::pid(payload)).unwrap_or(event.tid);
            return Origin { pid, tid: event.tid, depth: 0, sequence };
        };
        let thread = &self.threads[number];
        Origin { pid: thread.process(), tid: thread.tid, depth: thread.marks.stack().innermost(), sequence }
    }

    /// Returns the thread of an event and the innermost section that it is in. Of a thread without marks that the trace has no
    /// process of, the process is its own id.
    pub(crate) fn submitter(&self, event: &Event<'_>) -> Submitter {
        let twin = event.tgid.and_then(|tgid| self.twins.get(&(event.tid, tgid)));
        let tid = *twin.unwrap_or(&event.tid);
        let thread = self.slot(tid).map(|number| &self.threads[number]);
        let thread = thread.filter(|thread| event.tgid.is_none_or(|tgid| tgid == thread.process()));
        let innermost = thread.and_then(|thread| thread.marks.stack().open_frames().last());
        Submitter {
            pid: event.tgid.or_else(|| thread.map(Thread::process)).unwrap_or(tid),
            tid,
            section: innermost.and_then(|(_, frame)| Some((frame.tag()?, frame.name))),
        }
    }

    /// Returns the names of open sections.
    pub(crate) fn open_names(&self) -> impl Iterator<Item = u64> {
        let open = self
            .threads
            .iter()
            .flat_map(|thread| thread.marks.stack().open_frames().map(|(_, frame)| frame.name));
        open.chain(self.parted.open.iter().map(|open| open.name))
    }

    /// Forgets the parsed begins, as their names have been forgotten.
    pub(crate) fn read_names_again(&mut self) {
        self.begins = Begins::default();
    }

    /// Returns the thread of an event; a new one is created, `None` when there is no room for it. An id that now
    /// belongs to another process is another thread.
    fn number(&mut self, event: &Event<'_>, payload: &[u8], begins: bool) -> Option<usize> {
        let tid = self.id(event);
        let number = match self.slot(tid) {
            Some(number) => number,
            None => self.make(tid)?,
        };
        let thread = &mut self.threads[number];
        let told = match event.tgid {
            Some(tgid) => Some(tgid),
            // The number in a mark comes from its writer, and decides only where nothing else does.
            None if thread.pid.is_none() => mark::pid(payload),
            None if begins && thread.marks.stack().is_empty() => mark::pid(payload).or(thread.pid),
            None => thread.pid,
        };
        if told != thread.pid && told.is_some() {
            if thread.pid.is_some() {
                let old = std::mem::replace(thread, Thread::new(tid));
                self.parted.add(&old, self.most_threads);
            }
            self.threads[number].pid = told;
            self.name_process(number, event.comm);
        }
        Some(number)
    }

    /// Returns the id of the thread of an event: its own, or, where a thread of another process has it and is at work, one that
    /// stands for it.
    #[inline]
    fn id(&mut self, event: &Event<'_>) -> u32 {
        let Some(tgid) = event.tgid else { return event.tid };
        if !self.twins.is_empty()
            && let Some(twin) = self.twins.get(&(event.tid, tgid))
        {
            return *twin;
        }
        let thread = self.slot(event.tid).map(|number| &self.threads[number]);
        let is_of_other = |thread: &Thread| thread.pid.is_some_and(|pid| pid != tgid);
        if thread.is_some_and(|thread| is_of_other(thread) && !thread.marks.stack().is_empty()) {
            return self.twin(event.tid, tgid);
        }
        event.tid
    }

    #[cold]
    fn twin(&mut self, tid: u32, tgid: u32) -> u32 {
        if self.twins.len() >= self.most_threads {
            return tid;
        }
        let twin = FIRST_TWIN + self.twins.len() as u32;
        self.twins.insert((tid, tgid), twin);
        twin
    }

    /// Forgets the open sections of a thread that ended, as its id may be reused. The process is `None` where the event does not
    /// give it. Returns the id under which the thread is accounted; `None` if the id is in use by a thread of another process.
    pub(crate) fn exit(&mut self, tid: u32, tgid: Option<u32>) -> Option<u32> {
        let twin = tgid.and_then(|tgid| self.twins.get(&(tid, tgid)).copied());
        let tid = twin.unwrap_or(tid);
        let Some(number) = self.slot(tid) else { return Some(tid) };
        let is_of_other =
            self.threads[number].pid.zip(tgid).is_some_and(|(of_marks, of_exit)| of_marks != of_exit);
        if is_of_other {
            return None;
        }
        let old = std::mem::replace(&mut self.threads[number], Thread::new(tid));
        self.parted.add(&old, self.most_threads);
        Some(tid)
    }

    /// Returns a note on threads that are shown with an id that is not their own; `None` without any.
    pub(crate) fn note_on_twins(&self) -> Option<String> {
        let count = self.twins.len() as u64;
        (count > 0).then(|| {
            format!(
                "{count} {} the id of a thread of another process, as in containers: shown with ids from {FIRST_TWIN} on",
                one_or_many(count, "thread has", "threads have")
            )
        })
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
    fn make(&mut self, tid: u32) -> Option<usize> {
        if self.threads.len() >= self.most_threads {
            // Making room takes time, so it is not tried for every thread without room.
            if self.refused.is_multiple_of(self.most_threads / 8 + 1) {
                self.part();
            }
            if self.threads.len() >= self.most_threads {
                self.refused += 1;
                return None;
            }
        }
        let number = self.threads.len();
        self.threads.push(Thread::new(tid));
        self.set_slot(tid, number as u32 + 1);
        Some(number)
    }

    fn set_slot(&mut self, tid: u32, slot: u32) {
        let at = tid as usize;
        if at < TABLE {
            if self.table.len() <= at {
                self.table.resize(at + 1, 0);
            }
            self.table[at] = slot;
        } else if slot == 0 {
            self.others.remove(&tid);
        } else {
            self.others.insert(tid, slot);
        }
    }

    /// Drops all threads that have nothing open.
    #[cold]
    fn part(&mut self) {
        self.refused = 0;
        let (kept, idle): (Vec<_>, Vec<_>) = std::mem::take(&mut self.threads)
            .into_iter()
            .partition(|thread| !thread.marks.stack().is_empty());
        for thread in &idle {
            self.set_slot(thread.tid, 0);
            self.parted.add(thread, self.most_threads);
        }
        for (thread, slot) in kept.iter().zip(1..) {
            self.set_slot(thread.tid, slot);
        }
        self.threads = kept;
    }

    #[cold]
    fn name_process(&mut self, number: usize, comm: &[u8]) {
        let (pid, tid) = (self.threads[number].process(), self.threads[number].tid);
        // A name that the tracer did not know is `<...>`.
        if comm.is_empty() || comm == b"<...>" {
            return;
        }
        let rank = |tid: u32| (tid != pid, tid);
        match self.comms.get(&pid) {
            Some((known, _)) if rank(*known) <= rank(tid) => {}
            None if self.comms.len() >= self.most_processes => {}
            _ => {
                self.comms.insert(pid, (tid, comm.into()));
            }
        }
    }

    /// Returns the processes of the threads with marks, by thread.
    #[must_use]
    pub(crate) fn processes(&self) -> BTreeMap<u32, u32> {
        let mut processes = self.parted.processes.clone();
        for thread in &self.threads {
            // One that exited and wrote nothing since is still that of before.
            match thread.pid {
                Some(pid) => _ = processes.insert(thread.tid, pid),
                None => _ = processes.entry(thread.tid).or_insert_with(|| thread.process()),
            }
        }
        processes
    }

    /// Returns the processes that have a thread with marks.
    #[must_use]
    pub(crate) fn marking_processes(&self) -> BTreeSet<u32> {
        self.processes().into_values().chain(self.parted.all_processes.iter().copied()).collect()
    }

    /// Returns the names of the processes.
    pub(crate) fn names(&self) -> impl Iterator<Item = (u32, String)> {
        self.comms.iter().map(|(&pid, (_, comm))| (pid, String::from_utf8_lossy(comm).into_owned()))
    }

    /// Ends the trace: adds the open sections to `marks`. Returns the number of open sections without room.
    pub(crate) fn finish(self, marks: &mut Marks, diagnostics: &mut DiagnosticCounts) -> u64 {
        let Self { threads, mut parted, .. } = self;
        for thread in &threads {
            parted.add(thread, usize::MAX);
        }
        diagnostics.merge(&parted.diagnostics);
        marks.open = parted.open;
        // The order of the threads in a file is arbitrary.
        marks.open.sort_by_key(|open| (open.begin, open.tid));
        parted.left_out
    }
}

impl Parted {
    fn add(&mut self, thread: &Thread, most: usize) {
        if self.processes.len() < most {
            self.processes.insert(thread.tid, thread.process());
            self.all_processes.insert(thread.process());
        }
        thread.marks.release_held(&mut self.diagnostics);
        for open in thread.marks.open((thread.process(), thread.tid), |depth| thread.begins.of(depth)) {
            if self.open.len() < most {
                self.open.push(open);
            } else {
                self.left_out += 1;
            }
        }
    }
}
