//! A made-up machine, of which everything is known: its records, and what is true.

use std::collections::{BTreeMap, BTreeSet};

use nntrace_common::{
    record::{RecordKind, SchedRecord},
    sched::Change,
};
use proptest::prelude::*;

use super::{Found, Scheduling};

/// How many CPUs it has.
pub(crate) const CPUS: usize = 3;
/// Ids that threads may have; some are used again. All are of process 1.
pub(crate) const TIDS: u32 = 6;
const LEADER: u32 = 1;

/// Activity of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It runs.
    OnCpu,
    /// It waits for a CPU.
    Runnable,
    /// It sleeps.
    Sleeping,
    /// It sleeps uninterruptibly.
    Deep,
    /// It has ended.
    Gone,
}

/// A machine, its records, and what is true.
pub(crate) struct SimulatedMachine {
    /// The time now, ns.
    pub now: u64,
    running: [Option<u32>; CPUS],
    doing: BTreeMap<u32, Doing>,
    /// Records that came, in their true order.
    pub records: Vec<SchedRecord>,
    /// All that there should have been but for counted losses.
    pub complete: Vec<SchedRecord>,
    /// Records that were lost, by CPU, and how many of the next ones will be.
    pub lost: [u32; CPUS],
    losing: [u32; CPUS],
    /// How many of the next events of a CPU the kernel will leave out, and the threads that this has happened to.
    skipping: [u8; CPUS],
    /// Threads that the kernel has left out an event of.
    pub skipped: BTreeSet<u32>,
    /// Activities of each thread, and since when.
    pub truth: BTreeMap<u32, Vec<(u64, Doing)>>,
    /// When it first was seen to get or leave a CPU.
    pub first_switch: BTreeMap<u32, u64>,
    /// Threads that have left a CPU in their present life.
    left: BTreeSet<u32>,
    /// The former id of the thread that has the leader's now, before the event of it, and whether another has shown it.
    exchanged: Option<(u32, bool)>,
    /// Whether events of one thread on two CPUs are apart in time, as the kernel's locks have them.
    is_apart: bool,
    last_event: BTreeMap<u32, (u64, usize)>,
}

/// Something that the machine does: what, where, with whom, how long after the last.
pub(crate) type Step = (u8, usize, u8, u64);

/// Steps of the first this many kinds.
fn steps_of(kinds: u8) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0..kinds, 0..CPUS, any::<u8>(), 0..4_u64), 0..120)
}

/// Without any loss.
pub(crate) fn calm_steps() -> impl Strategy<Value = Vec<Step>> {
    steps_of(8)
}

/// Records are lost, and counted. An exec shows at once: where ids are exchanged before, and the leader's end is lost on a CPU
/// that is not heard of again, the two cannot be told apart.
pub(crate) fn lossy_steps() -> impl Strategy<Value = Vec<Step>> {
    steps_of(9).prop_map(|steps| {
        let at_once = |(what, cpu, whom, after)| (what, cpu, if what == 7 { whom & !1 } else { whom }, after);
        steps.into_iter().map(at_once).collect()
    })
}

/// The kernel leaves out events, and counts none.
pub(crate) fn patchy_steps() -> impl Strategy<Value = Vec<Step>> {
    steps_of(9).prop_map(|steps| {
        let skip = |(what, cpu, whom, after)| (if what == 8 { 9 } else { what }, cpu, whom, after);
        steps.into_iter().map(skip).collect()
    })
}

/// Activities of threads when the time begins.
pub(crate) fn found() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0..4_u8, 0..5)
}

impl SimulatedMachine {
    /// Creates a machine with threads that are there from the start on, and do this.
    #[must_use]
    pub(crate) fn new(found: &[u8]) -> Self {
        let mut machine = Self {
            now: 1,
            running: [None; CPUS],
            doing: BTreeMap::new(),
            records: Vec::new(),
            complete: Vec::new(),
            lost: [0; CPUS],
            losing: [0; CPUS],
            skipping: [0; CPUS],
            skipped: BTreeSet::new(),
            truth: BTreeMap::new(),
            first_switch: BTreeMap::new(),
            left: BTreeSet::new(),
            exchanged: None,
            is_apart: false,
            last_event: BTreeMap::new(),
        };
        for (tid, found) in (1..).zip(found) {
            let doing = [Doing::Runnable, Doing::Sleeping, Doing::Deep, Doing::Gone][*found as usize % 4];
            machine.set(tid, doing);
        }
        machine
    }

