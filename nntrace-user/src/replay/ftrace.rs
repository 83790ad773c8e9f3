//! One line of ftrace text: what the kernel's `trace` file, `trace-cmd report`, systrace, atrace and
//! Perfetto's export have in common, and how they differ.
//!
//! ```text
//! NAME-TID   (  TGID) [CPU] FLAGS  SECONDS.FRACTION: EVENT: FIELDS
//! ```
//!
//! TGID and FLAGS may be missing, a name may hold anything, and what comes before FIELDS may be padded
//! anywhere.

use memchr::{memchr, memchr2, memmem};

pub use columns::Columns;

use super::losses::Loss;
use notices::{is_chatter, lost, overwritten};

mod columns;
mod notices;

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// Something happened.
    Event(Event<'a>),
    /// Records are missing.
    Lost(Loss),
    /// Comments, blank lines, call stacks, and what the tools say about themselves.
    Header,
    /// None of these: cut, damaged, or text that is no trace.
    Unreadable,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The thread's name, as far as the trace knows it (`<...>` where it does not). Blanks at its start are
    /// lost.
    pub comm: &'a [u8],
    /// The thread; 0, with all of the text as the name, where a line names none (never so with a mark).
    pub tid: u32,
    /// Its process; `None` where the trace does not tell.
    pub tgid: Option<u32>,
    /// The CPU that it happened on.
    pub cpu: u32,
    /// When, ns on the trace's clock.
    pub time: u64,
    /// What.
    pub kind: EventKind<'a>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind<'a> {
    /// Text written to `trace_marker`.
    Mark(&'a [u8]),
    /// `cpu` enters an idle state, or leaves it (`u32::MAX`).
    CpuIdle {
        /// The state.
        state: u32,
        /// The CPU that does so.
        cpu: u32,
    },
    /// A frequency is asked for.
    CpuFrequency {
        /// The frequency, kHz.
        khz: u32,
        /// The CPU that it is asked for.
        cpu: u32,
    },
    /// Anything else.
    Other {
        /// The event's name; for the function tracer's lines, the function.
        name: &'a [u8],
        /// What follows, without leading blanks.
        fields: &'a [u8],
    },
}

/// The kernel function that writes marks, and so the name that stands before them.
const MARK: &[u8] = b"tracing_mark_write";

/// More of these than any kernel prints (8, with the RT patches of old) are none.
const MOST_FLAGS: usize = 10;

/// Longer than any task's name is; what is longer has something before it.
const LONGEST_COMM: usize = 15;

/// Reads one line, without its line end.
#[must_use]
pub fn parse(line: &[u8]) -> Parsed<'_> {
    if line.first() == Some(&b'#') {
        return overwritten(line).map_or(Parsed::Header, Parsed::Lost);
    }
    // `[CPU]` is the anchor. Names hold brackets, too: the first one with all the right things around it
    // counts.
    let mut from = 0;
    while let Some(found) = line.get(from..).and_then(|rest| memchr(b'[', rest)) {
        let at = from + found;
        if let Some((cpu, time, text)) = after_bracket(&line[at + 1..]) {
            match task(&line[..at]) {
                Task::Known { comm, tid, tgid } => return finish(Head { comm, tid, tgid, cpu, time }, text),
                Task::Nameless(comm) if from == 0 => return nameless(comm, cpu, time, text),
                Task::Nameless(_) | Task::Damaged => {}
            }
        }
        from = at + 1;
    }
    without_brackets(line)
}

/// All of an event but what happened.
#[derive(Clone, Copy)]
struct Head<'a> {
    comm: &'a [u8],
    tid: u32,
    tgid: Option<u32>,
    cpu: u32,
    time: u64,
}

#[inline]
fn finish<'a>(head: Head<'a>, text: &'a [u8]) -> Parsed<'a> {
    let Head { comm, tid, tgid, cpu, time } = head;
    kind(text).map_or(Parsed::Unreadable, |kind| Parsed::Event(Event { comm, tid, tgid, cpu, time, kind }))
}

