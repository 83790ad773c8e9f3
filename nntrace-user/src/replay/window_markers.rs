//! Words in a trace about the trace itself: begin and end of the window, and frequencies that were read from CPUs.
//!
//! Source: the power contract, section 1. They are `trace_marker` text, or, in handmade traces, names of events.

use super::ftrace::EventKind;

/// Word for the begin of a recording, by readers of formats that have one.
pub(crate) const RECORDER_START: &[u8] = b"nntrace_recorder_start";

/// Meaning of such a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    /// The window begins.
    Start,
    /// The recorder began: what is before is left from earlier. It begins the window unless a [`Marker::Start`] does.
    RecorderStart,
    /// The window ends.
    End,
    /// This frequency (kHz) was read from a CPU.
    Frequency {
        /// Frequency, kHz.
        khz: u32,
        /// CPU of the frequency.
        cpu: u32,
    },
}

/// Parses an event of any kind.
#[must_use]
#[inline]
pub(crate) fn of(kind: EventKind<'_>) -> Option<Marker> {
    match kind {
        EventKind::Mark(payload) => read(payload),
        EventKind::Other { name, fields } => of_event(name, fields),
        EventKind::CpuIdle { .. } | EventKind::CpuFrequency { .. } => None,
    }
}

/// Parses a payload of `trace_marker`.
#[must_use]
#[inline]
pub(crate) fn read(payload: &[u8]) -> Option<Marker> {
    // Most payloads are marks, which are sorted out here.
    if !matches!(payload, [b'n' | b'i' | b'c', _, ..]) {
        return None;
    }
    let end = payload.iter().position(|byte| b": \t".contains(byte)).unwrap_or(payload.len());
    let (name, rest) = payload.split_at(end);
    of_event(name, rest.strip_prefix(b":").unwrap_or(rest))
}

/// Parses the name and the fields of an event.
#[must_use]
pub(crate) fn of_event(name: &[u8], fields: &[u8]) -> Option<Marker> {
    match name {
        b"nntrace_start" | b"idlestat_start" => Some(Marker::Start),
        RECORDER_START => Some(Marker::RecorderStart),
        b"nntrace_end" | b"idlestat_end" => Some(Marker::End),
        b"idlestat_frequency" | b"cpu_frequency_devlib" => {
            let (khz, cpu) = super::ftrace::cpu_fields(fields)?;
            Some(Marker::Frequency { khz, cpu })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_about_the_trace() {
        let frequency = Some(Marker::Frequency { khz: 450_000, cpu: 3 });
        assert_eq!(read(b"cpu_frequency_devlib:        state=450000 cpu_id=3"), frequency);
        assert_eq!(read(b"idlestat_frequency: state=450000 cpu_id=3"), frequency);
        assert_eq!(read(b"nntrace_start"), Some(Marker::Start));
        assert_eq!(of_event(RECORDER_START, b""), Some(Marker::RecorderStart));
        assert_eq!(read(b"nntrace_start: run 1"), Some(Marker::Start));
        assert_eq!(of_event(b"idlestat_end", b""), Some(Marker::End));
    }

    #[test]
    fn other_words() {
        for payload in
            [&b"B|1|nntrace_start"[..], b"nntrace_started", b"", b"n", b"cpu_frequency_devlib: state=x"]
        {
            assert_eq!(read(payload), None);
        }
    }
}
