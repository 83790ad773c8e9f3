//! Energy of one rail by its readings.

use super::{RailKind, RailRow, RailSource};

/// Quantity that a rail's sensor gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// Energy so far, nJ.
    Energy {
        /// Highest value, after which the counter begins again at 0, nJ; `None` where the source names none.
        range: Option<u64>,
    },
    /// Power now, nW.
    Power,
}

/// Reading of a sensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Energy so far, nJ.
    Energy(u64),
    /// Power now, nW.
    Power(i64),
}

/// Meter of one rail: it takes readings in order of time.
#[derive(Clone, Debug)]
pub(crate) struct RailMeter {
    row: RailRow,
    range: Option<u64>,
    /// Last reading that succeeded, and its time, ns.
    last: Option<(Value, u64)>,
    /// Whether a reading has failed since.
    is_broken: bool,
    /// Twice the energy, in units of 1e-9 nJ: nW times ns.
    doubled: i128,
}

/// Doubled units of a nJ.
const DOUBLED_NJ: i128 = 2_000_000_000;

impl RailMeter {
    /// Creates the meter of a rail that has not been read yet.
    pub(crate) fn new(source: RailSource, chip: String, name: String, quantity: Quantity) -> Self {
        let (kind, range) = match quantity {
            Quantity::Energy { range } => (RailKind::Counter, range),
            Quantity::Power => (RailKind::Sampled, None),
        };
        let row = RailRow {
            source,
            chip,
            name,
            kind,
            energy_nj: 0,
            begin_ns: 0,
            end_ns: 0,
            readings: 0,
            wraps: 0,
            gaps: 0,
            gap_ns: 0,
            failed: 0,
            failure: None,
        };
        Self { row, range, last: None, is_broken: false, doubled: 0 }
    }

    /// Returns the rail and its energy so far.
    pub(crate) fn row(&self) -> &RailRow {
        &self.row
    }

    /// Takes a reading at a time, ns. One that is no later than the one before is left out: its sensor had nothing new.
    pub(crate) fn take(&mut self, at: u64, reading: Result<Value, String>) {
        let value = match reading {
            Ok(value) => value,
            Err(reason) => {
                self.row.failed += 1;
                self.row.failure = Some(reason);
                self.is_broken = true;
                return;
            }
        };
        match self.last {
            None => self.row.begin_ns = at,
            Some((_, before)) if at <= before => return,
            Some((last, before)) => self.add(last, value, at - before),
        }
        self.row.readings += 1;
        self.row.end_ns = at;
        self.last = Some((value, at));
        self.is_broken = false;
    }

    /// Adds the energy from one reading to the next.
    fn add(&mut self, last: Value, value: Value, ns: u64) {
        let doubled = match (last, value) {
            (Value::Energy(last), Value::Energy(value)) => {
                self.counted(last, value).map(|nj| i128::from(nj) * DOUBLED_NJ)
            }
            // The trapezoid between two moments; across a failure there are no two that belong together.
            (Value::Power(last), Value::Power(value)) if !self.is_broken => {
                Some((i128::from(last) + i128::from(value)) * i128::from(ns))
            }
            _ => None,
        };
        let Some(doubled) = doubled else {
            self.row.gaps += 1;
            self.row.gap_ns += ns;
            return;
        };
        self.doubled += doubled;
        let half = if self.doubled < 0 { -DOUBLED_NJ / 2 } else { DOUBLED_NJ / 2 };
        let nj = (self.doubled + half) / DOUBLED_NJ;
        self.row.energy_nj = nj.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    }

