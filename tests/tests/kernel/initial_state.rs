//! Activity of the CPUs at the begin of a window: sampled without waking them.

use std::{
    collections::BTreeSet,
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use nix::{
    sched::{CpuSet, sched_setaffinity},
    unistd::Pid,
};
use nntrace_common::run_queue::RunQueueSample;
use nntrace_tests::{live, profiler::Profiler, wait};
use nntrace_user::{
    live::kernel::{Kernel, KernelOptions},
    report::snapshot::IdleSource,
};

/// Returns two CPUs, one to run on and one to sample; `None` where there is only one.
fn pair() -> Result<Option<(u32, u32)>> {
    let list = fs::read_to_string("/sys/devices/system/cpu/online")?;
    let online = nntrace_user::model::cpu_list::parse(&list)?;
    Ok(match online[..] {
        [first, .., last] => Some((first, last)),
        _ => None,
    })
}

/// Keeps this thread on a CPU.
fn stay_on(cpu: u32) -> Result<()> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu as usize)?;
    sched_setaffinity(Pid::from_raw(0), &cpus).with_context(|| format!("cannot stay on CPU {cpu}"))
}

/// Keeps a CPU busy while `work` runs.
fn with_busy<T>(cpu: u32, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let (stop, begun) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let spinner = scope.spawn(|| {
            let stays = stay_on(cpu);
            begun.store(true, Ordering::Relaxed);
            while stays.is_ok() && !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            stays
        });
        let waited = wait::until("the CPU to be busy", || Ok(begun.load(Ordering::Relaxed).then_some(())));
        let result = waited.and_then(|()| work());
        stop.store(true, Ordering::Relaxed);
        spinner.join().expect("it does not panic")?;
        result
    })
}

/// Returns the number of interrupts that other CPUs have sent to this one so far.
fn calls_to(cpu: u32) -> Result<u64> {
    let text = fs::read_to_string("/proc/interrupts")?;
    let header = text.lines().next().context("/proc/interrupts is empty")?;
    let name = format!("CPU{cpu}");
    let column = header.split_whitespace().position(|word| word == name).context("no such CPU")?;
    let counts = text.lines().skip(1).filter_map(|line| {
        let (label, rest) = line.trim().split_once(':')?;
        // x86 names them, arm64 numbers them.
        let is_call = ["RES", "CAL"].contains(&label) || label.starts_with("IPI");
        rest.split_whitespace().nth(column)?.parse::<u64>().ok().filter(|_| is_call)
    });
    Ok(counts.sum())
}

/// Samples a CPU that is idle; `None` when it never is, for all the other work of this host.
fn asleep(kernel: &mut Kernel, cpu: u32) -> Result<Option<RunQueueSample>> {
    const LOOKS: u32 = 500;
    const BETWEEN: Duration = Duration::from_millis(10);
    let before = idle_time(cpu)?;
    for _ in 0..LOOKS {
        let look = kernel.sample_run_queue(cpu);
        if look.seen == RunQueueSample::IDLE_STATE || look.seen == RunQueueSample::IDLE_TASK {
            return Ok(Some(look));
        }
        thread::sleep(BETWEEN);
    }
    let slept = idle_time(cpu)?.saturating_sub(before);
    // With that much idle time, hundreds of samples would have hit it.
    ensure!(slept < Duration::from_secs(1), "it slept for {slept:?} meanwhile, and no look has seen it");
    Ok(None)
}

/// Returns how long a CPU has been idle so far, from the kernel's own statistics.
fn idle_time(cpu: u32) -> Result<Duration> {
    let text = fs::read_to_string("/proc/stat")?;
    let name = format!("cpu{cpu}");
    let line = text.lines().find(|line| line.split(' ').next() == Some(&name)).context("no such CPU")?;
    let ticks: u64 = line.split_whitespace().nth(4).context("a line of another form")?.parse()?;
    // In units of 1/100 s (USER_HZ).
    Ok(Duration::from_millis(ticks * 10))
}

