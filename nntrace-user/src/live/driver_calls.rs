//! Calls of drivers: which devices are followed, and from when to when.
//!
//! Every system call of every process takes longer while any is traced. So the programs are attached only while a
//! target has such a device open, and how much longer calls take is measured and noted.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    time::Instant,
};

use nix::{
    sys::stat::{major, minor},
    unistd::getppid,
};
use nntrace_common::driver_calls::{DriverDevice, device_number};

use super::{
    clock::nanoseconds,
    kernel::{Kernel, KernelError},
    target::Processes,
};

/// Devices of accelerators: folder, and what their names begin with.
///
/// Sources: Documentation/accel and Documentation/gpu of the kernel for the first two; the vendors' drivers for the
/// others (Rockchip, Hailo, Vivante, Coral, Arm Mali and Ethos, Qualcomm, NVIDIA).
const KNOWN: [(&str, &str); 13] = [
    ("/dev/accel", "accel"),
    ("/dev/dri", "renderD"),
    ("/dev", "rknpu"),
    ("/dev", "hailo"),
    ("/dev", "galcore"),
    ("/dev", "apex_"),
    ("/dev", "mali"),
    ("/dev", "ethosu"),
    ("/dev", "ethosn"),
    ("/dev", "kgsl-"),
    ("/dev", "fastrpc-"),
    ("/dev", "nvhost-"),
    ("/dev", "nvidia"),
];

/// Drivers whose calls are followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DriverSelection {
    /// No drivers.
    #[default]
    None,
    /// Drivers of the known devices that a target has open, as long as it has.
    Opened,
    /// Drivers of these devices, from the start to the end.
    Devices(Vec<PathBuf>),
}

/// Device in use.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Device {
    /// Number, as the kernel has it.
    number: u32,
    path: PathBuf,
}

/// Drivers whose calls are followed now.
pub(super) struct DriverCalls {
    selection: DriverSelection,
    /// Devices that the programs know, by the kernel's number.
    known: BTreeMap<u32, PathBuf>,
    /// Targets that have one of them open.
    users: BTreeSet<u32>,
    is_attached: bool,
    /// Whether attaching has failed: it would fail again.
    has_failed: bool,
    notes: Vec<String>,
}

impl DriverCalls {
    /// Creates the state; devices that are chosen are followed from now on.
    pub(super) fn new(selection: DriverSelection, kernel: &mut Kernel) -> Self {
        let mut calls = Self {
            selection,
            known: BTreeMap::new(),
            users: BTreeSet::new(),
            is_attached: false,
            has_failed: false,
            notes: Vec::new(),
        };
        if let DriverSelection::Devices(paths) = &calls.selection {
            for path in paths.clone() {
                match device_at(&path, path.clone()) {
                    Some(device) => calls.follow(kernel, device, ""),
                    None => calls.notes.push(format!(
                        "--driver-calls {}: no device; expected auto, off, or the path of a character device",
                        path.display()
                    )),
                }
            }
        }
        calls
    }

    /// Looks which known devices a target has open now, and follows them.
    pub(super) fn look(&mut self, kernel: &mut Kernel, processes: &Processes, pid: u32) {
        if self.selection != DriverSelection::Opened || self.has_failed {
            return;
        }
        let open = open_devices(&processes.dir(pid));
        if open.is_empty() {
            self.users.remove(&pid);
            return;
        }
        self.users.insert(pid);
        for device in open {
            self.follow(
                kernel,
                device,
                &format!("; process {pid} has it open, and what it called before is missing"),
            );
        }
    }

    /// Forgets a target that is gone.
    pub(super) fn forget(&mut self, pid: u32) {
        self.users.remove(&pid);
    }

    /// Detaches the programs when no target has a device open any more.
    pub(super) fn rest(&mut self, kernel: &mut Kernel) {
        if self.selection == DriverSelection::Opened && self.is_attached && self.users.is_empty() {
            kernel.detach_driver_calls();
            self.is_attached = false;
            log::info!("no target has a driver's device open: system calls are traced no more");
        }
    }

    /// Takes the notes since the last call.
    pub(super) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Whether a device is followed.
    pub(super) fn are_followed(&self) -> bool {
        !self.known.is_empty()
    }

