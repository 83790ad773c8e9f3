//! Files of other tools, recognized by their first bytes and lines, so that an error says what a file is and how to make it
//! readable.

use memchr::memmem;

/// Kind of a file that is not read.
pub(crate) struct Foreign {
    /// Description of the file, after "is ".
    pub what: &'static str,
    /// Remedy.
    pub remedy: &'static str,
    is: fn(&[u8]) -> bool,
}

/// All kinds, the first that applies counts: packings and binary files by their magic numbers, then texts.
static KINDS: [Foreign; 18] = [
    Foreign {
        what: "a zip archive",
        remedy: "unpack it (`unzip`), and give the trace that is in it",
        is: |head| head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06"),
    },
    Foreign {
        what: "packed by xz",
        remedy: "unpack it with `xz -d`, or pipe it: `xz -dc FILE | nntrace-bpf replay -`",
        is: |head| head.starts_with(b"\xfd7zXZ\0"),
    },
    Foreign {
        what: "packed by bzip2",
        remedy: "unpack it with `bzip2 -d`, or pipe it: `bzip2 -dc FILE | nntrace-bpf replay -`",
        is: |head| head.starts_with(b"BZh") && head.get(4..10) == Some(b"\x31\x41\x59\x26\x53\x59"),
    },
    Foreign {
        what: "packed by lz4",
        remedy: "unpack it with `lz4 -d`, or pipe it: `lz4 -dc FILE | nntrace-bpf replay -`",
        is: |head| head.starts_with(b"\x04\x22\x4d\x18"),
    },
    Foreign {
        what: "a 7z archive",
        remedy: "unpack it (`7z x`), and give the trace that is in it",
        is: |head| head.starts_with(b"7z\xbc\xaf\x27\x1c"),
    },
    Foreign {
        what: "a tar archive",
        remedy: "unpack it (`tar xf`), and give the trace that is in it",
        is: |head| head.get(257..262) == Some(b"ustar"),
    },
    Foreign {
        what: "an ELF file, which is a program or a library",
        remedy: "give a trace; `nntrace-bpf engines FILE` shows what would be probed in a library",
        is: |head| head.starts_with(b"\x7fELF"),
    },
    Foreign {
        what: "a Fuchsia trace (.fxt), as magic-trace writes it",
        remedy: "open it in ui.perfetto.dev; only ftrace text, trace.dat and traces of Perfetto are read",
        is: |head| head.starts_with(b"\x10\0\x04FxT\x16\0"),
    },
    Foreign {
        what: "data of `perf record`",
        remedy: "record with `trace-cmd record -e power -e sched` instead, and give trace.dat",
        is: |head| head.starts_with(b"PERFILE2") || head.starts_with(b"2ELIFREP"),
    },
    Foreign {
        what: "a trace in the Common Trace Format (CTF), as LTTng writes it",
        remedy: "record with `trace-cmd record -e power -e sched` instead, and give trace.dat",
        is: |head| {
            head.starts_with(b"/* CTF 1")
                || head.starts_with(b"\xc1\x1f\xfc\xc1")
                || head.starts_with(b"\xc1\xfc\x1f\xc1")
        },
    },
    Foreign {
        what: "a trace in JSON (Chrome, Kineto, uftrace and others)",
        remedy: "JSON is read only where it has the text of ftrace in `systemTraceEvents`; open it in ui.perfetto.dev, or record ftrace, trace.dat or a trace of Perfetto",
        is: is_json,
    },
    Foreign {
        what: "a page of trace2html, which has its trace packed in a script",
        remedy: "give the trace that the page was made of",
        is: |head| has(head, b"viewer-data"),
    },
    Foreign {
        what: "the text of the function_graph tracer, which has no thread and no time for each event",
        remedy: "record with the tracer nop (`echo nop > /sys/kernel/tracing/current_tracer`), or with `trace-cmd record -e power -e sched`",
        is: |head| has(head, b"# tracer: function_graph") || first_line(head).is_some_and(is_graph),
    },
    Foreign {
        what: "text in ftrace's latency format, whose times are relative",
        remedy: "switch it off (`echo 0 > /sys/kernel/tracing/options/latency-format`) and read the trace again, or record with `trace-cmd record -e power -e sched`",
        is: |head| has(head, b" latency trace v1"),
    },
    Foreign {
        what: "a console log with a dump of ftrace's buffer, which is in the latency format",
        remedy: "let the buffer survive the reboot (`reserve_mem` and `trace_instance=boot_map`) and copy /sys/kernel/tracing/instances/boot_map/trace, or record with `trace-cmd record -e power -e sched`",
        is: |head| has(head, b"Dumping ftrace buffer:"),
    },
    Foreign {
        what: "the text of `perf script`",
        remedy: "record with `trace-cmd record -e power -e sched` instead, and give trace.dat or the text of `trace-cmd report`",
        is: |head| first_line(head).is_some_and(is_perf_script),
    },
    Foreign {
        what: "a picture or a document",
        remedy: "give a trace: the text of ftrace, trace.dat, or a trace of Perfetto",
        is: |head| {
            head.starts_with(b"\x89PNG") || head.starts_with(b"%PDF") || head.starts_with(b"\xff\xd8\xff")
        },
    },
    Foreign {
        what: "a database of SQLite, as Nsight Systems and others export it",
        remedy: "give a trace: the text of ftrace, trace.dat, or a trace of Perfetto",
        is: |head| head.starts_with(b"SQLite format 3\0"),
    },
];

