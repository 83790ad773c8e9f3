//! Numbers as people read them: three significant digits, a unit, a known greatest width.

use super::snapshot::ResultUnit;
use crate::model::plurals::one_or_many;

/// Sign for a number that is not known.
pub(crate) const UNKNOWN: &str = "-";

/// Greatest width of [`duration_ns`], in columns.
pub(crate) const DURATION_WIDTH: usize = 7;
/// Greatest width of [`count`].
pub(crate) const COUNT_WIDTH: usize = 6;
/// Greatest width of [`percent`].
pub(crate) const PERCENT_WIDTH: usize = 5;

/// `numerator / denominator` with three significant digits; `None` when it rounds to 1000 or more.
fn three_digits(numerator: u64, denominator: u64) -> Option<String> {
    let (numerator, denominator) = (u128::from(numerator), u128::from(denominator));
    // Rounded first and compared after: 9.996 is `10.0`, not `10.00`.
    let rounded = |scale: u128| (numerator * scale + denominator / 2) / denominator;
    let (hundredths, tenths, ones) = (rounded(100), rounded(10), rounded(1));
    if hundredths < 1000 {
        Some(format!("{}.{:02}", hundredths / 100, hundredths % 100))
    } else if tenths < 1000 {
        Some(format!("{}.{}", tenths / 10, tenths % 10))
    } else if ones < 1000 {
        Some(ones.to_string())
    } else {
        None
    }
}

/// A duration: `456 ns`, `1.23 ms`, `12.3 s`, from 1000 s on `16m 40s`, `12h 34m`, `40d 3h`.
#[must_use]
pub fn duration_ns(ns: u64) -> String {
    if ns < 1000 {
        return format!("{ns} ns");
    }
    for (unit, name) in [(1_000, "us"), (1_000_000, "ms"), (1_000_000_000, "s")] {
        if let Some(digits) = three_digits(ns, unit) {
            return format!("{digits} {name}");
        }
    }
    let seconds = ns.saturating_add(500_000_000) / 1_000_000_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    if minutes < 60 {
        format!("{minutes}m {:02}s", seconds % 60)
    } else if hours < 100 {
        format!("{hours}h {:02}m", minutes % 60)
    } else if days < 100 {
        format!("{days}d {}h", hours % 24)
    } else {
        format!("{days}d")
    }
}

/// A count: `99,999` to the unit, above that `123k`, `1.23M`, `12.3G`.
#[must_use]
pub(crate) fn count(count: u64) -> String {
    match count {
        0..1_000 => return count.to_string(),
        1_000..100_000 => return format!("{},{:03}", count / 1000, count % 1000),
        _ => {}
    }
    let units = [(1_000, 'k'), (1_000_000, 'M'), (1_000_000_000, 'G'), (1_000_000_000_000, 'T')];
    for (unit, suffix) in units {
        if let Some(digits) = three_digits(count, unit) {
            return format!("{digits}{suffix}");
        }
    }
    format!("{}P", three_digits(count, 1_000_000_000_000_000).unwrap_or_else(|| ">999".to_owned()))
}

/// A rate, of a count in a time (ns): `82.6` a second, above a thousand as a [`count`]; `UNKNOWN` in no time.
#[must_use]
pub(crate) fn per_second(amount: u64, ns: u64) -> String {
    if ns == 0 {
        return UNKNOWN.to_owned();
    }
    let thousandths = u128::from(amount) * 1_000_000_000_000 / u128::from(ns);
    let thousandths = u64::try_from(thousandths).unwrap_or(u64::MAX);
    match thousandths {
        0 => "0".to_owned(),
        1..1_000 => format!("0.{thousandths:03}"),
        _ => three_digits(thousandths, 1_000).unwrap_or_else(|| {
            count((thousandths / 1_000).saturating_add(u64::from(thousandths % 1_000 >= 500)))
        }),
    }
}

/// A share: `12.3%`; `<0.1%` for something that is not nothing, `100%` for all; `UNKNOWN` of nothing.
#[must_use]
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return UNKNOWN.to_owned();
    }
    let (part, whole) = (u128::from(part), u128::from(whole));
    let tenths = (part * 1000 + whole / 2) / whole;
    match tenths {
        0 if part > 0 => "<0.1%".to_owned(),
        0..1000 => format!("{}.{}%", tenths / 10, tenths % 10),
        // More than all happens: threads add up to more than the window.
        _ => format!("{}%", (tenths + 5) / 10),
    }
}