    /// No two events of one thread are of one instant, unless they are of one CPU.
    #[must_use]
    pub(crate) fn apart(mut self) -> Self {
        self.is_apart = true;
        self
    }

    /// Does these steps.
    #[must_use]
    pub(crate) fn run(mut self, steps: &[Step]) -> Self {
        for &(what, cpu, whom, after) in steps {
            self.now += after;
            let cpu = cpu % CPUS;
            match what {
                0..4 => self.switch(cpu, whom),
                4..6 => self.wake(cpu, 1 + u32::from(whom) % TIDS),
                6 => self.create(cpu, 1 + u32::from(whom) % TIDS),
                7 => self.exec(cpu, whom % 2 == 0),
                8 => self.losing[cpu] = u32::from(whom) % 5,
                _ => self.skipping[cpu] = whom % 3,
            }
        }
        self.now += 3;
        self
    }

    fn set(&mut self, tid: u32, doing: Doing) {
        self.doing.insert(tid, doing);
        self.truth.entry(tid).or_default().push((self.now, doing));
    }

    /// An event of a CPU that concerns these threads is about to happen; returns whether the kernel shows it.
    fn begin_event(&mut self, cpu: usize, tids: &[Option<u32>]) -> bool {
        let tids = tids.iter().flatten().copied();
        for tid in tids.clone() {
            let (at, last_cpu) = self.last_event.insert(tid, (self.now, cpu)).unwrap_or_default();
            if self.is_apart && at >= self.now && last_cpu != cpu {
                self.now = at + 1;
            }
        }
        for tid in tids.clone() {
            self.last_event.insert(tid, (self.now, cpu));
        }
        let is_skipped = self.skipping[cpu] > 0 && tids.clone().next().is_some();
        if is_skipped {
            self.skipping[cpu] -= 1;
            self.skipped.extend(tids);
        }
        !is_skipped
    }

    fn emit(&mut self, is_shown: bool, cpu: usize, tid: u32, tgid: u32, change: Change) {
        if self.losing[cpu] > 0 {
            self.losing[cpu] -= 1;
            self.lost[cpu] += 1;
            return;
        }
        let record = record(tid, cpu as u32, self.now, change, self.lost[cpu], tgid);
        self.complete.push(record);
        if is_shown {
            self.records.push(record);
            if !matches!(change, Change::Woken | Change::New) {
                self.first_switch.entry(tid).or_insert(self.now);
            }
            if change == Change::Renamed {
                self.first_switch.entry(tgid).or_insert(self.now);
            }
        }
    }

    fn switch(&mut self, cpu: usize, how: u8) {
        let former = self.running[cpu].take();
        let becomes_leader = former.is_some() && self.exchanged == former.map(|former| (former, false));
        let prev = if becomes_leader { Some(LEADER) } else { former };
        let left = match how % 5 {
            0 | 1 => (Doing::Sleeping, Change::Sleeps),
            2 => (Doing::Deep, Change::SleepsDeep),
            3 => (Doing::Runnable, Change::Preempted),
            _ => (Doing::Gone, Change::Ends),
        };
        let is_waiting = |(tid, doing): (&u32, &Doing)| (*doing == Doing::Runnable).then_some(*tid);
        let waits_on = prev.filter(|_| left.0 == Doing::Runnable);
        let mut waiting: Vec<u32> = self.doing.iter().filter_map(is_waiting).chain(waits_on).collect();
        waiting.sort_unstable();
        let next = waiting.get(how as usize / 5 % 4).copied();
        let is_shown = self.begin_event(cpu, &[former, prev, next]);
        if let (true, Some(former)) = (becomes_leader, former) {
            self.becomes_leader(former);
            self.exchanged = Some((former, true));
        }
        if let Some(tid) = prev {
            self.set(tid, left.0);
            self.left.insert(tid);
            self.emit(is_shown, cpu, tid, LEADER, left.1);
        }
        if let Some(tid) = next {
            self.running[cpu] = Some(tid);
            self.set(tid, Doing::OnCpu);
            self.emit(is_shown, cpu, tid, 0, Change::In);
        }
    }

