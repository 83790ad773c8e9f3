//! Powers of an energy model that fit the measured energy of a rail.
//!
//! A run's states, each with the residencies and the rail's energy so far, make intervals. Energy by a model is linear in its
//! powers, so the energy of an interval by each power alone, priced as always, is a column, and the rail's energy the target
//! of non-negative least squares. Wake-ups and entries stay as the model has them.

mod least_squares;
mod text;

use least_squares::Use;
use thiserror::Error;

use crate::model::{
    Findings,
    energy::{self, Coefficient, Energy, EnergyModel, price},
    plurals::counted,
    rails::{RailRow, Rails},
    run_facts::Window,
};

/// Share of an interval's time that may be unknown, or without a price.
const MOST_UNKNOWN: f64 = 0.01;
/// Intervals that a fit takes at least.
const LEAST_INTERVALS: usize = 3;

/// Reason why nothing can be fitted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FitError {
    /// The model's powers have no unit.
    #[error(
        "{0}: the model states no unit, and measured powers have one: put `unit = \"mW\"` in it, for what the intervals do \
         not determine stays as it is"
    )]
    NoUnit(String),
    /// The run has no such rail.
    #[error("{0}")]
    NoRail(String),
    /// There is not enough to fit to.
    #[error(
        "{usable} of {} can be used, and it takes {LEAST_INTERVALS}, better some dozens with different loads: {left_out}",
        counted(*all as u64, "interval")
    )]
    TooFew {
        /// Intervals that can be used.
        usable: usize,
        /// All.
        all: usize,
        /// Others, by the reason.
        left_out: String,
    },
    /// Nothing that the model prices was met.
    #[error(
        "in no interval was a state that the model prices: look at its clusters with `energy-model check`"
    )]
    NothingPriced,
}

/// States of a run, to be fitted.
pub struct EnergyFit {
    start: EnergyModel,
    places: Vec<Coefficient>,
    /// Model of each power alone, of 1.
    bases: Vec<EnergyModel>,
    /// Model in which everything costs 1.
    ones: EnergyModel,
    wakeups: EnergyModel,
    rail: String,
    states: Vec<State>,
    problem: Option<String>,
}

/// State of a run.
#[derive(Clone, Debug)]
struct State {
    /// End, ns.
    end_ns: u64,
    /// Energy by each power of 1, J.
    columns: Vec<f64>,
    /// Energy of wake-ups, J.
    wakeups: f64,
    /// Time of CPUs and clusters of which the state, or its price, is not known, ns.
    unknown_ns: f64,
    rail: RailRow,
}

/// Powers that were fitted.
#[derive(Debug)]
pub struct Fit {
    model: EnergyModel,
    start: EnergyModel,
    rail: RailRow,
    powers: Vec<FittedPower>,
    /// Each interval, in order of time.
    intervals: Vec<FittedInterval>,
    left_out: LeftOut,
    r_squared: Option<f64>,
    /// Root mean square of the residuals, W.
    rms_watts: f64,
}

/// Power of a model.
#[derive(Debug)]
struct FittedPower {
    place: Coefficient,
    found: Found,
}

/// Value that was found.
#[derive(Debug, PartialEq)]
enum Found {
    /// Determined, with its standard error where the intervals are more than the powers.
    Value(Option<f64>),
    /// 0, as it would be less.
    Zero,
    /// The intervals do not have its state.
    NotMet,
    /// Kept: the intervals do not tell it from these together.
    Kept(Vec<Coefficient>),
}

/// Interval between two states of a run.
#[derive(Clone, Debug, PartialEq)]
struct FittedInterval {
    /// Begin, since that of the window, ns.
    begin_ns: u64,
    /// Length, ns.
    length_ns: u64,
    /// Mean power of the rail, W.
    measured_watts: f64,
    /// Mean power by the fitted model, W.
    fitted_watts: f64,
}

/// Numbers of intervals that cannot be used, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LeftOut {
    short: usize,
    gaps: usize,
    unknown: usize,
}

/// Interval that can be used.
struct Row {
    begin_ns: u64,
    length_ns: u64,
    columns: Vec<f64>,
    wakeups: f64,
    measured: f64,
}

impl FittedInterval {
    /// Returns by how much the measured power is more than the fitted one, W.
    fn residual_watts(&self) -> f64 {
        self.measured_watts - self.fitted_watts
    }
}

