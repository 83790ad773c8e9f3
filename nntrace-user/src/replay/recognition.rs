//! Files of other tools, recognized by their first bytes or by their lines, so that an error says what a file is and how to make
//! it readable.

use std::ops::Range;

use memchr::memmem;

pub(crate) use texts::foreign_text;

use super::html;

mod texts;

/// Kind of a file that is not read.
pub(crate) struct Foreign {
    /// Description of the file, after "is ".
    pub what: &'static str,
    /// Remedy.
    pub remedy: &'static str,
    /// Whether the first bytes of a file, or a line of a text, are of this kind.
    is: fn(&[u8]) -> bool,
}

/// Begin of a file packed by xz.
const XZ: &[u8] = b"\xfd7zXZ\0";

/// Remedy for what xz unpacks.
const BY_XZ: &str = "unpack it with `xz -d`, or pipe it: `xz -dc FILE | nntrace-bpf replay -`";

/// Kinds of files that their first bytes show; the first one that applies counts.
static FILES: [Foreign; 19] = [
    Foreign {
        what: "an empty archive",
        remedy: "it contains no files; pack the trace again, or give it uncompressed",
        is: is_empty_archive,
    },
    Foreign {
        what: "a zip archive",
        remedy: "unpack it (`unzip`), and give the trace that is in it",
        is: |head| head.starts_with(b"PK\x03\x04"),
    },
    Foreign { what: "packed by xz", remedy: BY_XZ, is: |head| head.starts_with(XZ) },
    Foreign { what: "packed by lzma", remedy: BY_XZ, is: is_lzma },
    Foreign {
        what: "packed by bzip2",
        remedy: "unpack it with `bzip2 -d`, or pipe it: `bzip2 -dc FILE | nntrace-bpf replay -`",
        is: |head| head.starts_with(b"BZh") && head.get(4..10) == Some(b"\x31\x41\x59\x26\x53\x59"),
    },
    Foreign {
        what: "packed by lz4",
        remedy: "unpack it with `lz4 -d`, or pipe it: `lz4 -dc FILE | nntrace-bpf replay -`",
        // Frames, and the format before them.
        is: |head| head.starts_with(b"\x04\x22\x4d\x18") || head.starts_with(b"\x02\x21\x4c\x18"),
    },
    Foreign {
        what: "packed by compress",
        remedy: "unpack it with `gzip -d`, or pipe it: `gzip -dc FILE | nntrace-bpf replay -`",
        is: |head| head.starts_with(b"\x1f\x9d"),
    },
    Foreign {
        what: "a 7z archive",
        remedy: "unpack it (`7z x`), and give the trace that is in it",
        is: |head| head.starts_with(b"7z\xbc\xaf\x27\x1c"),
    },
    Foreign {
        what: "a rar archive",
        remedy: "unpack it (`unrar x`), and give the trace that is in it",
        is: |head| head.starts_with(b"Rar!\x1a\x07"),
    },
    Foreign {
        what: "a tar archive",
        remedy: "unpack it (`tar xf`), and give the trace that is in it",
        is: is_tar,
    },
    Foreign {
        what: "a cpio archive",
        remedy: "unpack it (`cpio -id < FILE`), and give the trace that is in it",
        is: is_cpio,
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
        is: |head| html::looks_like_html(head) && memmem::find(head, b"viewer-data").is_some(),
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
    FILES.iter().find(|kind| (kind.is)(head))
}

/// Whether a file that begins like this was packed from nothing: where its content would begin is its end.
fn is_empty_archive(head: &[u8]) -> bool {
    head.starts_with(b"PK\x05\x06")
        || head.starts_with(b"BZh") && head.get(4..10) == Some(b"\x17\x72\x45\x38\x50\x90")
        || head.starts_with(XZ) && head.get(12) == Some(&0)
}

/// Whether a file that begins like this is packed by lzma: the usual properties and size of the dictionary, and a length of the
/// content that is unknown (-1) or less than 2^48.
fn is_lzma(head: &[u8]) -> bool {
    let Some(length) = head.get(5..13) else { return false };
    head.starts_with(b"\x5d\0\0") && (length == [u8::MAX; 8] || length.ends_with(&[0, 0]))
}

/// Whether a file that begins like this is a tar archive: by the mark of POSIX, or, without it, by the checksum of the header.
fn is_tar(head: &[u8]) -> bool {
    const LENGTH: usize = 512;
    const CHECKSUM: Range<usize> = 148..156;
    if head.get(257..262) == Some(b"ustar") {
        return true;
    }
    let Some(header) = head.get(..LENGTH) else { return false };
    let digits = str::from_utf8(&header[CHECKSUM]).unwrap_or_default().trim_matches([' ', '\0']);
    // The digits themselves count as blanks.
    let bytes = header.iter().enumerate().map(|(at, &byte)| if CHECKSUM.contains(&at) { b' ' } else { byte });
    u32::from_str_radix(digits, 8) == Ok(bytes.map(u32::from).sum::<u32>())
}

/// Whether a file that begins like this is a cpio archive, in one of the formats whose headers are digits.
fn is_cpio(head: &[u8]) -> bool {
    const SHORTEST_HEADER: usize = 76;
    let is_digits = |header: &[u8]| header.iter().all(u8::is_ascii_hexdigit);
    matches!(head, [b'0', b'7', b'0', b'7', b'0', b'1' | b'2' | b'7', ..])
        && head.get(..SHORTEST_HEADER).is_some_and(is_digits)
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

#[cfg(test)]
mod tests;
