//! Use of accelerators and GPUs: what their drivers count for each open file and in all, read at the window's ends and in between.
//!
//! A reading goes through the descriptors of all processes, so it is made by a thread of its own, and no more often than costs
//! a hundredth of its time.

mod fdinfo;
mod totals;

use std::{
    fs::{self, File},
    io::Read as _,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use nix::unistd::getuid;

use self::totals::TotalSource;
use super::clock::{self, nanoseconds};
use crate::model::device_usage::{ClientKey, DeviceUsage, UsageMeter};

/// Time between two readings where they are cheap.
const PERIOD: Duration = Duration::from_secs(1);
/// Periods are this many times as long as a reading takes.
const PERIOD_BY_COST: u32 = 100;
/// Folders with the nodes of devices.
const NODES: [&str; 2] = ["/dev/dri/", "/dev/accel/"];
/// Bytes of a file of the kernel at most.
const LONGEST: u64 = 64 << 10;

/// Reader of the use of all devices of a host.
#[derive(Debug)]
pub(crate) struct UsageReader {
    shared: Arc<Mutex<Readings>>,
    sampler: Option<Sampler>,
}

/// Where the figures are, and their meter.
#[derive(Debug)]
struct Readings {
    proc: PathBuf,
    sysfs: PathBuf,
    totals: Vec<TotalSource>,
    meter: UsageMeter,
    period: Duration,
    reading_ns: u64,
}

/// Thread that reads until it is dropped.
#[derive(Debug)]
struct Sampler {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl UsageReader {
    /// Finds what can be read under the roots of a proc and a sysfs; `None` on a host that has no device with usage: reading
    /// the descriptors of all processes would be for nothing.
    #[must_use]
    pub(crate) fn find(proc: &Path, sysfs: &Path) -> Option<Self> {
        let totals = totals::find(sysfs);
        let readings = Readings {
            proc: proc.to_owned(),
            sysfs: sysfs.to_owned(),
            totals,
            meter: UsageMeter::default(),
            period: PERIOD,
            reading_ns: 0,
        };
        let is_of_use = !nodes(sysfs).is_empty() || !readings.totals.is_empty();
        is_of_use.then(|| Self { shared: Arc::new(Mutex::new(readings)), sampler: None })
    }

    /// Begins to measure.
    pub(crate) fn begin(&mut self) {
        let mut readings = lock(&self.shared);
        readings.read();
        let cost = Duration::from_nanos(readings.reading_ns).saturating_mul(PERIOD_BY_COST);
        readings.period = PERIOD.max(cost);
        let period = readings.period;
        drop(readings);
        self.sampler = Some(Sampler::start(Arc::clone(&self.shared), period));
    }

    /// Reads everything; returns the usage since the first reading.
    #[must_use]
    pub(crate) fn read(&self) -> DeviceUsage {
        let mut readings = lock(&self.shared);
        readings.read();
        DeviceUsage {
            period_ns: nanoseconds(readings.period),
            reading_ns: readings.reading_ns,
            ..readings.meter.usage()
        }
    }

    /// Reads everything for the last time.
    pub(crate) fn end(mut self) -> DeviceUsage {
        let usage = self.read();
        self.sampler = None;
        usage
    }
}

/// Returns the names of the devices that can be opened.
fn nodes(sysfs: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for class in ["class/accel", "class/drm"] {
        let entries = fs::read_dir(sysfs.join(class)).into_iter().flatten().flatten();
        let all = entries.filter_map(|entry| entry.file_name().into_string().ok());
        // Beside nodes there are connectors of displays, and the version.
        names.extend(all.filter(|name| ["accel", "renderD"].iter().any(|start| name.starts_with(start))));
    }
    names.sort();
    names
}

/// Returns the names of all devices whose use can be read, those that can be opened first.
pub(super) fn names(sysfs: &Path) -> Vec<String> {
    let totals = totals::find(sysfs).into_iter().map(|total| format!("{} (load)", total.device));
    nodes(sysfs).into_iter().chain(totals).collect()
}

/// A reading that panicked has left whole readings behind.
fn lock(readings: &Mutex<Readings>) -> MutexGuard<'_, Readings> {
    readings.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Readings {
    fn read(&mut self) {
        let begin = clock::now();
        self.meter.begin_reading(begin);
        for total in &self.totals {
            let Some(text) = read(&total.path) else { continue };
            total.figures(&text, |engine, figure| {
                self.meter.total(&total.device, total.driver, engine, figure);
            });
        }
        for pid in processes(&self.proc) {
            self.process(pid);
        }
        self.meter.end_reading();
        self.reading_ns += clock::now().saturating_sub(begin);
    }

    /// Reads the devices that a process has open. One that ends meanwhile has none. A program with capabilities of its own shows
    /// its user no processes of others.
    fn process(&mut self, pid: u32) {
        let folder = self.proc.join(pid.to_string());
        let user = getuid().as_raw();
        if user != 0 && fs::metadata(&folder).is_ok_and(|folder| folder.uid() != user) {
            return;
        }
        let mut comm = None;
        for entry in fs::read_dir(folder.join("fd")).into_iter().flatten().flatten() {
            let Ok(target) = fs::read_link(entry.path()) else { continue };
            if !NODES.iter().any(|node| target.as_os_str().as_encoded_bytes().starts_with(node.as_bytes())) {
                continue;
            }
            let info = folder.join("fdinfo").join(entry.file_name());
            let Some(found) = read(&info).and_then(|text| fdinfo::parse(&text)) else { continue };
            let device = found.device.or_else(|| self.device_of(&entry.path()));
            let key =
                ClientKey { device: device.unwrap_or_else(|| found.client.driver.clone()), id: found.id };
            let comm = comm
                .get_or_insert_with(|| read(&folder.join("comm")).unwrap_or_default().trim_end().to_owned());
            self.meter.client(&key, pid, comm, &found.client);
        }
    }

    /// Returns the kernel's name of the device that an open file is of.
    fn device_of(&self, descriptor: &Path) -> Option<String> {
        let number = fs::metadata(descriptor).ok()?.rdev();
        let (major, minor) = (nix::sys::stat::major(number), nix::sys::stat::minor(number));
        let device = self.sysfs.join(format!("dev/char/{major}:{minor}/device"));
        Some(fs::canonicalize(device).ok()?.file_name()?.to_string_lossy().into_owned())
    }
}

/// Reads a file of the kernel; `None` where it cannot be read.
fn read(path: &Path) -> Option<String> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(LONGEST).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the ids of all processes, in their order.
fn processes(proc: &Path) -> Vec<u32> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let mut pids: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids
}

impl Sampler {
    fn start(readings: Arc<Mutex<Readings>>, period: Duration) -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new().name("nntrace-usage".into()).spawn(move || {
            while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                lock(&readings).read();
            }
        });
        if let Err(error) = &thread {
            log::warn!("the use of devices is read once an interval only: no thread for it: {error}");
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
