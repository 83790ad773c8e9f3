//! Results that were computed by hand.

use super::draft::{calls, chain, convoy, fork_join, makespan, makespan_on, pipeline, replay, speeds};
use crate::analyze::{
    run_graph::graph::{Edge, Graph, Kind, Point, Trust},
    what_if::{
        cpus::{self, Cpus},
        critical_path::{self, Part},
        predict::{Latencies, Speeds, unlimited},
    },
};

const FREE: f64 = f64::INFINITY;

#[test]
fn a_chain_is_shorter_by_what_its_parts_are_shorter() {
    let graph = chain(2).graph();
    assert_eq!(graph.recorded_makespan(), 600);
    for (factors, expected) in [
        ([1.0, 1.0, 1.0], 600),
        ([2.0, 1.0, 1.0], 500),
        ([1.0, 0.5, 1.0], 800),
        ([2.0, 4.0, 1.0], 350),
        ([1.0, 1.0, FREE], 400),
        ([FREE, FREE, FREE], 0),
    ] {
        assert_eq!(makespan(&graph, &factors), expected, "{factors:?}");
        assert_eq!(makespan_on(&graph, &factors, 1), expected, "{factors:?} on a CPU");
    }
}

#[test]
fn the_longest_branch_of_a_fork_determines_the_join() {
    let graph = fork_join(&[300, 200, 100]).graph();
    // 50 before, 50 after.
    for (factors, expected) in [
        ([1.0, 1.0, 1.0, 1.0], 400),
        ([1.0, 3.0, 1.0, 1.0], 300),
        ([1.0, FREE, 1.0, 1.0], 300),
        ([1.0, 1.0, FREE, FREE], 400),
        ([1.0, FREE, 2.0, 1.0], 200),
        ([2.0, 1.0, 1.0, 1.0], 350),
        ([1.0, 1.0, 1.0, 0.25], 500),
    ] {
        assert_eq!(makespan(&graph, &factors), expected, "{factors:?}");
    }
}

#[test]
fn the_slowest_stage_is_the_period_of_a_pipeline() {
    let (a, b, items) = (100, 400, 50);
    let graph = pipeline(&[a, b], 4, items).graph();
    let items = items as u64;
    for (factors, expected) in [
        // One item of the first stage, then all of the second.
        ([1.0, 1.0], a + items * b),
        ([1.0, 2.0], a + items * b / 2),
        // Off the path: only the first item comes earlier.
        ([2.0, 1.0], a / 2 + items * b),
        ([FREE, 1.0], items * b),
        // The bottleneck moves to the first stage: all of it, then one item of the second.
        ([1.0, 8.0], items * a + b / 8),
        ([1.0, FREE], items * a),
        ([4.0, 4.0], a / 4 + items * b / 4),
        ([0.1, 1.0], items * a * 10 + b),
    ] {
        assert_eq!(makespan(&graph, &factors), expected, "{factors:?}");
    }
}

#[test]
fn back_pressure_bounds_the_time_of_an_item() {
    let (room, items) = (4, 50);
    let latencies = |factors: &[f64]| {
        let graph = pipeline(&[100, 400], room, items).graph();
        replay(&graph, &speeds(factors)).iterations(&graph)
    };
    // Full: an item waits for the queue, for the items in it, and for the one that the second stage works on.
    assert_eq!(*latencies(&[1.0, 1.0]).last().unwrap(), 400 * (room as u64 + 2));
    // The second stage waits for the first one.
    assert_eq!(*latencies(&[1.0, 8.0]).last().unwrap(), 100 + 50);
    assert_eq!(latencies(&[1.0, 1.0])[0], 500);
}

