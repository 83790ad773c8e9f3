//! Energy of what threads did on CPUs, as shares of the energy of all CPUs and clusters.
//!
//! Source: the power contract, section 4. A CPU that runs costs its core power at the effective frequency, and an equal share of
//! the cluster's power among the CPUs that run at that instant.
//!
//! Shares are whole multiples of the last binary digit of the whole, rounded down, so that they and the rest add up to the whole
//! exactly, in any order.

use std::collections::BTreeMap;

use super::{
    matching,
    model::{ClusterModel, EnergyModel},
    price::{CLUSTER, CORE, Energy, Side, idle_model, idle_powers, p_powers},
};
use crate::model::{
    Topology,
    usage::{Place, Usage},
};

/// Energy with its range, in the unit of results.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Share {
    /// Known energy.
    pub total: f64,
    /// Energy with unknown time in its cheapest states.
    pub total_min: f64,
    /// Energy with unknown time in its dearest states.
    pub total_max: f64,
}

/// Prices of places.
pub(crate) struct PlacePrices<'a> {
    model: &'a EnergyModel,
    topology: &'a Topology,
    clusters: Vec<Option<&'a ClusterModel>>,
    known: BTreeMap<Place, Power>,
}

/// Power at a place, in that of the model: known, lowest and highest of what is not.
#[derive(Clone, Copy, Debug, Default)]
struct Power {
    known: f64,
    low: f64,
    high: f64,
}

impl Power {
    fn add_range(&mut self, powers: impl Iterator<Item = f64>, sharing: f64) {
        let range = powers.fold(None, |range: Option<(f64, f64)>, power| {
            let (low, high) = range.unwrap_or((power, power));
            Some((low.min(power), high.max(power)))
        });
        let (low, high) = range.unwrap_or_default();
        self.low += low / sharing;
        self.high += high / sharing;
    }

    fn add_running(&mut self, model: &ClusterModel, khz: Option<u32>, side: Side, sharing: f64) {
        match khz.and_then(|khz| model.p_state(khz)) {
            Some(state) => self.known += side(&state.power) / sharing,
            None => self.add_range(p_powers(&model.p_states, side), sharing),
        }
    }
}

impl<'a> PlacePrices<'a> {
    /// Prices by a model.
    pub(crate) fn new(model: &'a EnergyModel, topology: &'a Topology) -> Self {
        let clusters = matching::clusters(model, topology).clusters;
        Self { model, topology, clusters, known: BTreeMap::new() }
    }

    fn power(&self, place: Place) -> Power {
        let mut power = Power::default();
        match place {
            Place::Clock { cluster, khz, sharing } => {
                if let Some(model) = self.clusters.get(cluster as usize).copied().flatten() {
                    power.add_running(model, khz, CORE, 1.0);
                    power.add_running(model, khz, CLUSTER, f64::from(sharing.max(1)));
                }
            }
            Place::Unknown { cpu } => {
                let clock = self.topology.clock_of(cpu).and_then(|number| self.clusters[number]);
                let idle = idle_model(self.topology, &self.clusters, cpu);
                let running = clock.map_or(&[][..], |model| &model.p_states);
                let idle = idle.map_or(&[][..], |model| &model.idle);
                power.add_range(p_powers(running, CORE).chain(idle_powers(idle, CORE)), 1.0);
            }
            Place::NoClock { .. } => {}
        }
        power
    }

    /// Returns the energy of what was used.
    pub(crate) fn share(&mut self, usage: &Usage) -> Share {
        let mut sum = Power::default();
        for (&place, &ns) in &usage.ran {
            let power = if let Some(known) = self.known.get(&place) {
                *known
            } else {
                let power = self.power(place);
                self.known.insert(place, power);
                power
            };
            sum.known += power.known * ns as f64;
            sum.low += power.low * ns as f64;
            sum.high += power.high * ns as f64;
        }
        let per_power = self.model.per_power_ns();
        let total = sum.known * per_power;
        Share { total, total_min: total + sum.low * per_power, total_max: total + sum.high * per_power }
    }
}

/// Rounds shares of an energy so that they and the rest, which is returned, add up to it exactly.
pub(crate) fn divide(energy: &Energy, shares: &mut [Share]) -> Share {
    Share {
        total: divide_one(energy.total, shares.iter_mut().map(|share| &mut share.total)),
        total_min: divide_one(energy.total_min, shares.iter_mut().map(|share| &mut share.total_min)),
        total_max: divide_one(energy.total_max, shares.iter_mut().map(|share| &mut share.total_max)),
    }
}

#[expect(clippy::cast_sign_loss, reason = "energies are not negative")]
fn divide_one<'a>(whole: f64, shares: impl Iterator<Item = &'a mut f64>) -> f64 {
    let unit = whole.next_up() - whole;
    // Below 2^53, so that each multiple of the unit is exact.
    let mut left = (whole / unit) as u64;
    for share in shares {
        // What rounding has made more than there is belongs to the last ones.
        let units = ((*share / unit) as u64).min(left);
        left -= units;
        *share = units as f64 * unit;
    }
    left as f64 * unit
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "shares add up exactly")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the shares are: they and the rest add up to the whole, to the last bit, forwards and backwards.
        #[test]
        fn shares_and_rest_add_up_exactly(
            whole in 0.0..1e9_f64,
            weights in prop::collection::vec(0.0..1.0_f64, 0..40),
        ) {
            let sum: f64 = weights.iter().sum::<f64>() + 1e-3;
            let exact: Vec<f64> = weights.iter().map(|weight| whole * weight / sum).collect();
            let mut shares = exact.clone();
            let rest = divide_one(whole, shares.iter_mut());
            prop_assert!(rest >= 0.0);
            for (share, exact) in shares.iter().zip(&exact) {
                prop_assert!((share - exact).abs() <= whole * 1e-14, "{share} for {exact}");
            }
            prop_assert_eq!(shares.iter().sum::<f64>() + rest, whole);
            prop_assert_eq!(shares.iter().rev().fold(rest, |sum, share| sum + share), whole);
        }
    }

    #[test]
    fn nothing_is_shared_as_nothing() {
        let mut shares = [0.0, 0.0];
        assert_eq!(divide_one(0.0, shares.iter_mut()), 0.0);
        assert_eq!(shares, [0.0, 0.0]);
    }

    #[test]
    fn more_than_the_whole_is_cut() {
        let mut shares = [0.75, 0.5];
        assert_eq!(divide_one(1.0, shares.iter_mut()), 0.0);
        assert_eq!(shares, [0.75, 0.25]);
    }
}
