//! Device-wide counters, for drivers without counters of each client.
//!
//! Source: `drivers/accel/ivpu/ivpu_sysfs.c` of Linux; `rknpu_load` of Rockchip's driver; `load` of Rockchip's and NVIDIA's devfreq
//! devices.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::children;
use crate::model::device_usage::Total;

/// File with a figure of a whole device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TotalSource {
    pub(super) path: PathBuf,
    /// Name of the device.
    pub(super) device: String,
    /// Name of its driver; empty where the file does not show it.
    pub(super) driver: &'static str,
    form: Form,
}

/// Form of the figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Time so far, us.
    Microseconds,
    /// `NPU load:  Core0: 50%, Core1:  0%,`, or `NPU load: 50%`.
    Cores,
    /// `50@1000000000Hz`.
    PercentAtClock,
    /// Thousandths.
    Thousandths,
}

/// Finds the files under the root of a sysfs.
pub(super) fn find(sysfs: &Path) -> Vec<TotalSource> {
    let mut found = Vec::new();
    let mut add = |path: PathBuf, device: Option<String>, driver, form| {
        if let (true, Some(device)) = (path.exists(), device) {
            found.push(TotalSource { path, device, driver, form });
        }
    };
    for accel in children(&sysfs.join("class/accel")) {
        let device = accel.join("device");
        add(device.join("npu_busy_time_us"), real_name(&device), "intel_vpu", Form::Microseconds);
    }
    add(sysfs.join("kernel/debug/rknpu/load"), Some("npu".into()), "rknpu", Form::Cores);
    for device in children(&sysfs.join("class/devfreq")).into_iter().filter(|device| is_accelerator(device)) {
        add(device.join("load"), real_name(&device), "", Form::PercentAtClock);
        add(device.join("device/load"), real_name(&device), "", Form::Thousandths);
    }
    found
}

impl TotalSource {
    /// Passes the engines and figures that the text of the file has to `take`. What cannot be read says nothing.
    pub(super) fn figures(&self, text: &str, mut take: impl FnMut(&str, Total)) {
        let load = |percent: u64| Total::Load(percent.saturating_mul(10));
        match self.form {
            Form::Microseconds => {
                if let Some(ns) = text.trim().parse::<u64>().ok().and_then(|us| us.checked_mul(1_000)) {
                    take("npu", Total::Busy(ns));
                }
            }
            Form::Cores => {
                let Some(loads) = text.trim().strip_prefix("NPU load:") else { return };
                for part in loads.split(',').map(str::trim).filter(|part| !part.is_empty()) {
                    let (core, percent) = part.split_once(':').unwrap_or(("npu", part));
                    if let Some(percent) = percent_of(percent) {
                        take(&core.replacen("Core", "core ", 1), load(percent));
                    }
                }
            }
            Form::PercentAtClock => {
                if let Some(percent) =
                    text.split_once('@').and_then(|(percent, _)| percent.trim().parse().ok())
                {
                    take("all", load(percent));
                }
            }
            Form::Thousandths => {
                if let Ok(thousandths) = text.trim().parse() {
                    take("all", Total::Load(thousandths));
                }
            }
        }
    }
}

fn percent_of(text: &str) -> Option<u64> {
    text.trim().strip_suffix('%')?.trim().parse().ok()
}

/// Whether a devfreq device is a GPU or an accelerator, by its name: others are buses and memory.
fn is_accelerator(device: &Path) -> bool {
    let name = device.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    ["gpu", "npu", "mali", "vpu", "nna"].iter().any(|kind| name.contains(kind))
}

/// Returns the name of the folder that a link leads to.
fn real_name(path: &Path) -> Option<String> {
    Some(fs::canonicalize(path).ok()?.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn figures_of_whole_devices_are_read() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("devices/0000:00:0b.0/npu_busy_time_us", "1234\n");
        fs::create_dir_all(root.path().join("class/accel/accel0")).unwrap();
        symlink("../../../devices/0000:00:0b.0", root.path().join("class/accel/accel0/device")).unwrap();
        write("kernel/debug/rknpu/load", "NPU load:  Core0: 50%, Core1:  0%, Core2: 100%,\n");
        write("class/devfreq/fb000000.gpu/load", "12@300000000Hz\n");
        write("class/devfreq/17000000.gpu/device/load", "345\n");
        write("class/devfreq/dmc/load", "50@2112000000Hz\n");
        let read = || {
            let mut all = Vec::new();
            for source in find(root.path()) {
                let text = fs::read_to_string(&source.path).unwrap();
                source.figures(&text, |engine, total| {
                    all.push((source.device.clone(), engine.to_owned(), total));
                });
            }
            all
        };
        let row = |device: &str, engine: &str, total| (device.to_owned(), engine.to_owned(), total);
        assert_eq!(
            read(),
            [
                row("0000:00:0b.0", "npu", Total::Busy(1_234_000)),
                row("npu", "core 0", Total::Load(500)),
                row("npu", "core 1", Total::Load(0)),
                row("npu", "core 2", Total::Load(1_000)),
                row("17000000.gpu", "all", Total::Load(345)),
                row("fb000000.gpu", "all", Total::Load(120)),
            ]
        );
        // A single core; and garbage.
        write("kernel/debug/rknpu/load", "NPU load:  7%\n");
        write("devices/0000:00:0b.0/npu_busy_time_us", "-5\n");
        write("class/devfreq/fb000000.gpu/load", "much@0Hz");
        write("class/devfreq/17000000.gpu/device/load", "99999999999999999999999");
        assert_eq!(read(), [row("npu", "npu", Total::Load(70))]);
    }
}
