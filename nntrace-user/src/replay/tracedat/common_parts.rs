//! Parts common to versions 6 and 7, in sequence or in sections of their own.

use std::{collections::BTreeMap, io::Read};

use super::{
    bytes::{Damage, Reader},
    cpu_data::Place,
    formats::Format,
    pages::Layout,
    saved_names::{Comms, Symbols, Texts},
};

/// Contents of a file other than its events.
#[derive(Default)]
pub(crate) struct Parts {
    /// Layout of sub-buffers.
    pub layout: Option<Layout>,
    /// Formats of ftrace's own events.
    pub own_formats: Vec<Format>,
    /// Formats of all other events.
    pub formats: Vec<Format>,
    /// Names of threads.
    pub comms: Comms,
    /// Addresses of code that writes marks.
    pub symbols: Symbols,
    /// Texts of the kernel.
    pub texts: Texts,
    /// Options of the recording.
    pub options: Options,
    /// Recorded data, with the instances last.
    pub buffers: Vec<Buffer>,
    /// Notes on damage that leaves events to read.
    pub notes: Vec<String>,
}

/// Recorded data of one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Buffer {
    /// Name of the instance; empty for the kernel's main buffer.
    pub name: Vec<u8>,
    /// Clock, if it is known.
    pub clock: Option<Vec<u8>>,
    /// Locations of the data of its CPUs.
    pub places: Vec<Place>,
    /// Whether the data is compressed.
    pub is_packed: bool,
}

impl Buffer {
    /// Returns the name for messages.
    pub(crate) fn title(&self) -> String {
        match &*self.name {
            b"" => "the main buffer".into(),
            name => format!("buffer `{}`", name.escape_ascii()),
        }
    }
}

/// Options that matter here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// Clock of the buffers that have none of their own.
    pub clock: Option<Vec<u8>>,
    /// Offset to add to each time, ns.
    pub offset: i64,
    /// Multiplier and shift that convert to nanoseconds.
    pub cycles: Option<(u32, u32)>,
    /// Number of CPUs.
    pub cpus: Option<u32>,
    /// Total of lost events in the buffers of each CPU.
    pub lost: BTreeMap<u32, u64>,
}

/// Numbers of options, and of the sections that some of them refer to.
pub(crate) mod id {
    /// End of the options; in version 7, with the offset of the next options.
    pub(crate) const DONE: u16 = 0;
    /// Microseconds between the trace's clock and the time of day.
    pub(crate) const DATE: u16 = 1;
    /// Statistics of a CPU's buffer.
    pub(crate) const STATISTICS: u16 = 2;
    /// Data of an instance; in version 7, of any buffer.
    pub(crate) const BUFFER: u16 = 3;
    /// The file `trace_clock`.
    pub(crate) const CLOCK: u16 = 4;
    /// Offset to add, ns.
    pub(crate) const OFFSET: u16 = 7;
    /// Number of CPUs.
    pub(crate) const CPUS: u16 = 8;
    /// Conversion of cycles to nanoseconds.
    pub(crate) const CYCLES: u16 = 14;
    /// `header_page`, `header_event`.
    pub(crate) const HEADERS: u16 = 16;
    /// Formats of ftrace's own events.
    pub(crate) const OWN_FORMATS: u16 = 17;
    /// Formats of all other events.
    pub(crate) const FORMATS: u16 = 18;
    /// `/proc/kallsyms`.
    pub(crate) const SYMBOLS: u16 = 19;
    /// `printk_formats`.
    pub(crate) const TEXTS: u16 = 20;
    /// `saved_cmdlines`.
    pub(crate) const COMMS: u16 = 21;
    /// The text of a latency tracer.
    pub(crate) const LATENCY: u16 = 22;
}