/// An amount of memory: `512 B`, `4 KiB`, `16.1 MiB`.
#[must_use]
pub(crate) fn bytes(bytes: u64) -> String {
    for (shift, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes >= 1 << shift {
            let tenths = (u128::from(bytes) * 10 + (1 << (shift - 1))) >> shift;
            return match tenths % 10 {
                0 => format!("{} {unit}", tenths / 10),
                tenth => format!("{}.{tenth} {unit}", tenths / 10),
            };
        }
    }
    format!("{bytes} B")
}

/// A frequency: `1.80 GHz`, `600 MHz`.
#[must_use]
pub(crate) fn khz(khz: u32) -> String {
    let khz = u64::from(khz);
    if khz < 1_000 {
        return format!("{khz} kHz");
    }
    // 999.6 MHz is 1.00 GHz: whole numbers below, three digits above.
    let mhz = (khz + 500) / 1_000;
    if mhz < 1_000 {
        return format!("{mhz} MHz");
    }
    // Every u32 of kHz is below 4300 GHz.
    let digits = three_digits(khz, 1_000_000).unwrap_or_else(|| (khz / 1_000_000).to_string());
    format!("{digits} GHz")
}

/// A number of calls: `1 call`, `40,932 calls`.
#[must_use]
pub(crate) fn calls(number: u64) -> String {
    plural(number, "call")
}

/// A number of things: `1 part`, `40,932 parts`.
#[must_use]
pub(crate) fn plural(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(number), one_or_many(number, "", "s"))
}

/// A share of 1, as [`percent`].
#[must_use]
pub(crate) fn percent_of(share: f64) -> String {
    const WHOLE: u64 = 1_000_000_000;
    #[allow(clippy::cast_sign_loss, reason = "clamped to what is not negative")]
    let part = (share.clamp(0.0, 1.0) * WHOLE as f64) as u64;
    percent(part, WHOLE)
}

/// A partly unknown energy; [`UNKNOWN`] if all of it is unknown.
#[must_use]
pub(crate) fn known_energy(known: f64, most: f64, unit: ResultUnit) -> String {
    if known == 0.0 && most > 0.0 { UNKNOWN.to_owned() } else { energy(known, unit) }
}

