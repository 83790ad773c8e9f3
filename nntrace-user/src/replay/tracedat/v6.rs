//! Version 6: all parts in a fixed order, followed by the data of the CPUs.
//!
//! Source: trace-cmd.dat.v6(5).

use std::{
    fs::File,
    io::{BufReader, Read},
    sync::Arc,
};

use super::{
    bytes::{Damage, Reader},
    common_parts::{Buffer, Parts, id},
    cpu_data::Place,
};
use crate::replay::file_cursor::FileCursor;

/// Reads the file after the page size.
pub(crate) fn read<R: Read>(
    reader: &mut Reader<R>,
    file: &Arc<File>,
    page_size: u32,
) -> Result<Parts, Damage> {
    let mut parts = Parts::default();
    parts.headers(reader)?;
    parts.own_formats(reader)?;
    parts.formats(reader)?;
    parts.symbols(reader)?;
    parts.texts(reader)?;
    parts.comms(reader)?;
    let cpus = reader.u32("the number of CPUs")?;
    let mut instances = Vec::new();
    loop {
        let start = reader.offset();
        let kind = reader.bytes(10, "the kind of the data")?;
        match &*kind {
            b"options  \0" => options(reader, &mut parts, &mut instances)?,
            b"flyrecord\0" => break,
            b"latency  \0" => {
                let found = "the text of a latency tracer";
                return Err(Damage::unexpected(start, found, "events (`trace-cmd report` prints such text)"));
            }
            found => {
                let found = format!("`{}`", found.escape_ascii());
                return Err(Damage::unexpected(start, found, "`options`, `flyrecord` or `latency`"));
            }
        }
    }
    // A file of instances alone may have no CPUs here.
    let of_instances = if cpus > 0 { cpus } else { parts.options.cpus.unwrap_or(0) };
    let main = places(reader, cpus, page_size)?;
    parts.buffers.push(Buffer { name: Vec::new(), clock: None, places: main, is_packed: false });
    for (name, offset) in instances {
        let data = BufReader::new(FileCursor { file: Arc::clone(file), offset });
        let mut reader = Reader::new(data, offset, reader.endian);
        let places =
            reader.expect(b"flyrecord\0").and_then(|()| places(&mut reader, of_instances, page_size));
        match places {
            Ok(places) => parts.buffers.push(Buffer { name, clock: None, places, is_packed: false }),
            Err(damage) => {
                parts.notes.push(format!("instance {}: {damage}", String::from_utf8_lossy(&name)));
            }
        }
    }
    Ok(parts)
}

/// Reads the options; instances with the offset of their data.
fn options<R: Read>(
    reader: &mut Reader<R>,
    parts: &mut Parts,
    instances: &mut Vec<(Vec<u8>, u64)>,
) -> Result<(), Damage> {
    loop {
        let id = reader.u16("the number of an option")?;
        if id == id::DONE {
            return Ok(());
        }
        let size = reader.u32("the size of an option")?;
        let start = reader.offset();
        let data = reader.bytes(size.into(), "an option")?;
        let mut option = Reader::new(&*data, start, reader.endian);
        let taken = if id == id::BUFFER {
            let offset = option.u64("the offset of an instance");
            offset.and_then(|offset| Ok((option.name("the name of an instance")?, offset))).map(|instance| {
                instances.push(instance);
            })
        } else {
            parts.options.take(id, &mut option, data.len())
        };
        if let Err(damage) = taken {
            parts.notes.push(damage.to_string());
        }
    }
}

/// Reads offset and size of the data of each CPU.
fn places<R: Read>(reader: &mut Reader<R>, cpus: u32, page_size: u32) -> Result<Vec<Place>, Damage> {
    let mut places = Vec::new();
    for cpu in 0..cpus {
        let offset = reader.u64("the offset of a CPU's data")?;
        let size = reader.u64("the size of a CPU's data")?;
        places.push(Place { cpu, bytes: offset..offset.saturating_add(size), page_size });
    }
    Ok(places)
}
