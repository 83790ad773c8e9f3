//! Names of events as perf writes them.

/// Whether a text begins with the name that perf gives to an event of the kernel, `GROUP:EVENT:`. Its columns before that are
/// others than those of ftrace, which writes `EVENT:` alone.
#[cold]
pub(crate) fn has_perf_name(text: &[u8]) -> bool {
    let mut words = text.splitn(3, |&byte| byte == b':');
    let mut is_word = || {
        let word = words.next().unwrap_or_default();
        !word.is_empty() && word.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte))
    };
    is_word() && is_word() && words.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::ftrace::{Parsed, parse};

    #[test]
    fn groups_are_told_from_fields() {
        for text in ["power:cpu_idle: state=1", "sched:sched_switch:", "cycles:u:  ffff8109e2a1", "a:b-c:d"] {
            assert!(has_perf_name(text.as_bytes()), "{text}");
        }
        for text in ["", ":", "a", "a:b", "a: b:", "::", "a::", ":a:", "cpu_idle: x", "a b:c:", "a:b c:"] {
            assert!(!has_perf_name(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn an_event_of_perf_is_no_event_of_ftrace() {
        let event = "power:cpu_idle: state=1 cpu_id=1";
        for columns in ["swapper     0 ", "swapper ", "", "4101/4102  ", "infer-12 77 ", "infer-12 "] {
            let line = format!("  {columns}[001]   100.000700:   {event}");
            assert_eq!(parse(line.as_bytes()), Parsed::Unreadable, "{line}");
        }
        for event in ["power_start: type=1 cpu_id=1", "a:b", "mutex_unlock <-rb_simple_write", "f: a:b: c"] {
            let line = format!("  infer-12 [001] 100.000700: {event}");
            assert!(matches!(parse(line.as_bytes()), Parsed::Event(_)), "{line}");
        }
    }
}
