//! Clocks of devices, as a table.

use crate::report::{
    incomplete_figures::Figures,
    number_format::{self, UNKNOWN},
    snapshot::DeviceClock,
    terminal_text::{Text, line},
};

/// Frequencies of a device at most.
const MOST: usize = 6;

/// Adds a line for each device: its frequencies, those with the most time first; nothing where no clock is known.
pub(super) fn table(text: &mut Text, rows: &[DeviceClock], figures: Figures) {
    if rows.is_empty() {
        return;
    }
    line!(text, "{:<30}{:>8}  share by frequency", "device clocks", "changes");
    for row in rows {
        let all: u64 = row.frequencies.iter().fold(0, |sum, time| sum.saturating_add(time.ns));
        let mut times = row.frequencies.clone();
        times.sort_by_key(|time| std::cmp::Reverse(time.ns));
        let mut parts: Vec<String> = times
            .iter()
            .take(MOST)
            .map(|time| {
                let hz = time.hz.map(|hz| number_format::khz(u32::try_from(hz / 1_000).unwrap_or(u32::MAX)));
                let hz = hz.unwrap_or_else(|| UNKNOWN.to_owned());
                format!("{hz} {}", figures.percent(time.ns, all))
            })
            .collect();
        if let Some(more) = times.len().checked_sub(MOST).filter(|more| *more > 0) {
            parts.push(format!("{more} more"));
        }
        line!(text, "  {:<28}{:>8}  {}", row.device, figures.count(row.transitions), parts.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::snapshot::{ClockSource, ClockTime};

    #[test]
    fn each_device_has_a_line() {
        let mut text = Text::new();
        table(&mut text, &[], Figures::new(false));
        assert_eq!(text, "");
        let time = |hz, ns| ClockTime { hz, ns };
        let row = |device: &str, frequencies| DeviceClock {
            device: device.into(),
            source: ClockSource::Events,
            transitions: 12,
            frequencies,
        };
        let many = (1..=8).map(|step| time(Some(step * 100_000_000), step)).collect();
        let npu = vec![time(Some(1_000_000_000), 25), time(Some(300_000_000), 70), time(None, 5)];
        table(&mut text, &[row("dmc", many), row("fdab0000.npu", npu)], Figures::new(false));
        let expected = "\
device clocks                  changes  share by frequency
  dmc                               12  800 MHz 22.2%, 700 MHz 19.4%, 600 MHz 16.7%, 500 MHz 13.9%, 400 MHz 11.1%, 300 MHz 8.3%, 2 more
  fdab0000.npu                      12  300 MHz 70.0%, 1.00 GHz 25.0%, - 5.0%
";
        assert_eq!(text, expected);
    }
}
