//! The model against a made-up machine, of which everything is known.

use proptest::prelude::*;

use super::{
    simulated_machine::{
        Doing, SimulatedMachine, TIDS, calm_steps, found, lossy_steps, patchy_steps, record,
    },
    *,
};

/// The state where all of the time is of one kind; `None` for unknown.
fn only_state(times: &StateTimes) -> Option<Doing> {
    let all = times.total();
    let kinds = [
        (times.on_cpu, Some(Doing::OnCpu)),
        (times.runnable, Some(Doing::Runnable)),
        (times.sleeping, Some(Doing::Sleeping)),
        (times.uninterruptible, Some(Doing::Deep)),
        (times.unknown, None),
    ];
    kinds.into_iter().find(|(ns, _)| *ns == all).expect("nothing changes between two instants").1
}

/// The states that were found, where `watched`.
fn known(found: &[u8], watched: bool) -> &[u8] {
    if watched { found } else { &[] }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_is_said_that_is_not_true(
        found in found(), watched in any::<bool>(), steps in lossy_steps(),
    ) {
        let machine = SimulatedMachine::new(&found).run(&steps);
        let model = machine.fed(machine.model(KEPT, known(&found, watched)), &machine.records);
        for tid in 1..=TIDS {
            for pair in machine.instants().windows(2) {
                let times = model.times(tid, pair[0], pair[1]);
                prop_assert_eq!(times.total(), pair[1] - pair[0]);
                if let Some(state) = only_state(&times) {
                    prop_assert_eq!(Some(state), machine.true_at(tid, pair[0]), "thread {} at {}", tid, pair[0]);
                }
            }
        }
    }

    #[test]
    fn without_losses_all_is_known_from_the_first_switch_on(
        found in found(), watched in any::<bool>(), steps in calm_steps(),
    ) {
        let machine = SimulatedMachine::new(&found).run(&steps);
        let model = machine.fed(machine.model(KEPT, known(&found, watched)), &machine.records);
        for (&tid, &first) in &machine.first_switch {
            for pair in machine.instants().windows(2).filter(|pair| pair[0] >= first) {
                let truth = machine.true_at(tid, pair[0]).filter(|doing| *doing != Doing::Gone);
                prop_assert_eq!(only_state(&model.times(tid, pair[0], pair[1])), truth);
            }
        }
    }

    #[test]
    fn an_event_that_the_kernel_leaves_out_concerns_its_own_threads_only(
        found in found(), watched in any::<bool>(), steps in patchy_steps(),
    ) {
        let machine = SimulatedMachine::new(&found).run(&steps);
        let model = || machine.model(KEPT, known(&found, watched));
        let (seen, complete) = (machine.fed(model(), &machine.records), machine.fed(model(), &machine.complete));
        for tid in 1..=TIDS {
            for pair in machine.instants().windows(2) {
                let times = seen.times(tid, pair[0], pair[1]);
                prop_assert_eq!(times.total(), pair[1] - pair[0]);
                if !machine.skipped.contains(&tid) {
                    prop_assert_eq!(times, complete.times(tid, pair[0], pair[1]), "thread {}", tid);
                }
            }
        }
        prop_assert_eq!(complete.missing(), 0);
    }

    #[test]
    fn any_interval_is_the_sum_of_its_parts(
        found in found(), steps in lossy_steps(), ends in any::<[prop::sample::Index; 2]>(),
    ) {
        let machine = SimulatedMachine::new(&found).run(&steps);
        let model = machine.fed(machine.model(KEPT, &found), &machine.records);
        let instants = machine.instants();
        let mut ends = ends.map(|end| end.index(instants.len()));
        ends.sort_unstable();
        for tid in 1..=TIDS {
            let mut sum = StateTimes::default();
            for pair in instants[ends[0]..=ends[1]].windows(2) {
                // In three parts each, where there are enough.
                let middle = pair[0].midpoint(pair[1]);
                sum += model.times(tid, pair[0], middle);
                sum += model.times(tid, middle, pair[1]);
            }
            prop_assert_eq!(model.times(tid, instants[ends[0]], instants[ends[1]]), sum);
        }
        for tid in 1..=TIDS {
            let mut rows = StateTimes::default();
            model.threads(1, machine.now).iter().filter(|row| row.tid == tid).for_each(|row| rows += row.times);
            let all = model.times(tid, 1, machine.now);
            prop_assert_eq!(StateTimes { unknown: 0, ..rows }, StateTimes { unknown: 0, ..all });
            prop_assert!(rows.unknown <= all.unknown);
        }
    }

    #[test]
    fn what_is_not_kept_is_unknown_and_the_rest_as_it_was(
        found in found(), steps in calm_steps(),
    ) {
        let machine = SimulatedMachine::new(&found).run(&steps);
        let [all, few] = [KEPT, 4].map(|cap| machine.fed(machine.model(cap, &found), &machine.records));
        for tid in 1..=TIDS {
            let mut is_kept = false;
            for pair in machine.instants().windows(2) {
                let (all, few) = (all.times(tid, pair[0], pair[1]), few.times(tid, pair[0], pair[1]));
                let forgotten = few == StateTimes::default().of(pair[1] - pair[0]);
                prop_assert!(all == few || (forgotten && !is_kept));
                is_kept |= !forgotten && machine.truth[&tid].iter().all(|(_, doing)| *doing != Doing::Gone);
            }
        }
        prop_assert_eq!(all.threads(1, machine.now), few.threads(1, machine.now));
    }
}

