use nntrace_common::stamp::Stamp;
use proptest::prelude::*;

use super::*;
use crate::model::{
    causality::hand_overs::{Moment, Source},
    topology::Domain,
};

const IDLE: CpuState = CpuState::Idle(1);
const RUNS: CpuState = CpuState::Running(None);

fn topology() -> Topology {
    let cluster = |name: &str, cpus: &[u32], domain| ClusterDescription {
        name: name.into(),
        cpus: cpus.to_vec(),
        domain,
    };
    let clusters = vec![
        cluster("little", &[0, 1], Domain::Both),
        cluster("big", &[2], Domain::Frequency),
        // CPUs that only go idle together are those of other clusters.
        cluster("cores", &[1, 2], Domain::Idle),
    ];
    Topology { clusters, ..Topology::default() }
}

fn timelines(cpus: &[(u32, &[(u64, CpuState)])]) -> Timelines {
    let timeline = |steps: &[(u64, CpuState)]| {
        let mut timeline = Timeline::starting_at(0, 1_000);
        for (end, state) in steps {
            timeline.push(*end, *state);
        }
        timeline
    };
    let cpus = cpus.iter().map(|(cpu, steps)| (*cpu, timeline(steps))).collect();
    Timelines { cpus, ..Timelines::default() }
}

fn work(
    dispatch: Option<u64>,
    receive: Option<(u32, u64)>,
    start: Option<u64>,
    end: Option<u64>,
) -> HandOver {
    HandOver {
        dispatch: dispatch.map(|time| Moment { pid: 1, tid: 1, time, sequence: 0 }),
        receive: receive.map(|(tid, time)| Moment { pid: 1, tid, time, sequence: 0 }),
        start: start.map(Stamp::from),
        end: end.map(Stamp::from),
        ..HandOver::new(Source::Handle)
    }
}

fn thread(tid: u32, cpus: &[u32]) -> NamedThread {
    let mut set = CpuSet::default();
    for cpu in cpus {
        set.insert(*cpu);
    }
    NamedThread { pid: 1, tid, cpus: set, ..NamedThread::default() }
}

/// Two clusters, and three pieces of work:
///
/// ```text
/// time     0    10   20   30   40   50   60   70   80   90   100
/// little   1 idle    | none idle         | 2 idle             | 1 idle
/// big      none idle           | idle              | none
/// A               dispatch 15, start 25, by thread 7, which ran on both
/// B               dispatch 35 ........... start 65, by thread 8, on big alone
/// C                                       receipt 70 .. start 80, by thread 9, of which nothing is known
/// ```
/// The window is from 25, the first start, to 95, the last end.
#[test]
fn a_schedule_of_two_clusters_is_as_counted_by_hand() {
    let timelines = timelines(&[
        (0, &[(20, IDLE), (50, RUNS), (120, IDLE)]),
        (1, &[(50, RUNS), (90, IDLE), (120, RUNS)]),
        (2, &[(40, RUNS), (75, IDLE), (120, RUNS)]),
    ]);
    let hand_overs = [
        work(Some(15), Some((7, 20)), Some(25), Some(30)),
        work(Some(35), Some((8, 36)), Some(65), Some(68)),
        work(None, Some((9, 70)), Some(80), Some(95)),
        // Neither is known when it was ready, nor when it began.
        work(Some(40), None, None, None),
        work(None, None, Some(50), Some(60)),
    ];
    let threads = [thread(7, &[0, 2]), thread(8, &[2])];
    let overhead = DispatchOverhead::of(&hand_overs, &threads, &topology(), &timelines).expect("hand-overs");
    assert_eq!((overhead.begin, overhead.end), (25, 95));
    assert_eq!((overhead.hand_overs, overhead.not_counted, overhead.placed), (3, 2, 2));
    let names: Vec<&str> = overhead.clusters.iter().map(|cluster| &*cluster.name).collect();
    assert_eq!(names, ["little", "big"]);
    let sums = overhead.sums();
    // Idle from 50 to 95; C from 70 to 80, all of it while it is idle.
    assert_eq!(sums.clusters[0], ClusterSums { idle: 45, ready: 10, overhead: 10, unknown: 0 });
    // Idle from 40 to 75; B from 40 to 65, C from 70 to 75.
    assert_eq!(sums.clusters[1], ClusterSums { idle: 35, ready: 40, overhead: 30, unknown: 0 });
    // Both only while C waits and both are idle; B, which big alone may do, counts for `has` too.
    assert_eq!((sums.all, sums.has), (5, 30));
}

