//! Contents of an energy model file.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Range of a power or an energy, in its own unit: a number that is nonsense is more likely a mistake, and sums stay
/// finite.
pub(super) const AMOUNTS: RangeInclusive<f64> = 0.0..=1e12;

/// Cost of CPUs and clusters by state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EnergyModel {
    /// Where it comes from.
    pub(crate) file: String,
    /// The unit of all powers; `None` where the model states none: its energies only compare with each other.
    pub(crate) unit: Option<PowerUnit>,
    /// The unit of wake-ups and entries; `None` without a unit of powers: they are in that of a power for 1 us then.
    pub(crate) energy_unit: Option<EnergyUnit>,
    /// The clusters, in the order of the file.
    pub(crate) clusters: Vec<ClusterModel>,
    /// Oddities of the file.
    pub(crate) notes: Vec<String>,
}

/// Cost of one cluster and its CPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClusterModel {
    /// Its name.
    pub(crate) name: String,
    /// Its CPUs, ascending, where the model names them.
    pub(crate) cpus: Option<Vec<u32>>,
    /// Powers by frequency, ascending.
    pub(crate) p_states: Vec<PState>,
    /// Powers by idle state, from the shallowest to the deepest.
    pub(crate) idle: Vec<IdleState>,
    /// Energy of a wake-up: of the cluster from a state deeper than the first, of a CPU from the first.
    pub(crate) wakeup: Cost,
}

/// Cost of running at one frequency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PState {
    /// The frequency, kHz.
    pub(crate) khz: u32,
    /// The file gives it in whole MHz: the kHz below one MHz are not told apart.
    pub(crate) in_mhz: bool,
    /// Power of the cluster, and of a CPU that runs.
    pub(crate) power: Cost,
}

/// Cost of one idle state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct IdleState {
    /// Its name.
    pub(crate) name: String,
    /// Power of the cluster when it is what all its CPUs have in common, and of a CPU that is in it.
    pub(crate) power: Cost,
    /// Energy of one stay on top of that: to go in and to come out.
    pub(crate) entry: Cost,
}

/// A power or an energy: what the cluster costs, and what each CPU does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Share of the cluster.
    pub(crate) cluster: f64,
    /// Share of one CPU.
    pub(crate) core: f64,
}

/// The unit of powers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum PowerUnit {
    /// Watt.
    W,
    /// Milliwatt.
    #[serde(rename = "mW")]
    MilliW,
    /// Microwatt.
    #[serde(rename = "uW")]
    MicroW,
}

/// The unit of energies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum EnergyUnit {
    /// Joule.
    J,
    /// Millijoule.
    #[serde(rename = "mJ")]
    MilliJ,
    /// Microjoule.
    #[serde(rename = "uJ")]
    MicroJ,
    /// Nanojoule.
    #[serde(rename = "nJ")]
    NanoJ,
}

impl PowerUnit {
    /// `mW`.
    #[must_use]
    pub(crate) const fn symbol(self) -> &'static str {
        match self {
            Self::W => "W",
            Self::MilliW => "mW",
            Self::MicroW => "uW",
        }
    }

    const fn watts(self) -> f64 {
        match self {
            Self::W => 1.0,
            Self::MilliW => 1e-3,
            Self::MicroW => 1e-6,
        }
    }
}

impl EnergyUnit {
    /// `uJ`.
    #[must_use]
    pub(crate) const fn symbol(self) -> &'static str {
        match self {
            Self::J => "J",
            Self::MilliJ => "mJ",
            Self::MicroJ => "uJ",
            Self::NanoJ => "nJ",
        }
    }

    const fn joules(self) -> f64 {
        match self {
            Self::J => 1.0,
            Self::MilliJ => 1e-3,
            Self::MicroJ => 1e-6,
            Self::NanoJ => 1e-9,
        }
    }
}

/// The unit of energies in results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ResultUnit {
    /// Joule.
    #[serde(rename = "J")]
    Joule,
    /// Units of the model's powers, times seconds: the model states no unit.
    #[serde(rename = "relative")]
    Relative,
}

impl EnergyModel {
    /// The unit of results.
    #[must_use]
    pub(crate) const fn result_unit(&self) -> ResultUnit {
        if self.unit.is_some() { ResultUnit::Joule } else { ResultUnit::Relative }
    }

    /// Result of a power of 1 for 1 ns, in the unit of results.
    pub(crate) fn per_power_ns(&self) -> f64 {
        self.unit.map_or(1.0, PowerUnit::watts) * 1e-9
    }

    /// Result of a wake-up or an entry of 1, in the unit of results.
    pub(super) fn per_energy(&self) -> f64 {
        self.energy_unit.map_or(1e-6, EnergyUnit::joules)
    }

    /// Puts the frequencies in order, and takes notes of what is odd: real tables are not always monotonic.
    pub(super) fn settle(mut self) -> Self {
        for cluster in &mut self.clusters {
            cluster.p_states.sort_by_key(|state| state.khz);
            for (of, power) in PARTS {
                self.notes.extend(cluster.cheaper_when_faster(of, power));
                self.notes.extend(cluster.dearer_when_deeper(of, power));
            }
        }
        if self.clusters.iter().all(ClusterModel::is_free) {
            self.notes.push("every power in it is 0: nothing will cost anything".into());
        }
        self
    }
}

/// One part of a cost.
type Part = fn(&Cost) -> f64;

/// The two parts of a cost, with what people call them.
const PARTS: [(&str, Part); 2] = [("cluster", |cost| cost.cluster), ("core", |cost| cost.core)];

impl ClusterModel {
    /// The row of that frequency.
    pub(super) fn p_state(&self, khz: u32) -> Option<&PState> {
        // Ascending: those of one MHz follow one another.
        let from = self.p_states.partition_point(|state| state.khz < khz / 1_000 * 1_000);
        let mut near = self.p_states[from..].iter().take_while(|state| state.khz / 1_000 == khz / 1_000);
        let exact = near.clone().find(|state| state.khz == khz);
        exact.or_else(|| near.find(|state| state.in_mhz))
    }

    fn is_free(&self) -> bool {
        let costs = self.p_states.iter().map(|state| &state.power);
        let mut costs = costs.chain(self.idle.iter().map(|state| &state.power));
        costs.all(|cost| *cost == Cost::default())
    }

    /// The first frequency at which the next higher one costs less.
    fn cheaper_when_faster(&self, of: &str, power: Part) -> Option<String> {
        let odd = self.p_states.windows(2).find(|pair| power(&pair[0].power) > power(&pair[1].power))?;
        Some(format!(
            "cluster {}: at {} kHz the {of} costs {}, at {} kHz less ({}); taken as it is",
            self.name,
            odd[0].khz,
            power(&odd[0].power),
            odd[1].khz,
            power(&odd[1].power),
        ))
    }

    /// The first idle state than which the next deeper one costs more.
    fn dearer_when_deeper(&self, of: &str, power: Part) -> Option<String> {
        let odd = self.idle.windows(2).find(|pair| power(&pair[0].power) < power(&pair[1].power))?;
        Some(format!(
            "cluster {}: in {} the {of} costs {}, in the deeper {} more ({}); taken as it is",
            self.name,
            odd[0].name,
            power(&odd[0].power),
            odd[1].name,
            power(&odd[1].power),
        ))
    }
}