/// A line without `-TID`: handmade ones have it for CPU events, where it does not matter. A mark needs its
/// thread.
#[cold]
fn nameless<'a>(comm: &'a [u8], cpu: u32, time: u64, text: &'a [u8]) -> Parsed<'a> {
    match finish(Head { comm, tid: 0, tgid: None, cpu, time }, text) {
        Parsed::Event(Event { kind: EventKind::Mark(_), .. }) => Parsed::Unreadable,
        parsed => parsed,
    }
}

/// Reads `CPU] FLAGS SECONDS.FRACTION:`: the CPU, the time (ns), and the text of the event.
#[inline]
fn after_bracket(text: &[u8]) -> Option<(u32, u64, &[u8])> {
    let (cpu, text) = number(text)?;
    let (seconds, text) = before_fraction(text)?;
    let (time, text) = fraction(seconds, text)?;
    Some((cpu, time, skip_difference(text)?))
}

/// Reads `] FLAGS SECONDS.`: the seconds, ns.
#[inline]
fn before_fraction(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = skip_blanks(text.strip_prefix(b"]")?);
    let text = if text.first().is_some_and(u8::is_ascii_digit) { text } else { skip_flags(text)? };
    seconds(text)
}

/// Skips blanks, and the time since the line before, which `trace-cmd report --ts-diff` puts before the event.
#[inline]
fn skip_difference(text: &[u8]) -> Option<&[u8]> {
    let text = skip_blanks(text);
    if !text.starts_with(b"(+") {
        return Some(text);
    }
    let end = memchr(b')', text)?;
    Some(skip_blanks(&text[end + 1..]))
}

/// Skips latency flags (`d..1.`) and the blanks after them.
#[inline]
fn skip_flags(text: &[u8]) -> Option<&[u8]> {
    let end = text.iter().take(MOST_FLAGS + 1).position(|&byte| byte == b' ')?;
    let plain = text[..end].iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'.');
    (plain && end > 0).then(|| skip_blanks(&text[end..]))
}

/// Reads `SECONDS.FRACTION:`, ns.
#[inline]
fn time(text: &[u8]) -> Option<(u64, &[u8])> {
    let (seconds, text) = seconds(text)?;
    fraction(seconds, text)
}

/// Nanoseconds of a second, a tenth of it, and so on.
const UNITS: [u64; 10] =
    [1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];

/// Seconds that the kernel's clocks do not reach: they are signed, in ns. A line that tells a later time is damaged, and
/// no difference of times could hold it.
const END_OF_TIME: u64 = i64::MAX.cast_unsigned() / UNITS[0];

/// Reads `SECONDS.`, ns.
#[inline]
fn seconds(text: &[u8]) -> Option<(u64, &[u8])> {
    // More digits than those of `END_OF_TIME`.
    const MOST_SECONDS: usize = 11;
    let (seconds, count) = digits(text, MOST_SECONDS);
    let rest = text[count..].strip_prefix(b".")?;
    if count > 0 && seconds < END_OF_TIME { Some((seconds * UNITS[0], rest)) } else { None }
}

/// Reads `FRACTION:`, one to nine digits, and adds it to the seconds (ns).
#[inline]
fn fraction(seconds: u64, text: &[u8]) -> Option<(u64, &[u8])> {
    let (parts, places) = digits(text, UNITS.len() - 1);
    let rest = text[places..].strip_prefix(b":")?;
    if places == 0 { None } else { Some((seconds + parts * UNITS[places], rest)) }
}

/// The value of the digits at the start, and how many there are; at most `most` (19 or less) are read.
#[inline]
fn digits(text: &[u8], most: usize) -> (u64, usize) {
    let mut value = 0;
    let mut count = 0;
    for &byte in text.iter().take(most) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value * 10 + u64::from(digit);
        count += 1;
    }
    (value, count)
}

/// Reads a decimal number of 32 bits.
#[inline]
pub(super) fn number(text: &[u8]) -> Option<(u32, &[u8])> {
    let (value, count) = digits(text, 11);
    if count == 0 {
        return None;
    }
    Some((u32::try_from(value).ok()?, &text[count..]))
}

