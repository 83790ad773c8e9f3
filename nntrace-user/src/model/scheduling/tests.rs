//! The model against a made-up machine, of which everything is known.

use std::collections::BTreeMap;

use nntrace_common::record::RecordKind;
use proptest::prelude::*;

use super::*;

const CPUS: usize = 3;
/// Ids that threads may have; some are used again.
const TIDS: u32 = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    OnCpu,
    Runnable,
    Sleeping,
    Deep,
    Gone,
}

/// A machine, what is told of it, and what is true.
struct World {
    now: u64,
    running: [Option<u32>; CPUS],
    doing: BTreeMap<u32, Doing>,
    told: Vec<SchedRecord>,
    /// Records that were lost, by CPU, and how many of the next ones will be.
    lost: [u32; CPUS],
    losing: [u32; CPUS],
    /// What each thread did since when.
    truth: BTreeMap<u32, Vec<(u64, Doing)>>,
    /// When it first was seen to get or leave a CPU.
    first_switch: BTreeMap<u32, u64>,
}

/// Something that the machine does: what, where, with whom, how long after the last.
type Step = (u8, usize, u8, u64);

impl World {
    fn new(found: &[u8]) -> Self {
        let mut world = Self {
            now: 1,
            running: [None; CPUS],
            doing: BTreeMap::new(),
            told: Vec::new(),
            lost: [0; CPUS],
            losing: [0; CPUS],
            truth: BTreeMap::new(),
            first_switch: BTreeMap::new(),
        };
        for (tid, found) in (1..).zip(found) {
            let doing = [Doing::Runnable, Doing::Sleeping, Doing::Deep, Doing::Gone][*found as usize % 4];
            world.set(tid, doing);
        }
        world
    }

    fn run(mut self, steps: &[Step]) -> Self {
        for &(what, cpu, whom, after) in steps {
            self.now += after;
            let cpu = cpu % CPUS;
            match what {
                0..4 => self.switch(cpu, whom),
                4..6 => self.wake(cpu, 1 + u32::from(whom) % TIDS),
                6 => self.create(cpu, 1 + u32::from(whom) % TIDS),
                _ => self.losing[cpu] = u32::from(whom) % 5,
            }
        }
        self.now += 3;
        self
    }

    fn set(&mut self, tid: u32, doing: Doing) {
        self.doing.insert(tid, doing);
        self.truth.entry(tid).or_default().push((self.now, doing));
    }

    fn tell(&mut self, cpu: usize, tid: u32, change: Change) {
        if self.losing[cpu] > 0 {
            self.losing[cpu] -= 1;
            self.lost[cpu] += 1;
            return;
        }
        let ends = !matches!(change, Change::In | Change::Woken | Change::New);
        self.told.push(record(tid, cpu as u32, self.now, change, self.lost[cpu], u32::from(ends)));
        if ends || change == Change::In {
            self.first_switch.entry(tid).or_insert(self.now);
        }
    }

    fn switch(&mut self, cpu: usize, how: u8) {
        if let Some(tid) = self.running[cpu].take() {
            let (doing, change) = match how % 5 {
                0 | 1 => (Doing::Sleeping, Change::Sleeps),
                2 => (Doing::Deep, Change::SleepsDeep),
                3 => (Doing::Runnable, Change::Preempted),
                _ => (Doing::Gone, Change::Ends),
            };
            self.set(tid, doing);
            self.tell(cpu, tid, change);
        }
        let waiting: Vec<u32> =
            self.doing.iter().filter(|(_, doing)| **doing == Doing::Runnable).map(|(tid, _)| *tid).collect();
        if let Some(&tid) = waiting.get(how as usize / 5 % 4) {
            self.running[cpu] = Some(tid);
            self.set(tid, Doing::OnCpu);
            self.tell(cpu, tid, Change::In);
        }
    }

    fn wake(&mut self, cpu: usize, tid: u32) {
        match self.doing.get(&tid) {
            None | Some(Doing::Gone) => return,
            Some(Doing::Sleeping | Doing::Deep) => self.set(tid, Doing::Runnable),
            Some(Doing::OnCpu | Doing::Runnable) => {}
        }
        self.tell(cpu, tid, Change::Woken);
    }

    fn create(&mut self, cpu: usize, tid: u32) {
        if matches!(self.doing.get(&tid), None | Some(Doing::Gone)) {
            self.set(tid, Doing::Runnable);
            self.tell(cpu, tid, Change::New);
        }
    }

