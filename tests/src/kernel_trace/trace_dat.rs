//! trace-cmd's `trace.dat`, version 6 (`Documentation/trace-cmd/trace-cmd.dat.v6.5.txt`), of a host of 64 bits.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{Event, Field, Trace, Value};

const PAGE: usize = 4096;
/// Time and length at the begin of a sub-buffer.
const HEAD: usize = 16;
/// Address of the function that writes marks.
const MARK: u64 = 0xffff_8000_0001_0000;
/// Kind of a record that advances the time, in its lower five bits.
const EXTENDED: u32 = 0x1e;
/// Common fields of all events.
const COMMON: [(&str, usize, usize); 4] = [
    ("unsigned short common_type", 0, 2),
    ("unsigned char common_flags", 2, 1),
    ("unsigned char common_preempt_count", 3, 1),
    ("int common_pid", 4, 4),
];

/// Number of an event of the kernel, and its format.
struct Format {
    id: u16,
    text: String,
}

/// Returns declaration and size of a field.
fn declaration(field: &Field) -> (String, usize) {
    let name = field.name;
    match field.value {
        // A mark is all that follows.
        Value::Elsewhere(_) if name == "buf" => ("char buf[]".into(), 0),
        Value::Elsewhere(_) => (format!("__data_loc char[] {name}"), 4),
        Value::Word(_) => (format!("int {name}"), 4),
        Value::Long(_) => (format!("long {name}"), 8),
        Value::Address(_) => (format!("struct dma_fence * {name}"), 8),
        Value::Name(_) => (format!("char {name}[16]"), 16),
    }
}

fn format(name: &str, id: u16, fields: &[Field]) -> Format {
    let mut text = format!("name: {name}\nID: {id}\nformat:\n");
    let mut line = |declaration: &str, offset: usize, size: usize| {
        let signed = u8::from(!declaration.contains('*'));
        let _ = writeln!(text, "\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};");
    };
    for (declaration, offset, size) in COMMON {
        line(declaration, offset, size);
    }
    let mut offset = 8;
    if name == "print" {
        line("unsigned long ip", offset, 8);
        offset += 8;
    }
    for field in fields {
        let (declaration, size) = declaration(field);
        line(&declaration, offset, size);
        offset += size;
    }
    text.push_str("\nprint fmt: \"\"\n");
    Format { id, text }
}

/// Returns the data of a record.
fn record(id: u16, event: &Event, fields: &[Field]) -> Vec<u8> {
    let mut data = [&id.to_le_bytes()[..], &[0, 0], &event.tid.to_le_bytes()].concat();
    let mut end = Vec::new();
    let fixed: usize = 8 + fields.iter().map(|field| declaration(field).1).sum::<usize>();
    for field in fields {
        match &field.value {
            Value::Elsewhere(text) if field.name == "buf" => {
                data.extend(MARK.to_le_bytes());
                data.extend_from_slice(text.as_bytes());
                data.push(0);
            }
            Value::Elsewhere(text) => {
                let place = ((text.len() + 1) << 16) | (fixed + end.len());
                data.extend((place as u32).to_le_bytes());
                end.extend_from_slice(text.as_bytes());
                end.push(0);
            }
            Value::Word(value) => data.extend((*value as i32).to_le_bytes()),
            Value::Long(value) => data.extend(value.to_le_bytes()),
            Value::Address(value) => data.extend(value.to_le_bytes()),
            Value::Name(text) => {
                data.extend_from_slice(text.as_bytes());
                data.resize(data.len() + 16 - text.len(), 0);
            }
        }
    }
    data.extend(end);
    data.resize(data.len().next_multiple_of(4), 0);
    data
}

/// Returns the sub-buffers of a CPU with these records.
fn pages(records: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut done = Vec::new();
    let mut page: Vec<u8> = Vec::new();
    let mut now = 0;
    let finish = |page: &mut Vec<u8>, done: &mut Vec<u8>| {
        if !page.is_empty() {
            let length = (page.len() - HEAD) as u64;
            page[8..HEAD].copy_from_slice(&length.to_le_bytes());
            page.resize(PAGE, 0);
            done.append(page);
        }
    };
    for (time, data) in records {
        // A time that is extended, the length in a word of its own.
        if page.is_empty() || page.len() + data.len() + 16 > PAGE {
            finish(&mut page, &mut done);
            page.extend(time.to_le_bytes());
            page.extend([0; 8]);
            now = *time;
        }
        let mut delta = time - now;
        if delta >= 1 << 27 {
            page.extend((EXTENDED | ((delta as u32 & 0x07ff_ffff) << 5)).to_le_bytes());
            page.extend(((delta >> 27) as u32).to_le_bytes());
            delta = 0;
        }
        now = *time;
        if data.len() <= 28 * 4 {
            page.extend(((data.len() as u32 / 4) | ((delta as u32) << 5)).to_le_bytes());
        } else {
            page.extend(((delta as u32) << 5).to_le_bytes());
            page.extend((data.len() as u32 + 4).to_le_bytes());
        }
        page.extend_from_slice(data);
    }
    finish(&mut page, &mut done);
    done
}

fn sized(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

/// Writes a trace.
#[must_use]
pub fn write(trace: &Trace) -> Vec<u8> {
    let mut formats: BTreeMap<&str, Format> = BTreeMap::new();
    let mut cpus = vec![Vec::new(); trace.cpus() as usize];
    for event in &trace.events {
        let description = event.kind.description();
        let next = 5 + formats.len() as u16;
        let id = formats
            .entry(description.name)
            .or_insert_with(|| format(description.name, next, &description.fields))
            .id;
        cpus[event.cpu as usize].push((event.time, record(id, event, &description.fields)));
    }
    let page = format!(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t \
         commit;\toffset:8;\tsize:8;\tsigned:1;\n\tfield: int \
         overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:{};\tsigned:1;\n",
        PAGE - HEAD
    );
    let print = formats.remove("print").map(|format| sized(&format.text));
    let events: Vec<u8> = formats.values().flat_map(|format| sized(&format.text)).collect();
    let symbols = format!("{MARK:016x} t tracing_mark_write\n");
    let mut names = String::new();
    for thread in &trace.threads {
        let _ = writeln!(names, "{} {}", thread.tid, thread.name);
    }
    let count = |number: usize| (number as u32).to_le_bytes();
    let mut file = [
        &b"\x17\x08\x44tracing6\0\0\x08"[..],
        &count(PAGE),
        b"header_page\0",
        &sized(&page),
        b"header_event\0",
        &sized("# compressed entry header\n"),
        &count(usize::from(print.is_some())),
        &print.unwrap_or_default(),
        &count(1),
        b"events\0",
        &count(formats.len()),
        &events,
        &count(symbols.len()),
        symbols.as_bytes(),
        &count(0),
        &sized(&names),
        &count(cpus.len()),
        b"options  \0",
        &0_u16.to_le_bytes(),
        b"flyrecord\0",
    ]
    .concat();
    let mut offset = (file.len() + 16 * cpus.len()).next_multiple_of(PAGE);
    let data: Vec<_> = cpus.iter().map(|records| pages(records)).collect();
    for pages in &data {
        file.extend([(offset as u64).to_le_bytes(), (pages.len() as u64).to_le_bytes()].concat());
        offset += pages.len();
    }
    file.resize(file.len().next_multiple_of(PAGE), 0);
    file.extend(data.concat());
    file
}
