//! Random schedules against what a look at every single nanosecond finds, and hand calculations.

mod by_hand;

use nntrace_common::{
    layer::{Layer, Phase, Tag},
    power::IDLE_EXIT,
    record::{PowerRecord, Record, RecordKind, SchedRecord, SpanRecord},
    sched::Change as SchedChange,
    stack::Closed,
};
use proptest::prelude::*;

use super::*;
use crate::model::{
    Model,
    causality::Questions,
    initial_state::{InitialCpu, InitialState},
    run_facts::{Clock, Window},
    topology::{ClusterDescription, CpuDescription, Domain},
};

const PID: u32 = 7;
const CPUS: u32 = 4;
const TIDS: [u32; 3] = [7, 8, 9];
const FREQUENCIES: [u32; 3] = [500_000, 1_000_000, 2_000_000];

fn topology() -> Topology {
    let cluster = |name: &str, cpus: &[u32]| ClusterDescription {
        name: name.into(),
        cpus: cpus.to_vec(),
        domain: Domain::Both,
    };
    Topology {
        cpus: (0..CPUS).map(|cpu| (cpu, CpuDescription::default())).collect(),
        clusters: vec![cluster("little", &[0, 1]), cluster("big", &[2, 3])],
        ..Topology::default()
    }
}

fn sched(time: u64, tid: u32, cpu: u32, change: SchedChange) -> Record {
    let tgid = if change == SchedChange::In { 0 } else { PID };
    let (kind, change) = (RecordKind::Sched as u32, change as u32);
    Record::Sched(SchedRecord { kind, tid, tgid, cpu, time, change, lost: 0 })
}

fn idle(time: u64, cpu: u32, state: u32) -> Record {
    Record::Idle(PowerRecord { kind: RecordKind::Idle as u32, cpu, time, state, lost: 0 })
}

fn frequency(time: u64, cpu: u32, khz: u32) -> Record {
    Record::Frequency(PowerRecord { kind: RecordKind::Frequency as u32, cpu, time, state: khz, lost: 0 })
}

fn section(tid: u32, name: u64, times: (u64, u64), depth: u8, exclusive: u64) -> Record {
    let (begin, end) = times;
    let tag = Tag::new(Layer::Runtime, Phase::Execution);
    let closed = Closed { depth, exclusive, ..Closed::alone(tag, name, begin, end, 0) };
    Record::Span(SpanRecord::new(PID, tid, true, &closed))
}

fn model() -> Model {
    Model::new(&Limits::default(), Questions::default(), Some(Scheduling::for_sums()))
}

/// Tables of a model, with all threads of the process.
fn tables(model: &Model, begin: u64, end: u64) -> UsageTables {
    let (Some(usage), Some(scheduling)) = (&model.usage, &model.scheduling) else {
        return UsageTables::default();
    };
    let window = Window { clock: Clock::Trace, begin_ns: begin, end_ns: end };
    let threads = scheduling.named_threads(&window, |_, _| Some((PID, String::new())));
    usage.tables(end, scheduling, &threads, &model.marks)
}

/// An act at some time, as far as it is possible then.
#[derive(Clone, Copy, Debug)]
enum Act {
    Run { tid: usize, cpu: u32 },
    Leave { tid: usize, change: u8 },
    Wake { tid: usize },
    Begin { tid: usize },
    End { tid: usize },
    Idle { cpu: u32, state: u32 },
    Frequency { cpu: u32, khz: usize },
}

fn act() -> impl Strategy<Value = Act> {
    let tid = 0..TIDS.len();
    prop_oneof![
        3 => (tid.clone(), 0..CPUS).prop_map(|(tid, cpu)| Act::Run { tid, cpu }),
        2 => (tid.clone(), 0_u8..3).prop_map(|(tid, change)| Act::Leave { tid, change }),
        2 => tid.clone().prop_map(|tid| Act::Wake { tid }),
        3 => tid.clone().prop_map(|tid| Act::Begin { tid }),
        3 => tid.prop_map(|tid| Act::End { tid }),
        3 => (0..CPUS, 0_u32..3).prop_map(|(cpu, state)| Act::Idle { cpu, state }),
        1 => (0..CPUS, 0..FREQUENCIES.len()).prop_map(|(cpu, khz)| Act::Frequency { cpu, khz }),
    ]
}

/// A thread at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    OnCpu(u32),
    Runnable,
    Sleeping,
    Deep,
}

struct Open {
    name: u64,
    begin: u64,
    inside: u64,
}

/// Case at one nanosecond.
struct Instant {
    threads: Vec<State>,
    /// Name, begin and depth of the innermost section of each thread.
    sections: Vec<Option<(u64, u64, usize)>>,
    cpus: Vec<Option<Activity>>,
    khz: Vec<Option<u32>>,
}

/// Everything at one instant.
struct Host {
    now: u64,
    threads: Vec<State>,
    stacks: Vec<Vec<Open>>,
    /// Activity of CPUs; `None` before the first event.
    cpus: Vec<Option<Activity>>,
    khz: Vec<Option<u32>>,
    records: Vec<Record>,
    /// One for each nanosecond.
    seen: Vec<Instant>,
    ended: Vec<(usize, u64, usize, u64)>,
    names: u64,
}