    fn wake(&mut self, cpu: usize, tid: u32) {
        let doing = self.doing.get(&tid).copied();
        if matches!(doing, None | Some(Doing::Gone)) {
            return;
        }
        let tid = if self.exchanged == Some((tid, false)) { LEADER } else { tid };
        let is_shown = self.begin_event(cpu, &[Some(tid)]);
        if matches!(doing, Some(Doing::Sleeping | Doing::Deep)) {
            self.set(tid, Doing::Runnable);
        }
        self.emit(is_shown, cpu, tid, 0, Change::Woken);
    }

    fn create(&mut self, cpu: usize, tid: u32) {
        let is_free = matches!(self.doing.get(&tid), None | Some(Doing::Gone));
        if is_free && self.exchanged.is_none() {
            let is_shown = self.begin_event(cpu, &[Some(tid)]);
            self.left.remove(&tid);
            self.set(tid, Doing::Runnable);
            self.emit(is_shown, cpu, tid, 0, Change::New);
        }
    }

    /// The thread that runs execs, once the leader has ended: it has the leader's id from now on, and an event shows that at
    /// once or later.
    fn exec(&mut self, cpu: usize, at_once: bool) {
        let Some(tid) = self.running[cpu] else { return };
        let (former, is_leader) = match self.exchanged {
            Some((former, was_seen)) if tid == if was_seen { LEADER } else { former } => (former, was_seen),
            None if tid != LEADER
                && self.left.contains(&tid)
                && self.left.contains(&LEADER)
                && self.doing.get(&LEADER) == Some(&Doing::Gone) =>
            {
                self.exchanged = Some((tid, false));
                if !at_once {
                    return;
                }
                (tid, false)
            }
            _ => return,
        };
        let is_shown = self.begin_event(cpu, &[Some(former), Some(LEADER)]);
        if !is_leader {
            self.becomes_leader(former);
            self.running[cpu] = Some(LEADER);
        }
        self.exchanged = None;
        self.emit(is_shown, cpu, former, LEADER, Change::Renamed);
    }

    fn becomes_leader(&mut self, former: u32) {
        if self.skipped.contains(&LEADER) {
            // That the leader has ended was perhaps not shown.
            self.skipped.insert(former);
        }
        self.set(former, Doing::Gone);
        self.set(LEADER, Doing::OnCpu);
    }

    /// An empty model of it; it knows what threads did at the begin where that is given.
    #[must_use]
    #[expect(clippy::unused_self, reason = "a machine makes its model, as it feeds it")]
    pub(crate) fn model(&self, cap: usize, watched: &[u8]) -> Scheduling {
        let mut model = Scheduling::keeping(1, cap);
        for (tid, found) in (1..).zip(watched) {
            let found = [Some(Found::Awake), Some(Found::Sleeping), Some(Found::Uninterruptible), None]
                [*found as usize % 4];
            if let Some(found) = found {
                model.watch(LEADER, tid, 1, found);
            }
        }
        model
    }

    /// The model, fed with these records.
    #[must_use]
    pub(crate) fn fed(&self, mut model: Scheduling, records: &[SchedRecord]) -> Scheduling {
        for record in records {
            model.record(record);
        }
        for (cpu, &lost) in (0..).zip(&self.lost) {
            model.lost_by(cpu, lost, self.now);
        }
        model
    }

    /// True activity of a thread from `at` (ns) on.
    #[must_use]
    pub(crate) fn true_at(&self, tid: u32, at: u64) -> Option<Doing> {
        let all = self.truth.get(&tid)?;
        all.iter().rev().find(|(since, _)| *since <= at).map(|(_, doing)| *doing)
    }

    /// All instants at which anything happened.
    #[must_use]
    pub(crate) fn instants(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.truth.values().flatten().map(|(at, _)| *at).collect();
        all.extend(self.complete.iter().map(|record| record.time));
        all.extend([1, self.now]);
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// One record.
#[must_use]
pub(crate) fn record(tid: u32, cpu: u32, time: u64, change: Change, lost: u32, tgid: u32) -> SchedRecord {
    SchedRecord { kind: RecordKind::Sched as u32, tid, tgid, cpu, time, change: change as u32, lost }
}
