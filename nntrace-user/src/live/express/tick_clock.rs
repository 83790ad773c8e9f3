//! Conversion of the processor's counter to the clock of all records.
//!
//! Both are read together at each look at the lanes. Between two such readings the kernel's clock is as good as a straight
//! line: its rate changes by some millionths. The line through the last two that are far enough apart is used, so that a
//! correction of the clock's rate is followed, and an error of reading, some ns, is small beside the distance.

use std::fs;

use nntrace_common::ticks;

use crate::live::clock;

/// Name of the kernel's clock source where it is the counter that programs read.
#[cfg(target_arch = "x86_64")]
const SOURCE: &str = "tsc";
/// Name of the kernel's clock source where it is the counter that programs read.
#[cfg(target_arch = "aarch64")]
const SOURCE: &str = "arch_sys_counter";
/// Path of the name of the kernel's clock source.
const SOURCE_FILE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// Time between two readings of that name, ns: the kernel leaves a counter that it finds to be wrong.
const CHECK_NS: u64 = 1_000_000_000;
/// Distance of readings that a line goes through at least, ns.
const APART_NS: u64 = 20_000_000;
/// Distance of a reading from the line at most, ns: a suspend is longer.
const JUMP_NS: u64 = 1_000_000;
/// Readings of both clocks, of which the one that took least time is used.
const TRIES: usize = 4;

/// Counter and clock, read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) ticks: u64,
    /// ns.
    pub(super) time: u64,
}

impl Reading {
    fn take() -> Self {
        let tries = (0..TRIES).map(|_| {
            let before = ticks::ordered();
            let time = clock::now();
            let took = ticks::ordered().wrapping_sub(before);
            (took, Self { ticks: before.wrapping_add(took / 2), time })
        });
        tries.min_by_key(|(took, _)| *took).map_or(Self { ticks: 0, time: 0 }, |(_, reading)| reading)
    }
}

/// Ticks before the last reading, and after it, that are converted without a look at bounds: hours on arm64, a minute on a
/// fast x86-64.
const NEAR: u64 = 1 << 38;
/// Rate of a counter that advances every 65 us: none is as slow.
const MAX_RATE: u64 = 1 << 48;

/// Straight line from ticks to times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    through: Reading,
    /// ns a tick, as a fixed-point number with 32 bits after the point.
    rate: u64,
    /// Begin of what is near.
    near: Reading,
}

impl Line {
    /// Returns the line through two readings; `None` unless both clocks ran between them.
    pub(super) fn between(first: Reading, last: Reading) -> Option<Self> {
        let ns = u128::from(last.time.checked_sub(first.time)?);
        let ticks = u128::from(last.ticks.checked_sub(first.ticks)?);
        let rate = u64::try_from((ns << 32).checked_div(ticks)?).ok()?;
        (1..=MAX_RATE).contains(&rate).then_some(Self::through(last, rate))
    }

    /// Returns the line through a reading, of this rate.
    fn through(through: Reading, rate: u64) -> Self {
        // Neither clock was below 0.
        let past = Self::ticks_in(through.time, rate).min(through.ticks).min(NEAR);
        let near = Reading { ticks: through.ticks - past, time: through.time - Self::ns_in(past, rate) };
        Self { through, rate, near }
    }

    /// Returns the ns of this many ticks.
    #[inline(always)]
    fn ns_in(ticks: u64, rate: u64) -> u64 {
        u64::try_from((u128::from(ticks) * u128::from(rate)) >> 32).unwrap_or(u64::MAX)
    }

    /// Returns the ticks in this many ns.
    fn ticks_in(ns: u64, rate: u64) -> u64 {
        u64::try_from((u128::from(ns) << 32) / u128::from(rate)).unwrap_or(u64::MAX)
    }

    /// Returns the time (ns) at which the counter was, or will be, at `ticks`; the nearest that there is if that is none.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "2^39 ticks at the largest rate are 2^55 ns")]
    pub(super) fn time(&self, ticks: u64) -> u64 {
        let distance = ticks.wrapping_sub(self.near.ticks);
        if distance < 2 * NEAR {
            let ns = (u128::from(distance) * u128::from(self.rate)) >> 32;
            self.near.time.saturating_add(ns as u64)
        } else {
            self.far_time(ticks)
        }
    }

    #[cold]
    fn far_time(&self, ticks: u64) -> u64 {
        let Self { through, rate, .. } = *self;
        let (distance, is_before) = match ticks.checked_sub(through.ticks) {
            Some(distance) => (distance, false),
            None => (through.ticks - ticks, true),
        };
        let ns = Self::ns_in(distance, rate);
        if is_before { through.time.saturating_sub(ns) } else { through.time.saturating_add(ns) }
    }

    /// Returns the ticks at a time (ns) that is not before the last reading.
    pub(super) fn ticks(&self, time: u64) -> u64 {
        let distance = Self::ticks_in(time.saturating_sub(self.through.time), self.rate);
        self.through.ticks.saturating_add(distance)
    }
}

/// Counter and clock, as they were read.
pub(super) struct TickClock {
    /// Reading that the line begins at.
    first: Reading,
    last: Reading,
    line: Option<Line>,
    /// Time of the next look at the kernel's clock source, ns.
    next_check: u64,
    /// Whether the kernel uses the counter.
    is_source: bool,
}

