//! Version 7: sections whose places are given by options, compressed or not.
//!
//! Source: trace-cmd.dat.v7(5).

use std::{
    collections::BTreeSet,
    fs::File,
    io::{BufReader, Cursor, Read},
    sync::Arc,
};

use super::{
    bytes::{Damage, Endian, LONGEST, Reader},
    common_parts::{Buffer, Parts, id},
    compression::{Compression, Unpacker},
    cpu_data::Place,
};
use crate::replay::file_cursor::FileCursor;

/// Flag of a section that is compressed.
const PACKED: u16 = 1;

/// Reads the file after the page size; also returns its compression.
pub(crate) fn read<R: Read>(
    reader: &mut Reader<R>,
    file: &Arc<File>,
) -> Result<(Parts, Option<Compression>), Damage> {
    let start = reader.offset();
    let name = reader.name("the name of the compression")?;
    reader.name("the version of the compression")?;
    let compression = Compression::named(&name);
    if compression.is_none() && name != b"none" {
        let found = format!("compression `{}`", name.escape_ascii());
        return Err(Damage::unexpected(start, found, "`zstd`, `zlib` or `none`"));
    }
    let sections = Sections { file, endian: reader.endian, compression };
    let mut parts = Parts::default();
    let mut seen = BTreeSet::new();
    let mut next = reader.u64("the offset of the options")?;
    let mut latency = None;
    // Further options are only reachable from a list that could be read.
    while next != 0 && seen.insert(next) {
        let is_first = seen.len() == 1;
        match sections.options(next, &mut parts, &mut latency) {
            Ok(following) => next = following,
            Err(damage) if is_first => return Err(damage),
            Err(damage) => {
                parts.notes.push(damage.to_string());
                break;
            }
        }
    }
    match latency {
        Some(start) if parts.buffers.is_empty() => Err(Damage::unexpected(
            start,
            "the text of a latency tracer",
            "events (`trace-cmd report` prints such text)",
        )),
        // The options with the data are written last.
        _ if parts.buffers.is_empty() => {
            let what = match parts.notes.last() {
                Some(note) => format!("no list of the data of the CPUs: {note}"),
                None => "no list of the data of the CPUs".into(),
            };
            Err(Damage::new(start, what))
        }
        _ => {
            // In the order of the output: the kernel's main buffer before its instances.
            parts.buffers.sort_by_key(|buffer| !buffer.name.is_empty());
            Ok((parts, compression))
        }
    }
}

/// Sections of a file.
struct Sections<'a> {
    file: &'a Arc<File>,
    endian: Endian,
    compression: Option<Compression>,
}

/// Reader of a section.
struct Section {
    reader: Reader<Box<dyn Read>>,
    /// Whether it was compressed, so that its bytes are not those of the file.
    is_packed: bool,
}

