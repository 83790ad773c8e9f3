//! First and only own process of a VM of `cargo xtask vm`: it sets up the VM, runs the checks, sends the results to
//! the host, and ends the VM.
//!
//! Its arguments are the names of the checks to run: those of [`CHECKS`], or of modules of the test program beside it; `checks`
//! and `tests` stand for all of either.

mod calls;
mod counters;
mod engines;
mod facts;
mod forks;
mod host;
mod lanes;
mod machine;
mod marks;
mod odd_systems;
mod power;
mod suites;
mod why;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Instant,
};

use anyhow::{Result, anyhow};

/// Outcome of a check that did not fail.
pub enum Outcome {
    /// The check passed.
    Passed,
    /// The check is not possible on this system, for this reason.
    Skipped(String),
}

/// A check by name.
type Check = (&'static str, fn() -> Result<Outcome>);

/// All checks except the tests, in the order in which they run.
const CHECKS: [Check; 20] = [
    ("facts", facts::tell),
    ("marks", marks::of_functions),
    ("cpp-method", marks::of_a_method),
    ("lanes", lanes::of_threads),
    ("forks", forks::children_live),
    ("engine-ends", engines::end_in_every_way),
    ("calls", calls::of_a_library),
    ("counters", counters::of_a_known_loop),
    ("python", forks::children_of_python_live),
    ("one-switch", power::one_switch_is_one_transition),
    ("fastest", power::the_fastest_running_cpu_decides),
    ("schedutil", power::every_switch_of_a_governor_is_seen),
    ("why-frequency-cap", why::of_a_frequency_cap),
    ("why-little-cluster", why::of_a_move_to_the_little_cluster),
    ("why-deep-idle", why::of_a_deep_idle_state),
    ("golden", power::recording_for_the_golden_files),
    ("hole", odd_systems::a_hole_in_the_numbers),
    ("without-btf", odd_systems::without_btf),
    ("without-tracefs", odd_systems::without_tracefs),
    ("paranoid", odd_systems::paranoid),
];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |group: &str, name: &str| wanted.iter().any(|it| it == group || it == name);
    let failed = match machine::set_up() {
        Ok(()) => {
            let own = CHECKS
                .iter()
                .filter(|(name, _)| is_wanted("checks", name))
                .map(|(name, check)| run(name, check));
            own.sum::<usize>() + suites::run_all(|name| is_wanted("tests", name)) + unknown(&wanted)
        }
        Err(error) => {
            println!("the machine cannot be set up: {error:#}");
            1
        }
    };
    println!("vm-guest: {failed} failed");
    host::end(failed == 0);
}

/// Reports unknown arguments; returns their number.
fn unknown(wanted: &[String]) -> usize {
    let suites = suites::names();
    let is_known = |word: &str| match word {
        "checks" => true,
        "tests" => !suites.is_empty(),
        _ => CHECKS.iter().any(|(name, _)| *name == word) || suites.iter().any(|name| name == word),
    };
    let unknown: Vec<&String> = wanted.iter().filter(|word| !is_known(word)).collect();
    for word in &unknown {
        println!("vm-guest: {word} FAILED: there is no such check or test here");
    }
    if wanted.is_empty() {
        println!("vm-guest: FAILED: nothing was asked for");
    }
    unknown.len() + usize::from(wanted.is_empty())
}

/// Runs a check and reports its outcome; returns 1 if it failed.
fn run(name: &str, check: impl FnOnce() -> Result<Outcome>) -> usize {
    let started = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|_| Err(anyhow!("it panicked")));
    let took = started.elapsed().as_millis();
    match outcome {
        Ok(Outcome::Passed) => println!("vm-guest: {name} passed ({took} ms)"),
        Ok(Outcome::Skipped(why)) => println!("vm-guest: {name} skipped: {why}"),
        Err(error) => {
            println!("vm-guest: {name} FAILED ({took} ms): {error:#}");
            return 1;
        }
    }
    0
}