    /// The model, fed with what was told.
    fn model(&self, cap: usize, watched: &[u8]) -> Scheduling {
        let mut model = Scheduling::keeping(1, cap);
        for (tid, found) in (1..).zip(watched) {
            let found = [Some(Found::Awake), Some(Found::Sleeping), Some(Found::Uninterruptible), None]
                [*found as usize % 4];
            if let Some(found) = found {
                model.watch(1, tid, 1, found);
            }
        }
        self.told.iter().for_each(|record| model.record(record));
        for (cpu, &lost) in (0..).zip(&self.lost) {
            model.lost_by(cpu, lost, self.now);
        }
        model
    }

    fn is_lossless(&self) -> bool {
        self.lost == [0; CPUS]
    }

    /// What a thread did from `at` (ns) on.
    fn true_at(&self, tid: u32, at: u64) -> Option<Doing> {
        let all = self.truth.get(&tid)?;
        all.iter().rev().find(|(since, _)| *since <= at).map(|(_, doing)| *doing)
    }

    /// All instants at which anything happened.
    fn instants(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.truth.values().flatten().map(|(at, _)| *at).collect();
        all.extend(self.told.iter().map(|record| record.time));
        all.extend([1, self.now]);
        all.sort_unstable();
        all.dedup();
        all
    }
}

fn record(tid: u32, cpu: u32, time: u64, change: Change, lost: u32, tgid: u32) -> SchedRecord {
    SchedRecord { kind: RecordKind::Sched as u32, tid, tgid, cpu, time, change: change as u32, lost }
}

/// What the model says where all of the time is of one kind; `None` for unknown.
fn said(times: &StateTimes) -> Option<Doing> {
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

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0..8_u8, 0..CPUS, any::<u8>(), 0..4_u64), 0..120)
}

/// Without any loss.
fn calm_steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0..7_u8, 0..CPUS, any::<u8>(), 0..4_u64), 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_is_said_that_is_not_true(
        found in prop::collection::vec(0..4_u8, 0..5), watched in any::<bool>(), steps in steps(),
    ) {
        let world = World::new(&found).run(&steps);
        let model = world.model(KEPT, if watched { &found } else { &[] });
        for tid in 1..=TIDS {
            for pair in world.instants().windows(2) {
                let times = model.times(tid, pair[0], pair[1]);
                prop_assert_eq!(times.total(), pair[1] - pair[0]);
                if let Some(said) = said(&times) {
                    prop_assert_eq!(Some(said), world.true_at(tid, pair[0]), "thread {} at {}", tid, pair[0]);
                }
            }
        }
    }

    #[test]
    fn without_losses_all_is_known_from_the_first_switch_on(
        found in prop::collection::vec(0..4_u8, 0..5), watched in any::<bool>(), steps in calm_steps(),
    ) {
        let world = World::new(&found).run(&steps);
        prop_assert!(world.is_lossless());
        let model = world.model(KEPT, if watched { &found } else { &[] });
        for (&tid, &first) in &world.first_switch {
            for pair in world.instants().windows(2).filter(|pair| pair[0] >= first) {
                let truth = world.true_at(tid, pair[0]).filter(|doing| *doing != Doing::Gone);
                prop_assert_eq!(said(&model.times(tid, pair[0], pair[1])), truth);
            }
        }
    }

    #[test]
    fn any_interval_is_the_sum_of_its_parts(
        found in prop::collection::vec(0..4_u8, 0..5), steps in steps(), ends in any::<[prop::sample::Index; 2]>(),
    ) {
        let world = World::new(&found).run(&steps);
        let model = world.model(KEPT, &found);
        let instants = world.instants();
        let mut ends = ends.map(|end| end.index(instants.len()));
        ends.sort_unstable();
        for tid in 1..=TIDS {
            let mut sum = StateTimes::default();
            for pair in instants[ends[0]..=ends[1]].windows(2) {
                // In three parts each, where there are so many.
                let middle = pair[0].midpoint(pair[1]);
                sum += model.times(tid, pair[0], middle);
                sum += model.times(tid, middle, pair[1]);
            }
            prop_assert_eq!(model.times(tid, instants[ends[0]], instants[ends[1]]), sum);
        }
        for tid in 1..=TIDS {
            let mut rows = StateTimes::default();
            model.threads(1, world.now).iter().filter(|row| row.tid == tid).for_each(|row| rows += row.times);
            let all = model.times(tid, 1, world.now);
            prop_assert_eq!(StateTimes { unknown: 0, ..rows }, StateTimes { unknown: 0, ..all });
            prop_assert!(rows.unknown <= all.unknown);
        }
    }

    #[test]
    fn what_is_not_kept_is_unknown_and_the_rest_as_it_was(
        found in prop::collection::vec(0..4_u8, 0..5), steps in calm_steps(),
    ) {
        let world = World::new(&found).run(&steps);
        let (all, few) = (world.model(KEPT, &found), world.model(4, &found));
        for tid in 1..=TIDS {
            let mut is_kept = false;
            for pair in world.instants().windows(2) {
                let (all, few) = (all.times(tid, pair[0], pair[1]), few.times(tid, pair[0], pair[1]));
                let forgotten = few == StateTimes::default().of(pair[1] - pair[0]);
                prop_assert!(all == few || (forgotten && !is_kept));
                is_kept |= !forgotten && world.truth[&tid].iter().all(|(_, doing)| *doing != Doing::Gone);
            }
        }
        prop_assert_eq!(all.threads(1, world.now), few.threads(1, world.now));
    }
}