/// Times of one thread, 7, in the ten ns of each of these events: CPU and change.
fn states(events: &[(u32, Change)], found: Option<Found>) -> Vec<Option<Doing>> {
    let mut model = Scheduling::starting_at(0);
    if let Some(found) = found {
        model.watch(1, 7, 0, found);
    }
    for (number, &(cpu, change)) in (1..).zip(events) {
        model.record(&record(7, cpu, number * 10, change, 0, 0));
    }
    let times = (0..=events.len() as u64).map(|number| model.times(7, number * 10, number * 10 + 10));
    times.map(|times| only_state(&times)).collect()
}

#[test]
fn the_first_event_tells_what_was_before_where_all_events_come() {
    use Doing::{OnCpu, Runnable, Sleeping};
    let awake = Some(Found::Awake);
    assert_eq!(states(&[(0, Change::In)], awake), [Some(Runnable), Some(OnCpu)]);
    assert_eq!(states(&[(0, Change::Sleeps)], awake), [Some(OnCpu), Some(Sleeping)]);
    assert_eq!(states(&[], Some(Found::Sleeping)), [Some(Sleeping)]);
    assert_eq!(states(&[], awake), [None]);
    // It was about to sleep when it was looked at.
    assert_eq!(states(&[(0, Change::Sleeps)], Some(Found::Sleeping)), [Some(OnCpu), Some(Sleeping)]);
    let woken = [(1, Change::Woken), (0, Change::In)];
    assert_eq!(states(&woken, Some(Found::Sleeping)), [Some(Sleeping), Some(Runnable), Some(OnCpu)]);
    // Nothing shows whether it had run before these came.
    assert_eq!(states(&woken, None), [None, Some(Runnable), Some(OnCpu)]);
    assert_eq!(states(&[(0, Change::In)], None), [None, Some(OnCpu)]);
}

#[test]
fn who_is_woken_on_a_cpu_runs_on() {
    use Doing::{OnCpu, Sleeping};
    let events = [(1, Change::Woken), (2, Change::Woken), (0, Change::Sleeps)];
    assert_eq!(states(&events, None), [None, Some(OnCpu), Some(OnCpu), Some(Sleeping)]);
    let events = [(0, Change::In), (1, Change::Woken), (0, Change::Preempted)];
    assert_eq!(states(&events, None)[1..3], [Some(OnCpu), Some(OnCpu)]);
}

/// By `sched_waking`, and by `sched_wakeup` on another CPU and later.
#[test]
fn who_is_woken_twice_waits_from_the_first_time_on() {
    use Doing::{OnCpu, Runnable, Sleeping};
    let twice = [(0, Change::Sleeps), (1, Change::Woken), (0, Change::Woken), (0, Change::In)];
    let seen = [Some(OnCpu), Some(Sleeping), Some(Runnable), Some(Runnable), Some(OnCpu)];
    assert_eq!(states(&twice, Some(Found::Awake)), seen);
    // It was about to go to sleep.
    let early = [(1, Change::Woken), (0, Change::Sleeps), (1, Change::Woken), (0, Change::In)];
    let seen = [Some(OnCpu), Some(OnCpu), Some(Sleeping), Some(Runnable), Some(OnCpu)];
    assert_eq!(states(&[&[(0, Change::In)], &early[..]].concat(), None)[1..], seen);
}

