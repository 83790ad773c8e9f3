use std::os::unix::fs::symlink;

use super::*;
use crate::model::device_usage::UsageSource;

/// Roots of a proc and a sysfs.
struct Host(tempfile::TempDir);

impl Host {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn root(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.root(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A process has a device open, by descriptor 5.
    fn open(&self, pid: u32, node: &str, client: u64, ns: u64) {
        self.write(&format!("proc/{pid}/comm"), "camera\n");
        self.write(
            &format!("proc/{pid}/fdinfo/5"),
            &format!("drm-driver:\trocket\ndrm-client-id:\t{client}\ndrm-engine-npu:\t{ns} ns\n"),
        );
        let descriptor = self.root(&format!("proc/{pid}/fd/5"));
        fs::create_dir_all(descriptor.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&descriptor);
        symlink(node, descriptor).unwrap();
    }

    fn find(&self) -> Option<UsageReader> {
        UsageReader::find(&self.root("proc"), &self.root("sys"))
    }
}

#[test]
fn a_host_without_devices_is_not_read() {
    let host = Host::new();
    host.open(70, "/dev/accel/accel0", 1, 0);
    assert!(host.find().is_none());
    fs::create_dir_all(host.root("sys/class/drm")).unwrap();
    assert!(host.find().is_none());
}

#[test]
fn descriptors_of_all_processes_are_read() {
    let host = Host::new();
    host.write("sys/class/accel/accel0/dev", "261:0\n");
    host.write("sys/kernel/debug/rknpu/load", "NPU load:  Core0: 50%,\n");
    host.open(70, "/dev/accel/accel0", 1, 500);
    host.open(80, "/home/camera/accel0", 2, 500);
    let mut reader = host.find().unwrap();
    reader.begin();
    host.open(70, "/dev/accel/accel0", 1, 800);
    host.open(90, "/dev/dri/renderD128", 3, 40);
    let usage = reader.end();
    let [rknpu, rocket] = &usage.devices[..] else { panic!("{usage:?}") };
    let engine = &rknpu.engines[0];
    assert_eq!((&*engine.engine, engine.source), ("core 0", UsageSource::Sampled));
    assert!(engine.busy_ns.is_some_and(|ns| ns <= usage.known_ns / 2));
    let users: Vec<_> = rocket.engines[0].processes.iter().map(|row| (row.pid, row.busy_ns)).collect();
    assert_eq!(users, [(70, 300), (90, 40)]);
    assert_eq!((&*rocket.device, &*rocket.processes[0].comm), ("rocket", "camera"));
}

#[test]
fn readings_go_on_by_themselves() {
    let host = Host::new();
    host.write("sys/class/accel/accel0/dev", "261:0\n");
    host.open(70, "/dev/accel/accel0", 1, 0);
    let mut reader = host.find().unwrap();
    reader.begin();
    host.open(70, "/dev/accel/accel0", 1, 700);
    while reader.read().devices[0].engines[0].busy_ns != Some(700) {
        thread::sleep(Duration::from_millis(5));
    }
    // Closed after a reading: what it had until then counts.
    fs::remove_dir_all(host.root("proc/70")).unwrap();
    let usage = reader.end();
    assert_eq!(usage.devices[0].engines[0].busy_ns, Some(700));
    assert!(usage.devices[0].processes[0].is_lower_bound);
}

#[test]
fn suspended_devices_are_read_at_the_ends_only() {
    let host = Host::new();
    host.write("sys/class/drm/renderD128/device/power/runtime_status", "suspended\n");
    host.open(70, "/dev/dri/renderD128", 1, 500);
    let mut reader = host.find().unwrap();
    reader.begin();
    host.open(70, "/dev/dri/renderD128", 1, 800);
    let first = reader.read().reading_ns;
    while reader.read().reading_ns == first {
        thread::sleep(Duration::from_millis(5));
    }
    let meanwhile = reader.read();
    assert_eq!(meanwhile.devices[0].engines[0].busy_ns, None);
    assert!(meanwhile.devices[0].processes[0].is_lower_bound);
    // Opened after a reading that was not complete: since when it counts is not known.
    host.open(80, "/dev/dri/renderD128", 2, 7_000);
    let usage = reader.end();
    let device = &usage.devices[0];
    let users: Vec<_> =
        device.processes.iter().map(|row| (row.pid, row.busy_ns, row.is_lower_bound)).collect();
    assert_eq!(users, [(70, 300, false), (80, 0, true)]);
}