/// An energy in J, `23.5 mJ`, or in no unit, `23.5m`.
#[must_use]
pub(crate) fn energy(value: f64, unit: ResultUnit) -> String {
    let scales = [(1e-9, "n"), (1e-6, "u"), (1e-3, "m"), (1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")];
    let (space, unit) = match unit {
        ResultUnit::Joule => (" ", "J"),
        ResultUnit::Relative => ("", ""),
    };
    if value == 0.0 {
        return format!("0{space}{unit}");
    }
    // The first in which it rounds to less than 1000.
    let fits = scales.iter().find(|(scale, _)| value < 999.5 * scale);
    let &(scale, prefix) = fits.unwrap_or(&scales[scales.len() - 1]);
    let scaled = value / scale;
    // Rounded first and compared after, as above.
    let decimals = if scaled < 9.995 { 2 } else { usize::from(scaled < 99.95) };
    format!("{scaled:.decimals$}{space}{prefix}{unit}")
}

/// A frequency with every digit that it has: `1.80 GHz`, `1.8048 GHz`, `533.333 MHz`. For lists, in which [`khz`]
/// would make one of two.
#[must_use]
pub(crate) fn khz_exact(khz: u32) -> String {
    let (unit, name, least) = match khz {
        0..1_000 => return self::khz(khz),
        1_000..1_000_000 => (1_000, "MHz", 0),
        _ => (1_000_000, "GHz", 2),
    };
    let digits = if unit == 1_000 { 3 } else { 6 };
    let fraction = format!("{:0digits$}", khz % unit);
    let kept = fraction.trim_end_matches('0').len().max(least);
    let point = if kept > 0 { "." } else { "" };
    format!("{}{point}{} {name}", khz / unit, &fraction[..kept])
}

/// A share in hundredths of a percent, such as `12.34`.
#[must_use]
pub(crate) fn hundredths(share: u64) -> String {
    format!("{}.{:02}", share / 100, share % 100)
}

/// `value` through `format`, or [`UNKNOWN`].
#[must_use]
pub(crate) fn or_unknown(value: Option<u64>, format: impl Fn(u64) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 us"),
            (9_994, "9.99 us"),
            (9_995, "10.0 us"),
            (99_949, "99.9 us"),
            (99_950, "100 us"),
            (456_000, "456 us"),
            (999_499, "999 us"),
            (999_500, "1.00 ms"),
            (1_234_567, "1.23 ms"),
            (12_345_678_901, "12.3 s"),
            (999_000_000_000, "999 s"),
            (1_000_000_000_000, "16m 40s"),
            (45_240_000_000_000, "12h 34m"),
            (3_466_800_000_000_000, "40d 3h"),
            (u64::MAX, "213503d"),
        ];
        for (ns, text) in cases {
            assert_eq!(duration_ns(ns), text);
        }
    }

    #[test]
    fn rates_have_three_digits() {
        let second = 1_000_000_000;
        let cases = [
            (0, second, "0"),
            (0, 0, "-"),
            (7, 0, "-"),
            (1, 100 * second, "0.010"),
            (1, second, "1.00"),
            (127, 1_536_700_000, "82.6"),
            (1_536, 1_200_000_000, "1,280"),
            (u64::MAX, 1, "18.4P"),
        ];
        for (amount, ns, text) in cases {
            assert_eq!(per_second(amount, ns), text, "{amount} in {ns} ns");
        }
    }

    #[test]
    fn counts_are_exact_below_a_hundred_thousand() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (99_999, "99,999"),
            (100_000, "100k"),
            (999_499, "999k"),
            (999_500, "1.00M"),
            (12_345_678, "12.3M"),
            (1_234_567_890, "1.23G"),
            (u64::MAX, ">999P"),
        ];
        for (number, text) in cases {
            assert_eq!(count(number), text);
        }
    }

    #[test]
    fn nothing_is_wider_than_it_says() {
        let numbers =
            (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, 5 << (bit / 2), 999 << (bit / 2)]);
        for number in numbers.chain([u64::MAX, 999_500, 99_949_999, 3_599_999_999_999]) {
            assert!(duration_ns(number).len() <= DURATION_WIDTH, "{}", duration_ns(number));
            assert!(count(number).len() <= COUNT_WIDTH, "{}", count(number));
        }
        for part in 0..=1000 {
            assert!(percent(part, 1000).len() <= PERCENT_WIDTH);
        }
    }

    #[test]
    fn shares_tell_little_from_nothing() {
        assert_eq!(percent(0, 0), "-");
        assert_eq!(percent(0, 10), "0.0%");
        assert_eq!(percent(1, 100_000), "<0.1%");
        assert_eq!(percent(1, 3), "33.3%");
        assert_eq!(percent(10, 10), "100%");
        assert_eq!(percent(39, 10), "390%");
        assert_eq!(percent(u64::MAX, u64::MAX), "100%");
    }

    #[test]
    fn frequencies_choose_their_unit() {
        assert_eq!(khz(32), "32 kHz");
        assert_eq!(khz(600_000), "600 MHz");
        assert_eq!(khz(999_600), "1.00 GHz");
        assert_eq!(khz(1_800_000), "1.80 GHz");
        assert_eq!(khz(1_804_800), "1.80 GHz");
        assert_eq!(khz(u32::MAX), "4294 GHz");
    }

    #[test]
    fn energies_have_three_digits_with_and_without_a_unit() {
        let cases = [
            (0.0, "0 J", "0"),
            (1e-12, "0.00 nJ", "0.00n"),
            (22.25e-6, "22.2 uJ", "22.2u"),
            (9.996e-3, "10.0 mJ", "10.0m"),
            (0.099_96, "100 mJ", "100m"),
            (0.999_6, "1.00 J", "1.00"),
            (5.172_6, "5.17 J", "5.17"),
            (123_456.0, "123 kJ", "123k"),
            (1e15, "1000000 GJ", "1000000G"),
        ];
        for (value, joules, relative) in cases {
            assert_eq!(energy(value, ResultUnit::Joule), joules);
            assert_eq!(energy(value, ResultUnit::Relative), relative);
        }
    }

    #[test]
    fn exact_frequencies_tell_neighbours_apart() {
        assert_eq!(khz_exact(32), "32 kHz");
        assert_eq!(khz_exact(600_000), "600 MHz");
        assert_eq!(khz_exact(533_333), "533.333 MHz");
        assert_eq!(khz_exact(1_800_000), "1.80 GHz");
        assert_eq!(khz_exact(1_804_800), "1.8048 GHz");
        assert_eq!(khz_exact(1_000_001), "1.000001 GHz");
    }

    #[test]
    fn the_unknown_is_a_dash() {
        assert_eq!(or_unknown(None, duration_ns), "-");
        assert_eq!(or_unknown(Some(5), duration_ns), "5 ns");
    }
}
