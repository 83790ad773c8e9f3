//! The programs on events that any kernel can be made to have, with fields of the same types: the kernel cannot run programs on
//! events on its own, and few machines have limits to change.

use std::{
    fs::{self, File},
    io::Write as _,
    path::PathBuf,
    process,
};

use nntrace_common::record::Record;

use super::*;
use crate::live::{
    decode,
    kernel::{
        other_power_events::EvidencePrograms,
        rings::{RingBuffers, RingSize},
    },
};

/// Number of CPUs in the tables, and of rings.
const CPUS: u32 = 256;

/// Programs that are attached, and their rings.
struct Bench {
    _object: Object,
    rings: RingBuffers,
}

impl Bench {
    /// Attaches these programs; `None` where this kernel lacks one of their events.
    fn new(programs: &LimitPrograms) -> Option<Self> {
        let ring_size = RingSize::rounded(4096);
        let mut loader = EbpfLoader::new();
        loader.btf(None);
        ring_size.configure(&mut loader, CPUS);
        EvidencePrograms::configure(&mut loader, CPUS);
        programs.configure(&mut loader);
        let mut object = Object::load(&mut loader).expect("the object loads");
        let rings = RingBuffers::make(&mut object, CPUS, &ring_size).expect("rings");
        let attached = programs.attach(&mut object).count();
        (attached == 1 + usize::from(programs.cooling.is_some())).then_some(Self { _object: object, rings })
    }

    fn records(&mut self) -> Vec<Record> {
        let mut records = Vec::new();
        self.rings.take(|bytes| records.extend(decode::record(bytes)));
        records.sort_by_key(Record::time);
        records
    }
}

/// Event of three integers: a number 0 to 2, 1 for a change, and the values before and after.
fn on_latency() -> EventProgram<3> {
    EventProgram::on_policies("power", "pm_qos_update_target", ["prev_value", "curr_value", "action"])
}

/// Asks for a latency of zero, for an instant.
fn ask_for_latency() -> Option<()> {
    let mut file = File::options().write(true).open("/dev/cpu_dma_latency").ok()?;
    file.write_all(&0_u32.to_ne_bytes()).ok()
}

/// Group of processes without any, removed in the end.
struct Group(PathBuf);

impl Group {
    /// Creates a group in the hierarchy that can be frozen, if there is one.
    fn new(name: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/mounts").ok()?;
        let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"))?;
        let path = PathBuf::from(mount.split(' ').nth(1)?).join(name);
        fs::create_dir(&path).ok()?;
        Some(Self(path))
    }

    /// Freezes it, and lets it go again.
    fn freeze(&self) -> Option<()> {
        ["1", "0"].iter().try_for_each(|value| fs::write(self.0.join("cgroup.freeze"), value)).ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn limits_are_reported_when_they_change() {
    for reports in [false, true] {
        let programs =
            LimitPrograms { policies: on_latency(), cooling: None, is_recorded: u32::from(reports) };
        let Some(mut bench) = Bench::new(&programs) else { return println!("no such event here") };
        // The second time nothing has changed.
        for _ in 0..2 {
            if ask_for_latency().is_none() {
                return println!("no latency to ask for here");
            }
        }
        let records = bench.records();
        let changes = records.iter().filter_map(|record| match record {
            Record::FrequencyLimit(limit) if limit.cpu == 1 => Some((limit.max_khz, limit.min_khz > 0)),
            _ => None,
        });
        let expected: &[_] = if reports { &[(0, true)] } else { &[] };
        assert_eq!(changes.collect::<Vec<_>>(), expected, "{records:?}");
    }
}

#[test]
fn states_of_devices_are_reported_when_they_change() {
    let programs = LimitPrograms {
        policies: on_latency(),
        cooling: Some(EventProgram::on_cooling("cgroup", "cgroup_freeze", ["path", "id"])),
        is_recorded: 1,
    };
    let Some(mut bench) = Bench::new(&programs) else { return println!("no such event here") };
    let names = [format!("nntrace{}", process::id()), format!("nntrace-with-long-name{}", process::id())];
    let groups: Option<Vec<Group>> = names.iter().map(|name| Group::new(name)).collect();
    let Some(groups) = groups else { return println!("no group to freeze here") };
    // The second time nothing has changed.
    for group in groups.iter().chain(&groups[..1]) {
        group.freeze().expect("it is frozen");
    }
    let records = bench.records();
    let seen = records.iter().filter_map(|record| match record {
        Record::Cooling(cooling) => Some((cooling.device().to_vec(), cooling.state)),
        _ => None,
    });
    let seen: Vec<(Vec<u8>, u64)> = seen.filter(|(device, _)| device.starts_with(b"/nntrace")).collect();
    let devices: Vec<&[u8]> = seen.iter().map(|(device, _)| device.as_slice()).collect();
    assert_eq!(devices, [format!("/{}", names[0]).as_bytes(), &b"/nntrace-with-long-"[..]], "{records:?}");
    assert!(seen[0].1 > 0 && seen[1].1 > seen[0].1, "the numbers of groups count up: {seen:?}");
}