impl Sections<'_> {
    fn reader_at(&self, offset: u64) -> Reader<BufReader<FileCursor>> {
        let data = FileCursor { file: Arc::clone(self.file), offset };
        Reader::new(BufReader::new(data), offset, self.endian)
    }

    /// Reads the header of a section: its flags and its size.
    fn head<R: Read>(reader: &mut Reader<R>, expected: u16) -> Result<(u16, u64), Damage> {
        let start = reader.offset();
        let id = reader.u16("a section")?;
        if id != expected {
            return Err(Damage::unexpected(start, format!("section {id}"), format!("section {expected}")));
        }
        let flags = reader.u16("the flags of a section")?;
        reader.u32("the description of a section")?;
        Ok((flags, reader.u64("the size of a section")?))
    }

    fn open(&self, offset: u64, expected: u16) -> Result<Section, Damage> {
        let mut reader = self.reader_at(offset);
        let (flags, size) = Self::head(&mut reader, expected)?;
        let start = reader.offset();
        let Some(compression) = self.compression.filter(|_| flags & PACKED != 0) else {
            let data = FileCursor { file: Arc::clone(self.file), offset: start };
            let data: Box<dyn Read> = Box::new(BufReader::new(data.take(size)));
            return Ok(Section { reader: Reader::new(data, start, self.endian), is_packed: false });
        };
        let packed = reader.u32("the size of a packed section")?;
        let size = reader.u32("the unpacked size of a section")?;
        if u64::from(size) > LONGEST {
            let found = format!("a section of {size} bytes");
            return Err(Damage::unexpected(start, found, format!("{LONGEST} at most")));
        }
        let packed = reader.bytes(packed.into(), "a packed section")?;
        let mut data = Vec::new();
        Unpacker::new(compression)
            .unpack(&packed, size as usize, &mut data)
            .map_err(|why| Damage::new(start, format!("a section cannot be unpacked: {why}")))?;
        let data: Box<dyn Read> = Box::new(Cursor::new(data));
        Ok(Section { reader: Reader::new(data, 0, self.endian), is_packed: true })
    }

    /// Parses a section with `parse`.
    fn parse<T>(
        &self,
        offset: u64,
        expected: u16,
        parse: impl FnOnce(&mut Reader<Box<dyn Read>>) -> Result<T, Damage>,
    ) -> Result<T, Damage> {
        let mut section = self.open(offset, expected)?;
        let inside = |damage: Damage| if section.is_packed { damage.in_section(offset) } else { damage };
        parse(&mut section.reader).map_err(inside)
    }

    /// Reads a list of options and everything that it refers to; returns the offset of the next one, or 0. The offset
    /// of a latency tracer's text is stored in `latency`.
    fn options(&self, offset: u64, parts: &mut Parts, latency: &mut Option<u64>) -> Result<u64, Damage> {
        self.parse(offset, id::DONE, |reader| {
            loop {
                let id = reader.u16("the number of an option")?;
                let size = reader.u32("the size of an option")?;
                let start = reader.offset();
                let data = reader.bytes(size.into(), "an option")?;
                let mut option = Reader::new(&*data, start, self.endian);
                match id {
                    id::DONE => return option.u64("the offset of the next options"),
                    id::LATENCY => *latency = Some(start),
                    _ => {
                        if let Err(damage) = self.option(id, &mut option, data.len(), parts) {
                            parts.notes.push(damage.to_string());
                        }
                    }
                }
            }
        })
    }

    fn option(
        &self,
        id: u16,
        option: &mut Reader<&[u8]>,
        size: usize,
        parts: &mut Parts,
    ) -> Result<(), Damage> {
        match id {
            id::BUFFER => {
                let buffer = self.buffer(option)?;
                parts.buffers.push(buffer);
                Ok(())
            }
            id::HEADERS..=id::COMMS => {
                let offset = option.u64("the offset of a section")?;
                self.parse(offset, id, |reader| match id {
                    id::HEADERS => parts.headers(reader),
                    id::OWN_FORMATS => parts.own_formats(reader),
                    id::FORMATS => parts.formats(reader),
                    id::SYMBOLS => parts.symbols(reader),
                    id::TEXTS => parts.texts(reader),
                    _ => parts.comms(reader),
                })
            }
            _ => parts.options.take(id, option, size),
        }
    }

    /// Reads the locations of the CPUs' data.
    fn buffer(&self, option: &mut Reader<&[u8]>) -> Result<Buffer, Damage> {
        let section = option.u64("the offset of a buffer")?;
        let name = option.name("the name of a buffer")?;
        let clock = Some(option.name("the clock of a buffer")?);
        let page_size = option.u32("the size of a sub-buffer")?;
        let mut places = Vec::new();
        for _ in 0..option.u32("the number of CPUs")? {
            let cpu = option.u32("a CPU")?;
            let offset = option.u64("the offset of a CPU's data")?;
            let size = option.u64("the size of a CPU's data")?;
            places.push(Place { cpu, bytes: offset..offset.saturating_add(size), page_size });
        }
        let (flags, _) = Self::head(&mut self.reader_at(section), id::BUFFER)?;
        Ok(Buffer { name, clock, places, is_packed: flags & PACKED != 0 })
    }
}
