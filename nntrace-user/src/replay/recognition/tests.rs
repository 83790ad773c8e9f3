use proptest::prelude::*;

use super::*;
use crate::replay::ftrace::{Parsed, parse};

fn what(head: &[u8]) -> Option<&'static str> {
    foreign(head).map(|kind| kind.what)
}

#[test]
fn magic_numbers() {
    let mut tar = [0; 512];
    tar[257..262].copy_from_slice(b"ustar");
    let heads: [(&[u8], &str); 7] = [
        (b"PK\x03\x04\x14\0", "zip"),
        (b"\xfd7zXZ\0\0\x04", "xz"),
        (b"BZh91AY&SY", "bzip2"),
        (&tar, "tar"),
        (b"\x10\0\x04FxT\x16\0", "Fuchsia"),
        (b"PERFILE2", "perf record"),
        (b"\x7fELF\x02", "ELF"),
    ];
    for (head, name) in heads {
        assert!(what(head).is_some_and(|what| what.contains(name)), "{name}");
    }
}

#[test]
fn texts_of_other_tools() {
    let texts = [
        ("{\"traceEvents\":[{\"ph\":\"B\",\"name\":\"conv [0] 12.5: x\"}]}", "JSON"),
        ("\n [\n  {\"ph\": \"X\"}\n]", "JSON"),
        (" 1)   0.667 us    |    vfs_write();\n", "function_graph"),
        ("# tracer: function_graph\n#\n", "function_graph"),
        ("# tracer: nop\n#\n# nop latency trace v1.1.5 on 6.1.0\n", "latency"),
        ("[  9.1] Dumping ftrace buffer:\n[  9.2] ------\n", "console log"),
        ("# ====\n  swapper     0 [001]   100.000700:   power:cpu_idle: state=1 cpu_id=1\n", "perf script"),
        ("grpc-default-wo 4615/4802  [001]   100.1:   20408163 cpu-clock:\n", "perf script"),
        ("<!DOCTYPE html>\n<script id=\"viewer-data\" type=\"text/plain\">\nH4sI\n", "trace2html"),
    ];
    for (text, name) in texts {
        assert!(
            what(text.as_bytes()).is_some_and(|what| what.contains(name)),
            "{text}: {:?}",
            what(text.as_bytes())
        );
    }
    for text in ["", "# tracer: nop\n", "Hello", "{broken", "version = 6\n"] {
        assert_eq!(what(text.as_bytes()), None, "{text}");
    }
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
