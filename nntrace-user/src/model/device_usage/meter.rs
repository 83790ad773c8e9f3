//! Meter of drivers' counters: readings become times by engine and process.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use super::{DeviceUsage, DeviceUser, EngineUser, UsageSource, UsedDevice, UsedEngine};

/// Time by which a counter may be ahead of the clock: jobs are counted when they end, ns.
const SLACK: u64 = 1_000_000_000;
/// Factor beyond which a counter advances faster than any device works: some count jobs that overlap.
const FASTER: u64 = 4;
/// Clients, and as many processes, at most.
const MOST: usize = 16_384;

/// DRM client: an open file, the unit of the driver's counters. Several descriptors and processes may share one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClientKey {
    /// Name of the device.
    pub(crate) device: String,
    /// `drm-client-id`, which the kernel never reuses.
    pub(crate) id: u64,
}

/// Counters of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Client {
    /// Name of the driver.
    pub(crate) driver: String,
    /// Engines by name.
    pub(crate) engines: BTreeMap<String, EngineCounters>,
    /// Resident memory, bytes.
    pub(crate) memory_bytes: Option<u64>,
}

/// Counters of an engine, from when the file was opened on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EngineCounters {
    /// Busy time, ns.
    pub(crate) ns: Option<u64>,
    /// Busy cycles.
    pub(crate) cycles: Option<u64>,
    /// Cycles of the device since it began to count, busy or not.
    pub(crate) total_cycles: Option<u64>,
    /// Engines of this name; 0 where the driver says nothing: there is one.
    pub(crate) capacity: u64,
}

/// Reading of a whole device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Total {
    /// Busy time so far, ns.
    Busy(u64),
    /// Load in thousandths.
    Load(u64),
}

/// Meter of all devices.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsageMeter {
    first: Option<u64>,
    /// Times of the reading before this one, and of this one, ns.
    before: u64,
    now: u64,
    /// Whether all clients were read then.
    before_is_complete: bool,
    is_complete: bool,
    clients: BTreeMap<ClientKey, KnownClient>,
    totals: BTreeMap<(String, String), (u64, Total)>,
    drivers: BTreeMap<String, String>,
    engines: BTreeMap<(String, String), EngineSums>,
    users: BTreeMap<(String, u32), User>,
    left_out: u64,
}

/// Client that was read, open or not.
#[derive(Clone, Debug)]
struct KnownClient {
    pid: u32,
    /// Times when it was last read, and when it was last seen to be open, ns.
    at: u64,
    seen: u64,
    /// Counters of its engines, and when each last advanced, ns.
    last: BTreeMap<String, (EngineCounters, u64)>,
}

#[derive(Clone, Debug)]
struct EngineSums {
    source: UsageSource,
    capacity: u64,
    busy_ns: Option<u64>,
    cycles: Option<u64>,
    implausible: u64,
    by_process: BTreeMap<u32, u64>,
}

/// Process that has a device open.
#[derive(Clone, Debug, Default)]
struct User {
    comm: String,
    /// Memory in the reading at this time, and the most in any, bytes.
    memory: (u64, Option<u64>),
    most_memory: Option<u64>,
    is_lower_bound: bool,
}

impl UsageMeter {
    /// A reading of everything begins at this time (ns).
    pub(crate) fn begin_reading(&mut self, now: u64) {
        self.before = if self.first.is_some() { self.now } else { now };
        self.first.get_or_insert(now);
        self.now = now;
        self.before_is_complete = self.is_complete;
        self.is_complete = true;
    }

    /// Takes the counters of a client that a process has. One that several have counts for the first of them.
    pub(crate) fn client(&mut self, key: &ClientKey, pid: u32, comm: &str, client: &Client) {
        let now = self.now;
        self.drivers.entry(key.device.clone()).or_insert_with(|| client.driver.clone());
        let known = self.clients.get(key).cloned();
        if known.as_ref().is_some_and(|known| known.at == now) {
            self.user(&key.device, pid, comm, None);
            return;
        }
        self.user(&key.device, pid, comm, client.memory_bytes);
        if known.is_none() && !self.has_room_for_client() {
            self.left_out += 1;
            return;
        }
        let is_first = self.first == Some(now);
        let mut last = BTreeMap::new();
        for (name, counters) in &client.engines {
            let before = known.as_ref().and_then(|known| known.last.get(name)).copied();
            let read = known.as_ref().map_or(self.before, |known| known.at);
            let (before, since) = match before {
                Some((before, since)) => (Some(before), since),
                None if is_first => (None, now),
                // It may have been opened earlier.
                None if !self.before_is_complete => {
                    self.lower_bound(&key.device, pid);
                    (None, now)
                }
                // A file that was opened after the reading before this one has counted from 0 on.
                None => (Some(counters.when_opened()), self.before),
            };
            if before.is_some_and(|before| counters.lacks_a_start(&before)) {
                self.lower_bound(&key.device, pid);
            }
            self.engine((&key.device, name), pid, before, counters, (since, read));
            let has_advanced = before.is_none_or(|before| *counters != before);
            last.insert(name.clone(), (*counters, if has_advanced { now } else { since }));
        }
        self.clients.insert(key.clone(), KnownClient { pid, at: now, seen: now, last });
    }

