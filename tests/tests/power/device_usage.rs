//! Device usage on the command line: a tree of sysfs whose counter goes on while the program runs, and a process
//! whose descriptors are those of a device.

use std::{
    fs,
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{binaries, live, surroundings};
use nntrace_user::report::snapshot::{Snapshot, UsageSource};
use tempfile::TempDir;

fn write(root: &Path, name: &str, text: &str) -> Result<()> {
    let path = root.join(name);
    fs::create_dir_all(path.parent().context("no folder")?)?;
    // In one move, as the kernel's files are never half written.
    let next = root.join("next");
    fs::write(&next, text)?;
    Ok(fs::rename(next, path)?)
}

/// Runs `work` while `step` is called each 2 ms, with its number; returns the result and the number of steps.
fn while_it_counts<T>(
    step: impl Fn(u64) -> Result<()> + Sync,
    work: impl FnOnce() -> Result<T>,
) -> Result<(T, u64)> {
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        let counter = scope.spawn(|| -> Result<u64> {
            let mut steps = 0;
            while !ends.load(Ordering::Relaxed) {
                steps += 1;
                step(steps)?;
                thread::sleep(Duration::from_millis(2));
            }
            Ok(steps)
        });
        let result = work();
        ends.store(true, Ordering::Relaxed);
        let steps = counter.join().ok().context("the counter has panicked")??;
        Ok((result?, steps))
    })
}

/// Runs a command that writes a snapshot.
fn snapshot(command: &mut Command) -> Result<Snapshot> {
    let output = surroundings::set(command).output().context("it does not start")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {errors}", output.status);
    serde_json::from_slice(&output.stdout).with_context(|| format!("no snapshot: {errors}"))
}

const BUSY: &str = "class/accel/accel0/device/npu_busy_time_us";

#[test]
fn the_counter_of_a_whole_device_is_read_at_the_ends() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let sysfs = TempDir::new()?;
    write(sysfs.path(), BUSY, "0\n")?;
    write(sysfs.path(), "kernel/debug/rknpu/load", "NPU load:  Core0: 100%, Core1:  0%,\n")?;
    let clock = |steps: u64| {
        let text = format!(
            "   From : To\n  : 300000000 900000000 time(ms)\n* 300000000: 0 1 50\n  900000000: 1 0 {steps}\nTotal transition : {steps}\n"
        );
        write(sysfs.path(), "class/devfreq/fdab0000.npu/trans_stat", &text)
    };
    clock(0)?;
    let run = |usage: &str| {
        let mut command = Command::new(binaries::profiler()?);
        command.args(["--duration", "300ms", "--marks", "none", "--json", "--device-usage", usage]);
        snapshot(command.arg("--rails-from").arg(sysfs.path()))
    };
    // 1 ms of work each 2 ms.
    let count = |steps: u64| {
        clock(steps)?;
        write(sysfs.path(), BUSY, &format!("{}\n", steps * 1_000))
    };
    let (found, steps) = while_it_counts(count, || run("auto"))?;
    let usage = found.device_usage.context("no usage")?;
    let [ivpu, rknpu] = &usage.devices[..] else { panic!("{usage:?}") };
    let [engine] = &ivpu.engines[..] else { panic!("{ivpu:?}") };
    assert_eq!((&*ivpu.driver, engine.source, engine.implausible), ("intel_vpu", UsageSource::Counter, 0));
    let busy = engine.busy_ns.context("not known")?;
    // Whole steps, not more than there were, and some in 300 ms.
    assert!(busy.is_multiple_of(1_000_000) && (1..=steps).contains(&(busy / 1_000_000)), "{busy} of {steps}");
    let cores: Vec<_> = rknpu.engines.iter().map(|row| (&*row.engine, row.busy_ns)).collect();
    assert_eq!(cores, [("core 0", Some(usage.known_ns)), ("core 1", Some(0))]);
    let [clock] = &found.device_clocks[..] else { panic!("{:?}", found.device_clocks) };
    let [time] = &clock.frequencies[..] else { panic!("{clock:?}") };
    assert_eq!((time.hz, time.ns), (Some(900_000_000), clock.transitions * 1_000_000));
    assert!((1..=steps).contains(&clock.transitions), "{clock:?} of {steps}");
    let off = run("off")?;
    assert!(off.device_usage.is_none() && off.device_clocks.is_empty());
    Ok(())
}

/// In a namespace of mounts of its own, a process gets the descriptors of an open device.
const WITH_DEVICE: &str = r#"
sleep 60 &
target=$!
mount --bind "$1/fd" /proc/$target/fd && mount --bind "$1/fdinfo" /proc/$target/fdinfo || exit 9
shift
"$@"
code=$?
kill $target
exit $code
"#;

#[test]
fn open_devices_count_by_process() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = TempDir::new()?;
    let root = folder.path();
    write(root, "sysfs/class/accel/accel0/dev", "261:0\n")?;
    fs::create_dir_all(root.join("fd"))?;
    std::os::unix::fs::symlink("/dev/accel/accel0", root.join("fd/5"))?;
    let count = |steps: u64| {
        let ns = 7_000_000_000 + steps * 500_000;
        let text = format!(
            "pos:\t0\ndrm-driver:\trocket\ndrm-client-id:\t3\ndrm-engine-npu:\t{ns} ns\ndrm-resident-memory:\t{} KiB\n",
            steps.min(64)
        );
        write(root, "fdinfo/5", &text)
    };
    count(0)?;
    let (found, steps) = while_it_counts(count, || {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", WITH_DEVICE, "sh"]).arg(root).arg(binaries::profiler()?);
        command.args(["--duration", "300ms", "--marks", "none", "--json", "--rails-from"]);
        snapshot(command.arg(root.join("sysfs")))
    })?;
    let usage = found.device_usage.context("no usage")?;
    let [npu] = &usage.devices[..] else { panic!("{usage:?}") };
    assert_eq!((&*npu.device, &*npu.driver), ("rocket", "rocket"));
    let ([engine], [user]) = (&npu.engines[..], &npu.processes[..]) else { panic!("{npu:?}") };
    assert_eq!((&*user.comm, user.is_lower_bound, engine.source), ("sleep", false, UsageSource::Fdinfo));
    let busy = engine.busy_ns.context("not known")?;
    assert!(busy.is_multiple_of(500_000) && (1..=steps).contains(&(busy / 500_000)), "{busy} of {steps}");
    assert_eq!((engine.processes[0].pid, engine.processes[0].busy_ns), (user.pid, busy));
    assert!(user.memory_bytes.is_some_and(|bytes| bytes <= 64 << 10), "{user:?}");
    Ok(())
}
