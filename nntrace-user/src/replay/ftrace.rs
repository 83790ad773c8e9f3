//! Lines of ftrace text: the common ground, and the differences, of the kernel's `trace` file, `trace-cmd report`,
//! systrace, atrace and Perfetto's export.
//!
//! ```text
//! NAME-TID   (  TGID) [CPU] FLAGS  SECONDS.FRACTION: EVENT: FIELDS
//! NAME-TID   [CPU] (  TGID) FLAGS  SECONDS.FRACTION: EVENT: FIELDS
//! ```
//!
//! The second form is that of Linux 4.13 to 4.17. TGID and FLAGS may be missing, a name may contain anything, and there may be padding anywhere before FIELDS.

use memchr::{memchr, memchr2, memmem};

pub use columns::Columns;
pub(crate) use perf_name::has_perf_name;
pub(crate) use relative_time::has_relative_time;
pub use unknown_clock::time_without_unit;

use super::losses::Loss;
use other_lines::{is_chatter, lost, overwritten};

mod columns;
mod other_lines;
mod perf_name;
mod relative_time;
mod unknown_clock;

/// Kind of a line, with its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// An event.
    Event(Event<'a>),
    /// Notice of missing records.
    Lost(Loss),
    /// Comment, blank line, call stack, or message of a tool about itself.
    Header,
    /// Anything else: truncated, damaged, or not a trace.
    Unreadable,
}

/// Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Name of the thread, as far as it is in the trace (`<...>` where it is not). Leading blanks are lost.
    pub comm: &'a [u8],
    /// Thread id; 0, with the whole text as the name, where a line has none (never with a mark).
    pub tid: u32,
    /// Process id; `None` where it is not in the trace.
    pub tgid: Option<u32>,
    /// CPU that recorded the event.
    pub cpu: u32,
    /// Time on the trace's clock, ns.
    pub time: u64,
    /// Kind of the event, with its fields.
    pub kind: EventKind<'a>,
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind<'a> {
    /// Text written to `trace_marker`.
    Mark(&'a [u8]),
    /// `cpu` enters an idle state, or leaves it (`u32::MAX`).
    CpuIdle {
        /// Idle state.
        state: u32,
        /// CPU concerned.
        cpu: u32,
    },
    /// A frequency is requested.
    CpuFrequency {
        /// Frequency, kHz.
        khz: u32,
        /// CPU concerned.
        cpu: u32,
    },
    /// Any other event.
    Other {
        /// Name of the event; for lines of the function tracer, the function.
        name: &'a [u8],
        /// Text after the name, without leading blanks.
        fields: &'a [u8],
    },
}

/// Kernel function that writes marks, whose name precedes them.
const MARK: &[u8] = b"tracing_mark_write";

/// Number of latency flags at most: kernels print up to 8, with the RT patches of old.
const MOST_FLAGS: usize = 10;

/// Length of a task's name on Linux at most; a longer text has something before the name.
const LONGEST_COMM: usize = 15;
/// Length of a task's name at most on other systems that write the same text, such as `NuttX`.
const LONGEST_NAME: usize = 31;

/// Parses one line, without its line end.
#[must_use]
pub fn parse(line: &[u8]) -> Parsed<'_> {
    if line.first() == Some(&b'#') {
        return overwritten(line).map_or(Parsed::Header, Parsed::Lost);
    }
    // `[CPU]` is the anchor. Names may contain brackets, too: the first one in the right context counts.
    let mut from = 0;
    while let Some(found) = line.get(from..).and_then(|rest| memchr(b'[', rest)) {
        let at = from + found;
        if let Some((cpu, Stamp { tgid: after, ns: time }, text)) = after_bracket(&line[at + 1..]) {
            match task(&line[..at]) {
                Task::Known { comm, tid, tgid } => {
                    return finish(Head { comm, tid, tgid: tgid.or(after), cpu, time }, text);
                }
                Task::Nameless(comm) if from == 0 => return nameless(comm, cpu, time, text),
                Task::Nameless(_) | Task::Damaged => {}
            }
        }
        from = at + 1;
    }
    without_brackets(line)
}

/// Parts of an event other than its kind.
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

/// Handles a line without `-TID`: handmade traces have such lines for events of CPUs, where it does not matter. Everything
/// else needs its thread, and the logs of many programs have a number in brackets and a time.
#[cold]
fn nameless<'a>(comm: &'a [u8], cpu: u32, time: u64, text: &'a [u8]) -> Parsed<'a> {
    match finish(Head { comm, tid: 0, tgid: None, cpu, time }, text) {
        parsed @ Parsed::Event(Event {
            kind: EventKind::CpuIdle { .. } | EventKind::CpuFrequency { .. },
            ..
        }) => parsed,
        parsed @ Parsed::Event(Event { kind: EventKind::Other { name, fields }, .. })
            if names_cpu(name, fields) =>
        {
            parsed
        }
        _ => Parsed::Unreadable,
    }
}