    fn follow(&mut self, kernel: &mut Kernel, device: Device, reason: &str) {
        let Device { number, path } = device;
        if self.is_attached && self.known.contains_key(&number) {
            return;
        }
        let before = (!self.is_attached).then(system_call_ns);
        match follow(kernel, number, &path) {
            Ok(()) => {
                self.is_attached = true;
                if self.known.insert(number, path.clone()).is_none() {
                    let tax = before.map(|before| system_call_ns().saturating_sub(before));
                    self.notes.push(note(&path, reason, tax));
                }
            }
            Err(error) => {
                self.has_failed = true;
                self.notes.push(format!("calls of the driver of {} are not seen: {error}", path.display()));
            }
        }
    }
}

/// Returns the note on a device that is followed from now on; `tax` is how much longer system calls take since then, ns.
fn note(path: &Path, reason: &str, tax: Option<u64>) -> String {
    let tax = tax.map(|ns| {
        format!(
            "; while they are traced, each system call of any process takes about {ns} ns longer (measured; \
             --driver-calls off)"
        )
    });
    format!("calls of the driver of {} are sections LD_PE{reason}{}", path.display(), tax.unwrap_or_default())
}

fn follow(kernel: &mut Kernel, number: u32, path: &Path) -> Result<(), KernelError> {
    let name = path.file_name().unwrap_or(path.as_os_str());
    kernel.follow_driver(number, DriverDevice::named(name.as_encoded_bytes()))
}

/// Whether a path is that of a known device.
fn is_known(path: &Path) -> bool {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return false };
    KNOWN
        .iter()
        .any(|(at, begin)| folder == Path::new(at) && name.as_encoded_bytes().starts_with(begin.as_bytes()))
}

/// Returns the character device that a path leads to.
fn device_at(path: &Path, name: PathBuf) -> Option<Device> {
    let file = fs::metadata(path).ok().filter(|file| file.file_type().is_char_device())?;
    let number = file.rdev();
    let number = device_number(u32::try_from(major(number)).ok()?, u32::try_from(minor(number)).ok()?);
    Some(Device { number, path: name })
}

/// Returns the known devices that a process has open, by its folder in /proc.
fn open_devices(process: &Path) -> Vec<Device> {
    let open = fs::read_dir(process.join("fd"));
    let links = open.into_iter().flatten().flatten().map(|entry| entry.path());
    let known = links.filter_map(|link| {
        // The link gives the name, and leads to the device, whatever the process's own /dev is.
        let path = fs::read_link(&link).ok().filter(|path| is_known(path))?;
        device_at(&link, path)
    });
    known.collect()
}

/// Measures how long a system call takes here and now, ns: the least of several rounds.
fn system_call_ns() -> u64 {
    const ROUNDS: u32 = 5;
    const CALLS: u32 = 500;
    let round = |_| {
        let begin = Instant::now();
        for _ in 0..CALLS {
            // The C library keeps no copy of it.
            std::hint::black_box(getppid());
        }
        nanoseconds(begin.elapsed()) / u64::from(CALLS)
    };
    (0..ROUNDS).map(round).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn devices_of_accelerators_are_known_by_folder_and_name() {
        for path in ["/dev/accel/accel0", "/dev/dri/renderD128", "/dev/rknpu", "/dev/hailo0", "/dev/galcore"]
        {
            assert!(is_known(Path::new(path)), "{path}");
        }
        for path in
            ["/dev/dri/card0", "/dev/null", "/dev", "/", "/home/renderD128", "/dev/dri/by-path/x-render"]
        {
            assert!(!is_known(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn devices_have_the_kernels_number() {
        let zero = Path::new("/dev/zero");
        let number = device_number(1, 5);
        assert_eq!(device_at(zero, zero.into()), Some(Device { number, path: zero.into() }));
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(device_at(folder.path(), zero.into()), None);
        // Nothing that this process has open is a known device, whatever it is.
        let _open = File::open(zero).unwrap();
        assert!(open_devices(Path::new("/proc/self")).iter().all(|device| device.path != zero));
    }

    #[test]
    fn system_calls_take_time() {
        let ns = system_call_ns();
        assert!((10..1_000_000).contains(&ns), "{ns}");
    }
}
