//! Conversion of the time stamps of a trace to nanoseconds.

/// Clocks of the kernel that count nanoseconds; the others count cycles, events or, `uptime`, ticks of 10 ms
/// (`trace_clocks` in `kernel/trace/trace.c`).
const NANOSECONDS: [&[u8]; 7] = [b"local", b"global", b"perf", b"mono", b"mono_raw", b"boot", b"tai"];

/// Whether a clock counts nanoseconds.
pub(crate) fn counts_ns(name: &[u8]) -> bool {
    name.is_empty() || NANOSECONDS.contains(&name)
}

/// Whether no multiplier converts a clock's units to nanoseconds, as they are no cycles.
pub(crate) fn has_no_cycles(name: &[u8]) -> bool {
    matches!(name, b"uptime" | b"counter")
}

/// Returns the selected clock in tracefs' `trace_clock`: `[local] global counter`.
pub(crate) fn selected(list: &[u8]) -> &[u8] {
    let inside = list.split(|&byte| byte == b'[').nth(1);
    inside.and_then(|inside| inside.split(|&byte| byte == b']').next()).unwrap_or_default()
}

/// Conversion of time stamps, as `trace-cmd report` applies it by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Conversion of cycles to nanoseconds: multiplier, then right shift.
    pub cycles: Option<(u32, u32)>,
    /// Offset to add afterwards, ns.
    pub offset: i64,
}

impl Clock {
    /// Converts a time stamp to ns.
    #[inline]
    pub(crate) fn ns(&self, stamp: u64) -> u64 {
        let ns = self.cycles.map_or(stamp, |(times, shift)| {
            let product = u128::from(stamp) * u128::from(times);
            product.checked_shr(shift).unwrap_or(0) as u64
        });
        ns.saturating_add_signed(self.offset)
    }
}

/// Parses a number in an option: decimal or `0x`, possibly negative, up to a NUL.
pub(crate) fn number(text: &[u8]) -> Option<i64> {
    let text = text.split(|&byte| byte == 0).next()?;
    let text = str::from_utf8(text).ok()?.trim();
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        // Differences of clocks are also printed as unsigned numbers.
        Some(digits) => u64::from_str_radix(digits, 16).ok()?.cast_signed(),
        None => digits.parse::<u64>().ok()?.cast_signed(),
    };
    Some(if is_negative { value.wrapping_neg() } else { value })
}
