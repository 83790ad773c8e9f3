//! Second implementation of the rules of a cluster: it looks at every CPU at every instant with an event.

use std::collections::BTreeMap;

use super::{Event, State, Stays, states};

/// Residency of a cluster in a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterResidency {
    /// Stays with at least one CPU running, by the highest frequency of the running ones; `None` where one of these is
    /// unknown.
    pub active: BTreeMap<Option<u32>, Stays>,
    /// All CPUs idle, by the deepest state in common.
    pub idle: BTreeMap<u32, Stays>,
    /// Time (ns) by the number of running CPUs; `None` while one was unknown or offline.
    pub concurrency: BTreeMap<Option<u32>, u64>,
    /// All CPUs idle, in an unknown state, ns.
    pub idle_unknown_ns: u64,
    /// All CPUs offline, ns.
    pub offline_ns: u64,
    /// Unknown, ns.
    pub unknown_ns: u64,
    /// Running time (ns) of each CPU by the frequency of the cluster.
    pub effective: BTreeMap<u32, BTreeMap<Option<u32>, u64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joint {
    Active(Option<u32>),
    Idle(u32),
    IdleUnknown,
    Offline,
    Unknown,
}

impl ClusterResidency {
    /// Sweeps the events of all CPUs between `begin` and `end` (ns), which are in order of time, for a cluster of
    /// these CPUs. `khz` are the known frequencies at the begin.
    #[must_use]
    pub fn sweep(
        cpus: &[u32],
        events: &[(u64, u32, Event)],
        begin: u64,
        end: u64,
        khz: &BTreeMap<u32, u32>,
    ) -> Self {
        let of = |cpu: u32| {
            let events = events.iter().filter(|(_, of, _)| *of == cpu);
            let events: Vec<(u64, Event)> = events.map(|&(at, _, event)| (at, event)).collect();
            states(&events, begin, khz.get(&cpu).copied())
        };
        let timelines: Vec<(u32, Vec<_>)> = cpus.iter().map(|&cpu| (cpu, of(cpu))).collect();
        let mut instants: Vec<u64> =
            timelines.iter().flat_map(|(_, timeline)| timeline.iter().map(|(at, _)| *at)).collect();
        instants.extend([begin, end]);
        instants.sort_unstable();
        instants.dedup();

        let mut result = Self::default();
        let mut open: Option<(Joint, u64)> = None;
        for pair in instants.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let now: Vec<(u32, (State, Option<u32>))> = timelines
                .iter()
                .filter_map(|(cpu, timeline)| Some((*cpu, timeline.iter().rfind(|(at, _)| *at <= from)?.1)))
                .collect();
            let running: Vec<_> = now.iter().filter(|(_, (state, _))| *state == State::Running).collect();
            let joint = joint(&now);
            let is_out = |state: &State| matches!(state, State::Unknown | State::Offline);
            let all_are_in = !now.iter().any(|(_, (state, _))| is_out(state));
            *result.concurrency.entry(all_are_in.then_some(running.len() as u32)).or_default() += to - from;
            if let Joint::Active(khz) = joint {
                for (cpu, _) in running {
                    *result.effective.entry(*cpu).or_default().entry(khz).or_default() += to - from;
                }
            }
            open = match open {
                Some((known, since)) if known == joint => Some((known, since)),
                Some((known, since)) => {
                    result.add(known, from - since);
                    Some((joint, from))
                }
                None => Some((joint, from)),
            };
        }
        if let Some((joint, since)) = open {
            result.add(joint, end - since);
        }
        result
    }

    fn add(&mut self, joint: Joint, ns: u64) {
        match joint {
            Joint::Active(khz) => self.active.entry(khz).or_default().add(ns),
            Joint::Idle(state) => self.idle.entry(state).or_default().add(ns),
            Joint::IdleUnknown => self.idle_unknown_ns += ns,
            Joint::Offline => self.offline_ns += ns,
            Joint::Unknown => self.unknown_ns += ns,
        }
    }
}

fn joint(cpus: &[(u32, (State, Option<u32>))]) -> Joint {
    let running: Vec<Option<u32>> =
        cpus.iter().filter(|(_, (state, _))| *state == State::Running).map(|(_, (_, khz))| *khz).collect();
    if !running.is_empty() {
        let all: Option<Vec<u32>> = running.into_iter().collect();
        return Joint::Active(all.and_then(|all| all.into_iter().max()));
    }
    if cpus.iter().any(|(_, (state, _))| *state == State::Unknown) {
        return Joint::Unknown;
    }
    if cpus.iter().all(|(_, (state, _))| *state == State::Offline) {
        return Joint::Offline;
    }
    let shallowest = cpus.iter().filter_map(|(_, (state, _))| match state {
        State::Idle(state) => Some(*state),
        _ => None,
    });
    let shallowest = shallowest.min();
    let depth_unknown = cpus.iter().any(|(_, (state, _))| *state == State::IdleUnknown);
    match (shallowest, depth_unknown) {
        (Some(0), _) => Joint::Idle(0),
        (Some(state), false) => Joint::Idle(state),
        _ => Joint::IdleUnknown,
    }
}

#[cfg(test)]
mod tests {
    use super::{super::EXIT, *};

    #[test]
    fn a_cluster_by_hand() {
        let events = [
            (0, 0, Event::Idle(0)),
            (0, 1, Event::Idle(1)),
            (10, 0, Event::Idle(1)),
            (20, 1, Event::Idle(EXIT)),
            (20, 1, Event::Frequency(500)),
            (30, 0, Event::Idle(EXIT)),
        ];
        let khz = BTreeMap::from([(0, 800)]);
        let swept = ClusterResidency::sweep(&[0, 1], &events, 0, 40, &khz);
        let once = |ns| Stays { ns, hits: 1, min_ns: ns, max_ns: ns };
        assert_eq!(swept.idle, BTreeMap::from([(0, once(10)), (1, once(10))]));
        assert_eq!(swept.active, BTreeMap::from([(Some(500), once(10)), (Some(800), once(10))]));
        assert_eq!(swept.effective[&1], BTreeMap::from([(Some(500), 10), (Some(800), 10)]));
        assert_eq!(swept.concurrency, BTreeMap::from([(Some(0), 20), (Some(1), 10), (Some(2), 10)]));
    }
}