    /// A client of a process was not read, of a device that may be known: its driver would be woken up, or did not answer.
    pub(crate) fn unread(&mut self, device: Option<&str>, pid: u32) {
        self.is_complete = false;
        let now = self.now;
        let is_of_it = |key: &ClientKey| device.is_some_and(|device| key.device == device);
        for (key, client) in &mut self.clients {
            if client.pid == pid && is_of_it(key) {
                client.seen = now;
            }
        }
    }

    /// Makes room for another client, by forgetting those that are closed.
    fn has_room_for_client(&mut self) -> bool {
        if self.clients.len() < MOST {
            return true;
        }
        let since = self.before;
        let all = std::mem::take(&mut self.clients);
        let (open, closed): (BTreeMap<_, _>, BTreeMap<_, _>) =
            all.into_iter().partition(|(_, client)| client.seen >= since);
        self.clients = open;
        for (ClientKey { device, .. }, KnownClient { pid, .. }) in closed {
            self.lower_bound(&device, pid);
        }
        self.clients.len() < MOST
    }

    fn user(&mut self, device: &str, pid: u32, comm: &str, memory: Option<u64>) {
        let key = (device.to_owned(), pid);
        if self.users.len() >= MOST && !self.users.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        let now = self.now;
        let user = self.users.entry(key).or_default();
        comm.clone_into(&mut user.comm);
        if user.memory.0 != now {
            user.memory = (now, None);
        }
        if let Some(memory) = memory {
            let sum = user.memory.1.unwrap_or(0).saturating_add(memory);
            user.memory.1 = Some(sum);
            user.most_memory = user.most_memory.max(Some(sum));
        }
    }

    fn lower_bound(&mut self, device: &str, pid: u32) {
        if let Some(user) = self.users.get_mut(&(device.to_owned(), pid)) {
            user.is_lower_bound = true;
        }
    }

    /// Adds what an engine of a device did for a process since counters were read before, which last advanced at `since` (ns).
    fn engine(
        &mut self,
        (device, name): (&str, &str),
        pid: u32,
        before: Option<EngineCounters>,
        counters: &EngineCounters,
        (since, read): (u64, u64),
    ) {
        let (elapsed, in_period) = (self.now.saturating_sub(since), self.now.saturating_sub(read));
        let sums = self.sums(device, name, UsageSource::Fdinfo);
        sums.capacity = sums.capacity.max(counters.capacity).max(1);
        let Some(before) = before else { return };
        let Some(ns) = counters.busy_since(&before, in_period) else { return };
        let most = elapsed.saturating_add(SLACK).saturating_mul(sums.capacity.saturating_mul(FASTER));
        match ns {
            Ok(ns) if ns <= most => {
                sums.busy_ns = Some(sums.busy_ns.unwrap_or(0).saturating_add(ns));
                let of_process = sums.by_process.entry(pid).or_default();
                *of_process = of_process.saturating_add(ns);
                // Beside total cycles, cycles are those of a clock that always runs.
                if let (Some(now), Some(last), Some(_)) = (counters.cycles, before.cycles, counters.ns)
                    && let Some(cycles) = now.checked_sub(last)
                {
                    sums.cycles = Some(sums.cycles.unwrap_or(0).saturating_add(cycles));
                }
            }
            _ => sums.implausible += 1,
        }
    }

    /// Takes a reading of a whole device, or of one of its cores.
    pub(crate) fn total(&mut self, device: &str, driver: &str, engine: &str, total: Total) {
        let now = self.now;
        self.drivers.entry(device.to_owned()).or_insert_with(|| driver.to_owned());
        let key = (device.to_owned(), engine.to_owned());
        let before = self.totals.insert(key, (now, total.clone()));
        let source =
            if matches!(total, Total::Busy(_)) { UsageSource::Counter } else { UsageSource::Sampled };
        let sums = self.sums(device, engine, source);
        let Some((at, last)) = before else { return };
        let elapsed = now.saturating_sub(at);
        let ns = match (total, last) {
            (Total::Busy(now), Total::Busy(before)) => now.checked_sub(before),
            // The load is that of the time before it was read.
            (Total::Load(load @ 0..=1_000), _) => {
                Some((u128::from(elapsed) * u128::from(load) / 1_000) as u64)
            }
            (Total::Load(_), _) | (Total::Busy(_), Total::Load(_)) => None,
        };
        match ns {
            Some(ns) if ns <= elapsed.saturating_add(SLACK).saturating_mul(FASTER) => {
                sums.busy_ns = Some(sums.busy_ns.unwrap_or(0).saturating_add(ns));
            }
            _ => sums.implausible += 1,
        }
    }

