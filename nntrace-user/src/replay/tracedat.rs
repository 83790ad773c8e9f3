//! `trace.dat`, the binary file of `trace-cmd record`: versions 6 and 7, from hosts of any byte order and word size.
//!
//! `bytes` decodes numbers, `formats` the kernel's format files, `names` the names of threads and functions, `clock`
//! converts time stamps to nanoseconds; `parts` are the parts of both versions, `v6` and `v7` their places;
//! `compression` unpacks, `pages` splits a sub-buffer into records, `cpu` reads the sub-buffers of one CPU, `merge`
//! puts the CPUs in order, `fields` decodes records into events.
//!
//! Source: trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5), and the output of `trace-cmd report` where they are silent.
//! Damage affects only the damaged parts: everything else is passed on.

mod bytes;
mod clock;
mod common_parts;
mod compression;
mod cpu_data;
mod fields;
mod formats;
mod merge;
mod pages;
mod saved_names;
mod v6;
mod v7;

use std::{collections::VecDeque, fs::File, io::BufReader, sync::Arc};

pub(crate) use bytes::Damage;
use bytes::{Endian, Reader};
use clock::Clock;
use common_parts::{Buffer, Options, Parts};
use compression::Compression;
use cpu_data::{Place, Stream};
use fields::Decoders;
use merge::Merge;
use pages::Layout;
pub(crate) use saved_names::Comms;
use saved_names::{Symbols, Texts};

use super::{
    file_cursor::FileCursor,
    ftrace::Event,
    losses::Loss,
    step::{Step, Steps},
};

/// First bytes of a file.
const MAGIC: &[u8] = &[0x17, 0x08, 0x44];

/// Bytes of a sub-buffer: the kernel's are 1 to 128 pages.
const PAGE_SIZES: std::ops::RangeInclusive<u32> = 512..=16 << 20;

/// Whether a file that begins with `head` is a `trace.dat`.
#[must_use]
pub(crate) fn is_trace_dat(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// Contents of a file, without its events.
#[derive(Debug)]
pub(crate) struct TraceDat {
    file: Arc<File>,
    layout: Layout,
    decoders: Decoders,
    comms: Comms,
    symbols: Symbols,
    texts: Texts,
    clock: Clock,
    /// Name of the clock, if it is known.
    clock_name: Option<String>,
    /// Total losses, from the statistics at its end.
    totals: Vec<Loss>,
    /// Locations of the data of all CPUs of all buffers, with its compression.
    places: Vec<(Place, Option<Compression>)>,
    notes: Vec<String>,
}

impl TraceDat {
    /// Reads everything but the events. The text of `damaged` is added to the notes.
    ///
    /// # Errors
    /// When no events can be read.
    pub(crate) fn open(file: Arc<File>, damaged: Option<String>) -> Result<Self, Damage> {
        let data = FileCursor { file: Arc::clone(&file), offset: 0 };
        let mut reader = Reader::new(BufReader::new(data), 0, Endian::Little);
        reader.expect(MAGIC)?;
        reader.expect(b"tracing")?;
        let start = reader.offset();
        let version = reader.name("the version")?;
        let is_packed = match &*version {
            b"6" => false,
            b"7" => true,
            _ => {
                return Err(Damage::unexpected(
                    start,
                    format!("version `{}`", version.escape_ascii()),
                    "6 or 7",
                ));
            }
        };
        let start = reader.offset();
        reader.endian = match reader.u8("the byte order")? {
            0 => Endian::Little,
            1 => Endian::Big,
            other => return Err(Damage::unexpected(start, format!("byte order {other}"), "0 or 1")),
        };
        reader.u8("the size of a long")?;
        let page_size = reader.u32("the size of a page")?;
        let (mut parts, compression) = if is_packed {
            v7::read(&mut reader, &file)?
        } else {
            (v6::read(&mut reader, &file, page_size)?, None)
        };
        parts.notes.splice(0..0, damaged);
        Self::new(file, parts, compression, reader.offset())
    }

    /// Combines the parts of a file; `end` is the offset after the first of them.
    fn new(
        file: Arc<File>,
        parts: Parts,
        compression: Option<Compression>,
        end: u64,
    ) -> Result<Self, Damage> {
        let Parts { layout, own_formats, formats, comms, symbols, texts, options, buffers, mut notes } =
            parts;
        let because = |what: &str, notes: &[String]| {
            let why = notes.first().map(|note| format!(" ({note})")).unwrap_or_default();
            Damage::new(end, format!("{what}{why}"))
        };
        let layout = layout.ok_or_else(|| because("nothing tells how sub-buffers are laid out", &notes))?;
        let decoders = Decoders::new(layout.endian, own_formats, formats).ok_or_else(|| {
            because("no format of an event tells where its number and its thread stand", &notes)
        })?;
        let mut places = Vec::new();
        let mut wrong = Vec::new();
        let mut clock_name: Option<&[u8]> = None;
        for buffer in &buffers {
            if let Err(what) = checked(buffer, &options, &layout, &mut clock_name) {
                wrong.push(format!("{}: {what}", buffer.title()));
                continue;
            }
            let compression = compression.filter(|_| buffer.is_packed);
            let present = buffer.places.iter().filter(|place| !place.bytes.is_empty());
            places.extend(present.map(|place| (place.clone(), compression)));
        }
        if !wrong.is_empty() && wrong.len() == buffers.len() {
            return Err(Damage::new(end, wrong.swap_remove(0)));
        }
        notes.append(&mut wrong);
        // Shared data is read once: otherwise a small file could take forever.
        let mut left = file.metadata().map_or(0, |metadata| metadata.len());
        let count = places.len();
        places.retain(|(place, _)| {
            let size = place.bytes.end - place.bytes.start;
            let fits = left > 0;
            left = left.saturating_sub(size);
            fits
        });
        if places.len() < count {
            notes.push(
                "the data of some CPUs overlaps, or is longer than the file: the last ones are left out"
                    .into(),
            );
        }
        let clock = Clock { cycles: options.cycles, offset: options.offset };
        let clock_name = clock_name.map(|name| String::from_utf8_lossy(name).into_owned());
        let totals = options.lost.iter().map(|(&cpu, &events)| Loss::Total { cpu, events }).collect();
        Ok(Self { file, layout, decoders, comms, symbols, texts, clock, clock_name, totals, places, notes })
    }

    /// Returns the name of the trace's clock, if it is known.
    #[must_use]
    pub(crate) fn clock_name(&self) -> Option<&str> {
        self.clock_name.as_deref()
    }

    /// Returns the events from the start.
    #[must_use]
    pub(crate) fn events(&self) -> Events<'_> {
        let stream = |(place, compression): &(Place, Option<Compression>)| {
            Stream::new(&self.file, place, self.layout, *compression)
        };
        Events {
            dat: self,
            merge: Merge::new(self.places.iter().map(stream).collect()),
            comms: self.comms.clone(),
            notes: self.notes.iter().cloned().collect(),
            totals: self.totals.iter(),
            text: Vec::new(),
            waits: false,
            time: 0,
        }
    }
}

