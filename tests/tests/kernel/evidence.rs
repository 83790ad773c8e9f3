//! Programs on power events beside idle and frequency events, run with events that are spelled out.

use std::{fs, thread, time::Duration};

use anyhow::{Context as _, Result};
use nntrace_common::time_count::TimeCount;
use nntrace_tests::{live, profiler::Profiler};
use nntrace_user::live::{
    clock,
    kernel::{Kernel, KernelOptions},
    other_power_events::Baseline,
};

const NAP: Duration = Duration::from_millis(2);

fn loaded(begin: u64) -> Result<Kernel> {
    let (mut kernel, _rings) = Kernel::load(KernelOptions::default())?;
    kernel.start_evidence(begin)?;
    Ok(kernel)
}

fn nap_ns() -> u64 {
    NAP.as_nanos() as u64
}

#[test]
fn states_that_firmware_is_asked_for_are_timed_by_cpu_and_parameter() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let begin = clock::now();
    let mut kernel = loaded(begin)?;
    let told =
        |kernel: &mut Kernel, program, parameter: u64| kernel.test_evidence(program, 0, &[0, parameter, 0]);
    told(&mut kernel, "psci_exit", 7)?; // its begin was not seen
    for parameter in [0x4000_0003, 0x4100_0033, 0x4000_0003] {
        told(&mut kernel, "psci_enter", parameter)?;
        thread::sleep(NAP);
        told(&mut kernel, "psci_exit", parameter)?;
    }
    told(&mut kernel, "psci_enter", 0x4100_0033)?;
    thread::sleep(NAP);
    let end = clock::now();
    let evidence = Baseline::read(Vec::new()).until(&kernel, 0..1, end, true)?;
    let states = &evidence.cpus[0].psci;
    println!("{states:?}");
    let seen: Vec<_> = states.iter().map(|row| (row.parameter, row.count)).collect();
    // The one that is open at the end is closed there.
    assert_eq!(seen, [(0x4000_0003, 2), (0x4100_0033, 2)]);
    assert!(states.iter().all(|row| row.ns >= 2 * nap_ns()), "{states:?}");
    assert!(states.iter().map(|row| row.ns).sum::<u64>() <= end - begin);
    Ok(())
}

#[test]
fn what_was_before_the_window_does_not_count() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let begin = clock::now() + Duration::from_mins(10).as_nanos() as u64;
    let mut kernel = loaded(begin)?;
    kernel.test_evidence("psci_enter", 0, &[0, 1, 0])?;
    kernel.test_evidence("psci_exit", 0, &[0, 1, 0])?;
    kernel.test_evidence("idle_miss", 0, &[0, 1, 0])?;
    let (cpus, psci, _) = kernel.read_evidence()?;
    assert!(psci.is_empty());
    assert_eq!((cpus[0].above, cpus[0].below), (0, 0));
    Ok(())
}

#[test]
fn misses_are_counted_by_their_direction() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let mut kernel = loaded(clock::now())?;
    // The upper part of a register with a `bool` is arbitrary.
    for below in [0, 1, 0xffff_ff00, 1, 0xffff_ff01] {
        kernel.test_evidence("idle_miss", 0, &[0, 2, below])?;
    }
    kernel.test_evidence("idle_miss", 0, &[u64::from(kernel.cpus()), 2, 0])?; // there is no such CPU
    let (cpus, ..) = kernel.read_evidence()?;
    assert_eq!((cpus[0].above, cpus[0].below), (2, 3));
    Ok(())
}

#[test]
fn suspends_are_counted_by_the_step_in_which_the_machine_sleeps() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    // File in which the kernel keeps the names of these steps.
    let texts = fs::read_to_string("/sys/kernel/tracing/printk_formats").unwrap_or_default();
    let address = |name: &str| {
        let line = texts.lines().find(|line| line.ends_with(&format!(" : \"{name}\"")))?;
        u64::from_str_radix(line.split_whitespace().next()?.strip_prefix("0x")?, 16).ok()
    };
    let (Some(suspend), Some(other)) = (address("machine_suspend"), address("suspend_enter")) else {
        println!("this kernel does not suspend, or does not tell: nothing to show here");
        return Ok(());
    };
    let mut kernel = loaded(clock::now())?;
    for (action, start) in
        [(other, 1), (suspend, 1), (suspend, 0), (other, 0), (suspend, 1), (suspend, 0), (8, 1)]
    {
        kernel.test_evidence("suspend_resume", 0, &[action, 3, start])?;
        thread::sleep(NAP);
    }
    let (.., suspends) = kernel.read_evidence()?;
    println!("{suspends:?}");
    let TimeCount { ns, count } = suspends.total;
    assert_eq!(count, 2);
    assert!(ns >= 2 * nap_ns(), "{ns} ns");
    Ok(())
}

#[test]
fn a_run_tells_what_this_kernel_has() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let events = fs::read_to_string("/sys/kernel/tracing/available_events").unwrap_or_default();
    let run = Profiler::new()?.args(["--marks", "none", "--duration", "300ms"]).run()?;
    let evidence = run.snapshot.evidence.context("no evidence in the snapshot")?;
    println!("{evidence:?}");
    for event in ["psci_domain_idle_enter", "cpu_idle_miss", "suspend_resume", "cpu_frequency_limits"] {
        let is_there = events.lines().any(|line| line == format!("power:{event}"));
        assert_eq!(evidence.sources.iter().any(|source| source == event), is_there, "{event}");
    }
    assert_eq!(evidence.cpus.len(), run.snapshot.cpus.len());
    Ok(())
}
