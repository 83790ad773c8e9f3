//! Traces in the JSON of Chrome: swimlanes that Chrome's own viewer, Perfetto, Speedscope and others show. `docs/chrome.md` lists
//! what they have.
//!
//! Times are microseconds with three decimals, so that no nanosecond is lost. Every event is on a track that the tail
//! describes: the comma after the last one is followed by a description.

use std::io::{self, Write};

use nntrace_common::record::Record;

use super::{
    ThreadName,
    swimlane::{
        self, Clocks, CounterValue, Counters, Encode, EventOfDevice, Flow, Group, Label, ThreadTrack, Value,
        layout::{self, ProcessTracks},
    },
};
use crate::{
    model::Findings,
    perfetto_schema::own::{HAND_OVER, WINDOW_BEGIN, WINDOW_END},
};

/// Process id that stands for counters: Linux has no such.
const COUNTERS_PID: u32 = 1 << TID_BITS;
/// Bits of the ids of Linux; a further track of a thread has its number above them.
const TID_BITS: u32 = 22;
/// Largest number that readers in JavaScript have exactly; larger ones are texts.
const MOST_EXACT: u64 = (1 << 53) - 1;

/// Format of Chrome's traces.
#[derive(Clone, Copy, Debug)]
pub struct Format;

impl swimlane::Format for Format {
    type Encoder<W: Write> = Encoder<W>;

    fn write_head(
        out: &mut impl Write,
        _: &Findings<'_>,
        _: Option<&Clocks>,
        _: &[ThreadName],
        _: &Counters<'_>,
    ) -> io::Result<()> {
        out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")
    }

    fn write_tail(
        out: &mut impl Write,
        findings: &Findings<'_>,
        clocks: Option<&Clocks>,
        threads: &[ThreadName],
        counters: &Counters<'_>,
    ) -> io::Result<()> {
        let processes = layout::processes(findings, threads);
        let count = processes.len();
        let mut descriptions = Descriptions { out: &mut *out, is_first: true };
        for (ProcessTracks { pid, name, threads }, rank) in processes.into_iter().zip(0..) {
            descriptions.process(pid, name.unwrap_or_default(), rank)?;
            for (ThreadName { tid, name, .. }, rank) in threads.into_iter().zip(0..) {
                descriptions.thread(pid, tid, &name, rank)?;
            }
        }
        // An empty trace has them too: something has to follow.
        if count == 0 || !counters.all().is_empty() {
            descriptions.process(COUNTERS_PID, Group::Clusters.name(), count)?;
        }
        let window = &findings.run.window;
        // Numbers as texts: readers in JavaScript would round them.
        write!(
            out,
            "\n],\"otherData\":{{\"{WINDOW_BEGIN}\":\"{}\",\"{WINDOW_END}\":\"{}\"",
            window.begin_ns, window.end_ns
        )?;
        if let Some(Clocks { monotonic_ns, boottime_ns, realtime_ns }) = clocks {
            write!(
                out,
                ",\"clock_monotonic_ns\":\"{monotonic_ns}\",\"clock_boottime_ns\":\"{boottime_ns}\",\
                 \"clock_realtime_ns\":\"{realtime_ns}\""
            )?;
        }
        out.write_all(b"}}\n")
    }
}

/// Descriptions of tracks, in the order of their ranks.
struct Descriptions<'a, W> {
    out: &'a mut W,
    is_first: bool,
}

impl<W: Write> Descriptions<'_, W> {
    fn process(&mut self, pid: u32, name: &str, rank: usize) -> io::Result<()> {
        self.put(pid, None, "process", name, rank)
    }

    fn thread(&mut self, pid: u32, tid: u32, name: &str, rank: usize) -> io::Result<()> {
        self.put(pid, Some(tid), "thread", name, rank)
    }

    /// Writes the name, if it is not empty, and the rank of a process or a thread.
    fn put(&mut self, pid: u32, tid: Option<u32>, kind: &str, name: &str, rank: usize) -> io::Result<()> {
        if !name.is_empty() {
            self.begin(pid, tid)?;
            write!(self.out, "\"name\":\"{kind}_name\",\"args\":{{\"name\":{}}}}}", json(name)?)?;
        }
        self.begin(pid, tid)?;
        write!(self.out, "\"name\":\"{kind}_sort_index\",\"args\":{{\"sort_index\":{rank}}}}}")
    }

    fn begin(&mut self, pid: u32, tid: Option<u32>) -> io::Result<()> {
        if !std::mem::replace(&mut self.is_first, false) {
            self.out.write_all(b",\n")?;
        }
        write!(self.out, "{{\"ph\":\"M\",\"pid\":{pid},")?;
        tid.map_or(Ok(()), |tid| write!(self.out, "\"tid\":{tid},"))
    }
}

/// Returns a text as JSON has it.
fn json(text: &str) -> io::Result<String> {
    serde_json::to_string(text).map_err(io::Error::other)
}