/// Whether an event without a thread says which CPU it is about, or is about the trace itself (`window_markers`).
fn names_cpu(name: &[u8], fields: &[u8]) -> bool {
    let is_name = name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let is_key = |key: &[u8]| memmem::find(fields, key).is_some();
    let names_cpu = is_key(b"cpu_id=") || is_key(b"cpu=") || is_key(b"cpu: ") || fields.starts_with(b"cpu ");
    is_name && (names_cpu || fields.is_empty() && (name.ends_with(b"_start") || name.ends_with(b"_end")))
}

/// Time of a line, and the process of its thread where that is after the CPU.
#[derive(Clone, Copy, Default)]
struct Stamp {
    tgid: Option<u32>,
    /// Time, ns.
    ns: u64,
}

/// Parses `CPU] (TGID) FLAGS SECONDS.FRACTION:`: the CPU, the time, and the text of the event.
#[inline]
fn after_bracket(text: &[u8]) -> Option<(u32, Stamp, &[u8])> {
    let (cpu, text) = number(text)?;
    let (stamp, text) = before_fraction(text)?;
    let (ns, text) = fraction(stamp.ns, text)?;
    Some((cpu, Stamp { ns, ..stamp }, skip_difference(text)?))
}

/// Parses `] (TGID) FLAGS SECONDS.`: the whole seconds.
#[inline]
fn before_fraction(text: &[u8]) -> Option<(Stamp, &[u8])> {
    let text = skip_blanks(text.strip_prefix(b"]")?);
    let (tgid, text) = match text.strip_prefix(b"(") {
        Some(inside) => {
            let close = memchr(b')', inside)?;
            let (tgid, _) = process_column(&text[..=close])?;
            (tgid, skip_blanks(&inside[close + 1..]))
        }
        None => (None, text),
    };
    let text = if text.first().is_some_and(u8::is_ascii_digit) { text } else { skip_flags(text)? };
    let (ns, text) = seconds(text)?;
    Some((Stamp { tgid, ns }, text))
}

/// Skips blanks, and the time since the previous line, which `trace-cmd report --ts-diff` puts before the event.
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

/// Parses `SECONDS.FRACTION:`, in ns.
#[inline]
fn time(text: &[u8]) -> Option<(u64, &[u8])> {
    let (seconds, text) = seconds(text)?;
    fraction(seconds, text)
}

/// Nanoseconds of a second, a tenth of it, and so on.
const UNITS: [u64; 10] =
    [1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];

/// First second beyond the kernel's clocks, which are signed, in ns. A line with a later time is damaged, and no
/// difference of times could represent it.
const END_OF_TIME: u64 = i64::MAX.cast_unsigned() / UNITS[0];

/// Parses `SECONDS.`, in ns.
#[inline]
fn seconds(text: &[u8]) -> Option<(u64, &[u8])> {
    // More digits than those of `END_OF_TIME`.
    const MOST_SECONDS: usize = 11;
    let (seconds, count) = digits(text, MOST_SECONDS);
    let rest = text[count..].strip_prefix(b".")?;
    if count > 0 && seconds < END_OF_TIME { Some((seconds * UNITS[0], rest)) } else { None }
}

/// Parses `FRACTION:`, one to nine digits, and adds it to the seconds (ns).
#[inline]
fn fraction(seconds: u64, text: &[u8]) -> Option<(u64, &[u8])> {
    let (parts, places) = digits(text, UNITS.len() - 1);
    let rest = text[places..].strip_prefix(b":")?;
    if places == 0 { None } else { Some((seconds + parts * UNITS[places], rest)) }
}

/// Parses leading digits, at most `most` (19 or less) of them: their value and their number.
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

/// Parses a decimal number of 32 bits.
#[inline]
pub(super) fn number(text: &[u8]) -> Option<(u32, &[u8])> {
    let (value, count) = digits(text, 11);
    if count == 0 {
        return None;
    }
    Some((u32::try_from(value).ok()?, &text[count..]))
}

/// Task of a line: the text before `[CPU]`.
enum Task<'a> {
    Known {
        comm: &'a [u8],
        tid: u32,
        tgid: Option<u32>,
    },
    /// The text lacks `-TID`.
    Nameless(&'a [u8]),
    /// A number is invalid.
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
    let comm = name(&text[..start - 1]);
    match number(&text[start..]) {
        Some((tid, [])) if comm.len() <= LONGEST_NAME => Task::Known { comm, tid, tgid },
        _ => Task::Damaged,
    }
}

/// Parses `(  TGID` from the end: `None` inside for `(-----` and blanks.
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

/// Returns a task's name. `trace-cmd report` of several buffers puts `BUFFER: ` before the padded name.
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