/// Returns the kind of a file that begins like this, if it is one that is not read.
pub(crate) fn foreign(head: &[u8]) -> Option<&'static Foreign> {
    KINDS.iter().find(|kind| (kind.is)(head))
}

/// Whether a file that begins like this is JSON.
pub(crate) fn is_json(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let inside = match text.first() {
        Some(b'{') => text[1..].trim_ascii_start(),
        Some(b'[') => return matches!(text[1..].trim_ascii_start().first(), Some(b'{' | b'[' | b']')),
        _ => return false,
    };
    matches!(inside.first(), Some(b'"' | b'}') | None)
}

fn has(head: &[u8], text: &[u8]) -> bool {
    memmem::find(head, text).is_some()
}

/// Returns the first line that is neither blank nor a comment.
fn first_line(head: &[u8]) -> Option<&[u8]> {
    let lines = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.into_iter().find(|line| !line.is_empty() && line[0] != b'#')
}

/// Whether a line is one of the tracer `function_graph`: ` 0)   0.667 us    |  function();`.
fn is_graph(line: &[u8]) -> bool {
    let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (1..=4).contains(&digits) && line.get(digits) == Some(&b')') && (line.contains(&b'|') || has(line, b"=>"))
}

/// Whether a line is an event of `perf script`: `NAME  TID [CPU] SECONDS.FRACTION: GROUP:EVENT: ..`, or `NAME PID/TID ..`.
fn is_perf_script(line: &[u8]) -> bool {
    memchr::memchr_iter(b'[', line).any(|open| {
        let Some(close) = memchr::memchr(b']', &line[open..]).map(|at| open + at) else { return false };
        let is_cpu = close > open + 1 && line[open + 1..close].iter().all(u8::is_ascii_digit);
        let mut words = line[..open].trim_ascii_end().rsplitn(2, |&byte| byte == b' ');
        let (Some(id), Some(name)) = (words.next(), words.next()) else { return false };
        let is_id = !id.is_empty() && id.iter().all(|byte| byte.is_ascii_digit() || *byte == b'/');
        let time = line[close + 1..].trim_ascii_start();
        let colon = memchr::memchr(b':', time).unwrap_or(0);
        let is_time = colon > 0 && time[..colon].iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
        is_cpu && is_id && is_time && !name.trim_ascii().is_empty()
    })
}

#[cfg(test)]
mod tests;
