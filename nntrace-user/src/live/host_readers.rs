//! Readers of host measurements that are not events: energy of rails, usage of devices.

use std::path::Path;

use super::{device_usage::UsageReader, rails::RailReader};
use crate::model::{device_usage::DeviceUsage, rails::Rails};

/// Folder in which proc is mounted.
const PROC: &str = "/proc";

/// Readers; each `None` where nothing is to be read.
#[derive(Debug, Default)]
pub struct HostReaders {
    /// Reader of power rails.
    rails: Option<RailReader>,
    /// Reader of device usage.
    usage: Option<UsageReader>,
}

/// What they read since the window began.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostReadings {
    pub(crate) rails: Option<Rails>,
    pub(crate) usage: Option<DeviceUsage>,
}

impl HostReaders {
    /// Creates readers of rails, and of device usage under the root of a sysfs, where that is to be read.
    #[must_use]
    pub fn new(rails: Option<RailReader>, devices: Option<&Path>) -> Self {
        Self { rails, usage: devices.and_then(|sysfs| UsageReader::find(Path::new(PROC), sysfs)) }
    }

    /// The window begins.
    pub(super) fn begin(&mut self) {
        if let Some(rails) = &mut self.rails {
            rails.begin();
        }
        if let Some(usage) = &mut self.usage {
            usage.begin();
        }
    }

    /// Reads everything.
    pub(super) fn read(&self) -> HostReadings {
        HostReadings {
            rails: self.rails.as_ref().map(RailReader::read),
            usage: self.usage.as_ref().map(UsageReader::read),
        }
    }

    /// Reads everything for the last time.
    pub(super) fn end(self) -> HostReadings {
        HostReadings { rails: self.rails.map(RailReader::end), usage: self.usage.map(UsageReader::end) }
    }
}
