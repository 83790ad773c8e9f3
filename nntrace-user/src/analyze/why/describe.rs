//! Parts of a difference in words, and how sure they are.

use serde::Serialize;

use super::{
    compared::Compared,
    cpu_use::Meanwhile,
    device_activity::DeviceWait,
    limits,
    tally::{Part, Peer, Place, Tally},
};
use crate::{
    analyze::run_graph::graph::{Kind, Trust},
    report::number_format::{duration_ns, khz},
};

/// Kind of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Cause {
    MoreCalls,
    MoreWork,
    Frequency,
    Cluster,
    WaitForCpu,
    IdleWakeUp,
    Device,
    WaitForDevice,
    Lock,
    HandOver,
    FirstRun,
    Asleep,
    Unknown,
}

/// Certainty of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Certainty {
    /// Events and marks show it.
    Measured,
    /// It is concluded from what happened.
    Inferred,
    /// The time is measured, its reason is not known.
    Unknown,
}

impl Certainty {
    /// Word for it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Inferred => "inferred",
            Self::Unknown => "unknown",
        }
    }
}

/// Cause of a part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Description {
    pub(super) cause: Cause,
    pub(super) certainty: Certainty,
    /// The cause in words.
    pub(super) text: String,
    /// Function; missing where it is of none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function: Option<String>,
    /// Process that is waited for, or thread that had the CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) by: Option<String>,
}

/// Describes a part.
pub(super) fn describe(part: Part, run: &Compared<'_>) -> Description {
    let whom =
        |peer: Option<Peer>| peer.map_or_else(String::new, |peer| format!(", in {}", run.process(peer.pid)));
    let new =
        |cause, certainty, text: String| Description { cause, certainty, text, function: None, by: None };
    match part {
        Part::Calls(function) => {
            let of = |all: &[Tally]| {
                mean(all.iter().map(|tally| tally.calls.get(&function).copied().unwrap_or(0)))
            };
            let name = run.function(function);
            let text = format!("calls of {name}: {}, typically {}", of(run.slow), of(run.typical));
            Description { function: Some(name), ..new(Cause::MoreCalls, Certainty::Measured, text) }
        }
        Part::First(function) => {
            let name = run.function(function);
            let text = format!("first run: {name}");
            Description { function: Some(name), ..new(Cause::FirstRun, Certainty::Inferred, text) }
        }
        Part::Work(Place { peer: None, component }) => {
            let name = run.function(component);
            let (certainty, text) = if run.knows_frequencies {
                (Certainty::Measured, format!("more cycles in each call of {name}"))
            } else {
                (Certainty::Inferred, format!("more time on CPU in each call of {name}"))
            };
            Description { function: Some(name), ..new(Cause::MoreWork, certainty, text) }
        }
        Part::Undecided(Place { peer: None, component }) => {
            let name = run.function(component);
            let text = format!("in {name}: whether it ran or waited is not known");
            Description { function: Some(name), ..new(Cause::Unknown, Certainty::Unknown, text) }
        }
        Part::Slept(Place { peer: None, component }) => {
            let name = run.function(component);
            let text = format!("asleep in {name}, for what is not known");
            Description { function: Some(name), ..new(Cause::Asleep, Certainty::Unknown, text) }
        }
        Part::Unknown(Place { peer: None, component }) | Part::Passed(Place { peer: None, component }) => {
            let name = run.function(component);
            let text = format!("in {name}: what its thread did is not known");
            Description { function: Some(name), ..new(Cause::Unknown, Certainty::Unknown, text) }
        }
        Part::Work(Place { peer: Some(peer), component })
        | Part::Undecided(Place { peer: Some(peer), component })
        | Part::Slept(Place { peer: Some(peer), component })
        | Part::Passed(Place { peer: Some(peer), component })
        | Part::Unknown(Place { peer: Some(peer), component }) => blocked(peer, component, run),
        // Whatever keeps who has a lock, it is the lock that is waited for.
        Part::Frequency(Some(peer), _)
        | Part::Moved(Some(peer), ..)
        | Part::Waited(Some(peer), _)
        | Part::Device(Some(peer), _)
            if peer.via.kind == Kind::Lock =>
        {
            let text = format!("lock {}, held by {}", run.lock(peer.via.lock), run.process(peer.pid));
            Description {
                by: Some(run.process(peer.pid)),
                ..new(Cause::Lock, certainty(peer.via.trust), text)
            }
        }
        Part::Frequency(peer, kind) => {
            let (now, usual) = (mean_khz(run.slow, peer, kind), mean_khz(run.typical, peer, kind));
            let middles = |times: &[(u64, u64)]| -> Vec<u64> {
                times.iter().map(|(begin, end)| begin + (end - begin) / 2).collect()
            };
            let limit = run.limits.and_then(|limits| {
                let cpus = run.cpus_of(kind);
                limits::limited(limits, &cpus, &middles(run.slow_times), &middles(run.typical_times), usual)
            });
            let limit = limit.map_or_else(String::new, |limit| format!(", {limit}"));
            let text = format!(
                "{} at {}, typically {}{limit}{}",
                run.cluster(kind),
                khz(now),
                khz(usual),
                whom(peer)
            );
            new(Cause::Frequency, Certainty::Measured, text)
        }
        Part::Moved(peer, from, to) => {
            let text = format!("on {}, typically on {}{}", run.cluster(to), run.cluster(from), whom(peer));
            new(Cause::Cluster, Certainty::Inferred, text)
        }
        Part::Device(peer, wait) => device(wait, run, &whom(peer)),
        Part::Waited(peer, Meanwhile::Ran(tid)) => waited_for(run.thread(tid), &whom(peer)),
        Part::Waited(peer, Meanwhile::Rival(rival)) => waited_for(run.rival(rival), &whom(peer)),
        Part::Waited(peer, Meanwhile::Unknown) => {
            let text = format!("waited for a CPU, who had it is not known{}", whom(peer));
            new(Cause::WaitForCpu, Certainty::Unknown, text)
        }
        Part::Waited(peer, Meanwhile::Idle(cpu, state)) => {
            let (name, latency) = run.idle_state(cpu, state);
            let latency =
                latency.map_or_else(String::new, |ns| format!(" (exit latency {})", duration_ns(ns)));
            let text = format!("woken late from idle state {name}{latency}{}", whom(peer));
            new(Cause::IdleWakeUp, Certainty::Measured, text)
        }
    }
}

