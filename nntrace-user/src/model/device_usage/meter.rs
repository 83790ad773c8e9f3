//! Meter of what drivers count: readings become times by engine and process.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use super::{DeviceUsage, DeviceUser, EngineUser, UsageSource, UsedDevice, UsedEngine};

/// Time by which a counter may be ahead of the clock: jobs are counted when they end, ns.
const SLACK: u64 = 1_000_000_000;
/// Open files, and as many sums of processes, at most.
const MOST: usize = 16_384;

/// Open file of a device, by which its driver counts. Several descriptors and processes may share one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClientKey {
    /// Name of the device.
    pub(crate) device: String,
    /// Number that the driver gives the file.
    pub(crate) id: u64,
}

/// What a driver says of an open file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Client {
    /// Name of the driver.
    pub(crate) driver: String,
    /// Engines by name.
    pub(crate) engines: BTreeMap<String, EngineCounters>,
    /// Memory of the device that it has, bytes.
    pub(crate) memory_bytes: Option<u64>,
}

/// Counters of an engine, from when the file was opened on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EngineCounters {
    /// Time that it worked, ns.
    pub(crate) ns: Option<u64>,
    /// Cycles that it worked.
    pub(crate) cycles: Option<u64>,
    /// Cycles of the device since it began to count, working or not.
    pub(crate) total_cycles: Option<u64>,
    /// Engines of this name; 0 where the driver says nothing: there is one.
    pub(crate) capacity: u64,
}

/// Reading of a whole device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Total {
    /// Time that it worked so far, ns.
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
    clients: BTreeMap<ClientKey, OpenClient>,
    totals: BTreeMap<(String, String), OpenTotal>,
    drivers: BTreeMap<String, String>,
    engines: BTreeMap<(String, String), EngineSums>,
    users: BTreeMap<(String, u32), User>,
    left_out: u64,
}

#[derive(Clone, Debug)]
struct OpenClient {
    pid: u32,
    /// Time of its last reading, ns.
    at: u64,
    last: BTreeMap<String, EngineCounters>,
}

#[derive(Clone, Debug)]
struct OpenTotal {
    at: u64,
    last: Total,
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

#[derive(Clone, Debug, Default)]
struct User {
    comm: String,
    memory_bytes: Option<u64>,
    has_closed: bool,
}

impl UsageMeter {
    /// A reading of everything begins at this time (ns).
    pub(crate) fn begin_reading(&mut self, now: u64) {
        self.before = if self.first.is_some() { self.now } else { now };
        self.first.get_or_insert(now);
        self.now = now;
    }

    /// Takes what a driver says of an open file of a process. A file that several have is the first one's.
    pub(crate) fn client(&mut self, key: &ClientKey, pid: u32, comm: &str, client: &Client) {
        let now = self.now;
        self.drivers.entry(key.device.clone()).or_insert_with(|| client.driver.clone());
        let known = self.clients.get(key).cloned();
        if known.as_ref().is_some_and(|known| known.at == now) {
            return;
        }
        if known.is_none() && self.clients.len() >= MOST {
            self.left_out += 1;
            return;
        }
        self.user(&key.device, pid, comm, client.memory_bytes);
        let is_first = self.first == Some(now);
        for (name, counters) in &client.engines {
            let before = known.as_ref().and_then(|known| known.last.get(name)).copied();
            // A file that was opened after the reading before this one has counted from 0 on.
            let (before, since) = match (before, &known) {
                (Some(before), Some(known)) => (Some(before), known.at),
                _ if is_first => (None, now),
                _ => (
                    Some(EngineCounters { total_cycles: None, ..EngineCounters::zero(*counters) }),
                    self.before,
                ),
            };
            self.engine(&key.device, name, pid, before, counters, since);
        }
        self.clients.insert(key.clone(), OpenClient { pid, at: now, last: client.engines.clone() });
    }

    fn user(&mut self, device: &str, pid: u32, comm: &str, memory: Option<u64>) {
        let key = (device.to_owned(), pid);
        if self.users.len() >= MOST && !self.users.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        let user = self.users.entry(key).or_default();
        comm.clone_into(&mut user.comm);
        user.memory_bytes = user.memory_bytes.max(memory);
    }

