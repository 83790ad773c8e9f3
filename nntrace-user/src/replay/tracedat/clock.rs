//! From the time stamps of a trace to nanoseconds.

/// Clocks of the kernel that count nanoseconds; the others count cycles, events or, `uptime`, ticks of 10 ms
/// (`trace_clocks` in `kernel/trace/trace.c`).
const NANOSECONDS: [&[u8]; 7] = [b"local", b"global", b"perf", b"mono", b"mono_raw", b"boot", b"tai"];

/// Whether a clock counts nanoseconds.
pub(crate) fn counts_ns(name: &[u8]) -> bool {
    name.is_empty() || NANOSECONDS.contains(&name)
}

/// Whether a clock counts no cycles that a multiplier makes nanoseconds of.
pub(crate) fn has_no_cycles(name: &[u8]) -> bool {
    matches!(name, b"uptime" | b"counter")
}

/// The clock in use, of tracefs' `trace_clock`: `[local] global counter`.
pub(crate) fn selected(list: &[u8]) -> &[u8] {
    let inside = list.split(|&byte| byte == b'[').nth(1);
    inside.and_then(|inside| inside.split(|&byte| byte == b']').next()).unwrap_or_default()
}

/// What is done to every time stamp, as `trace-cmd report` does unasked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Cycles to nanoseconds: times the first, shifted right by the second.
    pub cycles: Option<(u32, u32)>,
    /// Added then, ns.
    pub offset: i64,
}

impl Clock {
    /// The time (ns) of a stamp.
    #[inline]
    pub(crate) fn ns(&self, stamp: u64) -> u64 {
        let ns = self.cycles.map_or(stamp, |(times, shift)| {
            let product = u128::from(stamp) * u128::from(times);
            product.checked_shr(shift).unwrap_or(0) as u64
        });
        ns.saturating_add_signed(self.offset)
    }
}

/// Reads a number as options hold it: decimal or `0x`, maybe negative, up to a NUL.
pub(crate) fn number(text: &[u8]) -> Option<i64> {
    let text = text.split(|&byte| byte == 0).next()?;
    let text = str::from_utf8(text).ok()?.trim();
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        // Differences of clocks are printed as unsigned numbers, too.
        Some(digits) => u64::from_str_radix(digits, 16).ok()?.cast_signed(),
        None => digits.parse::<u64>().ok()?.cast_signed(),
    };
    Some(if is_negative { value.wrapping_neg() } else { value })
}