/// Parses `EVENT: FIELDS`; `None` where that is not possible.
#[inline]
fn kind(text: &[u8]) -> Option<EventKind<'_>> {
    match text.first()? {
        b't' => {
            if let Some(payload) = text.strip_prefix(MARK).and_then(after_symbol) {
                // trace-cmd pads the names of events to 21 columns: vendor kernels have an event of this name.
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
        // trace-cmd prints a mark as event `print` of that function, or of its address.
        b'p' => {
            if let Some(fields) = text.strip_prefix(b"print:") {
                let fields = skip_blanks(fields);
                let payload = fields.strip_prefix(MARK).and_then(after_symbol);
                let payload = payload.or_else(|| after_address(fields)).or_else(|| with_field_names(fields));
                let other = EventKind::Other { name: &text[..b"print".len()], fields };
                return Some(payload.map_or(other, |payload| EventKind::Mark(strip_blank(payload))));
            }
        }
        // Where the kernel must not reveal symbols, the function is an address, or 0.
        b'0'..=b'9' => {
            if let Some(payload) = after_address(text) {
                return Some(EventKind::Mark(strip_blank(payload)));
            }
        }
        _ => {}
    }
    let end = memchr2(b':', b' ', text).unwrap_or(text.len());
    let (name, fields) = text.split_at(end);
    if matches!(fields, [b':', next, ..] if *next != b' ') && has_perf_name(text) {
        return None;
    }
    let fields = skip_blanks(fields.strip_prefix(b":").unwrap_or(fields));
    (!name.is_empty()).then_some(EventKind::Other { name, fields })
}

/// Returns the text after the `:` of the function's name, also where options add `+0x8a/0x170` or
/// ` <ffffffff81498b1a>`.
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

/// Returns the text after `0:`, `0xffff00000819ff24:` or, from libtraceevent, `0xffff00000819ff24s:`.
#[inline]
fn after_address(text: &[u8]) -> Option<&[u8]> {
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0"))?;
    let count = digits.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    // Without `0x` the address is always 0.
    if (count > 0) != (text.get(1) == Some(&b'x')) {
        return None;
    }
    let rest = &digits[count..];
    rest.strip_prefix(b"s").unwrap_or(rest).strip_prefix(b":")
}

/// Returns the text after `ip=tracing_mark_write+0x10/0x20 buf=`, as the kernel's option `fields` prints a mark.
#[inline]
fn with_field_names(text: &[u8]) -> Option<&[u8]> {
    const BUF: &[u8] = b" buf=";
    let function = text.strip_prefix(b"ip=")?;
    let at = memmem::find(function, BUF)?;
    let is_mark = function.starts_with(MARK) || function.starts_with(b"0x");
    is_mark.then(|| &function[at + BUF.len()..])
}

/// Removes the blank that ends the name; further ones belong to the payload.
#[inline]
fn strip_blank(payload: &[u8]) -> &[u8] {
    payload.strip_prefix(b" ").unwrap_or(payload)
}

/// Parses `state=S cpu_id=C`, in any order and among other fields.
#[inline]
pub(super) fn cpu_fields(text: &[u8]) -> Option<(u32, u32)> {
    let text = skip_blanks(text);
    if let Some((state, rest)) = text.strip_prefix(b"state=").and_then(number)
        && let Some((cpu, [])) = rest.strip_prefix(b" cpu_id=").and_then(number)
    {
        return Some((state, cpu));
    }
    Some((named_number(text, b"state=")?, named_number(text, b"cpu_id=")?))
}

/// Returns the number after `KEY=`.
pub(super) fn named_number(text: &[u8], key: &[u8]) -> Option<u32> {
    let mut fields = text.split(|byte| b" \t,".contains(byte));
    fields.find_map(|field| field.strip_prefix(key)).and_then(any_number)
}

/// Parses a number of 32 bits as kernels have printed it: decimal, hexadecimal (`0x`), or -1.
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

/// Parses a line that is no event with a `[CPU]`.
#[cold]
fn without_brackets(line: &[u8]) -> Parsed<'_> {
    let text = trim_end(skip_blanks(line));
    if let Some((head, text)) = latency_format(text) {
        return finish(head, text);
    }
    // The prefix `BUFFER: `, as above.
    let inner = memmem::find(text, b": ").map_or(text, |at| skip_blanks(&text[at + 2..]));
    if let Some(lost) = lost(text).or_else(|| lost(inner)) {
        return lost;
    }
    if is_chatter(text) || is_chatter(inner) { Parsed::Header } else { Parsed::Unreadable }
}

/// Parses a line of `trace-cmd report -l`: `NAME-TID CPUFLAGS SECONDS.FRACTION:`. The kernel's own latency format has
/// no such times.
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

#[cfg(test)]
mod tests;
