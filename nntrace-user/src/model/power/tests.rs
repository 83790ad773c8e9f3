use nntrace_common::{
    power::{IDLE_EXIT, Residency},
    time_count::TimeCount,
};

use super::*;
use crate::model::topology::{ClusterDescription, CpuDescription, Domain, IdleStateDescription};

mod timelines;

fn machine(clusters: &[&[u32]], policies: &[&[u32]]) -> Topology {
    let cpus = clusters.iter().flat_map(|cpus| cpus.iter());
    Topology {
        cpus: cpus.map(|&cpu| (cpu, CpuDescription::default())).collect(),
        clusters: clusters
            .iter()
            .enumerate()
            .map(|(number, cpus)| ClusterDescription {
                name: number.to_string(),
                cpus: cpus.to_vec(),
                domain: Domain::Both,
            })
            .collect(),
        policies: policies.iter().map(|cpus| cpus.to_vec()).collect(),
        ..Topology::default()
    }
}

/// CPUs of which this is known at the begin: activity, and frequency in kHz.
fn known(activity: &[(u32, Activity)], khz: &[(u32, u32)]) -> InitialState {
    let mut state = InitialState::default();
    for &(cpu, activity) in activity {
        state.cpus.entry(cpu).or_default().activity = Some(activity);
    }
    for &(cpu, khz) in khz {
        state.cpus.entry(cpu).or_default().khz = Some(khz);
    }
    state
}

/// The example of the classical notes: intervals idle in (state, from, to), us.
#[test]
fn the_deepest_state_in_common() {
    let mut clusters = Power::new(&machine(&[&[1, 2]], &[]), 0, &InitialState::default(), false);
    let intervals = [
        (1, 0, 0, 100),
        (1, 0, 110, 320),
        (1, 1, 350, 400),
        (2, 0, 0, 200),
        (2, 1, 210, 400),
        (2, 0, 410, 500),
    ];
    let mut events: Vec<(u64, u32, u32)> = intervals
        .iter()
        .flat_map(|&(cpu, state, from, to)| [(from, cpu, state), (to, cpu, IDLE_EXIT)])
        .collect();
    events.sort_by_key(|&(at, ..)| at);
    for (at, cpu, state) in events {
        clusters.idle_event(at * 1_000, cpu, state);
    }
    let result = &clusters.clusters_until(500_000)[0];
    assert_eq!(result.idle[&0].ns, 300_000);
    assert_eq!(result.idle[&1].ns, 50_000);
    assert_eq!(result.active, BTreeMap::from([(None, TimeCount::new(150_000, 4))]));
}

#[test]
fn stays_are_those_that_idle_events_ended() {
    let state = |us: u64| IdleStateDescription {
        target_residency_ns: Some(us * 1_000),
        ..IdleStateDescription::default()
    };
    let mut topology = machine(&[&[0]], &[]);
    topology.cpus.insert(0, CpuDescription { idle_states: vec![state(1), state(100)] });
    let mut power = Power::new(&topology, 10, &InitialState::default(), false);
    for (at, state) in [(1_000, 0), (3_000, IDLE_EXIT), (4_000, 0)] {
        power.idle_event(at, 0, state);
    }
    power.lost(9_000, 0);
    power.idle_event(10_000, 0, 0);
    power.idle_event(10_500, 0, IDLE_EXIT);
    let stays = power.idle_stays().of(0, 0).unwrap();
    assert_eq!((stays.early, stays.lengths.len()), (Some(1), 2));
    assert!(stays.lengths.equivalent(stays.lengths.max(), 2_000));
}

#[test]
fn a_stay_that_begins_at_the_end_is_no_open_one() {
    let mut clusters = Power::new(&machine(&[&[0]], &[]), 0, &InitialState::default(), false);
    clusters.idle_event(10, 0, 1);
    assert_eq!(clusters.clusters_until(10)[0].idle_at_end, None);
    assert_eq!(clusters.clusters_until(11)[0].idle_at_end, Some(1));
}

