//! Which CPUs belong together, and what their idle states are called.

mod file;

use std::collections::{BTreeMap, BTreeSet};

use nntrace_common::run_queue::IDLE_NAME_BYTES;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::cpu_list;

/// The CPUs of a machine, in clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// Every CPU, by number.
    pub cpus: BTreeMap<u32, CpuDescription>,
    /// The domains of the CPUs: those that go idle together are a partition of the CPUs, those that share a clock are
    /// one, and where both have the same CPUs, one cluster is both.
    pub clusters: Vec<ClusterDescription>,
    /// CPUs whose frequency is changed together; a CPU in none stands alone.
    pub(crate) policies: Vec<Vec<u32>>,
    /// The machine is known to have no cpuidle driver, and the kernel does what it does without.
    pub(crate) has_no_idle_driver: bool,
}

/// One CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuDescription {
    /// Its idle states, in the order of its own table; empty when nothing describes them.
    pub idle_states: Vec<IdleStateDescription>,
}

/// One idle state of a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleStateDescription {
    /// Its name.
    pub name: String,
    /// How deep it is: states of different CPUs compare by it (the power contract, section 2).
    pub(crate) level: u32,
    /// The shortest stay that pays, ns; `None` when not known.
    pub(crate) target_residency_ns: Option<u64>,
    /// Time that leaving it takes, ns; `None` when not known.
    pub(crate) exit_latency_ns: Option<u64>,
    /// Whether the kernel may not choose it.
    pub(crate) disabled: bool,
}

/// CPUs that go idle together, or share a clock, or both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterDescription {
    /// Its name.
    pub name: String,
    /// Its CPUs, ascending.
    pub cpus: Vec<u32>,
    /// Hardware that they share.
    pub domain: Domain,
}

/// A domain that CPUs form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Domain {
    /// They go idle together and share a clock.
    #[default]
    Both,
    /// They go idle together; their clocks are those of smaller or larger domains.
    Idle,
    /// They share a clock; they go idle with those of another domain.
    Frequency,
}

impl Domain {
    /// Whether its CPUs share a clock.
    #[must_use]
    pub const fn shares_clock(self) -> bool {
        matches!(self, Self::Both | Self::Frequency)
    }

    /// Whether its CPUs go idle together.
    #[must_use]
    pub(crate) const fn idles_together(self) -> bool {
        matches!(self, Self::Both | Self::Idle)
    }
}

/// Errors of `--cluster` options.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum TopologyError {
    /// A CPU in two clusters.
    #[error("CPU {cpu} is in cluster {first} and in cluster {second}; a CPU belongs to one")]
    Twice {
        /// The CPU.
        cpu: u32,
        /// One cluster.
        first: String,
        /// The other.
        second: String,
    },
    /// Two clusters of one name.
    #[error("two clusters are named {0}: their rows could not be told apart; give each a name of its own")]
    SameName(String),
    /// A CPU in two policies.
    #[error("CPU {0} is in two policies; its frequency is changed with that of one")]
    TwoPolicies(u32),
    /// A CPU that the machine has not.
    #[error(
        "cluster {cluster} names CPU {cpu}, which does not exist here: the CPUs are {cpus}; name only these"
    )]
    NoSuchCpu {
        /// The cluster.
        cluster: String,
        /// The CPU.
        cpu: u32,
        /// CPUs that there are.
        cpus: String,
    },
}

/// Note where no source shows which CPUs form a cluster.
pub(crate) const NO_CLUSTERS: &str =
    "no cluster topology found: all CPUs are shown as one cluster (--cluster NAME=CPUS sets others)";

/// Clusters of CPUs that go idle together and of CPUs that share a clock, named by number; what is both is one.
#[must_use]
pub(crate) fn domains(idle: &[Vec<u32>], frequency: &[Vec<u32>]) -> Vec<ClusterDescription> {
    let clocks = frequency.iter().enumerate().map(|(number, cpus)| ClusterDescription {
        name: number.to_string(),
        cpus: cpus.clone(),
        domain: if idle.contains(cpus) { Domain::Both } else { Domain::Frequency },
    });
    let others = idle.iter().filter(|cpus| !frequency.contains(cpus)).enumerate();
    let others = others.map(|(number, cpus)| ClusterDescription {
        name: format!("idle{number}"),
        cpus: cpus.clone(),
        domain: Domain::Idle,
    });
    clocks.chain(others).collect()
}

