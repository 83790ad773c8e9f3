use proptest::prelude::*;

use super::*;
use crate::replay::ftrace::{Parsed, parse};

/// Returns what a file with these bytes is, if it is of another tool.
fn what(bytes: &[u8]) -> Option<&'static str> {
    foreign(bytes).or_else(|| foreign_text(bytes)).map(|kind| kind.what)
}

/// Returns the header of a tar archive of before POSIX.
fn old_tar() -> [u8; 512] {
    let mut header = [0; 512];
    header[..9].copy_from_slice(b"trace.txt");
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().copied().map(u32::from).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

#[test]
fn magic_numbers() {
    let mut tar = [0; 512];
    tar[257..262].copy_from_slice(b"ustar");
    let old_tar = old_tar();
    let cpio = format!("070701{:0104}", 0);
    let heads: [(&[u8], &str); 15] = [
        (b"PK\x03\x04\x14\0", "zip"),
        (b"PK\x05\x06\0\0", "empty archive"),
        (b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46\x02\0", "xz"),
        (b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46\0\0", "empty archive"),
        (b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff\0\x10", "lzma"),
        (b"BZh91AY&SY", "bzip2"),
        (b"BZh9\x17rE8P\x90\0\0\0\0", "empty archive"),
        (b"\x1f\x9d\x90\x23\x42", "compress"),
        (b"Rar!\x1a\x07\x01\0", "rar"),
        (cpio.as_bytes(), "cpio"),
        (&tar, "tar"),
        (&old_tar, "tar"),
        (b"\x10\0\x04FxT\x16\0", "Fuchsia"),
        (b"PERFILE2", "perf record"),
        (b"\x7fELF\x02", "ELF"),
    ];
    for (head, name) in heads {
        assert!(what(head).is_some_and(|what| what.contains(name)), "{name}: {:?}", what(head));
    }
    let mut damaged = old_tar;
    damaged[0] += 1;
    for head in [&damaged[..], &[0_u8; 512], b"070701 is a number", b"]\0\0"] {
        assert_eq!(what(head), None, "{}", head.escape_ascii());
    }
}

#[test]
fn texts_of_other_tools() {
    let texts = [
        ("{\"traceEvents\":[{\"ph\":\"B\",\"name\":\"conv [0] 12.5: x\"}]}", "JSON"),
        ("\n [\n  {\"ph\": \"X\"}\n]", "JSON"),
        (" 1)   0.667 us    |    vfs_write();\n", "function_graph"),
        ("CPU:0 [LOST 12 EVENTS]\n 0)               |  vfs_write() {\n", "function_graph"),
        (" -----\n 0)  infer-7   =>    <idle>-0\n -----\n\n 0) + 10.667 us   |  }\n", "function_graph"),
        ("  100.000100 |   0)  infer-7   |               |  /* E|7 */\n", "function_graph"),
        ("               |  bar() {\n   0.667 us    |  foo();\n", "function_graph"),
        ("# tracer: function_graph\n#\n", "function_graph"),
        ("# tracer: nop\n#\n# nop latency trace v1.1.5 on 6.1.0\n", "latency"),
        ("   infer-4101      2...1.  500us+: tracing_mark_write: E|4101\n", "latency"),
        ("[  9.1] Dumping ftrace buffer:\n[  9.2] ------\n", "console log"),
        ("Nov 26 10:00:00 board kernel: [  9.1] Dumping ftrace buffer:\r\n", "console log"),
        ("# ====\n  swapper     0 [001]   100.000700:   power:cpu_idle: state=1 cpu_id=1\n", "perf script"),
        ("grpc-default-wo 4615/4802  [001]   100.1:   20408163 cpu-clock:\n", "perf script"),
        ("  swapper [001]   100.000700:   power:cpu_idle: state=1 cpu_id=1\n", "perf script"),
        ("  [001]   100.000700:   power:cpu_idle: state=1 cpu_id=1\n", "perf script"),
        (" 4101/4102  [001]   100.000700:   power:cpu_idle: state=1 cpu_id=1\n", "perf script"),
        ("  ffff8109e2a1 [unknown]\n\n  a 0 [001] 100.7:   power:cpu_idle: state=1\n", "perf script"),
        ("infer  4101   100.000700:   250000   cycles:  ffffffff8109e2a1 foo\n", "perf script"),
        ("infer  4101 [001] 100.000700: cycles:  ffffffff8109e2a1 foo\n", "perf script"),
        ("<!DOCTYPE html>\n<script id=\"viewer-data\" type=\"text/plain\">\nH4sI\n", "trace2html"),
    ];
    for (text, name) in texts {
        assert!(
            what(text.as_bytes()).is_some_and(|what| what.contains(name)),
            "{text}: {:?}",
            what(text.as_bytes())
        );
    }
    let others = ["1) one | two", "| p50 | 12 us |", "12.5: done", "took 5us : well", "viewer-data"];
    for text in ["", "# tracer: nop\n", "Hello", "{broken", "version = 6\n"].into_iter().chain(others) {
        assert_eq!(what(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn a_text_with_an_event_is_a_trace_whatever_words_it_has() {
    let words = ["viewer-data", "nop latency trace v1", "# tracer: function_graph", "Dumping ftrace buffer:"];
    for word in words {
        let event = format!("infer-4101 [002] ...1 100.000100: tracing_mark_write: B|4100|{word}\n");
        assert_eq!(what(event.as_bytes()), None, "{word}");
        let text = format!("# {word}\n{event}");
        assert_eq!(what(text.as_bytes()), None, "{word}");
    }
}

#[test]
fn what_most_lines_are_is_what_a_text_is() {
    let perf = "  worker-12  4101 [002]   100.000100: power:cpu_idle: state=1 cpu_id=2\n";
    let event = "  -12 [002]   100.000300: cpu_idle: state=1 cpu_id=2\n";
    let is_perf = |lines: &[&str]| what(lines.concat().as_bytes()).is_some();
    assert!(is_perf(&[perf, event, perf]));
    assert!(!is_perf(&[perf, event, event]));
    assert!(!is_perf(&[event, perf, perf]));
}

#[test]
fn a_line_of_another_tool_may_come_late() {
    let log = "[    0.5] usb 1-1: new device\n".repeat(10_000) + "[  9.1] Dumping ftrace buffer:\n";
    assert!(what(log.as_bytes()).is_some_and(|what| what.contains("console log")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Nothing that the parser of ftrace's text reads is taken for another tool's.
    #[test]
    fn no_line_of_ftrace_is_foreign(
        comm in "[a-zA-Z0-9_/:. -]{1,15}", tid in 0_u32..4_194_304, tgid in proptest::option::of(0_u32..99_999),
        cpu in 0_u32..512, flags in "[.dNnpHhsiRE0-9]{0,5}", time in 0_u64..99_999_999, fields in "[ -~]{0,60}",
    ) {
        let tgid = tgid.map_or_else(|| "(-----) ".into(), |tgid| format!("({tgid:5}) "));
        let (seconds, us) = (time / 1_000_000, time % 1_000_000);
        let line = format!("{comm:>16}-{tid:<5} {tgid}[{cpu:03}] {flags} {seconds:5}.{us:06}: sched_switch: {fields}");
        if matches!(parse(line.as_bytes()), Parsed::Event(_)) {
            prop_assert_eq!(what(line.as_bytes()), None, "{}", line);
        }
    }

    /// Logs with a number in brackets and a time have no event.
    #[test]
    fn no_line_of_a_log_is_an_event(
        level in "[A-Z]{4}", module in "[a-z_]{1,20}", number in 0_u32..999, time in 0_u32..99_999, text in "[ -~]{0,60}",
    ) {
        let line = format!("{level} {module} [{number}] {time}.500: {text}");
        prop_assume!(!text.trim_start().starts_with("cpu_") && !text.contains('['));
        prop_assert!(!matches!(parse(line.as_bytes()), Parsed::Event(_)), "{}", line);
    }
}
