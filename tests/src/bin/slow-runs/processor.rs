//! Causes in the processor: the frequency, the kind of the cluster, an idle state that is left late.
//!
//! The emulated machine switches frequencies as far as its kernel can tell, and is as fast as before. So the work of an execution is
//! given in cycles here, and uses a CPU for the time that these take at the frequency that the kernel names: the events are those of
//! the kernel, and how slow they make the program is modelled by it. It does not make wake-ups late either: who starts this does.

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use nix::sched::sched_getcpu;
use nntrace_tests::{
    cpus::{self, IdleState, Policy},
    wait,
};

use crate::{COUNT, SLOW, WORK, go_first, infer, longer, work};

/// Work of an execution, millions of cycles: 10 ms at 1.8 GHz.
const CYCLES: u64 = 18;
/// Waits of an execution for another thread.
const WAITS: usize = 5;

/// Limits the frequency of the fastest CPUs to their lowest one.
pub fn frequency_cap() -> Result<Duration> {
    let (_, policy) = slowest_and_fastest()?;
    let cpu = policy.cpus[0];
    cpus::pin(cpu)?;
    let _held = policy.hold(policy.highest())?;
    let mut limit = None;
    modelled(|number| {
        let is_slow = number == SLOW;
        limit = is_slow.then(|| policy.limit(policy.lowest())).transpose()?;
        let khz = if is_slow { policy.lowest() } else { policy.highest() };
        // Another thread of the kernel switches.
        wait::until("a frequency", || Ok((cpus::khz(cpu)? == khz).then_some(())))
    })
}

/// Moves to a CPU of the slowest ones, at their lowest frequency.
pub fn little_cluster() -> Result<Duration> {
    let (little, big) = slowest_and_fastest()?;
    let _held = [little.hold(little.lowest())?, big.hold(big.highest())?];
    modelled(|number| cpus::pin(if number == SLOW { little.cpus[0] } else { big.cpus[0] }))
}

/// Lets its CPU go into the deepest idle state, which who starts this has forbidden, and leaves late.
pub fn deep_idle() -> Result<Duration> {
    let state = IdleState::deepest().context("no idle states")?;
    cpus::pin(state.cpu)?;
    let (request, requests) = mpsc::channel::<()>();
    let (reply, replies) = mpsc::channel::<Instant>();
    let waker = thread::Builder::new().name("waker".into()).spawn(move || -> Result<()> {
        cpus::pin(cpus::online()[0])?;
        go_first(2);
        for () in requests {
            thread::sleep(WORK);
            reply.send(Instant::now())?;
        }
        Ok(())
    })?;
    let mut late = Vec::new();
    for number in 0..COUNT {
        let allowed = (number == SLOW).then(|| state.allow()).transpose()?;
        infer(|| {
            work(WORK)?;
            let mut sum = Duration::ZERO;
            for _ in 0..WAITS {
                request.send(())?;
                sum += replies.recv()?.elapsed();
            }
            late.push(sum);
            Ok(())
        })?;
        drop(allowed);
        thread::sleep(WORK);
    }
    drop(request);
    waker.join().ok().context("the waker has failed")??;
    Ok(longer(late))
}

fn slowest_and_fastest() -> Result<(Policy, Policy)> {
    cpus::slowest_and_fastest()?.context("no frequencies to choose from")
}

/// Runs executions of as many cycles; before each, its number is shown. Returns how much longer the slow one used a CPU.
fn modelled(mut prepare: impl FnMut(u64) -> Result<()>) -> Result<Duration> {
    let mut times = Vec::new();
    for number in 0..COUNT {
        prepare(number)?;
        infer(|| {
            let khz = u64::from(cpus::khz(sched_getcpu()? as u32)?);
            let time = Duration::from_nanos(CYCLES * 1_000_000_000_000 / khz);
            times.push(work(time)?);
            Ok(())
        })?;
        thread::sleep(WORK);
    }
    Ok(longer(times))
}