impl Topology {
    /// Returns the number of the cluster whose clock a CPU has.
    #[must_use]
    pub(crate) fn clock_of(&self, cpu: u32) -> Option<usize> {
        self.clusters.iter().position(|cluster| cluster.domain.shares_clock() && cluster.cpus.contains(&cpu))
    }

    /// Puts the CPUs into these clusters instead; CPUs in none of them make up a cluster `other`, or `other2` and so on
    /// where that is the name of one of these.
    ///
    /// # Errors
    /// When two have one name, or when a CPU is in two that share a clock or in two that go idle together, or is not there.
    pub fn set_clusters(&mut self, clusters: Vec<ClusterDescription>) -> Result<(), TopologyError> {
        let mut names = BTreeSet::new();
        if let Some(second) = clusters.iter().find(|cluster| !names.insert(&cluster.name)) {
            return Err(TopologyError::SameName(second.name.clone()));
        }
        let kinds: [fn(Domain) -> bool; 2] = [Domain::shares_clock, Domain::idles_together];
        for is_of_kind in kinds {
            let mut owner: BTreeMap<u32, &str> = BTreeMap::new();
            for cluster in clusters.iter().filter(|cluster| is_of_kind(cluster.domain)) {
                for &cpu in &cluster.cpus {
                    self.has(cpu, &cluster.name)?;
                    if let Some(first) = owner.insert(cpu, &cluster.name) {
                        let (first, second) = (first.to_owned(), cluster.name.clone());
                        return Err(TopologyError::Twice { cpu, first, second });
                    }
                }
            }
        }
        let in_none = |cpu: &u32| !clusters.iter().any(|cluster| cluster.cpus.contains(cpu));
        let others: Vec<u32> = self.cpus.keys().copied().filter(in_none).collect();
        let mut other = String::from("other");
        for number in 2.. {
            if !names.contains(&other) {
                break;
            }
            other = format!("other{number}");
        }
        self.clusters = clusters;
        if !others.is_empty() {
            let name = other;
            self.clusters.push(ClusterDescription { name, cpus: others, domain: Domain::Both });
        }
        Ok(())
    }

    fn has(&self, cpu: u32, cluster: &str) -> Result<(), TopologyError> {
        if self.cpus.contains_key(&cpu) {
            return Ok(());
        }
        let cpus: Vec<u32> = self.cpus.keys().copied().collect();
        Err(TopologyError::NoSuchCpu { cluster: cluster.into(), cpu, cpus: cpu_list::format(&cpus) })
    }

    /// Takes over what is described, and keeps the rest: CPUs that are not, and idle states where none are.
    ///
    /// # Errors
    /// When it names a CPU that is not there.
    pub fn replace_by(&mut self, described: Self) -> Result<(), TopologyError> {
        for (cpu, description) in described.cpus {
            self.has(cpu, "of the description")?;
            if !description.idle_states.is_empty() {
                self.cpus.insert(cpu, description);
            }
        }
        if !described.clusters.is_empty() {
            self.set_clusters(described.clusters)?;
        }
        if !described.policies.is_empty() {
            self.policies = described.policies;
        }
        Ok(())
    }

    /// Returns the CPUs whose frequency is changed together.
    #[must_use]
    pub fn policies(&self) -> &[Vec<u32>] {
        &self.policies
    }

    /// CPUs whose frequency is changed together.
    ///
    /// # Errors
    /// When a CPU is in two of these.
    pub fn set_policies(&mut self, policies: Vec<Vec<u32>>) -> Result<(), TopologyError> {
        let mut all: Vec<u32> = policies.iter().flatten().copied().collect();
        all.sort_unstable();
        if let Some(twice) = all.array_windows().find(|[a, b]| a == b) {
            return Err(TopologyError::TwoPolicies(twice[0]));
        }
        self.policies = policies;
        Ok(())
    }

    /// The cluster of a CPU, the one that shares its clock; empty for one in none.
    #[must_use]
    pub(crate) fn cluster_of(&self, cpu: u32) -> &str {
        self.clock_of(cpu).map_or("", |number| &self.clusters[number].name)
    }

    /// The name of an idle state of a CPU: its own, else `stateN`; without any driver the kernel's default idle shows
    /// as state 1 (`default_idle_call` in kernel/sched/idle.c) and its polling as state 0.
    #[must_use]
    pub(crate) fn idle_name(&self, cpu: u32, state: u32) -> String {
        let states = self.cpus.get(&cpu).map_or(&[][..], |cpu| &cpu.idle_states);
        match (states.get(state as usize), self.has_no_idle_driver, state) {
            (Some(described), ..) => described.name.clone(),
            (None, true, 0) => "poll".into(),
            (None, true, 1) => "default-idle".into(),
            _ => format!("state{state}"),
        }
    }