#[test]
fn a_trace_without_wake_ups_shows_sleeps_up_to_the_next_run() {
    let events = [(0, Change::In), (0, Change::Sleeps), (0, Change::In)];
    assert_eq!(states(&events, None)[2], Some(Doing::Sleeping));
    let mut model = Scheduling::default();
    model.record(&record(7, 0, 10, Change::In, 0, 0));
    assert!(model.lacks_wakeups());
    model.record(&record(8, 0, 11, Change::Woken, 0, 0));
    assert!(!model.lacks_wakeups());
    // With them, one is missing here.
    model.record(&record(7, 0, 20, Change::Sleeps, 0, 0));
    model.record(&record(7, 0, 30, Change::In, 0, 0));
    assert_eq!(model.times(7, 20, 30), StateTimes { unknown: 10, ..StateTimes::default() });
}

#[test]
fn a_loss_spares_those_that_run_elsewhere() {
    let mut model = Scheduling::default();
    for (tid, cpu, time, change) in [
        (1, 0, 10, Change::In),
        (2, 1, 10, Change::In),
        (3, 1, 10, Change::Woken),
        (4, 2, 10, Change::In),
        (4, 2, 11, Change::Sleeps),
    ] {
        model.record(&record(tid, cpu, time, change, 0, 0));
    }
    model.lost(1, 50);
    let known = |tid| model.times(tid, 20, 50).unknown == 0;
    assert_eq!([1, 2, 3, 4].map(known), [true, false, false, false]);
}

#[test]
fn a_cpu_that_takes_two_threads_has_not_shown_how_the_first_left() {
    let mut model = Scheduling::default();
    model.record(&record(1, 0, 10, Change::In, 0, 0));
    model.record(&record(2, 0, 40, Change::In, 0, 0));
    assert_eq!(model.times(1, 10, 60).unknown, 50);
    assert_eq!(model.times(2, 40, 60).on_cpu, 20);
    assert_eq!(model.missing(), 1);
}

/// A kernel that shows no switch away from some of its own tasks: who gets the CPU from one was never seen to get it.
#[test]
fn who_sleeps_meanwhile_is_known_to_sleep_when_a_switch_to_another_is_not_shown() {
    let mut model = Scheduling::default();
    for (tid, cpu, time, change) in [
        (1, 0, 10, Change::New),
        (1, 0, 11, Change::In),
        (2, 0, 12, Change::New),
        (1, 0, 13, Change::Sleeps),
        (2, 1, 20, Change::In),
        (2, 1, 30, Change::Sleeps),
        (2, 1, 40, Change::Woken),
        // Of its way from here to there nothing came.
        (2, 1, 50, Change::Sleeps),
        (2, 1, 60, Change::Woken),
        (2, 1, 61, Change::In),
        (2, 1, 70, Change::Ends),
        (1, 1, 80, Change::Woken),
        (1, 1, 81, Change::In),
    ] {
        model.record(&record(tid, cpu, time, change, 0, 0));
    }
    assert_eq!(model.times(1, 13, 80), StateTimes { sleeping: 67, ..StateTimes::default() });
    let seen = StateTimes { on_cpu: 19, runnable: 9, sleeping: 20, uninterruptible: 0, unknown: 10 };
    assert_eq!(model.times(2, 12, 70), seen);
    assert_eq!(model.missing(), 1);
}

/// The ids are exchanged before the event shows it: what the thread does meanwhile shows under its new one.
#[test]
fn a_thread_that_execs_ends_and_its_leader_lives_again() {
    const LEADER: u32 = 100;
    let mut model = Scheduling::default();
    for (tid, cpu, time, change, tgid) in [
        (LEADER, 0, 10, Change::New, 0),
        (LEADER, 0, 11, Change::In, 0),
        (7, 0, 12, Change::New, 0),
        (7, 1, 13, Change::In, 0),
        (7, 1, 14, Change::Sleeps, LEADER),
        (LEADER, 0, 15, Change::Ends, LEADER),
        (7, 1, 16, Change::Woken, 0),
        (7, 1, 17, Change::In, 0),
        (LEADER, 1, 20, Change::SleepsDeep, LEADER),
        (LEADER, 1, 24, Change::Woken, 0),
        (LEADER, 1, 25, Change::In, 0),
        (7, 1, 26, Change::Renamed, LEADER),
        (LEADER, 1, 40, Change::Ends, LEADER),
    ] {
        model.record(&record(tid, cpu, time, change, 0, tgid));
    }
    let rows = model.threads(0, 1_000);
    let seen: Vec<_> = rows.iter().map(|row| (row.pid, row.tid, row.begin, row.end)).collect();
    let pid = Some(LEADER);
    assert_eq!(seen, [(pid, 7, 12, 20), (pid, LEADER, 10, 15), (pid, LEADER, 20, 40)]);
    assert!(rows.iter().all(|row| row.times.unknown == 0), "{rows:?}");
    assert_eq!((rows[0].times.on_cpu, rows[2].times.uninterruptible, rows[2].times.on_cpu), (4, 4, 15));
    assert_eq!(model.missing(), 0);
}

