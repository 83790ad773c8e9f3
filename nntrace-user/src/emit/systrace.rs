//! Marks and events of CPUs as the text of ftrace, which is the contract's own notation: `docs/systrace.md`.
//!
//! Marks are those of a script, merged by time, with the events of CPUs between them. The CPU of a mark is not known, and written
//! as 0: importers take it for nothing but the order of lines.

mod collector;
mod power;

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    io::{self, Write},
};

use nntrace_common::record::Record;

pub use self::collector::{Collector, SharedCollector, observer};
use super::{
    script::Script,
    steps::{Action, Step, ThreadScript},
};
use crate::model::findings::Findings;

/// Begin of the text, by which importers recognize it.
const HEADER: &str = "# tracer: nop
#
#           TASK-PID     TGID   CPU#  ||||   TIMESTAMP  FUNCTION
#              | |         |      |   ||||      |         |
";
/// Words that a replay takes the window from: `docs/power.md`.
const BEGIN: &str = "nntrace_start";
const END: &str = "nntrace_end";
/// Bits of the thread ids of Linux; a further script of a thread has its number above them.
const TID_BITS: u32 = 22;

/// Mark that a thread writes next: its time (ns) and number in the order of events, the thread's number, and its place among the
/// thread's steps.
type NextMark = (u64, u32, usize, usize);

/// Writer of the text.
pub struct Systrace<'a, W> {
    out: W,
    script: &'a Script,
    /// Next mark of each thread.
    next: BinaryHeap<Reverse<NextMark>>,
    /// Begins of the lines of each thread.
    heads: Vec<Vec<u8>>,
    line: Vec<u8>,
    /// Begin and end of the window (ns) that are not written yet.
    window: VecDeque<(u64, &'static str)>,
    /// First failure; nothing is written after it.
    failure: Option<io::Error>,
}

impl<'a, W: Write> Systrace<'a, W> {
    /// Begins the text with its header.
    pub fn new(mut out: W, script: &'a Script) -> Self {
        let failure = out.write_all(HEADER.as_bytes()).err();
        let mut text = Self {
            out,
            script,
            next: BinaryHeap::new(),
            heads: script.threads.iter().map(|thread| head(script, thread)).collect(),
            line: Vec::new(),
            window: VecDeque::new(),
            failure,
        };
        for number in 0..script.threads.len() {
            text.advance(number, 0);
        }
        text
    }

    /// Writes where the window begins and ends (ns), which a replay would else take from the first and the last line.
    #[must_use]
    pub fn of_window(mut self, findings: &Findings<'_>) -> Self {
        let (begin, end) = findings.window();
        self.window = [(begin, BEGIN), (end, END)].into();
        self
    }

    /// Adds an event of a CPU, after all marks up to its time. A failure shows at the end.
    pub fn power(&mut self, record: &Record) {
        let mut lines = Vec::new();
        power::write(record, &mut lines);
        self.lines(record.time(), &lines);
    }

    /// Adds lines of a time (ns), after all marks up to it. A failure shows at the end.
    pub fn lines(&mut self, time: u64, lines: &[u8]) {
        self.marks(time);
        self.edges(time);
        self.put(lines);
    }

    /// Adds what is left; returns what the text was written to.
    ///
    /// # Errors
    /// When something could not be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.marks(u64::MAX);
        self.edges(u64::MAX);
        self.failure.map_or(Ok(self.out), Err)
    }

    /// Writes the marks up to a time (ns).
    fn marks(&mut self, until: u64) {
        let script = self.script;
        while let Some(Reverse((time, _, number, place))) = self.next.peek().copied()
            && time <= until
        {
            self.next.pop();
            self.edges(time);
            let thread = &script.threads[number];
            let mut line = std::mem::take(&mut self.line);
            line.clear();
            line.extend_from_slice(&self.heads[number]);
            push_time(time, &mut line);
            line.extend_from_slice(b": tracing_mark_write: ");
            self.push_payload(thread, &thread.steps[place], &mut line);
            line.push(b'\n');
            self.put(&line);
            self.line = line;
            self.advance(number, place + 1);
        }
    }

    /// Writes the begin of the window before a line of a time (ns) in it, and its end before one after it: as events of
    /// their own, since Perfetto counts a mark that it does not know as a failure.
    fn edges(&mut self, time: u64) {
        while let Some((edge, word)) =
            self.window.pop_front_if(|&mut (edge, word)| edge < time || edge == time && word == BEGIN)
        {
            let mut line = b"           <...>-0       (-------) [000] .... ".to_vec();
            push_time(edge, &mut line);
            line.extend_from_slice(format!(": {word}: window\n").as_bytes());
            self.put(&line);
        }
    }

    /// Finds the next mark of a thread, from a place among its steps on.
    fn advance(&mut self, number: usize, from: usize) {
        let steps = self.script.threads[number].steps.iter().zip(0..).skip(from);
        let mut marks = steps.filter(|(step, _)| !matches!(step.action, Action::Start(_)));
        let next = marks.next().map(|(step, place)| Reverse((step.time, step.sequence, number, place)));
        self.next.extend(next);
    }

    fn push_payload(&self, thread: &ThreadScript, step: &Step, line: &mut Vec<u8>) {
        let pid = thread.pid.to_string();
        match step.action {
            Action::Begin(text) | Action::Event(text) => {
                let text = self.script.texts.text(text);
                let (kind, rest) = text.split_at(text.len().min(1));
                for piece in [kind, b"|", pid.as_bytes(), b"|"] {
                    line.extend_from_slice(piece);
                }
                push_escaped(rest, line);
            }
            Action::End => {
                line.extend_from_slice(b"E|");
                line.extend_from_slice(pid.as_bytes());
            }
            // Not among those that are written.
            Action::Start(_) => {}
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        if self.failure.is_none() {
            self.failure = self.out.write_all(bytes).err();
        }
    }
}

/// Returns the begin of a thread's lines, up to the time. A thread has the name of its process by default.
fn head(script: &Script, thread: &ThreadScript) -> Vec<u8> {
    let tid = u64::from(thread.lane) << TID_BITS | u64::from(thread.tid);
    let process = script.processes.iter().find(|process| process.pid == thread.pid);
    let name = thread.name.as_deref().or_else(|| process?.name.as_deref());
    let mut comm = Vec::new();
    push_escaped(name.filter(|name| !name.is_empty()).unwrap_or("<...>").as_bytes(), &mut comm);
    let mut head = vec![b' '; 16_usize.saturating_sub(comm.len())];
    head.extend(comm);
    head.extend_from_slice(format!("-{tid:<7} ({:>7}) [000] .... ", thread.pid).as_bytes());
    head
}

/// Adds a time (ns) in seconds with nine decimals.
fn push_time(time: u64, line: &mut Vec<u8>) {
    let (seconds, fraction) = (time / 1_000_000_000, time % 1_000_000_000);
    line.extend_from_slice(format!("{seconds}.{fraction:09}").as_bytes());
}

/// Adds a text without what ends a line, or a text of C: for these stand `\n`, `\r` and `\0`.
fn push_escaped(text: &[u8], line: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            0 => line.extend_from_slice(b"\\0"),
            byte => line.push(*byte),
        }
    }
}

#[cfg(test)]
mod tests;