/// What one thread, 7, did in the ten ns of each of these events: CPU, and what happens there.
fn told(events: &[(u32, Change)], found: Option<Found>) -> Vec<Option<Doing>> {
    let mut model = Scheduling::starting_at(0);
    if let Some(found) = found {
        model.watch(1, 7, 0, found);
    }
    for (number, &(cpu, change)) in (1..).zip(events) {
        model.record(&record(7, cpu, number * 10, change, 0, 0));
    }
    let times = (0..=events.len() as u64).map(|number| model.times(7, number * 10, number * 10 + 10));
    times.map(|times| said(&times)).collect()
}

#[test]
fn the_first_event_tells_what_was_before_where_all_events_come() {
    use Doing::{OnCpu, Runnable, Sleeping};
    let awake = Some(Found::Awake);
    assert_eq!(told(&[(0, Change::In)], awake), [Some(Runnable), Some(OnCpu)]);
    assert_eq!(told(&[(0, Change::Sleeps)], awake), [Some(OnCpu), Some(Sleeping)]);
    assert_eq!(told(&[], Some(Found::Sleeping)), [Some(Sleeping)]);
    assert_eq!(told(&[], awake), [None]);
    // It was about to sleep when it was looked at.
    assert_eq!(told(&[(0, Change::Sleeps)], Some(Found::Sleeping)), [Some(OnCpu), Some(Sleeping)]);
    let woken = [(1, Change::Woken), (0, Change::In)];
    assert_eq!(told(&woken, Some(Found::Sleeping)), [Some(Sleeping), Some(Runnable), Some(OnCpu)]);
    // Nobody says whether it had run before these came.
    assert_eq!(told(&woken, None), [None, Some(Runnable), Some(OnCpu)]);
    assert_eq!(told(&[(0, Change::In)], None), [None, Some(OnCpu)]);
}

#[test]
fn who_is_woken_on_a_cpu_runs_on() {
    use Doing::{OnCpu, Sleeping};
    let events = [(1, Change::Woken), (2, Change::Woken), (0, Change::Sleeps)];
    assert_eq!(told(&events, None), [None, Some(OnCpu), Some(OnCpu), Some(Sleeping)]);
    let events = [(0, Change::In), (1, Change::Woken), (0, Change::Preempted)];
    assert_eq!(told(&events, None)[1..3], [Some(OnCpu), Some(OnCpu)]);
}

#[test]
fn a_trace_without_wake_ups_shows_sleeps_up_to_the_next_run() {
    let events = [(0, Change::In), (0, Change::Sleeps), (0, Change::In)];
    assert_eq!(told(&events, None)[2], Some(Doing::Sleeping));
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
fn a_cpu_that_takes_two_threads_has_lost_something() {
    let mut model = Scheduling::default();
    model.record(&record(1, 0, 10, Change::In, 0, 0));
    model.record(&record(2, 0, 40, Change::In, 0, 0));
    assert_eq!(model.times(1, 10, 60).unknown, 50);
    assert_eq!(model.times(2, 40, 60).on_cpu, 20);
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
