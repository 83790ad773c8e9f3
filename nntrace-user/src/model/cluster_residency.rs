//! Residency of clusters: active at the highest requested frequency of its running CPUs, or idle in the deepest
//! state that they have in common.
//!
//! Source: the power contract, section 2. Fed with events in order of time; each costs what it takes to count one CPU
//! out of one set and into another. Events of one instant are applied together, so that nothing of no length counts.

use std::{collections::BTreeMap, rc::Rc};

use nntrace_common::{
    power::{Activity, Residency},
    time_count::TimeCount,
};

use super::{
    cpu_transition::Transition,
    initial_state::{InitialCpu, InitialState},
    small_counts::SmallCounts,
    small_map::SmallMap,
    timeline::{CpuState, Timeline},
    topology::Topology,
};

/// Events that a cluster keeps while it waits for the first event of each of its CPUs, which shows what the CPU did
/// before it. A CPU that is still silent then counts as unknown.
const MAX_WAITING: usize = 65_536;

/// All clusters of a system.
#[derive(Clone, Debug)]
pub(crate) struct Clusters {
    all: Vec<Cluster>,
    /// Clusters and places in them, by CPU.
    places: Vec<Vec<(usize, usize)>>,
    /// Levels of the idle states of a CPU, where its table has more than their order.
    levels: BTreeMap<u32, Vec<u32>>,
}

/// Residency of one cluster. The times of `active`, `idle` and the three others add up to the window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterResidency {
    /// Time with at least one CPU running, by frequency in kHz, `None` where a running CPU's is not known or the CPUs
    /// share no clock.
    pub active: BTreeMap<Option<u32>, TimeCount>,
    /// All CPUs idle, by level of the state.
    pub(crate) idle: BTreeMap<u32, Residency>,
    /// The level that it is idle in at the end: the last of its stays there is still open.
    pub(crate) idle_at_end: Option<u32>,
    /// Time (ns) by number of CPUs running; `None` while a CPU is unknown or offline, however many others run.
    pub concurrency: BTreeMap<Option<u32>, u64>,
    /// All idle, depth not known, ns.
    pub idle_unknown_ns: u64,
    /// All offline, ns.
    pub(crate) offline_ns: u64,
    /// Nothing known, ns.
    pub unknown_ns: u64,
    /// Running time (ns) of each CPU by the cluster's frequency.
    pub effective: BTreeMap<u32, BTreeMap<Option<u32>, u64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Active(Option<u32>),
    Idle(u32),
    IdleUnknown,
    Offline,
    Unknown,
}

