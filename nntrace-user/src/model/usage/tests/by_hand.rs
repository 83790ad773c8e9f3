//! A run that is calculated by hand: two clusters, a frequency that changes while a section runs, a wake-up from idle.

#![expect(clippy::float_cmp, reason = "shares add up exactly")]

use SchedChange::{In, New, Sleeps, Woken};

use super::*;
use crate::model::energy::{self, PlacePrices, Share};

const LITTLE: u32 = 0;
const BIG: u32 = 1;

/// ```text
/// ns   0     100   200   300   400   500   600   700   800   900  1000
/// cpu0 runs at 1 GHz..........................................idle(1)
/// cpu1 idle(1)...........runs at 1 GHz....2 GHz...idle(0)............
/// cpu2 runs at 2 GHz, cpu3 idle(0) all the time
/// T7   cpu0 [outer------[inner------------]-------]  asleep
/// T8   asleep........woken at 250, cpu1 at 320 [other----] asleep from 600
/// T9   cpu2, no section
/// ```
fn run() -> Model {
    let mut model = model();
    let mut initial = InitialState::default();
    for (cpu, activity, khz) in [
        (0, Activity::Running, 1_000_000),
        (1, Activity::Idle(1), 1_000_000),
        (2, Activity::Running, 2_000_000),
        (3, Activity::Idle(0), 2_000_000),
    ] {
        let cpu_state = InitialCpu { activity: Some(activity), khz: Some(khz), ..InitialCpu::default() };
        initial.cpus.insert(cpu, cpu_state);
    }
    model.begin_power(&topology(), 0, &initial, false);
    for record in [
        sched(0, 7, 0, New),
        sched(0, 8, 1, New),
        sched(0, 9, 2, New),
        sched(0, 7, 0, In),
        sched(0, 9, 2, In),
        sched(0, 8, 3, In),
        sched(50, 8, 3, Sleeps),
        sched(250, 8, 0, Woken),
        idle(300, 1, IDLE_EXIT),
        sched(320, 8, 1, In),
        frequency(500, 1, 2_000_000),
        section(8, 3, (400, 550), 0, 150),
        sched(600, 8, 1, Sleeps),
        idle(600, 1, 0),
        section(7, 2, (200, 700), 1, 500),
        section(7, 1, (100, 800), 0, 200),
        sched(850, 7, 0, Sleeps),
        idle(900, 0, 1),
    ] {
        model.record(&record);
    }
    model
}

fn place(cluster: u32, khz: u32, sharing: u32) -> Place {
    Place::Clock { cluster, khz: Some(khz), sharing }
}

#[test]
fn times_places_and_wake_ups() {
    let found = tables(&run(), 0, 1_000);
    let tag = Tag::new(Layer::Runtime, Phase::Execution);
    let ran = |name: u64| found.functions[&(PID, tag, name)].ran.clone();
    let of = |places: &[(Place, u64)]| places.iter().copied().collect::<BTreeMap<_, _>>();
    let (slow, fast) = (1_000_000, 2_000_000);
    // Around the inner one: 100 to 200 alone; 700 to 800 alone, as cpu1 went idle at 600.
    assert_eq!(ran(1), of(&[(place(LITTLE, slow, 1), 200)]));
    // 200 to 300 alone, 300 to 500 with cpu1, 500 to 600 at cpu1's 2 GHz, 600 to 700 alone at its own 1 GHz.
    assert_eq!(
        ran(2),
        of(&[(place(LITTLE, slow, 1), 200), (place(LITTLE, slow, 2), 200), (place(LITTLE, fast, 2), 100)])
    );
    assert_eq!(ran(3), of(&[(place(LITTLE, slow, 2), 100), (place(LITTLE, fast, 2), 50)]));
    let other = &found.others[&PID];
    // T7: 0 to 100, 800 to 850. T8: on cpu3, idle by its events, for 50; 320 to 400 and 550 to 600. T9: 1000 on cpu2.
    assert_eq!(
        other.ran,
        of(&[
            (Place::NoClock { cpu: 3 }, 50),
            (place(LITTLE, slow, 1), 150),
            (place(LITTLE, slow, 2), 80),
            (place(LITTLE, fast, 2), 50),
            (place(BIG, fast, 1), 1_000)
        ])
    );
    // T8 was woken at 250, cpu1 left its idle state at 300, T8 got it at 320.
    assert_eq!((other.runnable, other.sleeping), (70, 200 + 400 + 150));
    let wakes = Wakes { count: 1, measured: 1, latency: 50, longest: 50 };
    assert_eq!(other.wakes, BTreeMap::from([((1, Some(1)), wakes)]));
    let whole: u64 = found.functions.values().chain(found.others.values()).map(Usage::total).sum();
    assert_eq!(whole, 3 * 1_000);
}