impl Host {
    fn do_act(&mut self, act: Act) {
        let now = self.now;
        match act {
            Act::Run { tid, cpu } => {
                let is_free = !self.threads.contains(&State::OnCpu(cpu));
                if self.threads[tid] == State::Runnable && is_free {
                    self.threads[tid] = State::OnCpu(cpu);
                    self.records.push(sched(now, TIDS[tid], cpu, SchedChange::In));
                }
            }
            Act::Leave { tid, change } => {
                let State::OnCpu(cpu) = self.threads[tid] else { return };
                let (state, change) = match change {
                    0 => (State::Runnable, SchedChange::Preempted),
                    1 => (State::Sleeping, SchedChange::Sleeps),
                    _ => (State::Deep, SchedChange::SleepsDeep),
                };
                self.threads[tid] = state;
                self.records.push(sched(now, TIDS[tid], cpu, change));
            }
            Act::Wake { tid } => {
                if matches!(self.threads[tid], State::Sleeping | State::Deep) {
                    self.threads[tid] = State::Runnable;
                    self.records.push(sched(now, TIDS[tid], 0, SchedChange::Woken));
                }
            }
            Act::Begin { tid } => {
                self.names += 1;
                let name = 100 + self.names % 3;
                self.stacks[tid].push(Open { name, begin: now, inside: 0 });
            }
            Act::End { tid } => {
                let Some(open) = self.stacks[tid].pop() else { return };
                let depth = self.stacks[tid].len();
                let duration = now - open.begin;
                if let Some(around) = self.stacks[tid].last_mut() {
                    around.inside += duration;
                }
                let exclusive = duration - open.inside;
                self.records.push(section(TIDS[tid], open.name, (open.begin, now), depth as u8, exclusive));
                self.ended.push((tid, open.begin, depth, open.name));
            }
            Act::Idle { cpu, state } => {
                let place = cpu as usize;
                let is_idle = matches!(self.cpus[place], Some(Activity::Idle(_)));
                // The first event enters a state, and shows that the CPU ran before.
                let (next, state) =
                    if is_idle { (Activity::Running, IDLE_EXIT) } else { (Activity::Idle(state), state) };
                self.cpus[place] = Some(next);
                self.records.push(idle(now, cpu, state));
            }
            Act::Frequency { cpu, khz } => {
                self.khz[cpu as usize] = Some(FREQUENCIES[khz]);
                self.records.push(frequency(now, cpu, FREQUENCIES[khz]));
            }
        }
    }

    /// Takes down what is the case for one nanosecond.
    fn tick(&mut self) {
        let sections =
            self.stacks.iter().map(|stack| stack.last().map(|open| (open.name, open.begin, stack.len() - 1)));
        self.seen.push(Instant {
            threads: self.threads.clone(),
            sections: sections.collect(),
            cpus: self.cpus.clone(),
            khz: self.khz.clone(),
        });
        self.now += 1;
    }
}

/// Runs the acts, each after this many nanoseconds, and returns the records, the end, and the resources by nanoseconds: of functions,
/// and of what was outside of sections or in such as have not ended.
fn run(begin: u64, acts: &[(u64, Act)], is_known: bool) -> (Vec<Record>, u64, BTreeMap<Option<u64>, Usage>) {
    let first = is_known.then_some(Activity::Running);
    let mut host = Host {
        now: begin,
        threads: vec![State::Runnable; TIDS.len()],
        stacks: TIDS.iter().map(|_| Vec::new()).collect(),
        cpus: vec![first; CPUS as usize],
        khz: vec![None; CPUS as usize],
        records: TIDS.iter().map(|tid| sched(begin, *tid, 0, SchedChange::New)).collect(),
        seen: Vec::new(),
        ended: Vec::new(),
        names: 0,
    };
    for (wait, act) in acts {
        (0..*wait).for_each(|_| host.tick());
        host.do_act(*act);
    }
    host.tick();
    // A CPU without any event is unknown, all others ran before their first.
    let silent: Vec<bool> = host.cpus.iter().map(Option::is_none).collect();
    let mut sums: BTreeMap<Option<u64>, Usage> = BTreeMap::new();
    for Instant { threads, sections, cpus, khz } in &host.seen {
        let activity = |cpu: usize| match cpus[cpu] {
            Some(known) => known,
            None if silent[cpu] => Activity::Unknown,
            None => Activity::Running,
        };
        for (tid, state) in threads.iter().enumerate() {
            let section = sections[tid]
                .filter(|(name, begin, depth)| host.ended.contains(&(tid, *begin, *depth, *name)));
            let usage = sums.entry(section.map(|(name, ..)| name)).or_default();
            match *state {
                State::Runnable => usage.runnable += 1,
                State::Sleeping => usage.sleeping += 1,
                State::Deep => usage.uninterruptible += 1,
                State::OnCpu(cpu) => {
                    let members = [cpu & 2, cpu | 1].map(|cpu| cpu as usize);
                    let running: Vec<usize> =
                        members.into_iter().filter(|cpu| activity(*cpu) == Activity::Running).collect();
                    let place = match activity(cpu as usize) {
                        Activity::Running => Place::Clock {
                            cluster: cpu / 2,
                            khz: running
                                .iter()
                                .map(|cpu| khz[*cpu])
                                .try_fold(0, |most, khz| Some(most.max(khz?))),
                            sharing: running.len() as u32,
                        },
                        Activity::Unknown => Place::Unknown { cpu },
                        _ => Place::NoClock { cpu },
                    };
                    *usage.ran.entry(place).or_default() += 1;
                }
            }
        }
    }
    (host.records, host.now, sums)
}