/// Without a process in the events, and without one of the leader's end.
#[test]
fn a_thread_that_execs_ends_even_if_little_shows_it() {
    let mut model = Scheduling::default();
    model.record(&record(7, 1, 10, Change::New, 0, 0));
    model.record(&record(7, 1, 20, Change::In, 0, 0));
    model.record(&record(7, 1, 30, Change::Renamed, 0, 100));
    model.record(&record(100, 1, 50, Change::Ends, 0, 100));
    let rows = model.threads(0, 1_000);
    let seen: Vec<_> = rows.iter().map(|row| (row.tid, row.begin, row.end, row.times.on_cpu)).collect();
    assert_eq!(seen, [(7, 10, 30, 10), (100, 30, 50, 20)]);
}

#[test]
fn an_id_that_is_used_again_is_another_thread() {
    let mut model = Scheduling::default();
    for (time, change, tgid) in [
        (10, Change::New, 0),
        (15, Change::In, 0),
        (20, Change::Ends, 100),
        (50, Change::New, 0),
        (55, Change::In, 0),
        (60, Change::Sleeps, 200),
    ] {
        model.record(&record(7, 0, time, change, 0, tgid));
    }
    let rows = model.threads(0, 100);
    let seen: Vec<_> = rows.iter().map(|row| (row.pid, row.begin, row.end, row.times.unknown)).collect();
    assert_eq!(seen, [(Some(100), 10, 20, 0), (Some(200), 50, 100, 0)]);
    assert_eq!((rows[0].times.on_cpu, rows[1].times.sleeping), (5, 40));
    assert_eq!(
        model.times(7, 0, 100),
        StateTimes { on_cpu: 10, runnable: 10, sleeping: 40, uninterruptible: 0, unknown: 40 }
    );
}

/// The trace lacks the end of the first one. Its process shows with its next switch only, so all since it got the CPU
/// is its.
#[test]
fn an_id_that_another_process_uses_next_is_another_thread_from_when_it_gets_a_cpu() {
    let mut model = Scheduling::default();
    for (cpu, time, change, tgid) in [
        (0, 10, Change::In, 0),
        (0, 20, Change::Sleeps, 100),
        (1, 50, Change::Woken, 0),
        (1, 55, Change::In, 0),
        (1, 75, Change::Sleeps, 200),
        (1, 80, Change::In, 0),
        (1, 90, Change::Preempted, 200),
    ] {
        model.record(&record(7, cpu, time, change, 0, tgid));
    }
    let rows = model.threads(0, 100);
    let seen: Vec<_> = rows.iter().map(|row| (row.pid, row.begin, row.end, row.times.on_cpu)).collect();
    assert_eq!(seen, [(Some(100), 0, 55, 10), (Some(200), 55, 100, 30)]);
    assert_eq!((rows[0].times.sleeping, rows[0].times.unknown), (30, 10));
    let cpus: Vec<_> = rows.iter().map(|row| [0, 1].map(|cpu| row.cpus.contains(cpu))).collect();
    assert_eq!(cpus, [[true, false], [false, true]]);
}

#[test]
fn who_was_found_before_its_begin_was_told_is_the_same() {
    let mut model = Scheduling::default();
    model.watch(100, 7, 50, Found::Awake);
    model.record(&record(7, 0, 40, Change::New, 0, 0));
    model.record(&record(7, 0, 60, Change::In, 0, 0));
    let rows = model.threads(0, 100);
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].pid, rows[0].begin, rows[0].end), (Some(100), 40, 100));
    assert_eq!((rows[0].times.runnable, rows[0].times.on_cpu), (20, 40));
}
