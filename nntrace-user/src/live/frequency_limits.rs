//! Limits of frequencies at the begin of the window, as sysfs shows them: events come with changes only.

use std::path::Path;

use nntrace_common::{
    frequency_limits::{CoolingRecord, LimitRecord, cools_cpus, device},
    record::{Record, RecordKind},
};

use super::{clock, sysfs};

/// Folder of the cooling devices in sysfs.
pub(crate) const THERMAL: &str = "/sys/class/thermal";

/// Reads the limits of the policies under `cpus` and the states of the cooling devices of CPUs under `thermal`, each as the event
/// of a change to it, of the time of reading. Other cooling devices are not asked: that may take long, or wake a device.
pub(crate) fn read(cpus: &Path, thermal: &Path) -> Vec<Record> {
    let policies = sysfs::numbered(&cpus.join("cpufreq"), "policy");
    let devices = sysfs::numbered(thermal, "cooling_device");
    let policies =
        policies.iter().filter_map(|(cpu, folder)| policy(*cpu, folder).map(Record::FrequencyLimit));
    policies.chain(devices.values().filter_map(|folder| cooling(folder).map(Record::Cooling))).collect()
}

fn policy(cpu: u32, folder: &Path) -> Option<LimitRecord> {
    // Ahead of the reading: a change in the meantime comes after it.
    let time = clock::now();
    let khz = |name| sysfs::number(&folder.join(name)).and_then(|khz| u32::try_from(khz).ok());
    let max_khz = khz("scaling_max_freq")?;
    let min_khz = khz("scaling_min_freq").unwrap_or(0);
    Some(LimitRecord { kind: RecordKind::FrequencyLimit as u32, cpu, time, min_khz, max_khz })
}

fn cooling(folder: &Path) -> Option<CoolingRecord> {
    let name = sysfs::read(&folder.join("type"))?;
    let name = name.trim().as_bytes();
    if !cools_cpus(name) {
        return None;
    }
    let time = clock::now();
    let state = sysfs::number(&folder.join("cur_state"))?;
    Some(CoolingRecord { kind: RecordKind::Cooling as u32, device: device(name), time, state })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn policies_and_cooling_devices_of_cpus_are_read() {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("cpufreq/policy0/scaling_max_freq", "1200000\n"),
            ("cpufreq/policy0/scaling_min_freq", "300000\n"),
            ("cpufreq/policy4/scaling_max_freq", "2000000\n"),
            ("cpufreq/policy6/scaling_max_freq", "<unsupported>\n"),
            ("thermal/cooling_device0/type", "thermal-cpufreq-0\n"),
            ("thermal/cooling_device0/cur_state", "3\n"),
            ("thermal/cooling_device1/type", "Fan\n"),
            ("thermal/cooling_device1/cur_state", "1\n"),
            ("thermal/cooling_device2/type", "cpufreq-cpu4\n"),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let before = clock::now();
        let records = read(root.path(), &root.path().join("thermal"));
        assert!(records.iter().all(|record| (before..=clock::now()).contains(&record.time())));
        let shown = records.iter().map(|record| match record {
            Record::FrequencyLimit(limit) => (u64::from(limit.cpu), limit.min_khz, u64::from(limit.max_khz)),
            Record::Cooling(cooling) if cooling.device() == b"thermal-cpufreq-0" => (0, 0, cooling.state),
            other => panic!("{other:?}"),
        });
        assert_eq!(shown.collect::<Vec<_>>(), [(0, 300_000, 1_200_000), (4, 0, 2_000_000), (0, 0, 3)]);
        assert_eq!(read(&root.path().join("none"), &root.path().join("none")), []);
    }
}
