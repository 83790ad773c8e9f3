//! The seven invariants of predictions, on graphs of known form and on random ones.

use proptest::prelude::*;

use super::draft::{Draft, calls, chain, convoy, fork_join, makespan, makespan_on, pipeline, replay, speeds};
use crate::analyze::{
    run_graph::graph::{Graph, Kind},
    what_if::{
        cpus::{self, Cpus},
        critical_path::{self, Part},
        predict::{Latencies, Speeds},
    },
};

/// Components of each graph, from 1 on.
const COMPONENTS: usize = 6;

fn all() -> Vec<(&'static str, Draft)> {
    vec![
        ("chain", chain(5)),
        ("fork and join", fork_join(&[300, 200, 100])),
        ("pipeline", pipeline(&[100, 400], 4, 40)),
        ("long pipeline", pipeline(&[100, 300, 200, 250], 1, 30)),
        ("convoy", convoy(&[(50, 100), (500, 20)], 12)),
        ("calls", calls(30, 70, 20)),
    ]
}

/// Returns the speeds with another one of a component.
fn one(component: u32, speed: f64) -> [f64; COMPONENTS] {
    let mut speeds = [1.0; COMPONENTS];
    speeds[component as usize - 1] = speed;
    speeds
}

fn share(graph: &Graph, component: u32) -> u64 {
    let speeds = Speeds::recorded(COMPONENTS + 1);
    let parts = critical_path::parts(graph, &replay(graph, &speeds), &speeds, &Latencies::Measured);
    parts.get(&Part::Work(component)).copied().unwrap_or(0)
}

/// Returns the longest work of a thread at these speeds.
fn longest_thread(draft: &Draft, factors: &[f64]) -> u64 {
    let speeds = speeds(factors);
    let work = |points: &Vec<_>| points.iter().skip(1).map(|point| speeds.length(point)).sum();
    draft.threads.iter().map(work).max().unwrap_or(0)
}

#[test]
fn first_recorded_speeds_give_the_recorded_times() {
    for (name, draft) in all() {
        let graph = draft.graph();
        let recorded: Vec<u64> = graph.points.iter().map(|point| point.time).collect();
        assert_eq!(replay(&graph, &speeds(&[1.0; COMPONENTS])).times, recorded, "{name}");
        assert_eq!(makespan(&graph, &[1.0; COMPONENTS]), graph.recorded_makespan(), "{name}");
    }
}

#[test]
fn second_a_higher_speed_never_makes_it_longer() {
    let factors = [0.5, 0.9, 1.0, 1.05, 1.25, 2.0, 4.0, f64::INFINITY];
    for (name, draft) in all() {
        let graph = draft.graph();
        for component in 1..=COMPONENTS as u32 {
            let curve: Vec<u64> = factors.iter().map(|f| makespan(&graph, &one(component, *f))).collect();
            assert!(curve.is_sorted_by(|a, b| a >= b), "{name}, component {component}: {curve:?}");
        }
    }
}

#[test]
fn third_no_thread_is_faster_than_its_work() {
    for (name, draft) in all() {
        let graph = draft.graph();
        for factor in [0.5, 1.0, 2.0, f64::INFINITY] {
            for component in 1..=COMPONENTS as u32 {
                let factors = one(component, factor);
                let least = longest_thread(&draft, &factors);
                assert!(makespan(&graph, &factors) >= least, "{name}, {component} at {factor}");
                assert!(makespan_on(&graph, &factors, 1) >= least, "{name}, {component} at {factor}");
            }
        }
    }
    // What no speed changes stays: 20 ns between the two are a fixed wait.
    let mut graph = chain(1).graph();
    graph.points[2].fixed = 20;
    assert_eq!(makespan(&graph, &[f64::INFINITY; 3]), 20);
}

#[test]
fn fourth_the_gain_is_within_the_bound_of_amdahl() {
    for (name, draft) in all() {
        let graph = draft.graph();
        let recorded = graph.recorded_makespan();
        for component in 1..=COMPONENTS as u32 {
            let share = share(&graph, component);
            for factor in [1.25, 2.0, 4.0, f64::INFINITY] {
                let gain = recorded - makespan(&graph, &one(component, factor));
                let bound = share as f64 * (1.0 - 1.0 / factor);
                assert!(gain as f64 <= bound + 1.0, "{name}, {component} at {factor}: {gain} > {bound}");
            }
        }
    }
}

#[test]
fn fifth_a_component_that_does_not_occur_changes_nothing() {
    for (name, draft) in all() {
        let graph = draft.graph();
        let occurs =
            |component| graph.points.iter().any(|point| point.component == component && point.run > 0);
        for component in (1..=COMPONENTS as u32).filter(|component| !occurs(*component)) {
            for factor in [0.25, 4.0, f64::INFINITY] {
                let factors = one(component, factor);
                assert_eq!(makespan(&graph, &factors), graph.recorded_makespan(), "{name}");
                assert_eq!(makespan_on(&graph, &factors, 2), makespan_on(&graph, &[], 2), "{name}");
            }
        }
    }
}