    /// Returns by how much a counter has risen, nJ; `None` if it went back without reaching an end of its range.
    fn counted(&mut self, last: u64, value: u64) -> Option<u64> {
        if value >= last {
            return Some(value - last);
        }
        // A counter that is read often enough has come to the end of its range once at most.
        let range = self.range.filter(|range| last <= *range)?;
        self.row.wraps += 1;
        Some(range - last + value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn meter(quantity: Quantity) -> RailMeter {
        RailMeter::new(RailSource::Hwmon, "chip".into(), "rail".into(), quantity)
    }

    fn failure() -> Result<Value, String> {
        Err("it is asleep".into())
    }

    #[test]
    fn a_counter_counts_from_its_first_reading_and_over_its_end() {
        let mut meter = meter(Quantity::Energy { range: Some(1_000) });
        for (at, value) in [(10, 900), (20, 950), (30, 40)] {
            meter.take(at, Ok(Value::Energy(value)));
        }
        let row = meter.row();
        assert_eq!((row.energy_nj, row.begin_ns, row.end_ns), (140, 10, 30));
        assert_eq!((row.readings, row.wraps, row.gaps, row.failed), (3, 1, 0, 0));
    }

    #[test]
    fn a_counter_without_a_range_that_goes_back_leaves_a_gap() {
        let mut meter = meter(Quantity::Energy { range: None });
        for (at, value) in [(10, 900), (20, 5), (50, 25)] {
            meter.take(at, Ok(Value::Energy(value)));
        }
        let row = meter.row();
        assert_eq!((row.energy_nj, row.wraps, row.gaps, row.gap_ns), (20, 0, 1, 10));
        assert_eq!(row.known_ns(), 30);
    }

    #[test]
    fn failures_cost_a_counter_nothing_and_samples_their_time() {
        let (mut counter, mut sampled) = (meter(Quantity::Energy { range: None }), meter(Quantity::Power));
        for (at, energy, power) in
            [(0, Some(1), Some(4)), (1, None, None), (3, Some(9), Some(6)), (5, Some(11), Some(8))]
        {
            let at = at * 1_000_000_000;
            counter.take(at, energy.map_or_else(failure, |nj| Ok(Value::Energy(nj))));
            sampled.take(at, power.map_or_else(failure, |nw| Ok(Value::Power(nw))));
        }
        assert_eq!((counter.row().energy_nj, counter.row().gaps, counter.row().failed), (10, 0, 1));
        // From 3 s to 5 s, 7 nW in the mean.
        assert_eq!((sampled.row().energy_nj, sampled.row().gaps), (14, 1));
        assert_eq!((sampled.row().gap_ns, sampled.row().failed), (3_000_000_000, 1));
        assert_eq!(sampled.row().failure.as_deref(), Some("it is asleep"));
        assert_eq!(sampled.row().mean_watts(), Some(7e-9));
    }

    #[test]
    fn a_sensor_that_has_nothing_new_is_not_read_twice() {
        let mut meter = meter(Quantity::Energy { range: None });
        for at in [10, 10, 9] {
            meter.take(at, Ok(Value::Energy(at)));
        }
        assert_eq!((meter.row().readings, meter.row().energy_nj, meter.row().mean_watts()), (1, 0, None));
    }

    proptest! {
        /// The counter itself, which is never shown whole, is what must come out.
        #[test]
        fn a_counter_is_followed_over_any_number_of_ends(
            start in 0..1_000_u64,
            steps in prop::collection::vec(0..1_000_u64, 0..60),
        ) {
            const RANGE: u64 = 1_000;
            let mut meter = meter(Quantity::Energy { range: Some(RANGE) });
            let mut whole = start;
            meter.take(1, Ok(Value::Energy(whole % RANGE)));
            for (step, at) in steps.iter().zip(2..) {
                whole += step;
                meter.take(at, Ok(Value::Energy(whole % RANGE)));
            }
            prop_assert_eq!(meter.row().energy_nj, (whole - start).cast_signed());
            prop_assert_eq!(meter.row().wraps, whole / RANGE - start / RANGE);
        }

        /// Sum of one trapezoid for each stretch, in floating point.
        #[test]
        fn samples_are_integrated_by_the_trapezoid(
            samples in prop::collection::vec((1..2_000_000_000_u64, prop::option::weighted(0.9, -5_000_000_000..90_000_000_000_i64)), 1..80),
        ) {
            let mut meter = meter(Quantity::Power);
            let (mut now, mut energy, mut known, mut gaps) = (0, 0.0, 0, 0);
            let mut last: Option<(u64, i64)> = None;
            let mut broken = false;
            for &(step, power) in &samples {
                now += step;
                meter.take(now, power.map_or_else(failure, |nw| Ok(Value::Power(nw))));
                let Some(power) = power else {
                    broken = true;
                    continue;
                };
                if let Some((at, before)) = last {
                    if broken {
                        gaps += 1;
                    } else {
                        energy += f64::midpoint(before as f64, power as f64) * (now - at) as f64 * 1e-9;
                        known += now - at;
                    }
                }
                last = Some((now, power));
                broken = false;
            }
            let row = meter.row();
            let error = (row.energy_nj as f64 - energy).abs();
            prop_assert!(error <= 1.0 + 1e-9 * energy.abs(), "{} is not {energy}", row.energy_nj);
            prop_assert_eq!((row.known_ns(), row.gaps), (known, gaps));
            prop_assert_eq!(row.readings + row.failed, samples.len() as u64);
        }
    }
}
