//! Trees of sysfs as boards have them.

use std::{fs, os::unix::fs::symlink, thread};

use super::*;
use crate::model::rails::{RailRow, RailSource};

/// Tree of sysfs, with files that can be changed.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        tree.write(files);
        tree
    }

    fn write(&self, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = self.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.0.path().join(name)).unwrap();
    }

    /// Begins to measure, and samples no more often than it is read.
    fn begin(&self) -> RailReader {
        let mut reader = RailReader::find(self.0.path(), Some(Duration::from_hours(1)));
        reader.begin();
        reader
    }
}

fn paths(rails: &Rails) -> Vec<String> {
    rails.rails.iter().map(RailRow::path).collect()
}

fn reasons(rails: &Rails) -> Vec<(&str, &str)> {
    let reason = |rail: &UnreadableRail| rail.reason.rfind('/').map_or(0, |at| at + 1);
    rails.unreadable.iter().map(|rail| (rail.rail.as_str(), &rail.reason[reason(rail)..])).collect()
}

/// Energy that samples of constant power (nW) make in the time that they cover, nJ.
fn steady(row: &RailRow, nanowatts: i128) -> i64 {
    let doubled = nanowatts * 2 * i128::from(row.end_ns - row.begin_ns);
    i64::try_from((doubled + 1_000_000_000) / 2_000_000_000).unwrap()
}

#[test]
fn a_host_without_sensors_has_no_rails() {
    let tree = Tree::new(&[
        ("class/hwmon/hwmon0/name", "cpu_thermal\n"),
        ("class/hwmon/hwmon0/temp1_input", "40000\n"),
        ("class/powercap/intel-rapl/enabled", "1\n"),
        ("bus/iio/devices/iio:device0/name", "sensor-hub\n"),
        ("bus/iio/devices/iio:device0/in_energy_input", "12\n"),
    ]);
    let reader = tree.begin();
    assert_eq!((reader.count(), reader.read()), (0, Rails::default()));
    assert_eq!(RailReader::find(Path::new("/nonexistent"), None).count(), 0);
}

#[test]
fn zones_of_power_caps_are_named_by_path_and_wrap() {
    let tree = Tree::new(&[
        ("class/powercap/intel-rapl/enabled", "1\n"),
        ("class/powercap/intel-rapl:0/name", "package-0\n"),
        ("class/powercap/intel-rapl:0/energy_uj", "262143328000\n"),
        ("class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n"),
        ("class/powercap/intel-rapl:0:1/name", "dram\n"),
        ("class/powercap/intel-rapl:0:1/energy_uj", "500\n"),
        ("class/powercap/intel-rapl:0:1/max_energy_range_uj", "65712999613\n"),
        ("class/powercap/intel-rapl:1/name", "psys\n"),
        ("class/powercap/intel-rapl:1/energy_uj", "\n"),
        ("class/powercap/intel-rapl-mmio:0/name", "package-0\n"),
        ("class/powercap/intel-rapl-mmio:0/energy_uj", "7\n"),
        ("class/powercap/dtpm:0/name", "soc\n"),
        ("class/powercap/dtpm:0/power_uw", "1000000\n"),
    ]);
    let reader = tree.begin();
    tree.write(&[
        ("class/powercap/intel-rapl:0/energy_uj", "150\n"),
        ("class/powercap/intel-rapl:0:1/energy_uj", "1500\n"),
        ("class/powercap/intel-rapl-mmio:0/energy_uj", "6\n"),
    ]);
    let rails = reader.end();
    assert_eq!(
        paths(&rails),
        [
            "powercap/dtpm/soc",
            "powercap/intel-rapl/package-0",
            "powercap/intel-rapl/package-0/dram",
            "powercap/intel-rapl-mmio/package-0",
        ]
    );
    let [soc, package, dram, mmio] = &rails.rails[..] else { panic!("{rails:?}") };
    assert_eq!((soc.kind, soc.energy_nj), (RailKind::Sampled, steady(soc, 1_000_000_000)));
    assert_eq!((package.kind, package.energy_nj, package.wraps), (RailKind::Counter, 1_000_000, 1));
    assert_eq!((dram.energy_nj, dram.wraps, dram.readings, dram.gaps), (1_000_000, 0, 2, 0));
    // It went back, and has no range.
    assert_eq!((mmio.energy_nj, mmio.gaps, mmio.gap_ns), (0, 1, mmio.end_ns - mmio.begin_ns));
    assert_eq!(reasons(&rails), [("powercap/intel-rapl/psys", "energy_uj: expected a number, found \"\"")]);
    assert_eq!(rails.find("dtpm/soc").unwrap(), soc);
    let several = rails.find("package-0").unwrap_err();
    assert!(several.ends_with("name it powercap/intel-rapl/package-0 or powercap/intel-rapl-mmio/package-0"));
    assert!(rails.find("gpu").unwrap_err().contains("powercap/dtpm/soc, powercap/intel-rapl/package-0,"));
}