#[test]
fn a_look_tells_a_busy_cpu_from_an_idle_one() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let Some((here, there)) = pair()? else { return Ok(()) };
    let (mut kernel, _rings) = Kernel::load(KernelOptions::default())?;
    stay_on(here)?;
    if kernel.sample_run_queue(here).seen == RunQueueSample::NOTHING {
        ensure!(
            !live::has_btf(),
            "the kernel describes its types, but no way to a CPU's run queue was found"
        );
        println!("this kernel does not tell where to look: nothing to show here");
        return Ok(());
    }
    assert_eq!(kernel.sample_run_queue(here).seen, RunQueueSample::TASK, "this one runs what looks");
    assert_eq!(kernel.sample_run_queue(kernel.cpus()).seen, RunQueueSample::NOTHING, "there is no such CPU");
    with_busy(there, || {
        let seen: Vec<u32> = (0..1_000).map(|_| kernel.sample_run_queue(there).seen).collect();
        let busy = seen.iter().filter(|&&seen| seen == RunQueueSample::TASK).count();
        ensure!(busy == seen.len(), "busy in {busy} of {} looks", seen.len());
        Ok(())
    })?;
    let Some(idle) = asleep(&mut kernel, there)? else {
        println!("CPU {there} never sleeps: nothing to show of that");
        return Ok(());
    };
    let folder = format!("/sys/devices/system/cpu/cpu{there}/cpuidle");
    let names: BTreeSet<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|state| Some(fs::read_to_string(state.path().join("name")).ok()?.trim().to_owned()))
        .collect();
    if idle.seen == RunQueueSample::IDLE_STATE {
        let name = String::from_utf8_lossy(&idle.name);
        let name = name.trim_end_matches('\0');
        assert!(names.contains(name), "{name} is none of {names:?}");
    }
    Ok(())
}

#[test]
fn a_look_interrupts_nobody() -> Result<()> {
    const LOOKS: u64 = 2_000;
    let Some(_live) = live::enter()? else { return Ok(()) };
    let Some((here, there)) = pair()? else { return Ok(()) };
    let (mut kernel, _rings) = Kernel::load(KernelOptions::default())?;
    stay_on(here)?;
    let cpus = kernel.cpus();
    // While busy, it is interrupted by each call; while idle, it may be polling for work and needs no interrupt.
    let (looked, called) = with_busy(there, || {
        let before = calls_to(there)?;
        for _ in 0..LOOKS {
            let _ = kernel.sample_run_queue(there);
        }
        let looked = calls_to(there)? - before;
        // Runs of a program on the other CPU, for comparison: they show that calls are counted.
        for _ in 0..LOOKS {
            kernel.test_cpu_idle(there, 0, cpus)?;
        }
        Ok((looked, calls_to(there)? - before - looked))
    })?;
    println!("{LOOKS} looks at CPU {there}: {looked} calls to it; as many programs run on it: {called}");
    assert!(called >= LOOKS / 2, "calls are not counted");
    assert!(looked <= LOOKS / 10, "{looked} calls, which other work of the machine does not explain");
    Ok(())
}

#[test]
fn a_cpu_that_never_sleeps_is_known_to_run_from_the_begin_on() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let Some((here, there)) = pair()? else { return Ok(()) };
    stay_on(here)?;
    let run = with_busy(there, || Profiler::new()?.args(["--marks", "none", "--duration", "300ms"]).run())?;
    run.ended.expect_code(0)?;
    let window = run.snapshot.window.length_ns();
    let row = run.snapshot.cpus.iter().find(|row| row.cpu == there).context("no row of that CPU")?;
    println!("{row:?}");
    let running: u64 = row.running.iter().map(|row| row.ns).sum();
    if row.initial.idle == IdleSource::Unknown {
        ensure!(
            !live::has_btf(),
            "the kernel describes its types, but no way to a CPU's run queue was found"
        );
        println!("this kernel does not tell where to look: nothing to show here");
        return Ok(());
    }
    assert!(running >= window / 100 * 95, "it ran for {running} of {window} ns: {row:?}");
    assert_eq!(row.unknown_ns + row.idle_unknown_ns, 0, "{row:?}");
    Ok(())
}
