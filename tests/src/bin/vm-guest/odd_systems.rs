//! Systems without something that is usually there.

use std::{fs, path::Path, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nntrace_tests::{cpus, profiler::Profiler};
use nntrace_user::{
    live::sysfs,
    report::snapshot::{IdleSource, Snapshot},
};

use crate::{Outcome, machine, marks};

const BTF: &str = "/sys/kernel/btf";
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

const NAP: [Duration; 1] = [Duration::from_millis(3)];

/// Checks that without BTF, a CPU's first event shows its previous state.
pub fn without_btf() -> Result<Outcome> {
    if !Path::new(BTF).exists() {
        return Ok(Outcome::Skipped("this kernel has none anyway".into()));
    }
    mount(Some("tmpfs"), BTF, Some("tmpfs"), MsFlags::empty(), None::<&str>).context(BTF)?;
    let outcome = (|| {
        let snapshot = power()?;
        for row in &snapshot.cpus {
            ensure!(
                row.initial.idle != IdleSource::Kernel,
                "CPU {}: {:?}, of which nobody told",
                row.cpu,
                row.initial
            );
        }
        one_program().map(|_| Outcome::Passed)
    })();
    umount2(BTF, MntFlags::empty()).context(BTF)?;
    outcome
}

/// Checks that raw tracepoints and functions work without tracefs.
pub fn without_tracefs() -> Result<Outcome> {
    for at in TRACEFS {
        // Where debugfs mounts it automatically, that is a second mount; otherwise there is nothing.
        let _ = umount2(at, MntFlags::MNT_DETACH);
    }
    // Otherwise the kernel mounts it again on access.
    umount2("/sys/kernel/debug", MntFlags::MNT_DETACH).context("debugfs")?;
    let outcome = (|| {
        let snapshot = power()?;
        ensure!(!snapshot.cpus.is_empty(), "no CPU");
        let snapshot = one_program()?;
        let told = snapshot.notes.iter().any(|note| note.contains("tracefs is not mounted; `sudo mount"));
        ensure!(told, "nothing says that children are not followed: {:?}", snapshot.notes);
        Ok(Outcome::Passed)
    })();
    machine::mount_debugging()?;
    outcome
}

/// Checks the strictest settings, which do not affect root.
pub fn paranoid() -> Result<Outcome> {
    for (file, value) in [("perf_event_paranoid", "3"), ("kptr_restrict", "2")] {
        let path = Path::new("/proc/sys/kernel").join(file);
        fs::write(&path, value).with_context(|| format!("{} does not take {value}", path.display()))?;
    }
    power()?;
    one_program().map(|_| Outcome::Passed)
}

/// Checks that a CPU in the middle may be offline from before the begin, with a gap in the numbers.
pub fn a_hole_in_the_numbers() -> Result<Outcome> {
    let online = cpus::online();
    let cpu = online[online.len() / 2];
    let file = Path::new(sysfs::CPUS).join(format!("cpu{cpu}/online"));
    if cpu == 0 || !file.exists() {
        return Ok(Outcome::Skipped(format!("CPU {cpu} cannot go offline here")));
    }
    fs::write(&file, "0").with_context(|| file.display().to_string())?;
    let outcome = power().and_then(|snapshot| {
        let length = snapshot.window.length_ns();
        for row in &snapshot.cpus {
            let expected = if row.cpu == cpu { length } else { 0 };
            ensure!(row.offline_ns == expected, "CPU {} of {length} ns: {row:?}", row.cpu);
        }
        ensure!(snapshot.cpus.len() == online.len(), "rows of CPUs: {}", snapshot.cpus.len());
        for row in snapshot.clusters.iter().filter(|row| row.cpus != [cpu]) {
            ensure!(
                (row.offline_ns, row.unknown_ns) == (0, 0),
                "the others of {} are there: {row:?}",
                row.cluster
            );
        }
        one_program().map(|_| Outcome::Passed)
    });
    fs::write(&file, "1").with_context(|| file.display().to_string())?;
    outcome
}

/// Profiles the marks of one of the programs.
fn one_program() -> Result<Snapshot> {
    marks::profile(&marks::programs(|name| name == "c-pie")?[0])
}

/// Profiles all CPUs for a while, and checks that each has events.
fn power() -> Result<Snapshot> {
    let naps = cpus::online().into_iter().map(|cpu| machine::Load::naps(cpu, &NAP));
    let naps = naps.collect::<Result<Vec<_>>>()?;
    thread::sleep(Duration::from_millis(50));
    let snapshot = Profiler::new()?.args(["--marks", "none", "--duration", "200ms"]).run()?.snapshot;
    drop(naps);
    for row in snapshot.cpus.iter().filter(|row| row.offline_ns == 0) {
        ensure!(row.idle.iter().any(|row| row.ns > 0), "CPU {} never slept: {row:?}", row.cpu);
        ensure!(row.unknown_ns == 0, "CPU {}: {row:?}", row.cpu);
    }
    Ok(snapshot)
}