impl Options {
    /// Takes an option with the same meaning in both versions.
    pub(crate) fn take(&mut self, id: u16, data: &mut Reader<&[u8]>, size: usize) -> Result<(), Damage> {
        match id {
            id::DATE | id::OFFSET => {
                let start = data.offset();
                let text = data.bytes(size as u64, "a time")?;
                let number = super::clock::number(&text).ok_or_else(|| {
                    Damage::unexpected(start, format!("`{}`", text.escape_ascii()), "a time")
                })?;
                let unit = if id == id::DATE { 1_000 } else { 1 };
                self.offset = self.offset.saturating_add(number.saturating_mul(unit));
            }
            id::CLOCK => {
                let list = data.bytes(size as u64, "the clocks")?;
                self.clock = Some(super::clock::selected(&list).to_vec());
            }
            id::STATISTICS => {
                if let Some((cpu, lost)) = lost(&data.bytes(size as u64, "statistics")?) {
                    let sum = self.lost.entry(cpu).or_default();
                    *sum = sum.saturating_add(lost);
                }
            }
            id::CPUS => self.cpus = Some(data.u32("the number of CPUs")?),
            id::CYCLES => {
                let times = data.u32("a multiplier")?;
                // trace-cmd does not use the offset that follows.
                self.cycles = Some((times, data.u32("a shift")?)).filter(|_| times > 0);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Parses the number of lost events and their CPU, if any were lost: `CPU: 1`, and the file `stats` of its buffer.
fn lost(text: &[u8]) -> Option<(u32, u64)> {
    let text = str::from_utf8(text).ok()?;
    let mut cpu = None;
    let mut lost = 0_u64;
    for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let value = value.trim_matches(['\0', ' ']);
        match key.trim() {
            "CPU" => cpu = value.parse().ok(),
            "overrun" | "commit overrun" | "dropped events" => {
                lost = lost.saturating_add(value.parse().unwrap_or(0));
            }
            _ => {}
        }
    }
    cpu.filter(|_| lost > 0).map(|cpu| (cpu, lost))
}

impl Parts {
    /// Parses `header_page` and `header_event`.
    pub(crate) fn headers<R: Read>(&mut self, reader: &mut Reader<R>) -> Result<(), Damage> {
        reader.expect(b"header_page\0")?;
        let size = reader.u64("the size of header_page")?;
        let start = reader.offset();
        let page = reader.bytes(size, "header_page")?;
        let layout = Layout::parse(&page, reader.endian).ok_or_else(|| {
            let found = format!("`{}`", page[..page.len().min(64)].escape_ascii());
            Damage::unexpected(start, found, "fields timestamp, commit and data of a sub-buffer")
        })?;
        self.layout = Some(layout);
        reader.expect(b"header_event\0")?;
        let size = reader.u64("the size of header_event")?;
        reader.bytes(size, "header_event")?;
        Ok(())
    }

    /// Parses the formats of ftrace's own events.
    pub(crate) fn own_formats<R: Read>(&mut self, reader: &mut Reader<R>) -> Result<(), Damage> {
        for _ in 0..reader.u32("the number of ftrace's formats")? {
            let format = self.format(reader)?;
            self.own_formats.extend(format);
        }
        Ok(())
    }

    /// Parses the formats of all other events.
    pub(crate) fn formats<R: Read>(&mut self, reader: &mut Reader<R>) -> Result<(), Damage> {
        for _ in 0..reader.u32("the number of event systems")? {
            reader.name("the name of an event system")?;
            for _ in 0..reader.u32("the number of a system's events")? {
                let format = self.format(reader)?;
                self.formats.extend(format);
            }
        }
        Ok(())
    }

    /// Parses a format; an invalid one is noted.
    fn format<R: Read>(&mut self, reader: &mut Reader<R>) -> Result<Option<Format>, Damage> {
        let size = reader.u64("the size of a format")?;
        let start = reader.offset();
        let text = reader.bytes(size, "a format")?;
        let format = Format::parse(&text);
        if format.is_none() {
            let found = format!("`{}`", text[..text.len().min(64)].escape_ascii());
            self.notes.push(Damage::unexpected(start, found, "the format of an event").to_string());
        }
        Ok(format)
    }

    /// Parses `/proc/kallsyms`.
    pub(crate) fn symbols<R: Read>(&mut self, reader: &mut Reader<R>) -> Result<(), Damage> {
        let size = reader.u32("the size of kallsyms")?;
        self.symbols = Symbols::parse(&reader.bytes(size.into(), "kallsyms")?);
        Ok(())
    }

    /// Parses `printk_formats`.
    pub(crate) fn texts<R: Read>(&mut self, reader: &mut Reader<R>) -> Result<(), Damage> {
        let size = reader.u32("the size of printk_formats")?;
        self.texts = Texts::parse(&reader.bytes(size.into(), "printk_formats")?);
        Ok(())
    }

    /// Parses `saved_cmdlines`.
    pub(crate) fn comms<R: Read>(&mut self, reader: &mut Reader<R>) -> Result<(), Damage> {
        let size = reader.u64("the size of saved_cmdlines")?;
        self.comms = Comms::parse(&reader.bytes(size, "saved_cmdlines")?);
        Ok(())
    }
}