impl From<State> for CpuState {
    fn from(state: State) -> Self {
        match state {
            State::Active(khz) => Self::Running(khz),
            State::Idle(level) => Self::Idle(level),
            State::IdleUnknown => Self::IdleUnknown,
            State::Offline => Self::Offline,
            State::Unknown => Self::Unknown,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Activity { before: Activity, next: Activity },
    Frequency(Option<u32>),
}

#[derive(Clone, Debug)]
struct Member {
    cpu: u32,
    activity: Activity,
    khz: Option<u32>,
    /// Since when it runs at the cluster's present frequency, ns.
    running_since: u64,
    /// Running time (ns) by the cluster's frequency.
    effective: SmallMap<Option<u32>, u64>,
    /// Activity before its first event; `None` until that comes.
    before: Option<Activity>,
}

#[derive(Clone, Debug)]
struct Cluster {
    members: Vec<Member>,
    /// Where they do not, there is no frequency of the cluster.
    shares_clock: bool,
    /// Events that came before every member had one; `None` once the sweep goes on.
    waiting: Option<Vec<(u64, usize, Event)>>,
    sweep: Sweep,
}

#[derive(Clone, Debug)]
struct Sweep {
    state: State,
    since: u64,
    /// The instant whose events are being applied.
    now: u64,
    /// Until when `concurrency` is counted.
    counted_until: u64,
    running: u32,
    running_khz: SmallCounts<Option<u32>>,
    idle: SmallCounts<u32>,
    idle_unknown: u32,
    offline: u32,
    unknown: u32,
    /// Stretches by state: time (ns) and how many.
    active_for: SmallMap<Option<u32>, TimeCount>,
    idle_for: SmallMap<u32, Residency>,
    /// Time (ns) by number of CPUs running, while all are known and online.
    concurrency: Vec<u64>,
    /// The other time, ns.
    no_concurrency: u64,
    /// The rest of what it did.
    result: ClusterResidency,
    /// Every stretch, where somebody wants to know. Shared, so that looking at the rest meanwhile copies none of it.
    steps: Option<Rc<Timeline>>,
}

impl Clusters {
    /// The clusters of a system of whose CPUs this is known at `begin` (ns).
    #[must_use]
    pub(crate) fn new(topology: &Topology, begin: u64, initial: &InitialState) -> Self {
        let cpus = topology.clusters.iter().flat_map(|cluster| cluster.cpus.iter());
        let mut places = vec![Vec::new(); cpus.max().map_or(0, |&last| last as usize + 1)];
        let clusters = topology.clusters.iter().enumerate().map(|(number, description)| {
            let shares_clock = description.domain.shares_clock();
            let members = description.cpus.iter().enumerate().map(|(slot, &cpu)| {
                places[cpu as usize].push((number, slot));
                let InitialCpu { activity, khz, .. } = initial.of(cpu);
                Member {
                    cpu,
                    activity: Activity::Unknown,
                    khz: khz.filter(|_| shares_clock),
                    running_since: begin,
                    effective: SmallMap::default(),
                    before: activity,
                }
            });
            let members = members.collect();
            Cluster { members, shares_clock, waiting: Some(Vec::new()), sweep: Sweep::new(begin) }
        });
        let mut all: Vec<Cluster> = clusters.collect();
        all.iter_mut().filter(|cluster| cluster.is_settled()).for_each(Cluster::start);
        let levels = topology.cpus.iter().filter_map(|(&cpu, description)| {
            let levels: Vec<u32> = description.idle_states.iter().map(|state| state.level).collect();
            (!(0..).zip(&levels).all(|(order, &level)| order == level)).then_some((cpu, levels))
        });
        Self { all, places, levels: levels.collect() }
    }

    /// The activity of a CPU changes.
    pub(crate) fn change(&mut self, transition: &Transition) {
        let &Transition { cpu, before, next, .. } = transition;
        let (before, next) = (self.leveled(cpu, before.activity), self.leveled(cpu, next));
        self.event(transition.before.end, cpu, &Event::Activity { before, next });
    }

    /// The requested frequency (kHz) of a CPU changes at `now` (ns).
    pub(crate) fn frequency(&mut self, now: u64, cpu: u32, khz: Option<u32>) {
        self.event(now, cpu, &Event::Frequency(khz));
    }

    /// Returns the activity with the level of the idle state in the place of its number.
    fn leveled(&self, cpu: u32, activity: Activity) -> Activity {
        match (activity, self.levels.get(&cpu)) {
            (Activity::Idle(state), Some(levels)) => {
                // A state that the table lacks is deeper than all of it.
                let deeper = levels.iter().max().map_or(state, |deepest| deepest + 1);
                Activity::Idle(levels.get(state as usize).copied().unwrap_or(deeper))
            }
            _ => activity,
        }
    }

    // By reference: a copy of a value that was just written in parts is slow.
    fn event(&mut self, now: u64, cpu: u32, event: &Event) {
        for &(cluster, slot) in self.places.get(cpu as usize).into_iter().flatten() {
            self.all[cluster].event(now, slot, event);
        }
    }

    /// Residency of each cluster until `end` (ns), in the order of the topology.
    #[must_use]
    pub(crate) fn until(&self, end: u64) -> Vec<ClusterResidency> {
        let until = |cluster: &Cluster| {
            let mut cluster = cluster.clone();
            cluster.sweep.steps = None;
            cluster.finish(end).result
        };
        self.all.iter().map(until).collect()
    }

    /// Keeps every stretch from `begin` (ns) on, too, at most `cap` of each cluster. To be called before any event.
    pub(crate) fn keep_steps(&mut self, begin: u64, cap: usize) {
        for cluster in &mut self.all {
            cluster.sweep.steps = Some(Rc::new(Timeline::starting_at(begin, cap)));
        }
    }

    /// Timeline of each cluster until `end` (ns), in the order of the topology; none unless they
    /// are kept.
    #[must_use]
    pub(crate) fn steps_until(&self, end: u64) -> Vec<Timeline> {
        let timelines = self.all.iter().filter_map(|cluster| cluster.clone().finish(end).steps);
        timelines.map(Rc::unwrap_or_clone).collect()
    }
}

impl Cluster {
    fn event(&mut self, now: u64, slot: usize, event: &Event) {
        if !self.shares_clock && matches!(event, Event::Frequency(_)) {
            return;
        }
        let Some(waiting) = &mut self.waiting else {
            self.sweep.event(&mut self.members, now, slot, event);
            return;
        };
        if let Event::Activity { before, .. } = event {
            self.members[slot].before.get_or_insert(*before);
        }
        waiting.push((now, slot, *event));
        if waiting.len() >= MAX_WAITING || self.is_settled() {
            self.start();
        }
    }

    /// Whether it is known what every member did at the begin.
    fn is_settled(&self) -> bool {
        self.members.iter().all(|member| member.before.is_some())
    }

    /// Sweeps over what was kept.
    fn start(&mut self) {
        let Some(waiting) = self.waiting.take() else { return };
        for slot in 0..self.members.len() {
            let before = self.members[slot].before.unwrap_or(Activity::Unknown);
            self.members[slot].activity = before;
            self.sweep.count(&self.members[slot], true);
        }
        self.sweep.state = self.sweep.current();
        for (now, slot, event) in waiting {
            self.sweep.event(&mut self.members, now, slot, &event);
        }
    }

    fn finish(mut self, end: u64) -> Sweep {
        self.start();
        self.sweep.settle(&mut self.members);
        let end = end.max(self.sweep.now);
        self.sweep.now = end;
        let has_length = self.sweep.since < end;
        self.sweep.close(&mut self.members);
        if let State::Idle(level) = self.sweep.state
            && has_length
        {
            self.sweep.result.idle_at_end = Some(level);
        }
        self.sweep.fill_result();
        if self.shares_clock {
            let effective = self.members.into_iter().map(|m| (m.cpu, m.effective.into_iter().collect()));
            self.sweep.result.effective =
                effective.filter(|(_, times): &(u32, BTreeMap<_, _>)| !times.is_empty()).collect();
        }
        self.sweep
    }
}

impl Sweep {
    fn new(begin: u64) -> Self {
        Self {
            state: State::Unknown,
            since: begin,
            now: begin,
            counted_until: begin,
            running: 0,
            running_khz: SmallCounts::default(),
            idle: SmallCounts::default(),
            idle_unknown: 0,
            offline: 0,
            unknown: 0,
            active_for: SmallMap::default(),
            idle_for: SmallMap::default(),
            concurrency: Vec::new(),
            no_concurrency: 0,
            result: ClusterResidency::default(),
            steps: None,
        }
    }

    fn event(&mut self, members: &mut [Member], now: u64, slot: usize, event: &Event) {
        if now > self.now {
            self.settle(members);
            self.now = now;
        }
        self.count(&members[slot], false);
        let member = &mut members[slot];
        let was_running = member.activity == Activity::Running;
        match *event {
            Event::Activity { next, .. } => member.activity = next,
            Event::Frequency(khz) => member.khz = khz,
        }
        let runs = member.activity == Activity::Running;
        if runs && !was_running {
            member.running_since = self.now;
        } else if was_running && !runs {
            member.add_effective(self.state, self.now);
        }
        self.count(&members[slot], true);
    }

    /// Counts a member into the sets of what it does, or out of them.
    fn count(&mut self, member: &Member, into: bool) {
        let change = |count: &mut u32| *count = if into { *count + 1 } else { *count - 1 };
        if !matches!(member.activity, Activity::Idle(_) | Activity::IdleUnknown) {
            self.count_concurrency();
        }
        match member.activity {
            Activity::Running => {
                change(&mut self.running);
                count_in(&mut self.running_khz, member.khz, into);
            }
            Activity::Idle(state) => count_in(&mut self.idle, state, into),
            Activity::IdleUnknown => change(&mut self.idle_unknown),
            Activity::Offline => change(&mut self.offline),
            Activity::Unknown => change(&mut self.unknown),
        }
    }

    fn count_concurrency(&mut self) {
        let ns = self.now - self.counted_until;
        if ns == 0 {
            return;
        }
        self.counted_until = self.now;
        if self.offline + self.unknown > 0 {
            self.no_concurrency += ns;
            return;
        }
        let running = self.running as usize;
        if self.concurrency.len() <= running {
            self.concurrency.resize(running + 1, 0);
        }
        self.concurrency[running] += ns;
    }

    /// The state that the counts make.
    fn current(&self) -> State {
        if self.running > 0 {
            // `None` sorts first: one unknown frequency makes the highest unknown.
            return match self.running_khz.first() {
                Some(None) | None => State::Active(None),
                Some(_) => State::Active(self.running_khz.last().flatten()),
            };
        }
        if self.unknown > 0 {
            return State::Unknown;
        }
        match (self.idle.first(), self.idle_unknown) {
            (Some(0), 1..) => State::Idle(0),
            (_, 1..) => State::IdleUnknown,
            (Some(shallowest), 0) => State::Idle(shallowest),
            (None, 0) => State::Offline,
        }
    }

    /// All events of the present instant are in: the state changes now, if it does.
    fn settle(&mut self, members: &mut [Member]) {
        let next = self.current();
        if next != self.state {
            self.close(members);
            self.state = next;
        }
    }

    /// Closes the stretch of the present state at the present instant.
    fn close(&mut self, members: &mut [Member]) {
        self.count_concurrency();
        for member in members.iter_mut().filter(|member| member.activity == Activity::Running) {
            member.add_effective(self.state, self.now);
            member.running_since = self.now;
        }
        let ns = self.now - self.since;
        self.since = self.now;
        if ns == 0 {
            return;
        }
        if let Some(steps) = &mut self.steps {
            Rc::make_mut(steps).push(self.now, self.state.into());
        }
        match self.state {
            State::Active(khz) => {
                *self.active_for.entry(khz, TimeCount::default()) += TimeCount::new(ns, 1);
            }
            State::Idle(state) => self.idle_for.entry(state, Residency::NONE).add(ns),
            State::IdleUnknown => self.result.idle_unknown_ns += ns,
            State::Offline => self.result.offline_ns += ns,
            State::Unknown => self.result.unknown_ns += ns,
        }
    }

    /// Puts all that was counted into the result.
    fn fill_result(&mut self) {
        let concurrency = (0..).map(Some).zip(std::mem::take(&mut self.concurrency));
        let concurrency = concurrency.chain([(None, self.no_concurrency)]);
        self.result.concurrency = concurrency.filter(|(_, ns)| *ns > 0).collect();
        self.result.active = std::mem::take(&mut self.active_for).into_iter().collect();
        self.result.idle = std::mem::take(&mut self.idle_for).into_iter().collect();
    }
}

impl Member {
    /// It ran until `now` (ns) while the cluster was in this state.
    fn add_effective(&mut self, state: State, now: u64) {
        let State::Active(khz) = state else { return };
        if now > self.running_since {
            *self.effective.entry(khz, 0) += now - self.running_since;
        }
    }
}

#[inline]
fn count_in<K: Ord + Copy>(counts: &mut SmallCounts<K>, key: K, into: bool) {
    if into { counts.add(key) } else { counts.take(key) }
}
