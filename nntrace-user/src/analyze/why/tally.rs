//! Sums of what the time of one execution went by with.

use std::collections::BTreeMap;

use super::{
    chain::{Doing, Link, Via},
    cpu_use::Meanwhile,
    device_activity::DeviceWait,
    executions::First,
};

/// Process that an execution waits for, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Peer {
    /// Its id, or that of the thread where the process is not known.
    pub(super) pid: u32,
    /// Reason why its time is in the execution.
    pub(super) via: Via,
}

/// Function of the execution's own thread, or of another one that it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// Process that is waited for; `None` for the execution's own thread.
    pub(super) peer: Option<Peer>,
    /// Number of the function.
    pub(super) component: u32,
}

/// Part of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// More calls of a function.
    Calls(u32),
    /// More work in a function, with as many calls.
    Work(Place),
    /// More time in a function; whether it ran or waited is not known.
    Undecided(Place),
    /// Lower frequency of a kind of clusters.
    Frequency(Option<Peer>, u32),
    /// Work on another kind of clusters: from the one, to the other.
    Moved(Option<Peer>, u32, u32),
    /// Waits for a CPU.
    Waited(Option<Peer>, Meanwhile),
    /// Sleep with a job for a device.
    Device(Option<Peer>, DeviceWait),
    /// Sleep, for what is not known.
    Slept(Place),
    /// Time that a result took to whom waited for it.
    Passed(Place),
    /// Not known.
    Unknown(Place),
    /// First run of a function.
    First(u32),
}

/// Time on CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ran {
    /// Whole time on CPUs, ns.
    pub(super) ns: u64,
    /// Part of it that may have been waiting, ns.
    pub(super) undecided: u64,
    /// Part of it at a frequency that is not known, ns.
    pub(super) unknown: u64,
    /// The rest by kind of clusters: time (ns), and cycles (kHz times ns).
    pub(super) on: BTreeMap<u32, (u64, u128)>,
}

impl Ran {
    /// Adds another time.
    pub(super) fn merge(&mut self, other: &Self) {
        self.ns += other.ns;
        self.undecided += other.undecided;
        self.unknown += other.unknown;
        for (kind, (ns, cycles)) in &other.on {
            let sum = self.on.entry(*kind).or_default();
            *sum = (sum.0 + ns, sum.1 + cycles);
        }
    }
}

/// Sums of one execution: the times add up to its length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Length, ns.
    pub(super) length: u64,
    /// Time on CPUs by function.
    pub(super) ran: BTreeMap<Place, Ran>,
    /// Everything else, ns.
    pub(super) other: BTreeMap<Part, u64>,
    /// Calls of functions on its own thread.
    pub(super) calls: BTreeMap<u32, u64>,
    /// Whether it is the first one.
    pub(super) first: First,
}

/// Knowledge of the run that links are summed up with.
pub(super) trait Host {
    /// Returns the process of a thread, by its number.
    fn process(&self, thread: u32) -> u32;
    /// Shows the time on a CPU from one time to another (ns) by kind of clusters and frequency, kHz.
    fn speeds(&self, cpu: u32, time: (u64, u64), take: &mut dyn FnMut(u64, Option<(u32, u32)>));
    /// Shows what the time of a link in which its thread waited for a CPU went by with.
    fn meanwhile(&self, link: &Link, take: &mut dyn FnMut(Meanwhile, u64));
    /// Splits the time of a link by what devices did with jobs of its thread; `None` is the remainder.
    fn devices(&self, link: &Link, take: &mut dyn FnMut(Option<DeviceWait>, u64));
}

impl Tally {
    /// Adds a link of the execution's chain.
    pub(super) fn add(&mut self, link: &Link, host: &dyn Host) {
        let ns = link.end - link.begin;
        self.length += ns;
        let peer = link.via.map(|via| Peer { pid: host.process(link.thread), via });
        let place = Place { peer, component: link.component };
        let other = &mut self.other;
        let mut add = |part, ns: u64| *other.entry(part).or_default() += ns;
        match link.doing {
            Doing::Ran(cpu) => {
                let ran = self.ran.entry(place).or_default();
                ran.ns += ns;
                let Some(cpu) = cpu else {
                    ran.undecided += ns;
                    ran.unknown += ns;
                    return;
                };
                host.speeds(cpu, (link.begin, link.end), &mut |ns, speed| match speed {
                    Some((kind, khz)) => {
                        let sum = ran.on.entry(kind).or_default();
                        *sum = (sum.0 + ns, sum.1 + u128::from(ns) * u128::from(khz));
                    }
                    None => ran.unknown += ns,
                });
            }
            Doing::Waited(_) => {
                host.meanwhile(link, &mut |meanwhile, ns| add(Part::Waited(peer, meanwhile), ns));
            }
            Doing::Slept => host.devices(link, &mut |wait, ns| {
                add(wait.map_or(Part::Slept(place), |wait| Part::Device(peer, wait)), ns);
            }),
            Doing::Passed => add(Part::Passed(place), ns),
            Doing::Unknown => add(Part::Unknown(place), ns),
        }
    }
}
