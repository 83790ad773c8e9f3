//! Causes in the processor, and the answers to why executions of a program were slow by them.

use std::path::Path;

use anyhow::{Result, ensure};
use nntrace_tests::{
    cpus::{self, IdleState, Policy},
    late_wake_ups::LateWakeUps,
    why::{self, Planted},
};
use nntrace_user::live::sysfs;

use crate::{Outcome, power};

/// Time by which wake-ups from the deepest idle state are late, ns.
const LATE_NS: i32 = 2_000_000;

/// Checks that a limit of the frequency is named.
pub fn of_a_frequency_cap() -> Result<Outcome> {
    let Some((_, policy)) = cpus::slowest_and_fastest()? else { return Ok(power::no_policies()) };
    let words = format!(
        "cluster {} at {low}, typically {}, limited to {low} by a limit of the policy",
        cluster(&policy),
        khz(policy.highest()),
        low = khz(policy.lowest())
    );
    let planted = Planted::record("frequency-cap")?;
    planted.expect("frequency", &words, planted.ns()?)?;
    Ok(Outcome::Passed)
}

/// Checks that a move to slower CPUs is named.
pub fn of_a_move_to_the_little_cluster() -> Result<Outcome> {
    let Some((little, big)) = cpus::slowest_and_fastest()? else { return Ok(power::no_policies()) };
    if little.cpus == big.cpus {
        return Ok(Outcome::Skipped("all CPUs of this machine are in one cluster".into()));
    }
    let words = format!("on cluster {}, typically on cluster {}", cluster(&little), cluster(&big));
    let planted = Planted::record("little-cluster")?;
    planted.expect("cluster", &words, planted.ns()?)?;
    Ok(Outcome::Passed)
}

/// Checks that late wake-ups from the deepest idle state are named.
pub fn of_a_deep_idle_state() -> Result<Outcome> {
    let Some(state) = IdleState::deepest() else {
        return Ok(Outcome::Skipped("this machine has no idle states to choose from".into()));
    };
    let _forbidden = state.forbid()?;
    // Before the profiler, whose program then runs later.
    let late = LateWakeUps::new(&state, LATE_NS)?;
    let planted = Planted::record("deep-idle")?;
    let sums = late.sums()?;
    ensure!(sums.count > 0, "CPU {} was never in its state {}", state.cpu, state.name);
    // Not each of them was for the thread: a timer may wake its CPU, too.
    let each = (sums.ns / sums.count).cast_signed();
    let seen = planted.ns()?;
    let made = (seen + each / 2) / each * each;
    println!("late: {} wake-ups by {each} ns each, and the thread by {seen} ns", sums.count);
    ensure!(
        made > 0 && made <= sums.ns.cast_signed() && why::is_near(seen, made),
        "{sums:?}, {seen} ns for the thread"
    );
    planted.expect("idle-wake-up", &format!("woken late from idle state {}", state.name), made)?;
    Ok(Outcome::Passed)
}

/// Returns the name of a policy's cluster.
fn cluster(policy: &Policy) -> String {
    let (topology, _) = sysfs::topology(Path::new(sysfs::CPUS));
    let clusters = topology.clusters.into_iter();
    clusters.filter(|cluster| cluster.cpus == policy.cpus).map(|cluster| cluster.name).collect()
}

/// Returns a frequency in words.
fn khz(khz: u32) -> String {
    if khz < 1_000_000 { format!("{} MHz", khz / 1_000) } else { format!("{:.2} GHz", f64::from(khz) / 1e6) }
}