#[test]
fn sixth_half_the_speed_adds_the_length_on_the_path() {
    for (draft, component, length) in [
        (chain(5), 2, 500),
        (fork_join(&[300, 200]), 2, 300),
        (pipeline(&[100, 400], 4, 40), 2, 16_000),
        (calls(30, 70, 20), 2, 1_400),
    ] {
        let graph = draft.graph();
        assert_eq!(share(&graph, component), length);
        assert_eq!(makespan(&graph, &one(component, 0.5)), graph.recorded_makespan() + length);
    }
}

#[test]
fn on_enough_cpus_nobody_waits_for_one() {
    for (name, draft) in all() {
        let graph = draft.graph();
        for factors in [one(1, 1.0), one(1, 2.0), one(2, 3.0), one(3, 0.5)] {
            let many = graph.points.len() as u32;
            assert_eq!(makespan_on(&graph, &factors, many), makespan(&graph, &factors), "{name}");
        }
    }
}

/// Threads of random work, with edges from earlier threads to later points of others.
fn random_draft() -> impl Strategy<Value = Draft> {
    let threads =
        prop::collection::vec(prop::collection::vec((0..=COMPONENTS as u32, 0_u64..500), 1..12), 1..6);
    let edges = prop::collection::vec((any::<u16>(), any::<u16>(), any::<u16>(), any::<u16>()), 0..20);
    (threads, edges).prop_map(|(threads, edges)| {
        let mut draft = Draft::default();
        for points in threads {
            let thread = draft.thread();
            draft.point(thread, 0, 0);
            for (component, run) in points {
                draft.point(thread, component, run);
            }
        }
        let within = |number: u16, count: usize| usize::from(number) % count;
        for (from, to, a, b) in edges {
            let (from, to) = (within(from, draft.threads.len()), within(to, draft.threads.len()));
            let (a, b) = (within(a, draft.threads[from].len()), within(b, draft.threads[to].len()));
            // By rank, so that there is no circle.
            if from != to && (a, from) < (b, to) {
                draft.edge(Kind::HandOver, (from, a), (to, b));
            }
        }
        draft
    })
}

proptest! {
    /// Against the definition, gone round and round.
    #[test]
    fn schedules_are_those_of_the_definition(
        draft in random_draft(),
        factors in prop::collection::vec(prop::sample::select(vec![0.5, 1.0, 1.1, 2.0, f64::INFINITY]), COMPONENTS),
    ) {
        let graph = draft.graph();
        prop_assert_eq!(graph.violations, 0);
        let speeds = speeds(&factors);
        let schedule = replay(&graph, &speeds);
        let expected: Vec<u64> = draft.slow_times(&speeds).concat();
        prop_assert_eq!(&schedule.times, &expected);
        let parts = critical_path::parts(&graph, &schedule, &speeds, &Latencies::Measured);
        prop_assert_eq!(parts.values().sum::<u64>(), schedule.makespan(&graph));
        // Faster never is longer.
        let faster: Vec<f64> = factors.iter().map(|factor| factor * 1.5).collect();
        prop_assert!(makespan(&graph, &faster) <= schedule.makespan(&graph));
        // Fewer CPUs keep every order, and take no longer than all work one after the other.
        for count in 1..4 {
            let limited = super::draft::replay_on(&graph, &speeds, count);
            let work: u64 = graph.points.iter().map(|point| speeds.length(point)).sum();
            prop_assert!(limited.makespan(&graph) <= work);
            prop_assert_eq!(limited.violations(&graph), 0);
            let parts = critical_path::parts(&graph, &limited, &speeds, &Latencies::Measured);
            prop_assert_eq!(parts.values().sum::<u64>(), limited.makespan(&graph));
        }
    }

    /// Repeated slices that are skipped, against the simulation of each one.
    #[test]
    fn repeated_slices_are_those_one_by_one(
        draft in random_draft(), count in 1_u32..5, slice in 1_u64..8, may_use in prop::collection::vec(0_u32..4, 0..4),
    ) {
        let graph = draft.graph();
        let speeds = speeds(&[1.0; COMPONENTS]);
        // A thread with 0 may use all.
        let allowed = may_use.iter().map(|cpus| (0..*cpus).collect()).collect();
        let cpus = Cpus { count, allowed, slice };
        let [at_once, one_by_one] = [false, true].map(|is_patient| cpus::limited_by(is_patient, &graph, &speeds, &cpus));
        prop_assert_eq!(at_once.times, one_by_one.times);
        prop_assert_eq!(at_once.done, one_by_one.done);
    }
}
