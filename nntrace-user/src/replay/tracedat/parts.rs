//! The parts of a file that versions 6 and 7 have in common, one after the other or each in a section of its own.

use std::{collections::BTreeMap, io::Read};

use super::{
    bytes::{Damage, Reader},
    cpu::Place,
    formats::Format,
    names::{Comms, Symbols, Texts},
    pages::Layout,
};

/// All that a file tells before and beside its events.
#[derive(Default)]
pub(crate) struct Parts {
    /// How sub-buffers are laid out.
    pub layout: Option<Layout>,
    /// Formats of ftrace's own events.
    pub own_formats: Vec<Format>,
    /// Formats of all other events.
    pub formats: Vec<Format>,
    /// Names of threads.
    pub comms: Comms,
    /// Which code writes marks.
    pub symbols: Symbols,
    /// Texts of the kernel.
    pub texts: Texts,
    /// Facts about the recording.
    pub options: Options,
    /// What was recorded, that of the instances behind the rest.
    pub buffers: Vec<Buffer>,
    /// What is damaged, but leaves events to read.
    pub notes: Vec<String>,
}

/// What one instance recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Buffer {
    /// Name of the instance; empty: of the kernel's main one.
    pub name: Vec<u8>,
    /// Its clock, where that is told.
    pub clock: Option<Vec<u8>>,
    /// The data of its CPUs.
    pub places: Vec<Place>,
    /// Whether it is packed.
    pub is_packed: bool,
}

impl Buffer {
    /// What messages call it.
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
    /// The clock of buffers that do not tell.
    pub clock: Option<Vec<u8>>,
    /// To be added to each time, ns.
    pub offset: i64,
    /// Multiplier and shift that make nanoseconds.
    pub cycles: Option<(u32, u32)>,
    /// Number of CPUs.
    pub cpus: Option<u32>,
    /// Events that the buffers of each CPU lost in all.
    pub lost: BTreeMap<u32, u64>,
}

/// Numbers of options, and of the sections that some of them point to.
pub(crate) mod id {
    /// The last one; in version 7, with the place of the next options.
    pub(crate) const DONE: u16 = 0;
    /// Microseconds between the trace's clock and the time of day.
    pub(crate) const DATE: u16 = 1;
    /// Statistics of the buffer of a CPU.
    pub(crate) const STATISTICS: u16 = 2;
    /// Data of an instance; in version 7, of any buffer.
    pub(crate) const BUFFER: u16 = 3;
    /// The file `trace_clock`.
    pub(crate) const CLOCK: u16 = 4;
    /// Nanoseconds to add.
    pub(crate) const OFFSET: u16 = 7;
    /// Number of CPUs.
    pub(crate) const CPUS: u16 = 8;
    /// How cycles become nanoseconds.
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
    /// Takes an option that means the same in both versions.
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

/// How many events of which CPU were lost, if any were: `CPU: 1`, and the file `stats` of its buffer.
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
    /// Reads `header_page` and `header_event`.
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

    /// Reads the formats of ftrace's own events.
    pub(crate) fn own_formats<R: Read>(&mut self, reader: &mut Reader<R>) -> Result<(), Damage> {
        for _ in 0..reader.u32("the number of ftrace's formats")? {
            let format = self.format(reader)?;
            self.own_formats.extend(format);
        }
        Ok(())
    }

    /// Reads the formats of all other events.
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

    /// Reads a format; what is none is noted.
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

    /// Reads `/proc/kallsyms`.
    pub(crate) fn symbols<R: Read>(&mut self, reader: &mut Reader<R>) -> Result<(), Damage> {
        let size = reader.u32("the size of kallsyms")?;
        self.symbols = Symbols::parse(&reader.bytes(size.into(), "kallsyms")?);
        Ok(())
    }

    /// Reads `printk_formats`.
    pub(crate) fn texts<R: Read>(&mut self, reader: &mut Reader<R>) -> Result<(), Damage> {
        let size = reader.u32("the size of printk_formats")?;
        self.texts = Texts::parse(&reader.bytes(size.into(), "printk_formats")?);
        Ok(())
    }

    /// Reads `saved_cmdlines`.
    pub(crate) fn comms<R: Read>(&mut self, reader: &mut Reader<R>) -> Result<(), Damage> {
        let size = reader.u64("the size of saved_cmdlines")?;
        self.comms = Comms::parse(&reader.bytes(size, "saved_cmdlines")?);
        Ok(())
    }
}
