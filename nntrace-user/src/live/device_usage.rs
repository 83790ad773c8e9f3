//! Use of accelerators and GPUs, from the counters of their drivers: of each DRM client, which is an open file, and of whole devices.
//!
//! A reading goes through the descriptors of all processes, so a thread of its own makes it, for at most 1 % of its time. What is
//! shown meanwhile is the last reading: nobody waits for a driver that does not answer.

mod fdinfo;
mod totals;

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use nix::{libc::O_NONBLOCK, unistd::getuid};

use self::totals::TotalSource;
use super::clock::{self, nanoseconds};
use crate::{
    caller,
    model::device_usage::{ClientKey, DeviceUsage, UsageMeter},
};

/// Time between two readings where they are cheap.
const PERIOD: Duration = Duration::from_millis(250);
/// Periods are this many times as long as the last reading took.
const PERIOD_BY_COST: u32 = 100;
/// Time that the first and the last reading have: nobody waits longer for a driver.
const PATIENCE: Duration = Duration::from_secs(2);
/// Folders with the nodes of devices, and their classes in sysfs.
const NODES: [(&str, &str); 2] = [("/dev/dri/", "class/drm"), ("/dev/accel/", "class/accel")];
/// Bytes of a file of the kernel at most.
const LONGEST: u64 = 64 << 10;

/// Reader of the use of all devices of a host.
#[derive(Debug)]
pub(crate) struct UsageReader {
    /// Before the window begins.
    readings: Option<Readings>,
    /// Result of the last reading.
    last: Arc<Mutex<DeviceUsage>>,
    /// Requests for the last reading, each with the channel that announces its end.
    requests: Option<mpsc::Sender<mpsc::Sender<()>>>,
}

/// Where the counters are, and their meter.
#[derive(Debug)]
struct Readings {
    proc: PathBuf,
    sysfs: PathBuf,
    totals: Vec<TotalSource>,
    meter: UsageMeter,
    /// Devices of nodes that were read, by the node.
    devices: BTreeMap<PathBuf, String>,
    period: Duration,
    reading_ns: u64,
}

impl UsageReader {
    /// Finds what can be read under the roots of a proc and a sysfs; `None` on a host without such devices: reading the
    /// descriptors of all processes would be for nothing.
    #[must_use]
    pub(crate) fn find(proc: &Path, sysfs: &Path) -> Option<Self> {
        let readings = Readings {
            proc: proc.to_owned(),
            sysfs: sysfs.to_owned(),
            totals: totals::find(sysfs),
            meter: UsageMeter::default(),
            devices: BTreeMap::new(),
            period: PERIOD,
            reading_ns: 0,
        };
        let is_of_use = !nodes(sysfs).is_empty() || !readings.totals.is_empty();
        is_of_use.then(|| Self { readings: Some(readings), last: Arc::default(), requests: None })
    }

    /// Begins to measure.
    pub(crate) fn begin(&mut self) {
        let Some(mut readings) = self.readings.take() else { return };
        let last = Arc::clone(&self.last);
        let (requests, requested) = mpsc::channel::<mpsc::Sender<()>>();
        let (begun, has_begun) = mpsc::channel();
        let thread = thread::Builder::new().name("nntrace-usage".into()).spawn(move || {
            readings.read(&last, Wakes::Devices);
            // Who started this may no longer wait.
            let _ = begun.send(());
            loop {
                let request = requested.recv_timeout(readings.period);
                if matches!(request, Err(RecvTimeoutError::Disconnected)) {
                    return;
                }
                readings.read(&last, if request.is_ok() { Wakes::Devices } else { Wakes::Nothing });
                if let Ok(done) = request {
                    // Who asked may no longer wait.
                    let _ = done.send(());
                    return;
                }
            }
        });
        match thread {
            Ok(_) => {
                self.requests = Some(requests);
                if has_begun.recv_timeout(PATIENCE).is_err() {
                    log::warn!("reading device usage takes longer than {PATIENCE:?}: it begins late");
                }
            }
            Err(error) => log::warn!("device usage is not read: cannot start a thread for it: {error}"),
        }
    }

    /// Returns the usage from the first reading to the last.
    #[must_use]
    pub(crate) fn read(&self) -> DeviceUsage {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads everything for the last time.
    pub(crate) fn end(self) -> DeviceUsage {
        if let Some(requests) = &self.requests {
            let (done, is_done) = mpsc::channel();
            if requests.send(done).is_ok() && is_done.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout)
            {
                log::warn!(
                    "reading device usage takes longer than {PATIENCE:?}: it is that of the reading before"
                );
            }
        }
        self.read()
    }
}

