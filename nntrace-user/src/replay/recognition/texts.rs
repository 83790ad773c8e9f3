//! Texts of other tools, and of tracers that are not read, recognized by their lines. A line that is an event of ftrace is never
//! one of them: programs may use any words in the names of threads and marks.

use std::io::Read;

use memchr::{memchr, memchr_iter, memmem, memrchr};

use super::Foreign;
use crate::replay::{
    ftrace::{self, Parsed},
    lines::{Chunks, Text},
};

/// Bytes at the start of a text that are examined. A console log has thousands of lines before the dump of a buffer.
const EXAMINED: u64 = 8 << 20;

/// Bytes read at once: most texts have an event in the first ones.
const CHUNK: usize = 16 * 1024;

/// Bytes of a line that are examined: the columns of all tools are shorter.
const LONGEST_COLUMNS: usize = 512;

/// Kinds of texts that a line shows.
static TEXTS: [Foreign; 4] = [
    Foreign {
        what: "the text of the function_graph tracer, which has no thread and no time for each event",
        remedy: "record with the tracer nop (`echo nop > /sys/kernel/tracing/current_tracer`), or with `trace-cmd record -e power -e sched`",
        is: |line| line.starts_with(b"# tracer: function_graph") || is_graph(line),
    },
    Foreign {
        what: "text in ftrace's latency format, whose times are relative",
        remedy: "switch it off (`echo 0 > /sys/kernel/tracing/options/latency-format`) and read the trace again, or record with `trace-cmd record -e power -e sched`",
        is: |line| {
            let is_title = line.starts_with(b"#") && memmem::find(line, b" latency trace v1").is_some();
            is_title || ftrace::has_relative_time(line)
        },
    },
    Foreign {
        what: "a console log with a dump of ftrace's buffer, which is in the latency format",
        remedy: "let the buffer survive the reboot (`reserve_mem` and `trace_instance=boot_map`) and copy /sys/kernel/tracing/instances/boot_map/trace, or record with `trace-cmd record -e power -e sched`",
        is: |line| line.trim_ascii_end().ends_with(b"Dumping ftrace buffer:"),
    },
    Foreign {
        what: "the text of `perf script`",
        remedy: "record with `trace-cmd record -e power -e sched` instead, and give trace.dat or the text of `trace-cmd report`",
        is: is_perf_script,
    },
];

/// Returns the kind of a text that is not read: one with more lines of another tool than events, as such a line may look like an event.
pub(crate) fn foreign_text(text: impl Read) -> Option<&'static Foreign> {
    let mut chunks = Chunks::new(text.take(EXAMINED), CHUNK);
    let mut lines = Text::default();
    let (mut found, mut others, mut events) = (None, 0_u32, 0_u32);
    // A read error is reported by the reader of the trace.
    while chunks.fill(&mut lines).unwrap_or(false) {
        for line in lines.lines() {
            match ftrace::parse(line) {
                Parsed::Event(_) => events += 1,
                Parsed::Header | Parsed::Unreadable if let Some(kind) = kind_of(line) => {
                    others += 1;
                    found.get_or_insert(kind);
                }
                Parsed::Lost(_) | Parsed::Header | Parsed::Unreadable => {}
            }
            if events > others {
                return None;
            }
        }
    }
    found.filter(|_| others > events)
}

fn kind_of(line: &[u8]) -> Option<&'static Foreign> {
    let columns = line.get(..LONGEST_COLUMNS).unwrap_or(line);
    TEXTS.iter().find(|kind| (kind.is)(columns))
}

/// Whether a line is a call of the tracer `function_graph`: ` 0)   0.667 us    |  function();`, perhaps with a time before it, or
/// without the CPU.
fn is_graph(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let time = memchr(b'|', line).filter(|&at| is_time(line[..at].trim_ascii_end()));
    let line = time.map_or(line, |at| line[at + 1..].trim_ascii_start());
    let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let has_cpu = (1..=4).contains(&digits) && line.get(digits) == Some(&b')');
    let is_call = matches!(line, [.., b';' | b'{' | b'}'] | [.., b'*', b'/']);
    let mut columns = line.split(|&byte| byte == b'|');
    is_call && (has_cpu && line.contains(&b'|') || columns.any(is_duration))
}

/// Whether a column is a duration, `0.667 us`, with a mark if it is long: `+ 10.667 us`.
fn is_duration(column: &[u8]) -> bool {
    let number = column.trim_ascii().strip_suffix(b" us").unwrap_or_default();
    !number.is_empty() && number.iter().all(|byte| b"0123456789.+!#*@$ ".contains(byte))
}

/// Whether a line is an event of `perf script`, which writes the columns that the user selects: a time, and either an event with
/// its group or its period behind it, or the usual columns before it.
fn is_perf_script(line: &[u8]) -> bool {
    memchr_iter(b':', line).any(|colon| {
        let start = memrchr(b' ', &line[..colon]).map_or(0, |at| at + 1);
        let event = line[colon + 1..].trim_ascii_start();
        is_time(&line[start..colon])
            && (ftrace::has_perf_name(event) || has_period(event) || is_perf_thread(&line[..start]))
    })
}

/// Whether a text begins with an event and the period of its sample: `250000 cycles:`.
fn has_period(text: &[u8]) -> bool {
    let mut words = text.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let (period, event) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    is_number(period) && event.len() > 1 && event.ends_with(b":")
}

/// Whether a text is a thread and its CPU in the columns of perf: `NAME  TID [CPU]`, or `NAME PID/TID [CPU]`.
fn is_perf_thread(text: &[u8]) -> bool {
    let Some(columns) = text.trim_ascii_end().strip_suffix(b"]") else { return false };
    let Some(open) = memrchr(b'[', columns) else { return false };
    let mut words = columns[..open].trim_ascii_end().rsplitn(2, |&byte| byte == b' ');
    let (id, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is_id = id.split(|&byte| byte == b'/').all(is_number);
    is_number(&columns[open + 1..]) && is_id && !name.trim_ascii().is_empty()
}

/// Whether a text is a time, `SECONDS.FRACTION`.
fn is_time(text: &[u8]) -> bool {
    memchr(b'.', text).is_some_and(|at| is_number(&text[..at]) && is_number(&text[at + 1..]))
}

fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}