impl EnergyFit {
    /// Begins to fit a model to the rail of this name.
    ///
    /// # Errors
    /// When the model states no unit.
    pub fn new(start: EnergyModel, rail: String) -> Result<Self, FitError> {
        if start.unit.is_none() {
            return Err(FitError::NoUnit(start.file));
        }
        let places = start.coefficients();
        let nothing = start.with_powers(0.0);
        let alone = |&place: &Coefficient| {
            let mut model = nothing.clone();
            model.set_power(place, 1.0);
            model
        };
        Ok(Self {
            bases: places.iter().map(alone).collect(),
            ones: start.with_powers(1.0),
            wakeups: start.without_powers(),
            places,
            start,
            rail,
            states: Vec::new(),
            problem: None,
        })
    }

    /// Takes the next state of the run.
    pub fn take(&mut self, found: &Findings<'_>) {
        let none = Rails::default();
        let rails = found.run.rails.as_ref().unwrap_or(&none);
        match rails.find(&self.rail) {
            Ok(rail) => {
                self.add(&found.run.window, rail, |model| {
                    price(model, found.topology, &found.sums.cpus, &found.clusters)
                });
            }
            Err(problem) => self.problem = Some(problem),
        }
    }

    /// Adds a state with the energy of the rail, and energies by models, since the window's begin.
    fn add(&mut self, window: &Window, rail: &RailRow, price: impl Fn(&EnergyModel) -> Energy) {
        if self.states.is_empty() {
            self.states.push(State {
                end_ns: window.begin_ns,
                columns: vec![0.0; self.bases.len()],
                wakeups: 0.0,
                unknown_ns: 0.0,
                rail: RailRow { energy_nj: 0, end_ns: rail.begin_ns, gaps: 0, gap_ns: 0, ..rail.clone() },
            });
        }
        let (ones, per_power) = (price(&self.ones), self.start.per_power_ns());
        let energies: Vec<Energy> = self.bases.iter().map(&price).collect();
        // Time that has one price only is known, even where its state is not: it is in the least energy by that price alone.
        let known: f64 = energies.iter().map(|energy| energy.total_min - energy.total).sum();
        let vague = (ones.total_max - ones.total - known) / per_power;
        let unpriced: u64 = ones.unpriced.iter().map(|time| time.ns).sum();
        self.states.push(State {
            end_ns: window.end_ns,
            columns: energies.iter().map(|energy| energy.total_min).collect(),
            wakeups: price(&self.wakeups).total,
            unknown_ns: vague.max(unpriced as f64),
            rail: rail.clone(),
        });
    }

    /// Fits the powers.
    ///
    /// # Errors
    /// When there is no such rail, or not enough to fit to.
    pub fn fit(self) -> Result<Fit, FitError> {
        let Some(rail) = self.states.last().map(|state| state.rail.clone()) else {
            let problem = self.problem.unwrap_or_else(|| "the recording has no state".into());
            return Err(FitError::NoRail(problem));
        };
        let (rows, left_out) = self.rows();
        if rows.len() < LEAST_INTERVALS {
            let all = self.states.len() - 1;
            return Err(FitError::TooFew { usable: rows.len(), all, left_out: left_out.to_string() });
        }
        let columns: Vec<Vec<f64>> = (0..self.places.len())
            .map(|number| rows.iter().map(|row| row.columns[number]).collect())
            .collect();
        let uses = least_squares::uses(&columns);
        let (mut model, mut target) = (self.start.clone(), Vec::new());
        for (at, row) in rows.iter().enumerate() {
            let kept = self.places.iter().zip(&uses).enumerate();
            let kept = kept.filter(|(_, (_, of))| matches!(of, Use::DependsOn(_)));
            let kept: f64 =
                kept.map(|(number, (&place, _))| self.start.power(place) * columns[number][at]).sum();
            target.push(row.measured - row.wakeups - kept);
        }
        let determined: Vec<usize> =
            (0..uses.len()).filter(|&number| uses[number] == Use::Determined).collect();
        if determined.is_empty() {
            return Err(FitError::NothingPriced);
        }
        let chosen: Vec<&[f64]> = determined.iter().map(|&number| columns[number].as_slice()).collect();
        let solution = least_squares::non_negative(&chosen, &target);
        for (&number, &value) in determined.iter().zip(&solution.values) {
            model.set_power(self.places[number], six_digits(value));
        }
        let intervals: Vec<FittedInterval> =
            rows.iter().map(|row| row.fitted(&model, &self.places)).collect();
        let squares: f64 = intervals.iter().map(|interval| interval.residual_watts().powi(2)).sum();
        let free = solution.errors.iter().flatten().count();
        let noise = (rows.len() > free).then(|| (squares / (rows.len() - free) as f64).sqrt());
        let mut errors = solution.errors.iter();
        let powers = self.places.iter().zip(&uses).map(|(&place, of)| {
            let found = match of {
                Use::Empty => Found::NotMet,
                Use::DependsOn(on) => Found::Kept(on.iter().map(|&number| self.places[number]).collect()),
                Use::Determined => match errors.next().copied().flatten() {
                    Some(error) => Found::Value(noise.map(|noise| noise * error)),
                    None => Found::Zero,
                },
            };
            FittedPower { place, found }
        });
        Ok(Fit {
            powers: powers.collect(),
            rms_watts: (squares / rows.len() as f64).sqrt(),
            r_squared: r_squared(&intervals, squares),
            model,
            start: self.start,
            rail,
            intervals,
            left_out,
        })
    }

