//! Use of accelerators and GPUs, from the counters of their drivers: per process where these tell, else device-wide.

mod meter;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::meter::{Client, ClientKey, EngineCounters, Total, UsageMeter};

/// Use of the host's accelerators and GPUs between the first and the last reading of their drivers' counters.
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
    /// Name of the device in the kernel, or of its driver if that is not known.
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
    /// Name in the driver.
    pub engine: String,
    /// Engines of this name.
    pub capacity: u64,
    /// Source of the time.
    pub source: UsageSource,
    /// Busy time, of all engines of this name together, ns; null with fewer than two readings.
    pub busy_ns: Option<u64>,
    /// Busy cycles; null where the driver does not count them.
    pub cycles: Option<u64>,
    /// Ignored readings: the counter went backwards, or advanced far faster than time does.
    pub implausible: u64,
    /// Time by process, the longest first; empty if only a device-wide counter exists.
    pub processes: Vec<EngineUser>,
}

/// Source of the time of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UsageSource {
    /// Counters of each open file of the device (`/proc/PID/fdinfo`).
    Fdinfo,
    /// Device-wide counter.
    Counter,
    /// Load in percent, read once a period and assumed constant between readings.
    Sampled,
}

/// Use of an engine by a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EngineUser {
    /// Process.
    pub pid: u32,
    /// Busy time of the engine with its work, ns.
    pub busy_ns: u64,
}

/// Process that had a device open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceUser {
    /// Process.
    pub pid: u32,
    /// Name of the process.
    pub comm: String,
    /// Busy time of all engines with its work, ns.
    pub busy_ns: u64,
    /// Peak resident memory at any reading, bytes; null if not reported.
    pub memory_bytes: Option<u64>,
    /// Whether its times are a lower bound: it closed the device between two readings, or it is not known from when on its driver
    /// counted.
    pub is_lower_bound: bool,
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
            Self::Fdinfo => "per process",
            Self::Counter => "device-wide",
            Self::Sampled => "sampled",
        }
    }
}