/// Checks whether the data of a buffer can be read at all; otherwise returns why not. `known` is the clock of the
/// earlier buffers with data.
fn checked<'a>(
    buffer: &'a Buffer,
    options: &'a Options,
    layout: &Layout,
    known: &mut Option<&'a [u8]>,
) -> Result<(), String> {
    let clock = buffer.clock.as_deref().or(options.clock.as_deref()).filter(|clock| !clock.is_empty());
    if let Some(clock) = clock {
        let has_cycles = options.cycles.is_some() && !clock::has_no_cycles(clock);
        if !clock::counts_ns(clock) && !has_cycles {
            return Err(format!(
                "times of clock `{}`, where nanoseconds were expected; `trace-cmd record -C mono` records these",
                clock.escape_ascii()
            ));
        }
        if buffer.places.iter().any(|place| !place.bytes.is_empty())
            && let known = *known.get_or_insert(clock)
            && known != clock
        {
            return Err(format!(
                "times of clock `{}`, which cannot be merged with those of clock `{}` before it",
                clock.escape_ascii(),
                known.escape_ascii()
            ));
        }
    }
    for Place { cpu, page_size, .. } in &buffer.places {
        if !PAGE_SIZES.contains(page_size) || *page_size as usize <= layout.records {
            return Err(format!(
                "sub-buffers of {page_size} bytes for CPU {cpu}, where {} to {} were expected",
                PAGE_SIZES.start(),
                PAGE_SIZES.end()
            ));
        }
    }
    Ok(())
}

/// Events of a file in order of time.
pub(crate) struct Events<'a> {
    dat: &'a TraceDat,
    merge: Merge<'a>,
    /// Names of threads, including those learned from events so far.
    comms: Comms,
    notes: VecDeque<String>,
    /// Totals from the statistics, which come first.
    totals: std::slice::Iter<'a, Loss>,
    /// Buffer for the fields of an event.
    text: Vec<u8>,
    /// Whether an event is ready, and waits for the steps before it.
    waits: bool,
    /// Time of the current event, ns.
    time: u64,
}

impl Steps for Events<'_> {
    #[inline]
    fn advance(&mut self) -> Step {
        if let Some(note) = self.notes.pop_front() {
            return Step::Cut(note);
        }
        if let Some(total) = self.totals.next() {
            return Step::Lost(*total);
        }
        if !self.waits {
            // Names from the previous event, which was itself shown with the earlier names.
            if let Some(stream) = self.merge.stream() {
                self.dat.decoders.threads(stream.event(), |tid, comm| _ = self.comms.learn(tid, comm));
            }
            self.waits = self.merge.advance();
        }
        if let Some(damage) = self.merge.take_damage() {
            return Step::Cut(damage);
        }
        if let Some((cpu, events)) = self.merge.take_lost() {
            return Step::Lost(Loss::Gap { cpu, events });
        }
        if !self.waits {
            return Step::End;
        }
        self.waits = false;
        self.time = self.merge.stream().map_or(0, |stream| self.dat.clock.ns(stream.time));
        Step::Event
    }

    fn time(&self) -> u64 {
        self.time
    }

    #[inline]
    fn event(&mut self) -> Option<Event<'_>> {
        let Self { dat, merge, comms, text, time, .. } = self;
        let stream = merge.stream()?;
        let (tid, kind) = dat.decoders.decode(stream.event(), &dat.symbols, &dat.texts, text);
        Some(Event { comm: comms.get(tid), tid, tgid: None, cpu: stream.cpu, time: *time, kind })
    }
}

#[cfg(test)]
mod tests;
