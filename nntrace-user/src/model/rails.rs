//! Measured energy of the host's power rails: what its own sensors counted, beside the energy that a model gives.
//!
//! Rails overlap (a package has its cores in it, a board its package), so they are never added up, neither with each other
//! nor with modelled energy.

mod meter;

pub(crate) use meter::{Quantity, RailMeter, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Measured energy of the rails that the host has sensors for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rails {
    /// Time between two samples of power, ns; null where no rail is sampled.
    pub period_ns: Option<u64>,
    /// Time that the readings took, ns.
    pub reading_ns: u64,
    /// Rails, by source, chip and name.
    pub rails: Vec<RailRow>,
    /// Rails that could never be read.
    pub unreadable: Vec<UnreadableRail>,
}

/// Measured energy of one rail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RailRow {
    /// Interface of the kernel that has it.
    pub source: RailSource,
    /// Chip that measures it, or the control type of its power cap.
    pub chip: String,
    /// Name of the rail: its label, or else its channel.
    pub name: String,
    /// Way in which it is measured.
    pub kind: RailKind,
    /// Energy from the first to the last reading, without the gaps, nJ. Below 0 where current flowed back.
    pub energy_nj: i64,
    /// Time of the first reading, ns.
    pub begin_ns: u64,
    /// Time of the last reading, ns.
    pub end_ns: u64,
    /// Readings that succeeded.
    pub readings: u64,
    /// Times that the counter started over at the end of its range.
    pub wraps: u64,
    /// Stretches of time whose energy is not known.
    pub gaps: u64,
    /// Time of these, ns.
    pub gap_ns: u64,
    /// Readings that failed.
    pub failed: u64,
    /// Reason for which the last one of these failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Interface of the kernel that has a rail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RailSource {
    /// `/sys/class/hwmon`: `INA2xx`, SCMI and other monitors.
    Hwmon,
    /// `/sys/bus/iio/devices`: converters, and the meters of power management chips.
    Iio,
    /// `/sys/class/powercap`: RAPL and other power caps.
    Powercap,
}

/// Way in which a rail is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RailKind {
    /// A counter of energy in the hardware: nothing is missed between two readings.
    Counter,
    /// Power at moments, between which it is taken to change evenly.
    Sampled,
}

/// Rail that could never be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnreadableRail {
    /// Rail, as `powercap/intel-rapl/package-0`.
    pub rail: String,
    /// Reason, with the file.
    pub reason: String,
}

impl Rails {
    /// Whether the host has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rails.is_empty() && self.unreadable.is_empty()
    }

    /// Finds the rail that somebody means by its name, by `chip/name` or by `source/chip/name`.
    ///
    /// # Errors
    /// When it is none of them, or more than one; the message lists those that there are.
    pub(crate) fn find(&self, name: &str) -> Result<&RailRow, String> {
        let mut found = self.rails.iter().filter(|rail| rail.is_called(name));
        match (found.next(), found.next()) {
            (Some(rail), None) => Ok(rail),
            (Some(one), Some(other)) => {
                Err(format!("several rails are called {name:?}: name it {} or {}", one.path(), other.path()))
            }
            (None, _) => {
                let names: Vec<String> = self.rails.iter().map(RailRow::path).collect();
                let names = if names.is_empty() { "none".into() } else { names.join(", ") };
                Err(format!("no rail is called {name:?}; those that were measured: {names}"))
            }
        }
    }
}

impl RailRow {
    /// Returns the whole name, `hwmon/ina226/VDD_CPU`.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/{}/{}", self.source.name(), self.chip, self.name)
    }

    /// Returns the energy, J.
    #[must_use]
    pub(crate) fn joules(&self) -> f64 {
        self.energy_nj as f64 * 1e-9
    }

    /// Returns the time of which the energy is known, ns.
    #[must_use]
    pub(crate) fn known_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns).saturating_sub(self.gap_ns)
    }

    /// Returns the mean power in the time of which the energy is known, W; `None` before the second reading.
    #[must_use]
    pub(crate) fn mean_watts(&self) -> Option<f64> {
        let ns = self.known_ns();
        // nJ per ns.
        (ns > 0).then(|| self.energy_nj as f64 / ns as f64)
    }

    fn is_called(&self, name: &str) -> bool {
        self.name == name || format!("{}/{}", self.chip, self.name) == name || self.path() == name
    }
}

impl RailSource {
    /// Name of the folder of its class.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Hwmon => "hwmon",
            Self::Iio => "iio",
            Self::Powercap => "powercap",
        }
    }
}

impl RailKind {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Sampled => "sampled",
        }
    }
}