#[test]
fn monitors_have_energies_powers_or_volts_and_amps() {
    let tree = Tree::new(&[
        ("class/hwmon/hwmon0/name", "scmi_sensors\n"),
        ("class/hwmon/hwmon0/energy1_input", "1000000\n"),
        ("class/hwmon/hwmon0/energy1_label", "big\n"),
        ("class/hwmon/hwmon0/energy2_input", "5\n"),
        ("class/hwmon/hwmon1/name", "ina226\n"),
        ("class/hwmon/hwmon1/label", "VDD_CPU\n"),
        ("class/hwmon/hwmon1/in1_input", "5000\n"),
        ("class/hwmon/hwmon1/curr1_input", "200\n"),
        ("class/hwmon/hwmon1/power1_input", "1250000\n"),
        ("class/hwmon/hwmon2/name", "ina3221\n"),
        ("class/hwmon/hwmon2/in1_input", "5000\n"),
        ("class/hwmon/hwmon2/in1_label", "VDD_IN\n"),
        ("class/hwmon/hwmon2/curr1_input", "-300\n"),
        ("class/hwmon/hwmon2/in2_input", "1000\n"),
        ("class/hwmon/hwmon2/curr2_input", "12\n"),
        ("class/hwmon/hwmon3/name", "power_meter\n"),
        ("class/hwmon/hwmon3/power1_average", "86000000\n"),
        ("class/hwmon/hwmon3/power1_average_interval", "1000\n"),
        ("class/hwmon/hwmon4/name", "other\n"),
        ("class/hwmon/hwmon4/in1_input", "1\n"),
        ("class/hwmon/hwmon4/curr1_input", "1\n"),
    ]);
    let reader = tree.begin();
    tree.write(&[("class/hwmon/hwmon0/energy1_input", "1234567\n")]);
    let rails = reader.read();
    let found: Vec<_> = rails.rails.iter().map(|row| (row.path(), row.kind)).collect();
    let expected = [
        ("hwmon/ina226/VDD_CPU", RailKind::Sampled),
        ("hwmon/ina3221/VDD_IN", RailKind::Sampled),
        ("hwmon/ina3221/in2", RailKind::Sampled),
        ("hwmon/power_meter/power1", RailKind::Sampled),
        ("hwmon/scmi_sensors/big", RailKind::Counter),
        ("hwmon/scmi_sensors/energy2", RailKind::Counter),
    ];
    assert_eq!(found, expected.map(|(path, kind)| (path.to_owned(), kind)));
    for (row, milliwatts) in rails.rails.iter().zip([1_250, -1_500, 12, 86_000]) {
        let doubled = i128::from(milliwatts) * 1_000_000 * 2 * i128::from(row.end_ns - row.begin_ns);
        let error = i128::from(row.energy_nj) * 2_000_000_000 - doubled;
        assert!(error.abs() <= 1_000_000_000, "{row:?}");
        assert_eq!((row.readings, row.failed), (2, 0));
    }
    assert_eq!((rails.rails[4].energy_nj, rails.rails[5].energy_nj), (234_567_000, 0));
    assert_eq!(rails.period_ns, Some(3_600_000_000_000));
}

#[test]
fn chips_of_one_kind_are_told_apart_by_their_addresses() {
    let tree = Tree::new(&[
        ("devices/i2c-1/1-0040/hwmon/hwmon0/name", "ina226\n"),
        ("devices/i2c-1/1-0040/hwmon/hwmon0/power1_input", "1\n"),
        ("devices/i2c-1/1-0041/hwmon/hwmon1/name", "ina226\n"),
        ("devices/i2c-1/1-0041/hwmon/hwmon1/power1_input", "1\n"),
        ("devices/i2c-1/1-0042/iio:device0/name", "pac1934\n"),
        ("devices/i2c-1/1-0042/iio:device0/label", "both\n"),
        ("devices/i2c-1/1-0042/iio:device0/in_power1_raw", "1\n"),
        ("devices/i2c-1/1-0042/iio:device0/in_power2_raw", "1\n"),
        ("class/hwmon/none", ""),
        ("bus/iio/devices/none", ""),
    ]);
    let root = tree.0.path();
    for (device, monitor) in [("1-0040", "hwmon0"), ("1-0041", "hwmon1")] {
        let real = root.join("devices/i2c-1").join(device);
        symlink(&real, real.join("hwmon").join(monitor).join("device")).unwrap();
        symlink(real.join("hwmon").join(monitor), root.join("class/hwmon").join(monitor)).unwrap();
    }
    let real = root.join("devices/i2c-1/1-0042/iio:device0");
    symlink(real, root.join("bus/iio/devices/iio:device0")).unwrap();
    assert_eq!(
        paths(&tree.begin().read()),
        [
            "hwmon/ina226/power1 (1-0040 power1)",
            "hwmon/ina226/power1 (1-0041 power1)",
            "iio/pac1934/both (1-0042 power1)",
            "iio/pac1934/both (1-0042 power2)",
        ]
    );
}