    /// Returns the intervals that can be used, in W.
    fn rows(&self) -> (Vec<Row>, LeftOut) {
        let mut left_out = LeftOut::default();
        let mut lengths: Vec<u64> =
            self.states.windows(2).map(|pair| pair[1].end_ns.saturating_sub(pair[0].end_ns)).collect();
        lengths.sort_unstable();
        let usual = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
        let begin = self.states.first().map_or(0, |state| state.end_ns);
        let mut rows = Vec::new();
        for pair in self.states.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            let length_ns = after.end_ns.saturating_sub(before.end_ns);
            let rail_ns = after.rail.end_ns.saturating_sub(before.rail.end_ns);
            // The two clocks of a short one differ by too much of it.
            if length_ns < usual / 2 || length_ns == 0 || rail_ns < usual / 2 {
                left_out.short += 1;
                continue;
            }
            if after.rail.gaps > before.rail.gaps {
                left_out.gaps += 1;
                continue;
            }
            if after.unknown_ns - before.unknown_ns > MOST_UNKNOWN * length_ns as f64 {
                left_out.unknown += 1;
                continue;
            }
            let seconds = length_ns as f64 * 1e-9;
            let columns = before.columns.iter().zip(&after.columns);
            rows.push(Row {
                begin_ns: before.end_ns - begin,
                length_ns,
                columns: columns.map(|(before, after)| (after - before) / seconds).collect(),
                wakeups: (after.wakeups - before.wakeups) / seconds,
                // nJ per ns.
                measured: (after.rail.energy_nj - before.rail.energy_nj) as f64 / rail_ns as f64,
            });
        }
        (rows, left_out)
    }
}

impl Row {
    fn fitted(&self, model: &EnergyModel, places: &[Coefficient]) -> FittedInterval {
        let powers = places.iter().zip(&self.columns).map(|(&place, column)| model.power(place) * column);
        FittedInterval {
            begin_ns: self.begin_ns,
            length_ns: self.length_ns,
            measured_watts: self.measured,
            fitted_watts: powers.sum::<f64>() + self.wakeups,
        }
    }
}

impl Fit {
    /// Returns the fitted model in our TOML form.
    #[must_use]
    pub fn model(&self) -> String {
        energy::to_toml(&self.model)
    }
}

/// Returns the share of the variance that the fit explains; `None` where the rail's power did not vary.
fn r_squared(intervals: &[FittedInterval], squares: f64) -> Option<f64> {
    let measured = || intervals.iter().map(|interval| interval.measured_watts);
    let mean = measured().sum::<f64>() / intervals.len() as f64;
    let all: f64 = measured().map(|watts| (watts - mean).powi(2)).sum();
    // Rounding is no variance.
    let least = (mean * 1e-6).powi(2) * intervals.len() as f64;
    (all > least).then(|| 1.0 - squares / all)
}

/// Rounds to as many digits as a measurement has.
fn six_digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests;