const MODEL: &str = r#"
unit = "W"
[[cluster]]
name = "little"
opps = [{ mhz = 1000, cluster = 2, core = 1 }, { mhz = 2000, cluster = 6, core = 5 }]
idle = [{ name = "state0", cluster = 1, core = 0.5 }, { name = "state1", cluster = 0.5, core = 0.25 }]
[[cluster]]
name = "big"
opps = [{ mhz = 2000, cluster = 10, core = 20 }]
idle = [{ name = "state0", cluster = 3, core = 2 }]
"#;

#[test]
fn energy() -> Result<(), energy::ModelError> {
    let prices_of = energy::parse("model.toml", MODEL)?;
    let (model, topology) = (run(), topology());
    let found = tables(&model, 0, 1_000);
    let cpus: Vec<_> = (0..CPUS).map(|cpu| model.power.reading(cpu).until(1_000)).collect();
    let whole = energy::price(&prices_of, &topology, &cpus, &model.power.clusters_until(1_000));
    // In nJ. little: active 900, of these 100 at 2 GHz; idle 100 in state 1, the deepest in common is that of cpu1, 0.
    let clusters = 800.0 * 2.0 + 100.0 * 6.0 + 100.0 * 1.0 + 1_000.0 * 10.0;
    let cpu0 = 800.0 * 1.0 + 100.0 * 5.0 + 100.0 * 0.25;
    let cpu1 = 300.0 * 0.25 + 200.0 * 1.0 + 100.0 * 5.0 + 400.0 * 0.5;
    let big_cpus = 1_000.0 * 20.0 + 1_000.0 * 2.0;
    assert!((whole.total - (clusters + cpu0 + cpu1 + big_cpus) * 1e-9).abs() < 1e-18, "{whole:?}");

    let mut prices = PlacePrices::new(&prices_of, &topology);
    let usages: Vec<&Usage> = found.functions.values().chain(found.others.values()).collect();
    let mut shares: Vec<Share> = usages.iter().map(|usage| prices.share(usage)).collect();
    let rest = energy::divide(&whole, &mut shares);
    let outer = 200.0 * (1.0 + 2.0);
    let inner = 200.0 * (1.0 + 2.0) + 200.0 * (1.0 + 1.0) + 100.0 * (5.0 + 3.0);
    let other_section = 100.0 * (1.0 + 1.0) + 50.0 * (5.0 + 3.0);
    let outside = 150.0 * (1.0 + 2.0) + 80.0 * (1.0 + 1.0) + 50.0 * (5.0 + 3.0) + 1_000.0 * (20.0 + 10.0);
    for (share, nanojoules) in shares.iter().zip([outer, inner, other_section, outside]) {
        assert!((share.total - nanojoules * 1e-9).abs() < 1e-17, "{share:?}, not {nanojoules} nJ");
        assert_eq!((share.total_min, share.total_max), (share.total, share.total), "nothing is unknown");
    }
    // To the last digit.
    assert_eq!(shares.iter().map(|share| share.total).sum::<f64>() + rest.total, whole.total);
    Ok(())
}

#[test]
fn unknown_frequencies_are_a_range() -> Result<(), energy::ModelError> {
    let prices_of = energy::parse("model.toml", MODEL)?;
    let topology = topology();
    let mut usage = Usage::default();
    usage.ran.insert(Place::Clock { cluster: LITTLE, khz: None, sharing: 2 }, 1_000);
    usage.ran.insert(Place::Unknown { cpu: 2 }, 10);
    let share = PlacePrices::new(&prices_of, &topology).share(&usage);
    // 1 + 2/2 to 5 + 6/2, and cpu2 in any state: its own power alone, as no one knows who shares the cluster's.
    assert_eq!(share.total, 0.0);
    assert!((share.total_min - (2_000.0 + 20.0) * 1e-9).abs() < 1e-18, "{share:?}");
    assert!((share.total_max - (8_000.0 + 200.0) * 1e-9).abs() < 1e-18, "{share:?}");
    Ok(())
}

/// Clocks of two CPUs disagree: the thread is seen on CPU 1 before it leaves CPU 0, and a section ends in between.
#[test]
fn a_contradiction_concerns_sections_that_ended_in_the_state_it_unsettles() {
    let mut model = model();
    for record in [
        sched(0, 7, 0, In),
        sched(450, 7, 1, In),
        section(7, 1, (100, 480), 0, 380),
        sched(500, 7, 0, SchedChange::Preempted),
        sched(700, 7, 1, Sleeps),
    ] {
        model.record(&record);
    }
    let found = tables(&model, 0, 700);
    let used = &found.functions[&(PID, Tag::new(Layer::Runtime, Phase::Execution), 1)];
    assert_eq!((used.on_cpu(), used.unknown, used.total()), (0, 380, 380));
    let other = &found.others[&PID];
    assert_eq!((other.on_cpu(), other.unknown), (0, 320));
}
