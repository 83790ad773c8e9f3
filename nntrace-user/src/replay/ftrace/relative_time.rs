//! Lines in the kernel's latency format, whose times are relative.

use memchr::memchr_iter;

use super::{Task, digits, number, skip_flags, task};

/// Whether a line is an event in the latency format, `NAME-TID CPUFLAGS 600us+: EVENT`, where `+` is a blank, or stands for a
/// long delay. That of a console log has a time of its own before it.
pub(crate) fn has_relative_time(line: &[u8]) -> bool {
    memchr_iter(b' ', line).any(|at| {
        let columns = number(&line[at + 1..]).and_then(|(_, flags)| skip_flags(flags));
        let is_time = columns.is_some_and(|time| {
            let (_, places) = digits(time, 19);
            places > 0 && matches!(time[places..], [b'u', b's', _, b':', ..])
        });
        is_time && matches!(task(&line[..at]), Task::Known { .. })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::ftrace::{Parsed, parse};

    #[test]
    fn relative_times_are_told_from_others() {
        for line in [
            "   infer-4101      2...1.    0us : tracing_mark_write: E",
            "  <idle>-0         1d..1.  600us!: cpu_idle: state=1 cpu_id=1",
            "[  100.500300]   infer-4101    2dNh21. 100000100us+: cpu_idle: state=1 cpu_id=1",
            "Nov 26 10:00:00 board kernel: [  100.500300]   a b-7    12d.... 5us : x",
        ] {
            assert!(has_relative_time(line.as_bytes()), "{line}");
            assert_eq!(parse(line.as_bytes()), Parsed::Unreadable, "{line}");
        }
        for line in [
            "",
            " ",
            "it took 2 ms 0us : x",
            "  infer-4101 2...1. us : x",
            "  infer-4101 2...1. 5us",
            "  infer 2...1. 5us : x",
            "  <idle>-0       0d..1. 12904.361359027: cpu_idle:             state=1 cpu_id=0",
        ] {
            assert!(!has_relative_time(line.as_bytes()), "{line}");
        }
    }
}