    /// Adds what an engine did for a process since a reading before, at `since` (ns).
    fn engine(
        &mut self,
        device: &str,
        name: &str,
        pid: u32,
        before: Option<EngineCounters>,
        counters: &EngineCounters,
        since: u64,
    ) {
        let elapsed = self.now - since;
        let sums = self.sums(device, name, UsageSource::Fdinfo);
        sums.capacity = sums.capacity.max(counters.capacity).max(1);
        let Some(before) = before else { return };
        let Some(ns) = counters.busy_since(&before, elapsed) else { return };
        let most = elapsed.saturating_add(SLACK).saturating_mul(sums.capacity);
        match ns {
            Ok(ns) if ns <= most => {
                sums.busy_ns = Some(sums.busy_ns.unwrap_or(0).saturating_add(ns));
                *sums.by_process.entry(pid).or_default() += ns;
                if let (Some(now), Some(last)) = (counters.cycles, before.cycles)
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
        let before = self.totals.insert(key, OpenTotal { at: now, last: total.clone() });
        let source =
            if matches!(total, Total::Busy(_)) { UsageSource::Counter } else { UsageSource::Sampled };
        let sums = self.sums(device, engine, source);
        let Some(OpenTotal { at, last }) = before else { return };
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
            Some(ns) if ns <= elapsed.saturating_add(SLACK) => {
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

    /// The reading of everything ends: files that it did not have were closed.
    pub(crate) fn end_reading(&mut self) {
        let now = self.now;
        let (open, closed): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.clients).into_iter().partition(|(_, client)| client.at == now);
        self.clients = open;
        for (ClientKey { device, .. }, OpenClient { pid, .. }) in closed {
            if let Some(user) = self.users.get_mut(&(device, pid)) {
                user.has_closed = true;
            }
        }
    }

    /// Returns the usage between the first reading and the last.
    #[must_use]
    pub(crate) fn usage(&self) -> DeviceUsage {
        let names: BTreeSet<&String> = self
            .engines
            .keys()
            .map(|(device, _)| device)
            .chain(self.users.keys().map(|(device, _)| device))
            .collect();
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
        let busy = |pid: u32| {
            let rows = engines.iter().flat_map(|engine| &engine.processes);
            rows.filter(|row| row.pid == pid).map(|row| row.busy_ns).sum()
        };
        let users = self.users.iter().filter(|((of, _), _)| of == device);
        let mut processes: Vec<_> = users
            .map(|((_, pid), user)| DeviceUser {
                pid: *pid,
                comm: user.comm.clone(),
                busy_ns: busy(*pid),
                memory_bytes: user.memory_bytes,
                has_closed: user.has_closed,
            })
            .collect();
        processes.sort_by_key(|row| (Reverse(row.busy_ns), row.pid));
        let driver = self.drivers.get(device).cloned().unwrap_or_default();
        UsedDevice { device: device.to_owned(), driver, engines, processes }
    }
}

/// A counter that never does went back.
struct WentBack;

impl EngineCounters {
    /// Returns what these counters had when the file was opened.
    fn zero(self) -> Self {
        Self { ns: self.ns.map(|_| 0), cycles: self.cycles.map(|_| 0), total_cycles: None, capacity: 0 }
    }

    /// Returns the time (ns) that the engine worked between two readings, `elapsed` (ns) apart; `None` where it is not counted.
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
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn key(id: u64) -> ClientKey {
        ClientKey { device: "npu0".into(), id }
    }

    fn of(engines: &[(&str, EngineCounters)]) -> Client {
        let engines = engines.iter().map(|(name, counters)| ((*name).to_owned(), *counters)).collect();
        Client { driver: "rocket".into(), engines, memory_bytes: None }
    }

    fn busy(ns: u64) -> EngineCounters {
        EngineCounters { ns: Some(ns), ..EngineCounters::default() }
    }

    fn reading(meter: &mut UsageMeter, now: u64, clients: &[(u64, u32, Client)]) {
        meter.begin_reading(now);
        for (id, pid, client) in clients {
            meter.client(&key(*id), *pid, "app", client);
        }
        meter.end_reading();
    }

    #[test]
    fn files_count_from_the_first_reading_or_from_when_they_are_opened() {
        let mut meter = UsageMeter::default();
        let npu = |ns| of(&[("npu", busy(ns))]);
        reading(&mut meter, 0, &[(1, 70, npu(900))]);
        reading(&mut meter, SECOND, &[(1, 70, npu(1_000)), (2, 80, npu(50))]);
        // The first file is closed, its number is given again.
        reading(&mut meter, 2 * SECOND, &[(2, 80, npu(80))]);
        reading(&mut meter, 3 * SECOND, &[(1, 70, npu(7)), (2, 80, npu(80))]);
        let usage = meter.usage();
        assert_eq!(usage.known_ns, 3 * SECOND);
        let [device] = &usage.devices[..] else { panic!("{usage:?}") };
        let [engine] = &device.engines[..] else { panic!("{device:?}") };
        assert_eq!((engine.busy_ns, engine.implausible, engine.capacity), (Some(187), 0, 1));
        let users: Vec<_> = engine.processes.iter().map(|row| (row.pid, row.busy_ns)).collect();
        assert_eq!(users, [(70, 107), (80, 80)]);
        let closed: Vec<_> =
            device.processes.iter().map(|row| (row.pid, row.busy_ns, row.has_closed)).collect();
        assert_eq!(closed, [(70, 107, true), (80, 80, false)]);
    }

    #[test]
    fn a_file_of_several_processes_counts_once() {
        let mut meter = UsageMeter::default();
        let npu = |ns| of(&[("npu", busy(ns))]);
        for (second, ns) in [(0, 0), (1, 100)] {
            reading(&mut meter, second * SECOND, &[(1, 70, npu(ns)), (1, 71, npu(ns))]);
        }
        let usage = meter.usage();
        assert_eq!(usage.devices[0].engines[0].busy_ns, Some(100));
        assert_eq!(usage.devices[0].processes.len(), 1);
    }

    #[test]
    fn counters_that_cannot_be_are_counted_and_left_out() {
        let mut meter = UsageMeter::default();
        let npu = |ns| of(&[("npu", busy(ns))]);
        for (second, ns) in [(0, 500), (1, 100), (2, 150), (3, u64::MAX), (4, 160), (5, 170)] {
            reading(&mut meter, second * SECOND, &[(1, 70, npu(ns))]);
        }
        let engine = &meter.usage().devices[0].engines[0];
        assert_eq!((engine.busy_ns, engine.implausible), (Some(60), 3));
        // Two engines may work twice the time.
        let mut meter = UsageMeter::default();
        let two =
            |ns| of(&[("ccs", EngineCounters { ns: Some(ns), capacity: 2, ..EngineCounters::default() })]);
        for second in 0..3 {
            reading(&mut meter, second * 10 * SECOND, &[(1, 70, two(second * 19 * SECOND))]);
        }
        let engine = &meter.usage().devices[0].engines[0];
        assert_eq!((engine.busy_ns, engine.capacity, engine.implausible), (Some(38 * SECOND), 2, 0));
    }

    #[test]
    fn cycles_are_a_part_of_all_cycles() {
        let mut meter = UsageMeter::default();
        let cycles = |worked, all| {
            let counters =
                EngineCounters { cycles: Some(worked), total_cycles: Some(all), ..EngineCounters::default() };
            of(&[
                ("rcs", counters),
                ("bcs", EngineCounters { cycles: Some(worked), ..EngineCounters::default() }),
            ])
        };
        reading(&mut meter, 0, &[(1, 70, cycles(1_000, 5_000))]);
        reading(&mut meter, SECOND, &[(1, 70, cycles(1_250, 6_000))]);
        // All cycles went back.
        reading(&mut meter, 2 * SECOND, &[(1, 70, cycles(1_300, 10))]);
        let engines = meter.usage().devices.remove(0).engines;
        let [of_cycles_alone, engine] = &engines[..] else { panic!("{engines:?}") };
        assert_eq!((engine.busy_ns, engine.cycles, engine.implausible), (Some(SECOND / 4), Some(250), 1));
        assert_eq!(of_cycles_alone.busy_ns, None);
    }

    #[test]
    fn whole_devices_count_or_have_a_load() {
        let mut meter = UsageMeter::default();
        for (second, busy, load) in [(0, 7_000, 900), (1, 7_400, 500), (2, 7_300, 1_001)] {
            meter.begin_reading(second * SECOND);
            meter.total("accel0", "intel_vpu", "npu", Total::Busy(busy));
            meter.total("npu", "rknpu", "core 0", Total::Load(load));
            meter.end_reading();
        }
        let usage = meter.usage();
        let [ivpu, rknpu] = &usage.devices[..] else { panic!("{usage:?}") };
        assert_eq!((ivpu.engines[0].busy_ns, ivpu.engines[0].implausible), (Some(400), 1));
        assert_eq!(ivpu.engines[0].source, UsageSource::Counter);
        assert_eq!((rknpu.engines[0].busy_ns, rknpu.engines[0].implausible), (Some(SECOND / 2), 1));
        assert_eq!((&*rknpu.driver, rknpu.engines[0].source), ("rknpu", UsageSource::Sampled));
    }
}