/// Returns the names of the devices that can be opened.
fn nodes(sysfs: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for (_, class) in NODES {
        let entries = fs::read_dir(sysfs.join(class)).into_iter().flatten().flatten();
        let all = entries.filter_map(|entry| entry.file_name().into_string().ok());
        // Not connectors and `version`.
        names.extend(all.filter(|name| ["accel", "renderD"].iter().any(|start| name.starts_with(start))));
    }
    names.sort();
    names
}

/// Returns the names of all devices whose use can be read, those that can be opened first.
pub(super) fn names(sysfs: &Path) -> Vec<String> {
    let totals = totals::find(sysfs).into_iter().map(|total| format!("{} (device-wide)", total.device));
    nodes(sysfs).into_iter().chain(totals).collect()
}

/// Whether a reading may wake devices that are suspended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wakes {
    /// At the ends of the window, whose counters are the result.
    Devices,
    /// In between.
    Nothing,
}

impl Readings {
    /// Reads everything, and publishes the result.
    fn read(&mut self, last: &Mutex<DeviceUsage>, wakes: Wakes) {
        let begin = clock::now();
        self.meter.begin_reading(begin);
        for total in &self.totals {
            let Some(text) = read(&total.path) else { continue };
            total.figures(&text, |engine, figure| {
                self.meter.total(&total.device, total.driver, engine, figure);
            });
        }
        let mut suspended = BTreeMap::new();
        for pid in processes(&self.proc) {
            self.process(pid, &mut suspended, wakes);
        }
        let usage = self.meter.usage();
        let cost = clock::now().saturating_sub(begin);
        self.reading_ns += cost;
        self.period = PERIOD.max(Duration::from_nanos(cost).saturating_mul(PERIOD_BY_COST));
        let (period_ns, reading_ns) = (nanoseconds(self.period), self.reading_ns);
        *last.lock().unwrap_or_else(PoisonError::into_inner) = DeviceUsage { period_ns, reading_ns, ..usage };
    }

    /// Reads the clients of a process. Those of one that ends meanwhile are gone. Without root, other users' processes are skipped, even if
    /// capabilities would allow them.
    fn process(&mut self, pid: u32, suspended: &mut BTreeMap<PathBuf, bool>, wakes: Wakes) {
        let folder = self.proc.join(pid.to_string());
        let user = getuid().as_raw();
        if user != 0 && fs::metadata(&folder).is_ok_and(|folder| folder.uid() != user) {
            return;
        }
        let mut comm = None;
        for entry in fs::read_dir(folder.join("fd")).into_iter().flatten().flatten() {
            let Ok(node) = fs::read_link(entry.path()) else { continue };
            let Some(class) = class_of(&node) else { continue };
            let is_suspended =
                *suspended.entry(node.clone()).or_insert_with(|| is_suspended(&self.sysfs, class, &node));
            if is_suspended && wakes == Wakes::Nothing {
                self.meter.unread(self.devices.get(&node).map(String::as_str), pid);
                continue;
            }
            let info = folder.join("fdinfo").join(entry.file_name());
            let Some(text) = read(&info) else {
                self.meter.unread(None, pid);
                continue;
            };
            // A driver without counters says nothing.
            let Some(found) = fdinfo::parse(&text) else { continue };
            let device = found.device.or_else(|| self.device_of(&entry.path()));
            let device = device.unwrap_or_else(|| found.client.driver.clone());
            self.devices.entry(node).or_insert_with(|| device.clone());
            let key = ClientKey { device, id: found.id };
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

/// Returns the class in sysfs of a device node; `None` for any other file.
fn class_of(node: &Path) -> Option<&'static str> {
    let node = node.as_os_str().as_encoded_bytes();
    NODES.iter().find(|(folder, _)| node.starts_with(folder.as_bytes())).map(|(_, class)| *class)
}

/// Whether a device is suspended.
fn is_suspended(sysfs: &Path, class: &str, node: &Path) -> bool {
    let Some(name) = node.file_name() else { return false };
    let status = sysfs.join(class).join(name).join("device/power/runtime_status");
    read(&status).is_some_and(|status| status.trim_end() == "suspended")
}

/// Reads a file of the kernel; `None` where it cannot be read. Without root, that is what the user may read.
pub(super) fn read(path: &Path) -> Option<String> {
    let mut text = Vec::new();
    open(path).ok()?.take(LONGEST).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

fn open(path: &Path) -> io::Result<File> {
    if getuid().is_root() {
        // A FIFO in a tree that somebody named would never answer.
        return OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path);
    }
    caller::open(path)
}

/// Returns the entries of a folder, in their order.
pub(super) fn children(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    all.sort();
    all
}

/// Returns the ids of all processes, in their order.
fn processes(proc: &Path) -> Vec<u32> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let mut pids: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids
}

#[cfg(test)]
mod tests;