#[test]
fn what_is_not_known_is_no_overhead() {
    let topology = topology();
    let hand_overs = [work(Some(10), Some((7, 12)), Some(30), Some(40))];
    assert!(DispatchOverhead::of(&hand_overs, &[], &topology, &Timelines::default()).is_none());
    let timelines =
        timelines(&[(0, &[(35, CpuState::Unknown), (100, IDLE)]), (2, &[(100, CpuState::Offline)])]);
    assert!(DispatchOverhead::of(&[], &[], &topology, &timelines).is_none());
    let overhead = DispatchOverhead::of(&hand_overs, &[], &topology, &timelines).expect("a hand-over");
    let sums = overhead.sums();
    // CPU 1 is never seen.
    assert_eq!(sums.clusters[0], ClusterSums { idle: 5, ready: 0, overhead: 0, unknown: 10 });
    assert_eq!(sums.clusters[1], ClusterSums::default());
    // Work that was taken before it was given waits from its receipt on.
    let early = [work(Some(20), Some((7, 12)), Some(13), Some(40))];
    let overhead = DispatchOverhead::of(&early, &[], &topology, &timelines).expect("a hand-over");
    assert_eq!(overhead.ready.iter().map(|(time, ..)| *time).collect::<Vec<_>>(), [12, 12, 13, 13]);
}

prop_compose! {
    fn any_work()(ready in 0_u64..90, wait in 0_u64..30, length in 0_u64..30, tid in 7_u32..10) -> HandOver {
        let start = ready + wait;
        work(Some(ready), Some((tid, ready + wait / 2)), Some(start), Some(start + length))
    }
}

fn any_timeline() -> impl Strategy<Value = Vec<(u64, CpuState)>> {
    let state =
        prop::sample::select(vec![IDLE, RUNS, CpuState::IdleUnknown, CpuState::Offline, CpuState::Unknown]);
    prop::collection::vec((1_u64..40, state), 1..9).prop_map(|steps| {
        let ends = steps.iter().scan(0, |end, (ns, _)| {
            *end += ns;
            Some(*end)
        });
        ends.zip(steps.iter().map(|(_, state)| *state)).collect()
    })
}

proptest! {
    /// The sweep is what looking at every single instant shows, and never has more overhead at once than its definitions allow.
    #[test]
    fn every_instant_is_as_defined(
        hand_overs in prop::collection::vec(any_work(), 1..12),
        cpus in [any_timeline(), any_timeline(), any_timeline()],
    ) {
        let lanes: Vec<(u32, &[(u64, CpuState)])> = (0..).zip(cpus.iter().map(|steps| &**steps)).collect();
        let known = timelines(&lanes);
        let threads = [thread(7, &[0, 2]), thread(8, &[2])];
        let overhead = DispatchOverhead::of(&hand_overs, &threads, &topology(), &known).expect("hand-overs");
        let may_run = |tid, cluster| tid != 8 || cluster == 1;
        let at = |cpu: usize, time: u64| {
            cpus[cpu].iter().find(|(end, _)| time < *end).map_or(CpuState::Unknown, |(_, state)| *state)
        };
        let is_idle = |cpu, time| matches!(at(cpu, time), CpuState::Idle(_) | CpuState::IdleUnknown);
        let last = cpus.iter().filter_map(|steps| steps.last()).map(|(end, _)| *end).max().unwrap_or(0);
        let mut expected = OverheadSums { clusters: vec![ClusterSums::default(); 2], ..OverheadSums::default() };
        for time in overhead.begin..overhead.end.min(last) {
            let mut has = [false; 2];
            let mut wanted = [false; 2];
            for (cluster, members) in [&[0, 1][..], &[2]].into_iter().enumerate() {
                let idle = members.iter().any(|cpu| is_idle(*cpu, time));
                let unknown = members.iter().any(|cpu| at(*cpu, time) == CpuState::Unknown);
                wanted[cluster] = hand_overs.iter().any(|work| {
                    let (dispatch, receive) = (work.dispatch.expect("given"), work.receive.expect("taken"));
                    may_run(receive.tid, cluster)
                        && dispatch.time <= time
                        && work.start.is_some_and(|start| time < start.time)
                });
                has[cluster] = idle && wanted[cluster];
                let sums = &mut expected.clusters[cluster];
                sums.idle += u64::from(idle);
                sums.unknown += u64::from(unknown);
                sums.ready += u64::from(wanted[cluster]);
                sums.overhead += u64::from(has[cluster]);
            }
            expected.all += u64::from(has == [true; 2]);
            expected.has += u64::from(wanted != [false; 2] && has == wanted);
        }
        let sums = overhead.sums();
        expected.changes = sums.changes;
        prop_assert_eq!(&sums, &expected);
        let mut last = None;
        overhead.visit(|begin, end, clusters| {
            assert!(begin < end && last.is_none_or(|last| last == begin));
            last = Some(end);
            if all_have_overhead(clusters) {
                assert!(clusters.iter().all(|cluster| cluster.has_overhead()) && has_overhead(clusters));
            }
        });
    }
}
