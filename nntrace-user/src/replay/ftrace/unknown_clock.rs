//! Lines whose times are of a clock without a unit.

use memchr::{memchr, memchr_iter};

use super::{MOST_FLAGS, Task, kind, number, skip_blanks, task, trim_end};

/// Returns the time of a line that is an event except that its time has no unit, as the kernel and trace-cmd print
/// the times of clocks in other units: `[000] d..1. 6792243290455: sched_switch`, or without the blank before the
/// time.
#[cold]
#[must_use]
pub fn time_without_unit(line: &[u8]) -> Option<&str> {
    memchr_iter(b'[', line).find_map(|at| {
        let Task::Known { .. } = task(&line[..at]) else { return None };
        let (_, rest) = number(&line[at + 1..])?;
        let rest = skip_blanks(rest.strip_prefix(b"]")?);
        let (stamp, rest) = rest.split_at(memchr(b':', rest)?);
        let start = stamp.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1);
        let (flags, time) = stamp.split_at(start);
        let are_flags = trim_end(flags).len() <= MOST_FLAGS
            && trim_end(flags).iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'.');
        let is_event = kind(skip_blanks(&rest[1..])).is_some();
        (are_flags && is_event && !time.is_empty()).then_some(str::from_utf8(time).ok()?)
    })
}
