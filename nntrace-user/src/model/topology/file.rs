//! The description of a machine as a TOML file: its clusters, policies and idle states.
//!
//! ```toml
//! policies = ["0,3-5", "1,2"]         # CPUs whose frequency is changed together
//! no_idle_driver = false              # true where the kernel has none: there is one idle state then, without a name
//!
//! [[cluster]]
//! name = "little"
//! cpus = "0,3-5"
//! domain = "both"                     # or "idle", or "frequency"; "both" where it is missing
//!
//! [[idle_states]]                     # from the shallowest on
//! cpus = "0-5"
//! state = [
//!     { name = "WFI", target_residency_us = 1, exit_latency_us = 1 },
//!     { name = "cpu-sleep-0", level = 1, target_residency_us = 2500, exit_latency_us = 1200, disabled = false },
//! ]
//! ```

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{ClusterDescription, CpuDescription, Domain, IdleStateDescription, Topology, TopologyError};
use crate::model::cpu_list;

/// Clusters, policies and idle states of a description at most.
const MOST_ROWS: usize = 1_024;

/// Why a description is none.
#[derive(Debug, Error)]
pub enum DescriptionError {
    /// It is no TOML, or has other keys or values than a description has.
    #[error("{file}:{line}: {what}")]
    Syntax {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// Problem.
        what: String,
    },
    /// A description that cannot be true.
    #[error("{file}: {what}")]
    Meaning {
        /// The file.
        file: String,
        /// Problem.
        what: TopologyError,
    },
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    policies: Vec<CpuList>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    no_idle_driver: bool,
    #[serde(default)]
    cluster: Vec<Cluster>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    idle_states: Vec<IdleStates>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Cluster {
    name: String,
    cpus: CpuList,
    #[serde(default)]
    domain: Domain,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct IdleStates {
    cpus: CpuList,
    state: Vec<IdleState>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct IdleState {
    name: String,
    level: Option<u32>,
    target_residency_us: Option<u64>,
    exit_latency_us: Option<u64>,
    #[serde(default)]
    disabled: bool,
}

/// CPUs in the kernel's notation, `0,3-5`.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
struct CpuList(Vec<RangeInclusive<u32>>);

impl TryFrom<String> for CpuList {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let ranges = cpu_list::ranges(&text).map_err(|error| error.to_string())?;
        if ranges.is_empty() { Err("expected CPUs such as \"0,3-5\"".into()) } else { Ok(Self(ranges)) }
    }
}

impl From<CpuList> for String {
    fn from(list: CpuList) -> Self {
        cpu_list::format(&list.cpus())
    }
}

impl CpuList {
    fn of(cpus: &[u32]) -> Self {
        Self(cpus.chunk_by(|a, b| a + 1 == *b).map(|run| run[0]..=run[run.len() - 1]).collect())
    }

    /// Returns the CPUs, ascending.
    fn cpus(&self) -> Vec<u32> {
        cpu_list::expand(&self.0)
    }
}

impl Topology {
    /// Reads a description; `file` names it in errors.
    ///
    /// # Errors
    /// When it is not one.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, DescriptionError> {
        let read: File = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            DescriptionError::Syntax { file: file.into(), line, what: error.message().replace('\n', ", ") }
        })?;
        let wrong = |what| DescriptionError::Meaning { file: file.into(), what };
        let mut topology = Self { has_no_idle_driver: read.no_idle_driver, ..Self::default() };
        // A list of a few characters names thousands of CPUs.
        let lists = read.cluster.len() + read.policies.len() + read.idle_states.len();
        let states: usize = read.idle_states.iter().map(|states| states.state.len()).sum();
        if lists > MOST_ROWS || states > MOST_ROWS {
            let what = format!("expected {MOST_ROWS} clusters, policies and idle states at most");
            return Err(DescriptionError::Syntax { file: file.into(), line: 1, what });
        }
        let named = read.cluster.iter().map(|cluster| &cluster.cpus);
        let named = named.chain(read.idle_states.iter().map(|states| &states.cpus)).chain(&read.policies);
        for cpu in named.flat_map(CpuList::cpus) {
            topology.cpus.entry(cpu).or_default();
        }
        for IdleStates { cpus, state } in read.idle_states {
            let idle_states: Vec<_> = state.into_iter().zip(0..).map(IdleState::described).collect();
            for cpu in cpus.cpus() {
                topology.cpus.insert(cpu, CpuDescription { idle_states: idle_states.clone() });
            }
        }
        let clusters = read.cluster.into_iter().map(|Cluster { name, cpus, domain }| ClusterDescription {
            name,
            cpus: cpus.cpus(),
            domain,
        });
        topology.set_clusters(clusters.collect()).map_err(wrong)?;
        topology.set_policies(read.policies.iter().map(CpuList::cpus).collect()).map_err(wrong)?;
        Ok(topology)
    }

    /// The description of this machine, which [`Topology::from_toml`] reads back.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut idle_states: Vec<(Vec<u32>, &CpuDescription)> = Vec::new();
        for (&cpu, description) in self.cpus.iter().filter(|(_, cpu)| !cpu.idle_states.is_empty()) {
            match idle_states.iter_mut().find(|(_, known)| *known == description) {
                Some((cpus, _)) => cpus.push(cpu),
                None => idle_states.push((vec![cpu], description)),
            }
        }
        let cluster = self.clusters.iter().map(|cluster| Cluster {
            name: cluster.name.clone(),
            cpus: CpuList::of(&cluster.cpus),
            domain: cluster.domain,
        });
        let idle_states = idle_states.into_iter().map(|(cpus, description)| IdleStates {
            cpus: CpuList::of(&cpus),
            state: description.idle_states.iter().map(IdleState::of).collect(),
        });
        let file = File {
            policies: self.policies.iter().map(|cpus| CpuList::of(cpus)).collect(),
            no_idle_driver: self.has_no_idle_driver,
            cluster: cluster.collect(),
            idle_states: idle_states.collect(),
        };
        // Strings, numbers and tables are all there is in it.
        toml::to_string(&file).unwrap_or_default()
    }
}