    /// The idle state of a CPU that has this name, as far as the kernel's table has room for it; `None` when not exactly
    /// one has.
    #[must_use]
    pub(crate) fn idle_state_named(&self, cpu: u32, name: &[u8]) -> Option<u32> {
        let states = self.cpus.get(&cpu).map_or(&[][..], |cpu| &cpu.idle_states);
        let mut found = (0..).zip(states).filter(|(_, state)| {
            let known = state.name.as_bytes();
            known.get(..IDLE_NAME_BYTES - 1).unwrap_or(known) == name
        });
        let first = found.next().map(|(number, _)| number);
        first.filter(|_| found.next().is_none())
    }

    /// The name of the idle states of that level, by the first of these CPUs that has one.
    #[must_use]
    pub(crate) fn level_name(&self, cpus: &[u32], level: u32) -> String {
        let mut states = cpus.iter().filter_map(|cpu| self.cpus.get(cpu)).flat_map(|cpu| &cpu.idle_states);
        let described = states.find(|state| state.level == level);
        let undescribed = || self.idle_name(cpus.first().copied().unwrap_or_default(), level);
        described.map_or_else(undescribed, |state| state.name.clone())
    }

    /// The CPUs whose frequency changes with that of `cpu`, itself included.
    #[must_use]
    pub fn policy_of(&self, cpu: u32) -> Vec<u32> {
        let policy = self.policies.iter().find(|policy| policy.contains(&cpu));
        policy.cloned().unwrap_or_else(|| vec![cpu])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn four() -> Topology {
        Topology { cpus: (0..4).map(|cpu| (cpu, CpuDescription::default())).collect(), ..Topology::default() }
    }

    fn cluster(name: &str, cpus: &[u32]) -> ClusterDescription {
        ClusterDescription { name: name.into(), cpus: cpus.to_vec(), domain: Domain::Both }
    }

    #[test]
    fn clusters_of_the_user_are_a_partition() {
        let mut topology = four();
        topology.set_clusters(vec![cluster("big", &[1, 3])]).unwrap();
        assert_eq!(topology.cluster_of(3), "big");
        assert_eq!(topology.cluster_of(0), "other");
        let twice = topology.set_clusters(vec![cluster("a", &[1]), cluster("b", &[1])]);
        assert!(matches!(twice, Err(TopologyError::Twice { cpu: 1, .. })));
        let none = topology.set_clusters(vec![cluster("a", &[9])]).unwrap_err();
        assert_eq!(
            none.to_string(),
            "cluster a names CPU 9, which does not exist here: the CPUs are 0-3; name only these"
        );
    }

    #[test]
    fn no_two_clusters_have_one_name() {
        let names = |clusters: &[(&str, &[u32])]| {
            let mut topology = four();
            let clusters = clusters.iter().map(|(name, cpus)| cluster(name, cpus));
            topology.set_clusters(clusters.collect())?;
            Ok::<_, TopologyError>(
                topology.clusters.into_iter().map(|cluster| cluster.name).collect::<Vec<_>>(),
            )
        };
        let twice = names(&[("big", &[0]), ("little", &[1]), ("big", &[2])]).unwrap_err();
        assert_eq!(
            twice.to_string(),
            "two clusters are named big: their rows could not be told apart; give each a name of its own"
        );
        // The name is the user's; what is left over has another.
        assert_eq!(names(&[("other", &[0, 1])]).unwrap(), ["other", "other2"]);
        assert_eq!(names(&[("other", &[0]), ("other2", &[1])]).unwrap(), ["other", "other2", "other3"]);
        assert_eq!(names(&[("other", &[0, 1, 2, 3])]).unwrap(), ["other"]);
    }

    #[test]
    fn states_without_a_driver_have_the_names_that_the_kernel_means() {
        let mut topology = four();
        assert_eq!(topology.idle_name(0, 1), "state1");
        topology.has_no_idle_driver = true;
        assert_eq!(topology.idle_name(0, 1), "default-idle");
        topology.has_no_idle_driver = false;
        topology.cpus.get_mut(&0).unwrap().idle_states =
            vec![IdleStateDescription { name: "WFI".into(), ..IdleStateDescription::default() }];
        assert_eq!(topology.idle_name(0, 0), "WFI");
        assert_eq!(topology.idle_name(0, 1), "state1");
    }
}