#[test]
fn a_lock_is_held_by_one_at_a_time() {
    let rounds = 10;
    let graph = convoy(&[(50, 100), (50, 100)], rounds).graph();
    let all = |inside: u64| 50 + 2 * rounds as u64 * inside;
    assert_eq!(makespan(&graph, &[1.0; 4]), all(100));
    // Work outside of the lock is hidden but for the first one.
    assert_eq!(makespan(&graph, &[1.0, 1.0, FREE, 1.0]), all(100));
    assert_eq!(makespan(&graph, &[FREE, 1.0, FREE, 1.0]), all(100) - 50);
    assert_eq!(makespan(&graph, &[1.0, 2.0, 1.0, 1.0]), 50 + rounds as u64 * 150);
    assert_eq!(makespan(&graph, &[1.0, 2.0, 1.0, 2.0]), all(50));
    // The lock is free while both work outside of it: a round takes its own work, and the last one ends after another.
    assert_eq!(makespan(&graph, &[1.0, 10.0, 1.0, 10.0]), rounds as u64 * 60 + 10);
}

#[test]
fn a_client_waits_for_each_reply() {
    let graph = calls(30, 70, 20).graph();
    for (factors, expected) in [
        ([1.0, 1.0], 2_000),
        ([1.0, 2.0], 20 * 65),
        ([3.0, 1.0], 20 * 80),
        ([FREE, FREE], 0),
        ([1.0, 0.5], 20 * 170),
    ] {
        assert_eq!(makespan(&graph, &factors), expected, "{factors:?}");
        // Never two at once.
        assert_eq!(makespan_on(&graph, &factors, 1), expected, "{factors:?} on a CPU");
    }
}

#[test]
fn fewer_cpus_than_branches_take_turns() {
    // 50, then 600 of work, then 50.
    let graph = fork_join(&[300, 200, 100]).graph();
    for (count, factors, expected) in [
        (3, [1.0; 4], 400),
        (2, [1.0; 4], 400),
        (1, [1.0; 4], 700),
        (1, [1.0, 3.0, 1.0, 1.0], 500),
        // 100 and 200 at once; the third after the shorter one.
        (2, [1.0, 3.0, 1.0, 1.0], 300),
        (2, [1.0, 1.0, FREE, 1.0], 400),
        (2, [1.0, 1.0, 0.5, 0.5], 600),
    ] {
        assert_eq!(makespan_on(&graph, &factors, count), expected, "{count} CPUs, {factors:?}");
    }
}

#[test]
fn threads_on_one_cpu_share_it_by_slices() {
    let mut draft = fork_join(&[30_000_000, 1_000_000]);
    draft.iterations.push((0, (2, 0), (2, 1)));
    let graph = draft.graph();
    let cpus = Cpus { count: 1, allowed: Vec::new(), slice: cpus::SLICE };
    let schedule = cpus::limited(&graph, &speeds(&[1.0; 3]), &Latencies::Measured, &cpus);
    assert_eq!(schedule.makespan(&graph), 31_000_100);
    // The short one waits for a slice, not for all of the long one.
    assert_eq!(schedule.iterations(&graph), [4_000_000]);
}

/// Weeks of slices of 3 ms.
#[test]
fn a_long_time_of_slices_is_computed_at_once() {
    const WEEKS: u64 = 6_000_000_000_000_000;
    for (threads, count, expected) in [(3, 1, 3 * WEEKS), (3, 2, WEEKS / 2 * 3), (2, 3, WEEKS)] {
        let graph = fork_join(&vec![WEEKS; threads]).graph();
        let cpus = Cpus { count, allowed: Vec::new(), slice: cpus::SLICE };
        let speeds = speeds(&[1.0; 4]);
        let makespan = cpus::limited(&graph, &speeds, &Latencies::Measured, &cpus).makespan(&graph);
        assert!(makespan.abs_diff(expected) < 10 * cpus::SLICE, "{threads} on {count}: {makespan}");
    }
}

#[test]
fn threads_stay_on_the_cpus_that_they_may_use() {
    let graph = fork_join(&[300, 200]).graph();
    let on = |allowed: Vec<Vec<u32>>| {
        let cpus = Cpus { count: 2, allowed, slice: cpus::SLICE };
        let measured = &Latencies::Measured;
        cpus::limited(&graph, &speeds(&[1.0; 3]), measured, &cpus).makespan(&graph)
    };
    assert_eq!(on(vec![vec![0], vec![1], vec![1]]), 600);
    assert_eq!(on(vec![vec![0], vec![0], vec![1]]), 400);
    // A CPU that is not there any more binds nobody.
    assert_eq!(on(vec![vec![0], vec![7], vec![7]]), 400);
}