impl TickClock {
    /// Reads both for the first time.
    pub(super) fn new() -> Self {
        let now = Reading::take();
        Self { first: now, last: now, line: None, next_check: 0, is_source: false }
    }

    /// Reads both again; returns the line to use, if there is one.
    pub(super) fn update(&mut self) -> Option<Line> {
        let now = Reading::take();
        if now.time >= self.next_check {
            self.next_check = now.time + CHECK_NS;
            self.is_source = fs::read_to_string(SOURCE_FILE).is_ok_and(|name| name.trim_end() == SOURCE);
        }
        self.add(now);
        self.line.filter(|_| self.is_source)
    }

    fn add(&mut self, now: Reading) {
        if let Some(line) = self.line
            && line.time(now.ticks).abs_diff(now.time) > JUMP_NS
        {
            // After a suspend, as before the first reading; the rate is the same.
            (self.first, self.last) = (now, now);
            self.line = Some(Line::through(now, line.rate));
            return;
        }
        if now.time.saturating_sub(self.last.time) >= APART_NS {
            self.first = self.last;
        }
        self.last = now;
        if now.time.saturating_sub(self.first.time) >= APART_NS {
            self.line = Line::between(self.first, now).or(self.line);
        } else if let Some(line) = &mut self.line {
            *line = Line::through(now, line.rate);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clock() -> TickClock {
        let start = Reading { ticks: 1_000, time: 5_000 };
        TickClock { first: start, last: start, line: None, next_check: 0, is_source: true }
    }

    proptest! {
        /// For a clock that runs at a rate with a small error of reading, times between readings are right to within that
        /// error, and after them nearly so.
        #[test]
        fn times_are_those_of_the_clock(
            mhz in 1_u64..5_000, pauses in prop::collection::vec(1_000_u64..300_000_000, 2..40),
            errors in prop::collection::vec(0_u64..30, 1..40),
        ) {
            let ticks_at = |time: u64| 1_000 + u64::try_from(u128::from(time - 5_000) * u128::from(mhz) / 1_000).unwrap();
            let (mut clock, mut now) = (clock(), 5_000);
            for (pause, error) in pauses.iter().zip(errors.iter().cycle()) {
                let before = now;
                now += pause;
                clock.add(Reading { ticks: ticks_at(now), time: now + error });
                let Some(line) = clock.line else { continue };
                for time in [before, before.midpoint(now), now, now + 1_000_000] {
                    // Up to a tick, an error of reading at each end, and what they make of the rate after the end.
                    let bound = 1_000 / mhz + 1 + 60 + 60 * pause / APART_NS;
                    let found = line.time(ticks_at(time));
                    prop_assert!(found.abs_diff(time) <= bound, "{found} instead of {time}, {bound}");
                }
                let end = now + 2_000_000_000;
                prop_assert!(line.time(line.ticks(end)).abs_diff(end) <= 1_000 / mhz + 1);
            }
        }

        #[test]
        fn any_ticks_have_a_time(ticks: u64, through: u64, time: u64, rate in 1..=MAX_RATE) {
            let line = Line::through(Reading { ticks: through, time }, rate);
            let found = line.time(ticks);
            prop_assert_eq!(found >= time, ticks >= through || found == time);
        }

        /// Times near the last reading are those of all others, but for the rounding.
        #[test]
        fn near_times_are_those_of_all_others(
            ticks in any::<u64>(), offset in -NEAR.cast_signed()..NEAR.cast_signed(), time in 0..1_u64 << 62, rate in 1..=MAX_RATE,
        ) {
            let line = Line::through(Reading { ticks, time }, rate);
            let ticks = ticks.saturating_add_signed(offset);
            prop_assert!(line.time(ticks).abs_diff(line.far_time(ticks)) <= 1);
        }
    }

    #[test]
    fn a_line_follows_the_rate_of_the_clock_and_a_suspend() {
        let mut clock = clock();
        let add = |clock: &mut TickClock, ticks, time| clock.add(Reading { ticks, time });
        add(&mut clock, 1_000 + 10_000_000, 5_000 + 10_000_000);
        assert_eq!(clock.line, None, "too close");
        add(&mut clock, 1_000 + 100_000_000, 5_000 + 100_000_000);
        assert_eq!(clock.line.unwrap().rate, 1 << 32);
        // The clock is slowed down by 10 ns in 100,000.
        add(&mut clock, 1_000 + 200_000_000, 5_000 + 199_990_000);
        let halfway = clock.line.unwrap().time(1_000 + 150_000_000);
        assert!(halfway.abs_diff(5_000 + 149_995_000) <= 1, "{halfway}");
        let rate = clock.line.unwrap().rate;
        add(&mut clock, 60_200_001_000, 200_995_000);
        assert_eq!(clock.line.unwrap().rate, rate, "a minute of suspend is no part of it");
        assert_eq!(clock.line.unwrap().time(60_200_001_000), 200_995_000);
    }

    #[test]
    fn the_counter_of_this_machine_is_converted_where_the_kernel_uses_it() {
        let mut clock = TickClock::new();
        std::thread::sleep(std::time::Duration::from_millis(30));
        let Some(line) = clock.update() else { return };
        for _ in 0..1_000 {
            let before = clock::now();
            let found = line.time(ticks::now());
            let after = clock::now();
            let slack = 2_000;
            assert!((before - slack..=after + slack).contains(&found), "{before} {found} {after}");
        }
    }
}