impl IdleState {
    fn described((state, order): (Self, u32)) -> IdleStateDescription {
        IdleStateDescription {
            name: state.name,
            level: state.level.unwrap_or(order),
            target_residency_ns: state.target_residency_us.map(|us| us.saturating_mul(1_000)),
            exit_latency_ns: state.exit_latency_us.map(|us| us.saturating_mul(1_000)),
            disabled: state.disabled,
        }
    }

    fn of(state: &IdleStateDescription) -> Self {
        Self {
            name: state.name.clone(),
            level: Some(state.level),
            target_residency_us: state.target_residency_ns.map(|ns| ns / 1_000),
            exit_latency_us: state.exit_latency_ns.map(|ns| ns / 1_000),
            disabled: state.disabled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DYNAMIQ: &str = r#"
policies = ["0-3", "4-6", "7"]
[[cluster]]
name = "little"
cpus = "0-3"
domain = "frequency"
[[cluster]]
name = "big"
cpus = "4-6"
domain = "frequency"
[[cluster]]
name = "prime"
cpus = "7"
domain = "frequency"
[[cluster]]
name = "dsu"
cpus = "0-7"
domain = "idle"
[[idle_states]]
cpus = "0-3"
state = [{ name = "WFI" }, { name = "little-off", target_residency_us = 2500 }]
[[idle_states]]
cpus = "4-7"
state = [{ name = "WFI" }, { name = "big-off", level = 1, exit_latency_us = 900, disabled = true }]
"#;

    #[test]
    fn a_description_reads_back() {
        let topology = Topology::from_toml("x.toml", DYNAMIQ).unwrap();
        assert_eq!(topology.policy_of(5), [4, 5, 6]);
        assert_eq!(topology.cluster_of(7), "prime");
        assert_eq!(topology.clusters[3].domain, Domain::Idle);
        assert_eq!(topology.idle_name(2, 1), "little-off");
        assert_eq!(topology.cpus[&0].idle_states[1].target_residency_ns, Some(2_500_000));
        assert!(topology.cpus[&7].idle_states[1].disabled);
        assert_eq!(Topology::from_toml("y.toml", &topology.to_toml()).unwrap(), topology);
    }

    #[test]
    fn descriptions_have_a_size() {
        let text = format!("policies = [{}]\n", "\"0-8191\",".repeat(100_000));
        let error = Topology::from_toml("m.toml", &text).unwrap_err().to_string();
        assert_eq!(error, "m.toml:1: expected 1024 clusters, policies and idle states at most");
    }

    #[test]
    fn a_machine_without_idle_driver_stays_one() {
        let machine = Topology { has_no_idle_driver: true, ..Topology::default() };
        assert_eq!(machine.to_toml(), "no_idle_driver = true\ncluster = []\n");
        assert_eq!(Topology::from_toml("m.toml", &machine.to_toml()).unwrap(), machine);
    }

    #[test]
    fn errors_name_file_line_and_what_is_wrong() {
        let error = |text: &str| Topology::from_toml("m.toml", text).unwrap_err().to_string();
        assert_eq!(
            error("policies = [\"0-x\"]\n"),
            "m.toml:1: \"0-x\" is not a list of CPUs: expected numbers below 8192 and ranges of them, such as 0-3,6"
        );
        assert_eq!(
            error("[[cluster]]\nname = \"A\"\ncpus = \"0\"\ndomains = \"idle\"\n"),
            "m.toml:4: unknown field `domains`, expected one of `name`, `cpus`, `domain`"
        );
        assert_eq!(
            error("[[cluster]]\nname = \"A\"\ncpus = \"0\"\ndomain = \"clock\"\n"),
            "m.toml:4: unknown variant `clock`, expected one of `both`, `idle`, `frequency`"
        );
        assert_eq!(
            error("[[cluster]]\nname = \"A\"\ncpus = \"0\"\n[[cluster]]\nname = \"B\"\ncpus = \"0\"\n"),
            "m.toml: CPU 0 is in cluster A and in cluster B; a CPU belongs to one"
        );
        assert_eq!(
            error("[[cluster]]\nname = \"A\"\ncpus = \"0\"\n[[cluster]]\nname = \"A\"\ncpus = \"1\"\n"),
            "m.toml: two clusters are named A: their rows could not be told apart; give each a name of its own"
        );
        assert_eq!(
            error("policies = [\"0,1\", \"1\"]\n"),
            "m.toml: CPU 1 is in two policies; its frequency is changed with that of one"
        );
    }
}
