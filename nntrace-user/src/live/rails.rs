//! Power rails of the host: the sensors that the kernel shows in sysfs, read at the window's ends and in between.
//!
//! Finding a rail reads its names only. Sensors behind slow buses take a millisecond a reading, so a thread of its own
//! samples power, and no more often than costs a hundredth of its time.

mod hwmon;
mod iio;
mod powercap;
mod sensor;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use sensor::{Channel, Sensor};

use super::clock::{self, nanoseconds};
use crate::model::rails::{Quantity, RailKind, RailMeter, Rails, UnreadableRail};

/// Folder in which sysfs is mounted.
pub const SYSFS: &str = "/sys";

/// Time between two samples of power where they are cheap.
const PERIOD: Duration = Duration::from_millis(100);
/// Periods are this many times as long as a sample takes, unless one is asked for.
const PERIOD_BY_COST: u32 = 100;

/// Reader of all rails of a host.
#[derive(Debug)]
pub struct RailReader {
    shared: Arc<Mutex<Sensors>>,
    /// Period that was asked for.
    asked: Option<Duration>,
    sampler: Option<Sampler>,
}

/// Sensors, and the meters of their rails.
#[derive(Debug, Default)]
struct Sensors {
    all: Vec<Sensor>,
    meters: Vec<RailMeter>,
    period: Option<Duration>,
    reading_ns: u64,
}

/// Thread that samples power until it is dropped.
#[derive(Debug)]
struct Sampler {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RailReader {
    /// Finds the rails under the root of a sysfs, to be sampled with this period, or as often as costs little.
    #[must_use]
    pub fn find(sysfs: &Path, period: Option<Duration>) -> Self {
        let mut channels = hwmon::find(&sysfs.join("class/hwmon"));
        channels.extend(iio::find(&sysfs.join("bus/iio/devices")));
        channels.extend(powercap::find(&sysfs.join("class/powercap")));
        let shared = Arc::new(Mutex::new(Sensors::new(channels)));
        Self { shared, asked: period, sampler: None }
    }

    /// Returns the folders in which rails are looked for.
    #[must_use]
    pub fn folders(sysfs: &Path) -> [PathBuf; 3] {
        ["class/hwmon", "bus/iio/devices", "class/powercap"].map(|folder| sysfs.join(folder))
    }

    /// Returns the number of rails that were found.
    #[must_use]
    pub fn count(&self) -> usize {
        self.sensors().meters.len()
    }

    /// Begins to measure.
    pub(crate) fn begin(&mut self) {
        let mut sensors = self.sensors();
        sensors.read(|_| true);
        if !sensors.meters.iter().any(|meter| meter.row().kind == RailKind::Sampled) {
            return;
        }
        let cost = Duration::from_nanos(sensors.reading_ns).saturating_mul(PERIOD_BY_COST);
        let period = self.asked.unwrap_or(PERIOD.max(cost));
        sensors.period = Some(period);
        drop(sensors);
        self.sampler = Some(Sampler::start(Arc::clone(&self.shared), period));
    }

    /// Reads all rails; returns their energy since the first reading.
    #[must_use]
    pub fn read(&self) -> Rails {
        let mut sensors = self.sensors();
        sensors.read(|_| true);
        sensors.rails()
    }

    /// Reads all rails for the last time.
    pub(crate) fn end(mut self) -> Rails {
        let rails = self.read();
        self.sampler = None;
        rails
    }

    fn sensors(&self) -> MutexGuard<'_, Sensors> {
        lock(&self.shared)
    }
}

/// A reading that panicked has left whole readings behind.
fn lock(sensors: &Mutex<Sensors>) -> MutexGuard<'_, Sensors> {
    sensors.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sensors {
    fn new(mut channels: Vec<Channel>) -> Self {
        name_apart(&mut channels);
        let mut sensors = Self::default();
        // Channels of one file stand after each other, and are read at once.
        for Channel { source, chip, name, input, quantity, .. } in channels {
            sensors.meters.push(RailMeter::new(source, chip, name, quantity));
            let number = sensors.meters.len() - 1;
            match sensors.all.last_mut() {
                Some(last) if last.input == input => last.rails.push(number),
                _ => sensors.all.push(Sensor {
                    input,
                    rails: vec![number],
                    is_sampled: quantity == Quantity::Power,
                }),
            }
        }
        sensors
    }

    /// Reads the sensors that are wanted.
    fn read(&mut self, wanted: impl Fn(&Sensor) -> bool) {
        for sensor in self.all.iter().filter(|sensor| wanted(sensor)) {
            let before = clock::now();
            let readings = sensor.input.read(sensor.rails.len());
            let took = clock::now().saturating_sub(before);
            self.reading_ns += took;
            let at = (before + took / 2).saturating_sub(readings.age_ns);
            for (&rail, value) in sensor.rails.iter().zip(readings.values) {
                self.meters[rail].take(at, value);
            }
        }
    }

    fn rails(&self) -> Rails {
        let (read, unread): (Vec<_>, Vec<_>) =
            self.meters.iter().map(RailMeter::row).partition(|row| row.readings > 0);
        let mut rails: Vec<_> = read.into_iter().cloned().collect();
        rails.sort_by(|a, b| (a.source, &a.chip, &a.name).cmp(&(b.source, &b.chip, &b.name)));
        let unreadable = unread
            .into_iter()
            .filter_map(|row| Some(UnreadableRail { rail: row.path(), reason: row.failure.clone()? }));
        Rails {
            period_ns: self.period.map(nanoseconds),
            reading_ns: self.reading_ns,
            rails,
            unreadable: unreadable.collect(),
        }
    }
}

/// Adds device and channel to the names that several channels of one kind of chip share.
fn name_apart(channels: &mut [Channel]) {
    let mut counts = BTreeMap::new();
    let key = |channel: &Channel| (channel.source, channel.chip.clone(), channel.name.clone());
    for channel in &*channels {
        *counts.entry(key(channel)).or_insert(0_u32) += 1;
    }
    for channel in channels {
        if counts.get(&key(channel)).is_some_and(|count| *count > 1) {
            channel.name = format!("{} ({} {})", channel.name, channel.device, channel.port);
        }
    }
}

impl Sampler {
    fn start(sensors: Arc<Mutex<Sensors>>, period: Duration) -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new().name("nntrace-rails".into()).spawn(move || {
            while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                lock(&sensors).read(|sensor| sensor.is_sampled);
            }
        });
        if let Err(error) = &thread {
            log::warn!("power is sampled once an interval only: no thread for it: {error}");
        }
        Self { stop: Some(stop), thread: thread.ok() }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // Its panic was shown when it came.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