#[test]
fn an_exit_and_an_entry_at_one_instant_split_nothing() {
    let mut clusters = Power::new(&machine(&[&[0]], &[]), 0, &InitialState::default(), false);
    for (at, state) in [(10, 1), (20, IDLE_EXIT), (20, 1), (30, IDLE_EXIT)] {
        clusters.idle_event(at, 0, state);
    }
    let result = &clusters.clusters_until(40)[0];
    assert_eq!((result.idle[&1].ns, result.idle[&1].hits), (20, 1));
}

#[test]
fn a_policy_changes_as_one_and_the_fastest_running_cpu_decides() {
    let initial = known(&[], &[(0, 500), (1, 500), (2, 900)]);
    let mut clusters = Power::new(&machine(&[&[0, 1, 2]], &[&[0, 1]]), 0, &initial, false);
    for cpu in 0..3 {
        clusters.idle_event(0, cpu, 0);
    }
    clusters.idle_event(10, 0, IDLE_EXIT);
    clusters.frequency_event(20, 1, 700);
    clusters.frequency_event(22, 0, 700);
    clusters.idle_event(30, 2, IDLE_EXIT);
    clusters.idle_event(40, 2, 0);
    let result = &clusters.clusters_until(50)[0];
    let active = BTreeMap::from([
        (Some(500), TimeCount::new(10, 1)),
        (Some(700), TimeCount::new(20, 2)),
        (Some(900), TimeCount::new(10, 1)),
    ]);
    assert_eq!(result.active, active);
    assert_eq!(result.effective[&0], BTreeMap::from([(Some(500), 10), (Some(700), 20), (Some(900), 10)]));
    assert_eq!(result.effective[&2], BTreeMap::from([(Some(900), 10)]));
    assert_eq!(result.concurrency, BTreeMap::from([(Some(0), 10), (Some(1), 30), (Some(2), 10)]));
}

#[test]
fn what_was_read_at_the_begin_counts_from_there() {
    let initial = known(&[(0, Activity::Running), (1, Activity::Idle(1))], &[(0, 500)]);
    let mut clusters = Power::new(&machine(&[&[0, 1]], &[]), 10, &initial, false);
    assert_eq!(clusters.clusters_until(30)[0].active, BTreeMap::from([(Some(500), TimeCount::new(20, 1))]));
    clusters.idle_event(40, 0, 2);
    let result = &clusters.clusters_until(60)[0];
    assert_eq!(
        (result.active[&Some(500)], result.idle[&1].ns, result.idle_at_end),
        (TimeCount::new(30, 1), 20, Some(1))
    );
}

#[test]
fn an_offline_cpu_leaves_the_vote() {
    let mut clusters = Power::new(&machine(&[&[0, 1]], &[]), 0, &InitialState::default(), false);
    clusters.idle_event(0, 0, 0);
    clusters.idle_event(0, 1, 2);
    clusters.hotplug(10, 0, false);
    clusters.hotplug(30, 1, false);
    clusters.hotplug(40, 1, true);
    let result = &clusters.clusters_until(50)[0];
    assert_eq!((result.idle[&0].ns, result.idle[&2].ns, result.offline_ns), (10, 20, 10));
    assert_eq!(result.active[&None], TimeCount::new(10, 1));
}

#[test]
fn while_a_cpu_is_unknown_or_offline_it_is_not_said_how_many_run() {
    let initial = known(&[0, 1, 2].map(|cpu| (cpu, Activity::Running)), &[]);
    let mut clusters = Power::new(&machine(&[&[0, 1], &[2]], &[]), 0, &initial, false);
    clusters.idle_event(10, 1, 0);
    clusters.lost(14, 0);
    clusters.idle_event(17, 1, IDLE_EXIT);
    clusters.idle_event(20, 0, 1);
    clusters.hotplug(25, 0, false);
    clusters.idle_event(26, 1, 2);
    clusters.hotplug(40, 0, true);
    let results = clusters.clusters_until(50);
    let expected = BTreeMap::from([(None, 6 + 15), (Some(1), 4 + 5 + 10), (Some(2), 10)]);
    assert_eq!(results[0].concurrency, expected);
    assert_eq!(results[1].concurrency, BTreeMap::from([(Some(1), 50)]));
    // Without any event.
    let clusters = Power::new(&machine(&[&[0, 1]], &[]), 0, &InitialState::default(), false);
    assert_eq!(clusters.clusters_until(50)[0].concurrency, BTreeMap::from([(None, 50)]));
}

