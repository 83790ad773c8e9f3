//! Checks that any file gives a snapshot that is the same each time and whose times add up.

use std::{fs::File, io::Write as _, os::fd::AsRawFd as _, path::PathBuf};

use anyhow::Result;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nntrace_user::{
    replay::{self, Options, TimeRange},
    report::{
        snapshot::{ClusterRow, CpuRow, Snapshot},
        tables,
    },
};

/// Checks one input.
///
/// # Panics
/// When the snapshots differ, or when their times do not add up. Also when the file cannot be created.
pub fn check(data: &[u8]) {
    let (_file, path) = file(data).expect("files can be made in memory");
    let options = Options { files: vec![path.clone()], with_details: true, ..Options::default() };
    let Some(snapshot) = run(&options) else { return };
    adds_up(&snapshot);
    let json = json(&snapshot);
    assert_eq!(run(&options).as_ref().map(self::json).as_ref(), Some(&json), "twice is not the same");
    assert_eq!(
        serde_json::from_str::<Snapshot>(&json).as_ref().ok(),
        Some(&snapshot),
        "JSON loses something"
    );
    let _ = (tables::render(&snapshot), tables::details(&snapshot));

    // The middle of it, and with another file: for sections open at the edges, and the merging of files.
    let (begin, length) = (snapshot.window.begin_ns, snapshot.window.length_ns());
    let range = TimeRange { begin: begin + length / 4, end: begin + length / 2 };
    for options in
        [Options { range: Some(range), ..options.clone() }, Options { files: vec![path; 2], ..options }]
    {
        if let Some(snapshot) = run(&options) {
            adds_up(&snapshot);
        }
    }
}

/// Creates a file with these bytes that exists as long as it is open, and returns its path.
pub(crate) fn file(bytes: &[u8]) -> Result<(File, PathBuf)> {
    let mut file = File::from(memfd_create("trace", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(bytes)?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
    Ok((file, path))
}

/// Runs a replay; `None` when there is no result, which is no failure.
fn run(options: &Options) -> Option<Snapshot> {
    match replay::replay(options) {
        Ok(replayed) => Some(Snapshot::of(&replayed.findings())),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

fn json(snapshot: &Snapshot) -> String {
    serde_json::to_string(snapshot).expect("every snapshot can be written")
}

/// Checks that the times of CPUs and clusters add up to the window.
pub(crate) fn adds_up(snapshot: &Snapshot) {
    let window = snapshot.window.length_ns();
    for cpu in &snapshot.cpus {
        assert_eq!(cpu_ns(cpu), window, "{cpu:?} in {:?}", snapshot.window);
    }
    for cluster in &snapshot.clusters {
        assert_eq!(cluster_ns(cluster), window, "{cluster:?} in {:?}", snapshot.window);
        let concurrency: u64 = cluster.concurrency.iter().map(|row| row.ns).sum();
        assert_eq!(concurrency, window, "{cluster:?}");
    }
    for phase in &snapshot.phases {
        assert!(phase.min_ns <= phase.p50_ns && phase.p50_ns <= phase.p99_ns, "{phase:?}");
    }
}

/// Returns the sum of a CPU's times, ns.
fn cpu_ns(cpu: &CpuRow) -> u64 {
    let running: u64 = cpu.running.iter().map(|row| row.ns).sum();
    let effective: u64 = cpu.effective.iter().map(|row| row.ns).sum();
    assert!(cpu.effective.is_empty() || effective == running, "{cpu:?}");
    let idle: u64 = cpu.idle.iter().map(|row| row.ns).sum();
    running + idle + cpu.idle_unknown_ns + cpu.offline_ns + cpu.unknown_ns
}

/// Returns the sum of a cluster's times, ns.
fn cluster_ns(cluster: &ClusterRow) -> u64 {
    let active: u64 = cluster.active.iter().map(|row| row.ns).sum();
    let idle: u64 = cluster.idle.iter().map(|row| row.ns).sum();
    active + idle + cluster.idle_unknown_ns + cluster.offline_ns + cluster.unknown_ns
}