#[test]
fn the_critical_path_has_the_parts_of_the_makespan() {
    let graph = pipeline(&[100, 400], 4, 50).graph();
    let parts = |factors: &[f64]| {
        let speeds = speeds(factors);
        let parts = critical_path::parts(&graph, &replay(&graph, &speeds), &speeds, &Latencies::Measured);
        parts.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(parts(&[1.0, 1.0]), [(Part::Work(1), 100), (Part::Work(2), 50 * 400)]);
    assert_eq!(parts(&[1.0, 8.0]), [(Part::Work(1), 50 * 100), (Part::Work(2), 50)]);
}

/// Sender and receiver: work of 100 ns, an edge, work of 100 ns.
fn hand_over(waited: u64, latency: u64, queued: u64) -> Graph {
    let point = |thread, time, run| Point {
        thread,
        time,
        run,
        component: thread + 1,
        is_marked: true,
        ..Point::default()
    };
    let receipt = 100 + waited;
    let points = vec![
        point(0, 0, 0),
        point(0, 100, 100),
        point(1, 0, 0),
        Point { queued, ..point(1, receipt + queued, 0) },
        point(1, receipt + queued + 100, 100),
    ];
    let edge =
        Edge { from: 1, to: 3, latency, has_waited: true, kind: Kind::HandOver, trust: Trust::Explicit };
    Graph::new(points, vec![edge])
}

#[test]
fn latencies_of_hand_overs_stay_and_have_a_share() {
    let graph = hand_over(20, 20, 0);
    assert_eq!(graph.recorded_makespan(), 220);
    for (factors, expected) in [([1.0, 1.0], 220), ([2.0, 1.0], 170), ([FREE, FREE], 20)] {
        assert_eq!(makespan(&graph, &factors), expected, "{factors:?}");
    }
    let speeds = speeds(&[1.0, 1.0]);
    let schedule = replay(&graph, &speeds);
    let parts = critical_path::parts(&graph, &schedule, &speeds, &Latencies::Measured);
    let expected = [(Part::Work(1), 100), (Part::Work(2), 100), (Part::Latency(Kind::HandOver), 20)];
    assert_eq!(parts.into_iter().collect::<Vec<_>>(), expected);
    // The longest of all latencies is that of each.
    let longest = Latencies::percentile(&graph, 95);
    assert_eq!(unlimited(&graph, &Speeds::recorded(3), &longest).makespan(&graph), 220);
}

#[test]
fn an_edge_back_in_time_is_dropped_and_counted() {
    let mut draft = chain(1);
    let other = draft.thread();
    draft.point(other, 0, 0);
    draft.point(other, 1, 40);
    let graph = draft.graph();
    let edge = |from, to| Edge {
        from,
        to,
        latency: 0,
        has_waited: false,
        kind: Kind::HandOver,
        trust: Trust::Explicit,
    };
    // From 300 to 40.
    let graph = Graph::new(graph.points, vec![edge(3, 5)]);
    assert_eq!((graph.edges.len(), graph.violations), (0, 1));
    assert_eq!(makespan(&graph, &[1.0; 3]), 300);
    // The hand-over is in the wrong order in the prediction, too.
    assert_eq!(replay(&graph, &speeds(&[1.0; 3])).violations(&graph), 1);
    assert_eq!(replay(&graph, &speeds(&[FREE; 3])).violations(&graph), 0);
}

#[test]
fn points_that_depend_on_each_other_in_one_instant_are_taken_apart() {
    let point = |thread| Point { thread, time: 7, is_marked: true, ..Point::default() };
    let edge = |from, to| Edge {
        from,
        to,
        latency: 0,
        has_waited: false,
        kind: Kind::WakeUp,
        trust: Trust::Inferred,
    };
    let graph = Graph::new(vec![point(0), point(0), point(1), point(1)], vec![edge(1, 2), edge(3, 0)]);
    assert_eq!((graph.order.len(), graph.violations), (4, 1));
    assert_eq!(makespan(&graph, &[]), 0);
}