#[test]
fn converters_and_meters_of_power_management_chips() {
    let meter =
        |tpu: &str, ms: u64| format!("t={ms}\nCH0(T=10)[S10M_VDD_TPU], {tpu}\nCH1(T=10)[VSYS_PWR], 7\n");
    let tree = Tree::new(&[
        ("bus/iio/devices/iio:device0/name", "s2mpg10-odpm\n"),
        ("bus/iio/devices/iio:device0/energy_value", &meter("1000", 10)),
        ("bus/iio/devices/iio:device1/name", "pac1934\n"),
        ("bus/iio/devices/iio:device1/in_power1_raw", "400\n"),
        ("bus/iio/devices/iio:device1/in_power1_label", "VDD_GPU\n"),
        ("bus/iio/devices/iio:device1/in_power_scale", "2.5\n"),
        ("bus/iio/devices/iio:device1/in_power1_offset", "-200\n"),
        ("bus/iio/devices/iio:device1/in_energy2_raw", "1000\n"),
        ("bus/iio/devices/iio:device1/in_energy2_scale", "0.000005\n"),
        ("bus/iio/devices/iio:device2/name", "ina\n"),
        ("bus/iio/devices/iio:device2/in_power3_input", "12.5\n"),
        ("bus/iio/devices/iio:device3/name", "asleep\n"),
        ("bus/iio/devices/iio:device3/energy_value", ""),
    ]);
    let reader = tree.begin();
    let boot = clock::since_boot();
    tree.write(&[
        ("bus/iio/devices/iio:device0/energy_value", &meter("5000", boot / 1_000_000 - 64)),
        ("bus/iio/devices/iio:device1/in_energy2_raw", "3000\n"),
    ]);
    let rails = reader.read();
    assert_eq!(
        paths(&rails),
        [
            "iio/ina/power3",
            "iio/pac1934/VDD_GPU",
            "iio/pac1934/energy2",
            "iio/s2mpg10-odpm/S10M_VDD_TPU",
            "iio/s2mpg10-odpm/VSYS_PWR"
        ]
    );
    let [ina, gpu, energy, tpu, system] = &rails.rails[..] else { panic!("{rails:?}") };
    assert_eq!(ina.energy_nj, steady(ina, 12_500_000));
    assert_eq!(gpu.energy_nj, steady(gpu, 500_000_000));
    assert_eq!(energy.energy_nj, 10_000_000);
    assert_eq!(reasons(&rails), [("iio/asleep/CH0", "energy_value: its line 0 is missing")]);
    // The chip's own clock shows that its values are 64 ms old, which is before the first reading.
    assert_eq!((tpu.readings, tpu.energy_nj, system.readings), (1, 0, 1));

    tree.write(&[("bus/iio/devices/iio:device0/energy_value", &meter("9000", 10))]);
    let rails = reader.read();
    let tpu = rails.find("S10M_VDD_TPU").unwrap();
    assert_eq!((tpu.readings, tpu.energy_nj, tpu.source), (2, 8_000_000, RailSource::Iio));
}

#[test]
fn failures_are_counted_and_named() {
    let file = "class/hwmon/hwmon0/power1_input";
    let tree = Tree::new(&[("class/hwmon/hwmon0/name", "ina219\n"), (file, "1000\n")]);
    let reader = tree.begin();
    tree.remove(file);
    let _ = reader.read();
    tree.write(&[(file, "no power\n")]);
    let _ = reader.read();
    tree.write(&[(file, "1000\n")]);
    let rails = reader.read();
    let row = &rails.rails[0];
    assert_eq!((row.readings, row.failed, row.gaps, row.energy_nj), (2, 2, 1, 0));
    assert_eq!((row.gap_ns, row.known_ns(), row.mean_watts()), (row.end_ns - row.begin_ns, 0, None));
    let failure = row.failure.as_deref().unwrap();
    assert!(failure.ends_with("power1_input: expected a number, found \"no power\""), "{failure}");
}

#[test]
fn power_is_sampled_in_between() {
    let tree = Tree::new(&[
        ("class/hwmon/hwmon0/name", "ina219\n"),
        ("class/hwmon/hwmon0/power1_input", "1000\n"),
        ("class/hwmon/hwmon0/energy1_input", "1000\n"),
    ]);
    let mut reader = RailReader::find(tree.0.path(), Some(Duration::from_millis(5)));
    reader.begin();
    thread::sleep(Duration::from_millis(200));
    let rails = reader.end();
    let (counter, sampled) = (&rails.rails[0], &rails.rails[1]);
    assert_eq!((counter.readings, counter.kind), (2, RailKind::Counter));
    // Even where other work takes most of the CPUs.
    assert!((4..=42).contains(&sampled.readings), "{sampled:?}");
    assert_eq!(rails.period_ns, Some(5_000_000));
    assert!(rails.reading_ns > 0);
}
