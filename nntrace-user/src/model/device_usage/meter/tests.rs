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
}

#[test]
fn files_count_from_the_first_reading_or_from_when_they_are_opened() {
    let mut meter = UsageMeter::default();
    let npu = |ns| of(&[("npu", busy(ns))]);
    reading(&mut meter, 0, &[(1, 70, npu(900))]);
    reading(&mut meter, SECOND, &[(1, 70, npu(1_000)), (2, 80, npu(50))]);
    // The first file is not seen for a while, and not counted again when it is.
    reading(&mut meter, 2 * SECOND, &[(2, 80, npu(80))]);
    reading(&mut meter, 3 * SECOND, &[(1, 70, npu(1_007)), (2, 80, npu(80)), (3, 90, npu(5))]);
    reading(&mut meter, 4 * SECOND, &[(1, 70, npu(1_007)), (2, 80, npu(80))]);
    let usage = meter.usage();
    assert_eq!(usage.known_ns, 4 * SECOND);
    let [device] = &usage.devices[..] else { panic!("{usage:?}") };
    let [engine] = &device.engines[..] else { panic!("{device:?}") };
    assert_eq!((engine.busy_ns, engine.implausible, engine.capacity), (Some(192), 0, 1));
    let users: Vec<_> = engine.processes.iter().map(|row| (row.pid, row.busy_ns)).collect();
    assert_eq!(users, [(70, 107), (80, 80), (90, 5)]);
    let closed: Vec<_> = device.processes.iter().map(|row| (row.pid, row.is_lower_bound)).collect();
    assert_eq!(closed, [(70, false), (80, false), (90, true)]);
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
    let users: Vec<_> = usage.devices[0].processes.iter().map(|row| (row.pid, row.busy_ns)).collect();
    assert_eq!(users, [(70, 100), (71, 0)]);
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
    let two = |ns| of(&[("ccs", EngineCounters { ns: Some(ns), capacity: 2, ..EngineCounters::default() })]);
    for second in 0..3 {
        reading(&mut meter, second * 10 * SECOND, &[(1, 70, two(second * 19 * SECOND))]);
    }
    let engine = &meter.usage().devices[0].engines[0];
    assert_eq!((engine.busy_ns, engine.capacity, engine.implausible), (Some(38 * SECOND), 2, 0));
}

#[test]
fn a_long_job_counts_when_it_ends() {
    let mut meter = UsageMeter::default();
    let gpu = |ns| of(&[("gpu", busy(ns))]);
    for second in 0..=60 {
        reading(&mut meter, second * SECOND, &[(1, 70, gpu(if second == 60 { 58 * SECOND } else { 0 }))]);
    }
    let engine = &meter.usage().devices[0].engines[0];
    assert_eq!((engine.busy_ns, engine.implausible), (Some(58 * SECOND), 0));
}

#[test]
fn memory_is_that_of_all_files_of_a_process_at_once() {
    let mut meter = UsageMeter::default();
    let with = |bytes| Client { memory_bytes: Some(bytes), ..of(&[]) };
    reading(&mut meter, 0, &[(1, 70, with(100)), (2, 70, with(20)), (3, 80, with(7))]);
    reading(&mut meter, SECOND, &[(1, 70, with(90)), (2, 70, with(20)), (3, 80, of(&[]))]);
    let processes = meter.usage().devices.remove(0).processes;
    let memory: Vec<_> = processes.iter().map(|row| (row.pid, row.memory_bytes)).collect();
    assert_eq!(memory, [(70, Some(120)), (80, Some(7))]);
}

#[test]
fn many_clients_are_bounded_and_closed_ones_give_way() {
    let mut meter = UsageMeter::default();
    for second in 0..4_u64 {
        meter.begin_reading(second * SECOND);
        for id in second * 10_000..second * 10_000 + 10_000 {
            meter.client(&key(id), 70, "app", &of(&[("npu", busy(5))]));
        }
    }
    let usage = meter.usage();
    let processes = &usage.devices[0].processes;
    assert!(meter.clients.len() <= MOST && processes[0].is_lower_bound);
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
    // Those cycles are of a clock that always runs: they show no clock of the engine.
    assert_eq!((engine.busy_ns, engine.cycles, engine.implausible), (Some(SECOND / 4), None, 1));
    assert_eq!(of_cycles_alone.busy_ns, None);
    // Of a file that was opened meanwhile it is not known since when.
    reading(&mut meter, 3 * SECOND, &[(2, 80, cycles(50, 900))]);
    reading(&mut meter, 4 * SECOND, &[(2, 80, cycles(150, 1_900))]);
    let device = meter.usage().devices.remove(0);
    let late = device.processes.iter().find(|row| row.pid == 80).unwrap();
    assert_eq!((late.busy_ns, late.is_lower_bound), (SECOND / 10, true));
}

#[test]
fn whole_devices_count_or_have_a_load() {
    let mut meter = UsageMeter::default();
    for (second, busy, load) in [(0, 7_000, 900), (1, 7_400, 500), (2, 7_300, 1_001)] {
        meter.begin_reading(second * SECOND);
        meter.total("accel0", "intel_vpu", "npu", Total::Busy(busy));
        meter.total("npu", "rknpu", "core 0", Total::Load(load));
    }
    let usage = meter.usage();
    let [ivpu, rknpu] = &usage.devices[..] else { panic!("{usage:?}") };
    assert_eq!((ivpu.engines[0].busy_ns, ivpu.engines[0].implausible), (Some(400), 1));
    assert_eq!(ivpu.engines[0].source, UsageSource::Counter);
    assert_eq!((rknpu.engines[0].busy_ns, rknpu.engines[0].implausible), (Some(SECOND / 2), 1));
    assert_eq!((&*rknpu.driver, rknpu.engines[0].source), ("rknpu", UsageSource::Sampled));
}
