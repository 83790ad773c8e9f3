//! Use of accelerators and GPUs: what their drivers count, by process where they tell, else in all.

mod meter;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::meter::{Client, ClientKey, EngineCounters, Total, UsageMeter};

/// Use of the host's accelerators and GPUs between the first and the last reading of what their drivers count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceUsage {
    /// Time between two readings, ns.
    pub period_ns: u64,
    /// Time that the readings took, ns.
    pub reading_ns: u64,
    /// Time from the first reading to the last, ns.
    pub known_ns: u64,
    /// Devices by name.
    pub devices: Vec<UsedDevice>,
    /// Open files and processes that were left out, as there were too many.
    #[serde(default)]
    pub left_out: u64,
}

/// Use of one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsedDevice {
    /// Name of the device in the kernel; its driver's, where it has none.
    pub device: String,
    /// Name of the driver; empty where it is not known.
    pub driver: String,
    /// Engines by name: kinds of work that the device does at the same time.
    pub engines: Vec<UsedEngine>,
    /// Processes that had the device open, those that used it longest first.
    pub processes: Vec<DeviceUser>,
}

/// Use of an engine of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsedEngine {
    /// Name that the driver gives it.
    pub engine: String,
    /// Engines of this name.
    pub capacity: u64,
    /// Way in which the time is known.
    pub source: UsageSource,
    /// Time in which the engine worked, of all of this name together, ns; null where nothing could be read twice.
    pub busy_ns: Option<u64>,
    /// Cycles that it worked; null where the driver does not count them.
    pub cycles: Option<u64>,
    /// Readings of the driver that cannot be: smaller than one before, or more than the time since then. They are left out.
    pub implausible: u64,
    /// Time by process, the longest first; empty where the driver counts all together.
    pub processes: Vec<EngineUser>,
}

/// Way in which the time of an engine is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UsageSource {
    /// Counted for each open file of the device (`/proc/PID/fdinfo`).
    Fdinfo,
    /// Counted by the device in all.
    Counter,
    /// A load in percent, read once a period: what it was in between is not known.
    Sampled,
}

/// Use of an engine by a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EngineUser {
    /// Process.
    pub pid: u32,
    /// Time in which the engine worked for it, ns.
    pub busy_ns: u64,
}

/// Process that had a device open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceUser {
    /// Process.
    pub pid: u32,
    /// Name of the process.
    pub comm: String,
    /// Time in which all engines worked for it, ns.
    pub busy_ns: u64,
    /// Most memory of the device that it was seen to have, bytes; null where the driver does not tell.
    pub memory_bytes: Option<u64>,
    /// Whether it closed the device: what it used after the reading before that is not known.
    pub has_closed: bool,
}

impl DeviceUsage {
    /// Whether no device was in use.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }
}

impl UsageSource {
    /// The words for it.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fdinfo => "by process",
            Self::Counter => "in all",
            Self::Sampled => "sampled",
        }
    }
}