fn without_wakes(usage: &Usage) -> Usage {
    Usage { wakes: BTreeMap::new(), ..usage.clone() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Whether it is known at the begin which CPUs there are and what they do, or only at the end.
    #[test]
    fn every_nanosecond_is_in_its_row(
        acts in prop::collection::vec((0_u64..4, act()), 0..150),
        is_known in any::<bool>(),
    ) {
        let begin = 1_000;
        let (records, end, expected) = run(begin, &acts, is_known);
        let mut initial = InitialState::default();
        for cpu in (0..CPUS).filter(|_| is_known) {
            let activity = Some(Activity::Running);
            initial.cpus.insert(cpu, InitialCpu { activity, ..InitialCpu::default() });
        }
        let mut model = model();
        if is_known {
            model.begin_power(&topology(), begin, &initial, false);
        }
        for record in &records {
            model.record(record);
        }
        if !is_known {
            model.begin_power(&topology(), begin, &initial, false);
        }
        let found = tables(&model, begin, end);
        let mut rows: BTreeMap<Option<u64>, Usage> = BTreeMap::new();
        for ((_, _, name), usage) in &found.functions {
            rows.entry(Some(*name)).or_default().merge(&without_wakes(usage));
        }
        rows.insert(None, without_wakes(&found.others[&PID]));
        rows.retain(|_, usage| usage.total() > 0);
        prop_assert_eq!(&rows, &expected);
        // Without accounts, nobody is charged with all of it.
        let sections: u64 = found.functions.values().map(Usage::total).sum();
        prop_assert_eq!(found.accounts.values().map(Usage::total).sum::<u64>(), sections);
    }
}

#[test]
fn a_long_section_is_known_though_little_is_kept_of_its_thread() {
    let mut model = model();
    model.begin_power(&topology(), 0, &InitialState::default(), false);
    model.record(&sched(0, 7, 0, SchedChange::New));
    let mut now = 0;
    // A first section, so that more is kept; then far more stretches than that.
    model.record(&section(7, 1, (0, 0), 0, 0));
    for _ in 0..20_000 {
        model.record(&sched(now + 10, 7, 0, SchedChange::In));
        model.record(&sched(now + 40, 7, 0, SchedChange::Sleeps));
        model.record(&sched(now + 90, 7, 0, SchedChange::Woken));
        now += 100;
    }
    model.record(&section(7, 2, (1_005, now), 0, now - 1_005));
    let found = tables(&model, 0, now);
    let usage = found.functions.iter().find(|((_, _, name), _)| *name == 2).map(|(_, usage)| usage);
    let Some(usage) = usage else { panic!("no row of the section") };
    assert_eq!(usage.total(), now - 1_005);
    // Only the sum in which it began is not known, and that is short against the whole.
    assert!(usage.unknown < now / 100, "{usage:?}");
    assert!(usage.on_cpu().abs_diff(now * 3 / 10) < now / 100, "{usage:?}");
    let whole: u64 = found.functions.values().chain(found.others.values()).map(Usage::total).sum();
    assert_eq!(whole, now);
}

#[test]
fn what_was_lost_is_unknown() {
    let lossy = |time, change, lost| match sched(time, 7, 0, change) {
        Record::Sched(record) => Record::Sched(SchedRecord { lost, ..record }),
        other => other,
    };
    let mut model = model();
    model.begin_power(&topology(), 0, &InitialState::default(), false);
    for record in [
        lossy(0, SchedChange::New, 0),
        lossy(10, SchedChange::In, 0),
        lossy(20, SchedChange::Sleeps, 0),
        lossy(30, SchedChange::Woken, 0),
        // Two are missing before this one.
        lossy(60, SchedChange::In, 2),
        lossy(100, SchedChange::Preempted, 2),
        section(7, 1, (15, 100), 0, 85),
    ] {
        model.record(&record);
    }
    let found = tables(&model, 0, 100);
    let usage = &found.functions[&(PID, Tag::new(Layer::Runtime, Phase::Execution), 1)];
    assert_eq!((usage.on_cpu(), usage.sleeping, usage.runnable, usage.unknown), (5 + 40, 10, 0, 30));
    assert_eq!(found.others[&PID].total(), 15);
}