#[test]
fn domains_of_idle_and_of_clocks_are_apart() {
    let mut topology = machine(&[&[0, 1], &[2], &[0, 1, 2]], &[]);
    for (number, domain) in [(0, Domain::Frequency), (1, Domain::Frequency), (2, Domain::Idle)] {
        topology.clusters[number].domain = domain;
    }
    let initial = known(&[], &[(0, 500), (1, 600), (2, 900)]);
    let mut clusters = Power::new(&topology, 0, &initial, false);
    for cpu in 0..3 {
        clusters.idle_event(0, cpu, 1);
    }
    clusters.idle_event(10, 0, IDLE_EXIT);
    clusters.idle_event(20, 2, IDLE_EXIT);
    clusters.idle_event(30, 0, 1);
    let results = clusters.clusters_until(40);
    assert_eq!(results[0].active, BTreeMap::from([(Some(500), TimeCount::new(20, 1))]));
    assert_eq!(results[1].active, BTreeMap::from([(Some(900), TimeCount::new(20, 1))]));
    assert_eq!(
        (results[2].idle[&1].ns, &results[2].active),
        (10, &BTreeMap::from([(None, TimeCount::new(30, 1))]))
    );
    assert_eq!(results[2].effective, BTreeMap::new());
}

#[test]
fn states_compare_by_level() {
    let mut topology = machine(&[&[0, 1]], &[]);
    let state = |name: &str, level| IdleStateDescription { name: name.into(), level, ..Default::default() };
    // The second CPU's table lacks the middle state.
    topology.cpus.get_mut(&0).unwrap().idle_states = vec![state("a", 0), state("b", 1), state("c", 2)];
    topology.cpus.get_mut(&1).unwrap().idle_states = vec![state("a", 0), state("c", 2)];
    let mut clusters = Power::new(&topology, 0, &InitialState::default(), false);
    clusters.idle_event(0, 0, 1);
    clusters.idle_event(0, 1, 1);
    clusters.idle_event(10, 0, 2);
    let result = &clusters.clusters_until(30)[0];
    assert_eq!((result.idle[&1].ns, result.idle[&2].ns), (10, 20));
}

#[test]
fn a_lost_cpu_is_unknown_until_it_is_heard_of_again() {
    let mut clusters = Power::new(&machine(&[&[0, 1]], &[]), 0, &InitialState::default(), false);
    clusters.idle_event(0, 0, 1);
    clusters.idle_event(0, 1, 1);
    clusters.lost(10, 0);
    clusters.idle_event(30, 0, 1);
    let result = &clusters.clusters_until(50)[0];
    assert_eq!((result.unknown_ns, result.idle[&1].ns, result.idle[&1].hits), (20, 30, 2));
}

#[test]
fn a_silent_cpu_leaves_its_cluster_unknown_while_no_other_runs() {
    let mut clusters = Power::new(&machine(&[&[0, 1], &[2]], &[]), 0, &InitialState::default(), false);
    clusters.idle_event(10, 0, 1);
    clusters.idle_event(20, 0, IDLE_EXIT);
    let results = clusters.clusters_until(30);
    assert_eq!((results[0].unknown_ns, results[0].active[&None]), (10, TimeCount::new(20, 2)));
    assert_eq!(results[1].unknown_ns, 30);
}

mod property {
    use proptest::prelude::*;

    use super::*;

    /// (gap, cpu, kind): kind 0..3 an idle state, 3 and 4 an exit, above a frequency.
    fn events() -> impl Strategy<Value = Vec<(u64, u32, u32)>> {
        proptest::collection::vec((0_u64..4, 0_u32..5, 0_u32..8), 0..60)
    }