    fn sums(&mut self, device: &str, engine: &str, source: UsageSource) -> &mut EngineSums {
        let sums = || EngineSums {
            source,
            capacity: 1,
            busy_ns: None,
            cycles: None,
            implausible: 0,
            by_process: BTreeMap::new(),
        };
        self.engines.entry((device.to_owned(), engine.to_owned())).or_insert_with(sums)
    }

    /// Returns the usage between the first reading and the last.
    #[must_use]
    pub(crate) fn usage(&self) -> DeviceUsage {
        let of_engines = self.engines.keys().map(|(device, _)| device);
        let names: BTreeSet<&String> =
            of_engines.chain(self.users.keys().map(|(device, _)| device)).collect();
        DeviceUsage {
            period_ns: 0,
            reading_ns: 0,
            known_ns: self.first.map_or(0, |first| self.now - first),
            devices: names.into_iter().map(|device| self.device(device)).collect(),
            left_out: self.left_out,
        }
    }

    fn device(&self, device: &str) -> UsedDevice {
        let of_device = self.engines.iter().filter(|((of, _), _)| of == device);
        let engines: Vec<UsedEngine> = of_device
            .map(|((_, name), sums)| {
                let mut processes: Vec<_> =
                    sums.by_process.iter().map(|(&pid, &busy_ns)| EngineUser { pid, busy_ns }).collect();
                processes.sort_by_key(|row| (Reverse(row.busy_ns), row.pid));
                UsedEngine {
                    engine: name.clone(),
                    capacity: sums.capacity,
                    source: sums.source,
                    busy_ns: sums.busy_ns,
                    cycles: sums.cycles,
                    implausible: sums.implausible,
                    processes,
                }
            })
            .collect();
        let mut busy: BTreeMap<u32, u64> = BTreeMap::new();
        for row in engines.iter().flat_map(|engine| &engine.processes) {
            let sum = busy.entry(row.pid).or_default();
            *sum = sum.saturating_add(row.busy_ns);
        }
        // Those that are not open any more, or were not read.
        let of_device =
            self.clients.iter().filter(|(key, client)| key.device == device && client.at != self.now);
        let closed: BTreeSet<u32> = of_device.map(|(_, client)| client.pid).collect();
        let users = self.users.iter().filter(|((of, _), _)| of == device);
        let mut processes: Vec<_> = users
            .map(|((_, pid), user)| DeviceUser {
                pid: *pid,
                comm: user.comm.clone(),
                busy_ns: busy.get(pid).copied().unwrap_or(0),
                memory_bytes: user.most_memory,
                is_lower_bound: user.is_lower_bound || closed.contains(pid),
            })
            .collect();
        processes.sort_by_key(|row| (Reverse(row.busy_ns), row.pid));
        let driver = self.drivers.get(device).cloned().unwrap_or_default();
        UsedDevice { device: device.to_owned(), driver, engines, processes }
    }
}

/// A monotonic counter went backwards.
struct WentBack;

impl EngineCounters {
    /// Returns what these counters had when the file was opened, as far as that is known.
    fn when_opened(self) -> Self {
        Self { ns: self.ns.map(|_| 0), cycles: self.cycles.map(|_| 0), total_cycles: None, capacity: 0 }
    }

    /// Whether busy cycles cannot be told in time, as it is not known since when they were counted.
    fn lacks_a_start(&self, before: &Self) -> bool {
        self.ns.is_none()
            && self.total_cycles.is_some()
            && before.total_cycles.is_none()
            && self.cycles > Some(0)
    }

    /// Returns the busy time (ns) between two readings, `elapsed` (ns) apart; `None` where it is not counted.
    fn busy_since(&self, before: &Self, elapsed: u64) -> Option<Result<u64, WentBack>> {
        if let (Some(now), Some(before)) = (self.ns, before.ns) {
            return Some(now.checked_sub(before).ok_or(WentBack));
        }
        let (now, last) = (self.cycles?, before.cycles?);
        let (total, total_before) = (self.total_cycles?, before.total_cycles?);
        let (Some(worked), Some(all)) = (now.checked_sub(last), total.checked_sub(total_before)) else {
            return Some(Err(WentBack));
        };
        if all == 0 {
            return (worked > 0).then_some(Err(WentBack));
        }
        let ns = u128::from(worked) * u128::from(elapsed) / u128::from(all);
        Some(Ok(u64::try_from(ns).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests;