/// Whose line it is: what stands before `[CPU]`.
enum Task<'a> {
    Known {
        comm: &'a [u8],
        tid: u32,
        tgid: Option<u32>,
    },
    /// No `-TID`.
    Nameless(&'a [u8]),
    /// Numbers that are none.
    Damaged,
}

#[inline]
fn task(text: &[u8]) -> Task<'_> {
    let mut text = trim_end(text);
    let mut tgid = None;
    let process = text.last() == Some(&b')');
    if process {
        let Some((known, rest)) = process_column(&text[..text.len() - 1]) else { return Task::Damaged };
        (tgid, text) = (known, trim_end(rest));
    }
    let start = text.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1);
    if start == text.len() || start == 0 || text[start - 1] != b'-' {
        return if process { Task::Damaged } else { Task::Nameless(skip_blanks(text)) };
    }
    match number(&text[start..]) {
        Some((tid, [])) => Task::Known { comm: name(&text[..start - 1]), tid, tgid },
        _ => Task::Damaged,
    }
}

/// Reads `(  TGID` from the end: `None` inside for `(-----` and blanks.
#[inline]
fn process_column(text: &[u8]) -> Option<(Option<u32>, &[u8])> {
    let open = text.iter().rposition(|&byte| byte == b'(')?;
    let (before, inside) = (&text[..open], skip_blanks(&text[open + 1..]));
    if inside.iter().all(|&byte| byte == b'-') {
        return Some((None, before));
    }
    let (tgid, rest) = number(inside)?;
    rest.is_empty().then_some((Some(tgid), before))
}

/// A task's name. `trace-cmd report` of several buffers puts `BUFFER: ` before the padded name.
#[inline]
fn name(text: &[u8]) -> &[u8] {
    let name = skip_blanks(text);
    if name.len() <= LONGEST_COMM {
        return name;
    }
    memmem::find(name, b": ").map_or(name, |at| skip_blanks(&name[at + 2..]))
}

#[inline]
fn skip_blanks(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|&byte| byte != b' ' && byte != b'\t');
    &text[start.unwrap_or(text.len())..]
}

#[inline]
fn trim_end(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| byte != b' ' && byte != b'\t').map_or(0, |at| at + 1);
    &text[..end]
}

/// Reads `EVENT: FIELDS`; `None` where it cannot be read.
#[inline]
fn kind(text: &[u8]) -> Option<EventKind<'_>> {
    match text.first()? {
        b't' => {
            if let Some(payload) = text.strip_prefix(MARK).and_then(after_symbol) {
                // trace-cmd pads the names of events to 21 columns: vendors' kernels have an event of this
                // name.
                let padded = payload.strip_prefix(b"   ");
                return Some(EventKind::Mark(padded.unwrap_or_else(|| strip_blank(payload))));
            }
        }
        b'c' => {
            if let Some(fields) = text.strip_prefix(b"cpu_idle:") {
                let (state, cpu) = cpu_fields(fields)?;
                return Some(EventKind::CpuIdle { state, cpu });
            }
            if let Some(fields) = text.strip_prefix(b"cpu_frequency:") {
                let (khz, cpu) = cpu_fields(fields)?;
                return Some(EventKind::CpuFrequency { khz, cpu });
            }
        }
        // trace-cmd shows a mark as event `print` of that function, or of its address.
        b'p' => {
            if let Some(fields) = text.strip_prefix(b"print:") {
                let fields = skip_blanks(fields);
                let payload =
                    fields.strip_prefix(MARK).and_then(after_symbol).or_else(|| after_address(fields));
                let other = EventKind::Other { name: b"print", fields };
                return Some(payload.map_or(other, |payload| EventKind::Mark(strip_blank(payload))));
            }
        }
        // Where the kernel may not tell symbols, the function is an address, or 0.
        b'0'..=b'9' => {
            if let Some(payload) = after_address(text) {
                return Some(EventKind::Mark(strip_blank(payload)));
            }
        }
        _ => {}
    }
    let end = memchr2(b':', b' ', text).unwrap_or(text.len());
    let (name, fields) = text.split_at(end);
    let fields = skip_blanks(fields.strip_prefix(b":").unwrap_or(fields));
    (!name.is_empty()).then_some(EventKind::Other { name, fields })
}