    /// Activity of a CPU at an instant, by scanning all events again.
    fn activity_at(events: &[(u64, u32, u32)], cpu: u32, at: u64) -> (Activity, Option<u32>) {
        let mine = || events.iter().filter(|event| event.1 == cpu);
        let idle = |kind: u32| if kind < 3 { Activity::Idle(kind) } else { Activity::Running };
        let first = mine().find(|event| event.2 < 5).map(|event| match idle(event.2) {
            Activity::Running => Activity::IdleUnknown,
            _ => Activity::Running,
        });
        let last = mine().rfind(|event| event.2 < 5 && event.0 <= at).map(|event| idle(event.2));
        let khz = mine().rfind(|event| event.2 >= 5 && event.0 <= at).map(|event| event.2);
        (last.or(first).unwrap_or(Activity::Unknown), khz)
    }

    proptest! {
        /// Against a sweep that looks at every CPU at every instant.
        #[test]
        fn streaming_equals_a_sweep(steps in events()) {
            let layout: [&[u32]; 2] = [&[0, 1, 4], &[2, 3]];
            let mut clusters = Power::new(&machine(&layout, &[]), 0, &InitialState::default(), false);
            let (mut now, mut timed) = (0, Vec::new());
            for (gap, cpu, kind) in steps {
                now += gap;
                timed.push((now, cpu, kind));
                match kind {
                    0..3 => _ = clusters.idle_event(now, cpu, kind),
                    3..5 => _ = clusters.idle_event(now, cpu, IDLE_EXIT),
                    _ => clusters.frequency_event(now, cpu, kind),
                }
            }
            let end = now + 3;
            for (number, result) in clusters.clusters_until(end).into_iter().enumerate() {
                let mut expected = ClusterResidency::default();
                for at in 0..end {
                    let all: Vec<_> = layout[number].iter().map(|&cpu| activity_at(&timed, cpu, at)).collect();
                    let running: Vec<_> = all.iter().filter(|cpu| cpu.0 == Activity::Running).collect();
                    let is_known = !all.iter().any(|cpu| cpu.0 == Activity::Unknown);
                    *expected.concurrency.entry(is_known.then_some(running.len() as u32)).or_default() += 1;
                    let idle = all.iter().filter_map(|cpu| match cpu.0 { Activity::Idle(k) => Some(k), _ => None });
                    if !running.is_empty() {
                        let khz = running.iter().map(|cpu| cpu.1).min().flatten()
                            .and_then(|_| running.iter().filter_map(|cpu| cpu.1).max());
                        expected.active.entry(khz).or_default().ns += 1;
                        for (cpu, did) in layout[number].iter().zip(&all) {
                            if did.0 == Activity::Running {
                                *expected.effective.entry(*cpu).or_default().entry(khz).or_default() += 1;
                            }
                        }
                    } else if all.iter().any(|cpu| cpu.0 == Activity::Unknown) {
                        expected.unknown_ns += 1;
                    } else if all.iter().any(|cpu| cpu.0 == Activity::IdleUnknown)
                        && !all.iter().any(|cpu| cpu.0 == Activity::Idle(0)) {
                        expected.idle_unknown_ns += 1;
                    } else {
                        let state = idle.min().unwrap_or(0);
                        expected.idle.entry(state).or_insert(Residency::NONE).ns += 1;
                    }
                }
                let ns = |idle: &BTreeMap<u32, Residency>| -> Vec<_> { idle.iter().map(|(k, r)| (*k, r.ns)).collect() };
                let active = |active: &BTreeMap<_, TimeCount>| -> Vec<_> { active.iter().map(|(k, v)| (*k, v.ns)).collect() };
                prop_assert_eq!(ns(&result.idle), ns(&expected.idle));
                prop_assert_eq!(active(&result.active), active(&expected.active));
                prop_assert_eq!(result.unknown_ns, expected.unknown_ns);
                prop_assert_eq!(result.idle_unknown_ns, expected.idle_unknown_ns);
                prop_assert_eq!(result.concurrency, expected.concurrency);
                prop_assert_eq!(result.effective, expected.effective);
            }
        }
    }
}