/// Describes what a device did while a thread slept whose process has a job there. That the thread waited for it is concluded.
fn device(wait: DeviceWait, run: &Compared<'_>, whom: &str) -> Description {
    let (cause, by, text) = match wait {
        DeviceWait::Running(ring) => {
            (Cause::Device, None, format!("asleep while {} ran its own jobs{whom}", run.ring(ring)))
        }
        DeviceWait::Busy { ring, pid } => {
            let by = pid.map(|pid| run.process(pid));
            let name = by.as_deref().unwrap_or("an unknown process");
            let text = format!("waited for {}, busy with jobs from {name}{whom}", run.ring(ring));
            (Cause::WaitForDevice, by, text)
        }
        DeviceWait::Own(ring) => {
            let text = format!("waited for {}, busy with other jobs of its process{whom}", run.ring(ring));
            (Cause::WaitForDevice, None, text)
        }
        DeviceWait::Idle(ring) => {
            (Cause::WaitForDevice, None, format!("waited for {} while it was idle{whom}", run.ring(ring)))
        }
        DeviceWait::Blocked(ring) => {
            let text = format!("a job for {} was blocked on a fence{whom}", run.ring(ring));
            (Cause::WaitForDevice, None, text)
        }
    };
    Description { cause, certainty: Certainty::Inferred, text, function: None, by }
}

/// Describes a wait for a CPU that a thread of this name had.
fn waited_for(name: String, whom: &str) -> Description {
    let text = format!("waited for a CPU that {name} had{whom}");
    let (cause, certainty) = (Cause::WaitForCpu, Certainty::Measured);
    Description { cause, certainty, text, function: None, by: Some(name) }
}

/// Describes a wait for a function of another thread.
fn blocked(peer: Peer, component: u32, run: &Compared<'_>) -> Description {
    let (function, process) = (run.function(component), run.process(peer.pid));
    let (cause, text) = if peer.via.kind == Kind::Lock {
        (Cause::Lock, format!("lock {}, held by {function} of {process}", run.lock(peer.via.lock)))
    } else {
        let kind = peer.via.kind.name();
        (Cause::HandOver, format!("waited for {function} of {process} ({kind})"))
    };
    let certainty = certainty(peer.via.trust);
    Description { cause, certainty, text, function: Some(function), by: Some(process) }
}

const fn certainty(trust: Trust) -> Certainty {
    match trust {
        Trust::Explicit => Certainty::Measured,
        Trust::Inferred => Certainty::Inferred,
    }
}

/// Returns a mean in words: whole, or with one digit.
fn mean(values: impl ExactSizeIterator<Item = u64>) -> String {
    let count = values.len().max(1) as u64;
    let sum: u64 = values.sum();
    if sum.is_multiple_of(count) {
        (sum / count).to_string()
    } else {
        format!("{:.1}", sum as f64 / count as f64)
    }
}

/// Returns the mean frequency of executions on a kind of clusters, kHz.
fn mean_khz(all: &[Tally], peer: Option<Peer>, kind: u32) -> u32 {
    let ran = all.iter().flat_map(|tally| &tally.ran).filter(|(place, _)| place.peer == peer);
    let (ns, cycles) = ran
        .filter_map(|(_, ran)| ran.on.get(&kind))
        .fold((0, 0), |(ns, cycles), (more, also)| (ns + u128::from(*more), cycles + also));
    u32::try_from(cycles.checked_div(ns).unwrap_or(0)).unwrap_or(u32::MAX)
}
