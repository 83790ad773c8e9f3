//! Readers of host measurements that are not events: energy of rails, usage and clocks of devices.

use std::path::Path;

use super::{device_clocks::ClockReader, device_usage::UsageReader, rails::RailReader};
use crate::model::{device_clocks::DeviceClock, device_usage::DeviceUsage, rails::Rails};

/// Folder in which proc is mounted.
const PROC: &str = "/proc";

/// Readers; each `None` where nothing is to be read.
#[derive(Debug, Default)]
pub struct HostReaders {
    /// Reader of power rails.
    rails: Option<RailReader>,
    /// Reader of device usage.
    usage: Option<UsageReader>,
    /// Reader of clocks of devices.
    clocks: Option<ClockReader>,
}

/// What they read since the window began.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostReadings {
    pub(crate) rails: Option<Rails>,
    pub(crate) usage: Option<DeviceUsage>,
    pub(crate) clocks: Vec<DeviceClock>,
}

impl HostReaders {
    /// Creates readers of rails, and of device usage under the root of a sysfs, where that is to be read.
    #[must_use]
    pub fn new(rails: Option<RailReader>, devices: Option<&Path>) -> Self {
        let usage = devices.and_then(|sysfs| UsageReader::find(Path::new(PROC), sysfs));
        Self { rails, usage, clocks: devices.and_then(ClockReader::find) }
    }

    /// The window begins.
    pub(super) fn begin(&mut self) {
        if let Some(rails) = &mut self.rails {
            rails.begin();
        }
        if let Some(usage) = &mut self.usage {
            usage.begin();
        }
        if let Some(clocks) = &mut self.clocks {
            clocks.begin();
        }
    }

    /// Reads everything.
    pub(super) fn read(&self) -> HostReadings {
        HostReadings {
            rails: self.rails.as_ref().map(RailReader::read),
            usage: self.usage.as_ref().map(UsageReader::read),
            clocks: self.clocks(),
        }
    }

    /// Reads everything for the last time.
    pub(super) fn end(self) -> HostReadings {
        let clocks = self.clocks();
        HostReadings {
            rails: self.rails.map(RailReader::end),
            usage: self.usage.map(UsageReader::end),
            clocks,
        }
    }

    fn clocks(&self) -> Vec<DeviceClock> {
        self.clocks.as_ref().map(ClockReader::read).unwrap_or_default()
    }
}