/// Encoder of events as objects, one a line.
pub struct Encoder<W> {
    out: W,
    /// Events that are being put together.
    buffer: Vec<u8>,
    /// First failure; nothing is written after it.
    failure: Option<io::Error>,
}

impl<W: Write> Encoder<W> {
    /// Puts an event together, and writes it. A failure shows at the end.
    fn put(&mut self, event: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) {
        if self.failure.is_some() {
            return;
        }
        self.buffer.clear();
        let written = event(&mut self.buffer).and_then(|()| self.out.write_all(&self.buffer));
        self.failure = written.err();
    }
}

impl<W: Write> Encode<W> for Encoder<W> {
    fn new(out: W, _: Option<&Clocks>) -> Self {
        Self { out, buffer: Vec::new(), failure: None }
    }

    fn further_track(&mut self, track: ThreadTrack) {
        let (pid, tid) = (track.pid, tid_of(track));
        self.put(|out| {
            write!(out, "{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"thread_name\",")?;
            writeln!(out, "\"args\":{{\"name\":\"sections of {} that overlap\"}}}},", track.tid)
        });
    }

    fn begin(&mut self, time: u64, track: ThreadTrack, label: &Label<'_>) {
        self.put(|out| write_labelled(out, "\"B\"", time, track, label));
    }

    fn end(&mut self, time: u64, track: ThreadTrack) {
        self.put(|out| {
            write_place(out, "\"E\"", time, track)?;
            out.write_all(b"},\n")
        });
    }

    fn instant(&mut self, time: u64, track: ThreadTrack, label: &Label<'_>) {
        self.put(|out| write_labelled(out, "\"i\",\"s\":\"t\"", time, track, label));
    }

    fn counter(&mut self, time: u64, name: &str, value: CounterValue) {
        self.put(|out| {
            write_place(out, "\"C\"", time, ThreadTrack::own(COUNTERS_PID, COUNTERS_PID))?;
            out.write_all(b",\"name\":")?;
            serde_json::to_writer(&mut *out, name)?;
            out.write_all(b",\"args\":{\"value\":")?;
            match value {
                CounterValue::Whole(value) => write!(out, "{value}")?,
                CounterValue::Real(value) => serde_json::to_writer(&mut *out, &value)?,
            }
            out.write_all(b"}},\n")
        });
    }

    // Chrome's format has no tracks of CPUs; the counters of clusters show their states.
    fn power(&mut self, _: &Record) {}

    // Nor of devices.
    fn device(&mut self, _: &EventOfDevice<'_>) {}

    fn finish(self) -> io::Result<W> {
        self.failure.map_or(Ok(self.out), Err)
    }
}

/// Returns the thread id that stands for a track.
fn tid_of(track: ThreadTrack) -> u64 {
    u64::from(track.lane) << TID_BITS | u64::from(track.tid)
}

/// Begins an object with its kind, track and time (ns).
fn write_place(out: &mut Vec<u8>, kind: &str, time: u64, track: ThreadTrack) -> io::Result<()> {
    let (pid, tid) = (track.pid, tid_of(track));
    write!(out, "{{\"ph\":{kind},\"pid\":{pid},\"tid\":{tid},\"ts\":{}.{:03}", time / 1_000, time % 1_000)
}

/// Writes an event with its label. Flows follow it, and are bound to it by their time.
fn write_labelled(
    out: &mut Vec<u8>,
    kind: &str,
    time: u64,
    track: ThreadTrack,
    label: &Label<'_>,
) -> io::Result<()> {
    write_place(out, kind, time, track)?;
    out.write_all(b",\"name\":")?;
    serde_json::to_writer(&mut *out, &label.name)?;
    if !label.categories.is_empty() {
        write!(out, ",\"cat\":\"{}\"", label.categories.join(","))?;
    }
    for ((key, value), place) in label.arguments.iter().zip(0..) {
        out.write_all(if place == 0 { b",\"args\":{" } else { b"," })?;
        serde_json::to_writer(&mut *out, key)?;
        out.write_all(b":")?;
        match value {
            Value::Number(number) if *number <= MOST_EXACT => write!(out, "{number}")?,
            Value::Number(number) => write!(out, "\"{number}\"")?,
            Value::Text(text) => serde_json::to_writer(&mut *out, text)?,
        }
    }
    out.write_all(if label.arguments.is_empty() { b"},\n" } else { b"}},\n" })?;
    for flow in &label.flows {
        let (kind, number) = match flow {
            Flow::Begin(number) => ("\"s\"", number),
            Flow::End(number) => ("\"f\",\"bp\":\"e\"", number),
        };
        write_place(out, kind, time, track)?;
        writeln!(out, ",\"id\":{number},\"name\":\"{HAND_OVER}\",\"cat\":\"{HAND_OVER}\"}},")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