/// What follows the `:` after the function's name, also where options add `+0x8a/0x170` or `
/// <ffffffff81498b1a>`.
#[inline]
fn after_symbol(text: &[u8]) -> Option<&[u8]> {
    match text {
        [b':', payload @ ..] => Some(payload),
        [b'+', ..] | [b' ', b'<', ..] => {
            let colon = memchr(b':', text)?;
            let plain = |byte: &u8| byte.is_ascii_hexdigit() || b"+x/<> ".contains(byte);
            text[..colon].iter().all(plain).then(|| &text[colon + 1..])
        }
        _ => None,
    }
}

/// What follows `0:`, `0xffff00000819ff24:` or, from libtraceevent, `0xffff00000819ff24s:`.
#[inline]
fn after_address(text: &[u8]) -> Option<&[u8]> {
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0"))?;
    let count = digits.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    // Without `0x` it is only ever 0 itself.
    if (count > 0) != (text.get(1) == Some(&b'x')) {
        return None;
    }
    let rest = &digits[count..];
    rest.strip_prefix(b"s").unwrap_or(rest).strip_prefix(b":")
}

/// One blank ends the name; more belong to the payload.
#[inline]
fn strip_blank(payload: &[u8]) -> &[u8] {
    payload.strip_prefix(b" ").unwrap_or(payload)
}

/// Reads `state=S cpu_id=C`, in any order and among others.
#[inline]
pub(super) fn cpu_fields(text: &[u8]) -> Option<(u32, u32)> {
    let text = skip_blanks(text);
    if let Some((state, rest)) = text.strip_prefix(b"state=").and_then(number)
        && let Some((cpu, [])) = rest.strip_prefix(b" cpu_id=").and_then(number)
    {
        return Some((state, cpu));
    }
    let value = |key: &[u8]| {
        let mut fields = text.split(|byte| b" \t,".contains(byte));
        fields.find_map(|field| field.strip_prefix(key)).and_then(any_number)
    };
    Some((value(b"state=")?, value(b"cpu_id=")?))
}

/// A number of 32 bits as kernels have printed it: decimal, hexadecimal (`0x`), or -1.
fn any_number(text: &[u8]) -> Option<u32> {
    match text {
        b"-1" => Some(u32::MAX),
        [b'0', b'x', digits @ ..] => {
            let digits = str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
            u32::from_str_radix(digits, 16).ok()
        }
        _ => number(text).filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value),
    }
}

/// What is no event with a `[CPU]`.
#[cold]
fn without_brackets(line: &[u8]) -> Parsed<'_> {
    let text = trim_end(skip_blanks(line));
    if let Some((head, text)) = latency_format(text) {
        return finish(head, text);
    }
    // `BUFFER: ` again.
    let inner = memmem::find(text, b": ").map_or(text, |at| skip_blanks(&text[at + 2..]));
    if let Some(lost) = lost(text).or_else(|| lost(inner)) {
        return lost;
    }
    if is_chatter(text) || is_chatter(inner) { Parsed::Header } else { Parsed::Unreadable }
}

/// Reads `trace-cmd report -l`: `NAME-TID CPUFLAGS SECONDS.FRACTION:`. The kernel's own latency format has no
/// such times.
fn latency_format(text: &[u8]) -> Option<(Head<'_>, &[u8])> {
    memchr::memchr_iter(b' ', text).find_map(|at| {
        let (cpu, flags) = number(&text[at + 1..])?;
        let (time, rest) = time(skip_flags(flags)?)?;
        match task(&text[..at]) {
            Task::Known { comm, tid, tgid } => Some((Head { comm, tid, tgid, cpu, time }, skip_blanks(rest))),
            Task::Nameless(_) | Task::Damaged => None,
        }
    })
}

/// The time of a line that is an event but for the unit that this time lacks, as the kernel and trace-cmd print what a
/// clock of other units counts: `[000] d..1. 6792243290455: sched_switch`, or without the blank before it.
#[cold]
#[must_use]
pub fn time_without_unit(line: &[u8]) -> Option<&str> {
    memchr::memchr_iter(b'[', line).find_map(|at| {
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

#[cfg(test)]
mod tests;
