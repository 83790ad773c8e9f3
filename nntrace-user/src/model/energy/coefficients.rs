//! Powers of a model one by one: for who wants to find better ones.

use super::model::{ClusterModel, Cost, EnergyModel};

/// Place of one power in a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coefficient {
    /// Number of the cluster.
    cluster: usize,
    state: State,
    /// Whether it is a core's power, and not the cluster's.
    is_core: bool,
}

/// Row of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Frequency, by its place.
    Active(usize),
    /// Idle state, by its place.
    Idle(usize),
}

impl EnergyModel {
    /// Returns the places of all powers: those come first that a measurement should rather determine. What a core takes at a
    /// frequency matters most; what it takes in its deepest idle state is least, and best known.
    pub(crate) fn coefficients(&self) -> Vec<Coefficient> {
        let mut found = Vec::new();
        for (is_idle, is_core) in [(false, true), (false, false), (true, false), (true, true)] {
            for (number, cluster) in self.clusters.iter().enumerate() {
                let rows = if is_idle { cluster.idle.len() } else { cluster.p_states.len() };
                found.extend((0..rows).map(|row| {
                    let state = if is_idle { State::Idle(row) } else { State::Active(row) };
                    Coefficient { cluster: number, state, is_core }
                }));
            }
        }
        found
    }

    /// Returns a power.
    pub(crate) fn power(&self, place: Coefficient) -> f64 {
        let cost = self.clusters.get(place.cluster).and_then(|cluster| cluster.cost(place.state));
        cost.map_or(0.0, |cost| if place.is_core { cost.core } else { cost.cluster })
    }

    /// Sets a power.
    pub(crate) fn set_power(&mut self, place: Coefficient, power: f64) {
        let row = self.clusters.get_mut(place.cluster).and_then(|cluster| cluster.cost_mut(place.state));
        if let Some(cost) = row {
            *(if place.is_core { &mut cost.core } else { &mut cost.cluster }) = power;
        }
    }

    /// Returns the model with this power everywhere, and no wake-ups.
    pub(crate) fn with_powers(&self, power: f64) -> Self {
        let mut model = self.clone();
        for place in self.coefficients() {
            model.set_power(place, power);
        }
        for cluster in &mut model.clusters {
            cluster.wakeup = Cost::default();
            cluster.idle.iter_mut().for_each(|state| state.entry = Cost::default());
        }
        model
    }

    /// Returns the model with its wake-ups and entries alone.
    pub(crate) fn without_powers(&self) -> Self {
        let mut model = self.clone();
        for place in self.coefficients() {
            model.set_power(place, 0.0);
        }
        model
    }

    /// Returns the name of a power, `big 1800000 kHz core`.
    pub(crate) fn name_of(&self, place: Coefficient) -> String {
        let part = if place.is_core { "core" } else { "cluster" };
        let Some(cluster) = self.clusters.get(place.cluster) else { return part.into() };
        let row = match place.state {
            State::Active(row) => cluster.p_states.get(row).map(|state| format!("{} kHz", state.khz)),
            State::Idle(row) => cluster.idle.get(row).map(|state| state.name.clone()),
        };
        format!("{} {} {part}", cluster.name, row.unwrap_or_default())
    }
}

impl ClusterModel {
    fn cost(&self, state: State) -> Option<&Cost> {
        match state {
            State::Active(row) => self.p_states.get(row).map(|state| &state.power),
            State::Idle(row) => self.idle.get(row).map(|state| &state.power),
        }
    }

    fn cost_mut(&mut self, state: State) -> Option<&mut Cost> {
        match state {
            State::Active(row) => self.p_states.get_mut(row).map(|state| &mut state.power),
            State::Idle(row) => self.idle.get_mut(row).map(|state| &mut state.power),
        }
    }
}
