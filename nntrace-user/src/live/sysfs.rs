//! CPUs, their clusters, idle states and frequencies, as described in sysfs. Every function takes the root of the
//! tree, so that the trees of other systems can be read too.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::model::{
    cpu_list,
    topology::{self, ClusterDescription, CpuDescription, IdleStateDescription, Topology},
};

/// Folder of the CPUs in sysfs.
pub const CPUS: &str = "/sys/devices/system/cpu";

/// Reads the topology under `root`, with a note when its clusters are a guess.
///
/// CPUs share a clock by their frequency policies and go idle together by the CPUs' own topology; where only one of
/// these is given, it stands for both, and where neither is, all CPUs form one cluster (the power contract, section
/// 2). Physical packages are unrelated to clusters on arm64, and are ignored.
#[must_use]
pub fn topology(root: &Path) -> (Topology, Option<String>) {
    let numbers = present(root);
    let cpus: BTreeMap<u32, CpuDescription> =
        numbers.iter().map(|&cpu| (cpu, CpuDescription { idle_states: idle_states(root, cpu) })).collect();
    let policies = policies(root).into_iter().map(|policy| policy.cpus).collect::<Vec<_>>();
    let (clusters, note) = clusters(root, &numbers, &policies);
    let has_no_idle_driver = cpus.values().all(|cpu| cpu.idle_states.is_empty());
    (Topology { cpus, clusters, policies, has_no_idle_driver }, note)
}

/// Reads the requested frequencies by CPU, kHz, of policies that have one.
#[must_use]
pub fn frequencies(root: &Path) -> BTreeMap<u32, u32> {
    let known = policies(root).into_iter().filter_map(|policy| Some((policy.khz?, policy.cpus)));
    known.flat_map(|(khz, cpus)| cpus.into_iter().map(move |cpu| (cpu, khz))).collect()
}

/// Reads the online CPUs.
#[must_use]
pub fn online(root: &Path) -> Vec<u32> {
    cpu_list(&root.join("online"))
}

/// Reads the available frequencies, kHz, of CPUs that share a clock, with these CPUs. Where the driver lists none,
/// they are the lowest and the highest.
#[must_use]
pub fn opps(root: &Path) -> Vec<(Vec<u32>, Vec<u32>)> {
    let opps = policies(root).into_iter().map(|policy| {
        let of = |names: [&str; 2]| {
            let texts = names.map(|name| read(&policy.folder.join(name)).unwrap_or_default());
            let words = texts.iter().flat_map(|text| text.split_whitespace());
            words.filter_map(|khz| khz.parse().ok()).collect::<Vec<u32>>()
        };
        let listed = of(["scaling_available_frequencies", "scaling_boost_frequencies"]);
        let khz = if listed.is_empty() { of(["cpuinfo_min_freq", "cpuinfo_max_freq"]) } else { listed };
        (policy.cpus, khz)
    });
    opps.collect()
}

/// Reads the present CPUs, whether online or not.
#[must_use]
pub fn present(root: &Path) -> Vec<u32> {
    cpu_list(&root.join("present"))
}

struct Policy {
    folder: PathBuf,
    cpus: Vec<u32>,
    khz: Option<u32>,
}

fn policies(root: &Path) -> Vec<Policy> {
    let mut policies: Vec<Policy> = children(&root.join("cpufreq"), "policy")
        .into_iter()
        .filter_map(|path| {
            let cpus = cpu_list(&path.join("related_cpus"));
            let khz = read(&path.join("scaling_cur_freq")).and_then(|khz| khz.trim().parse().ok());
            (!cpus.is_empty()).then_some(Policy { folder: path, cpus, khz })
        })
        .collect();
    policies.sort_by(|a, b| a.cpus.cmp(&b.cpus));
    policies
}

fn clusters(root: &Path, cpus: &[u32], policies: &[Vec<u32>]) -> (Vec<ClusterDescription>, Option<String>) {
    let is_partition = |groups: &[Vec<u32>]| {
        let mut all: Vec<u32> = groups.iter().flatten().copied().collect();
        all.sort_unstable();
        // Groups of one CPU each are no clusters: their CPUs may still share a clock and go idle together.
        all == cpus && groups.iter().any(|group| group.len() > 1)
    };
    let mut groups: Vec<Vec<u32>> = cpus
        .iter()
        .map(|cpu| cpu_list(&root.join(format!("cpu{cpu}/topology/cluster_cpus_list"))))
        .filter(|cpus| !cpus.is_empty())
        .collect();
    groups.sort();
    groups.dedup();
    match (is_partition(&groups), is_partition(policies)) {
        (true, true) => (topology::domains(&groups, policies), None),
        (true, false) => (topology::domains(&groups, &groups), None),
        (false, true) => (topology::domains(policies, policies), None),
        (false, false) => {
            let all = [cpus.to_vec()];
            (topology::domains(&all, &all), Some(topology::NO_CLUSTERS.into()))
        }
    }
}

fn idle_states(root: &Path, cpu: u32) -> Vec<IdleStateDescription> {
    let mut states = children(&root.join(format!("cpu{cpu}/cpuidle")), "state");
    states.sort_by_key(|path| number_after(path, "state"));
    states
        .into_iter()
        .zip(0..)
        .map(|(path, level)| IdleStateDescription {
            name: read(&path.join("name")).unwrap_or_default().trim().to_owned(),
            level,
            target_residency_ns: number(&path.join("residency")).map(|us| us.saturating_mul(1_000)),
            exit_latency_ns: number(&path.join("latency")).map(|us| us.saturating_mul(1_000)),
            disabled: number(&path.join("disable")).is_some_and(|value| value != 0),
        })
        .collect()
}

/// Returns the entries of a folder whose names are `prefix` and a number, by that number.
pub(super) fn numbered(folder: &Path, prefix: &str) -> BTreeMap<u32, PathBuf> {
    let paths = children(folder, prefix).into_iter();
    paths.filter_map(|path| Some((number_after(&path, prefix)?, path))).collect()
}

/// Returns the entries of a folder whose names are `prefix` and a number.
pub(super) fn children(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| number_after(path, prefix).is_some()).collect()
}

fn number_after(path: &Path, prefix: &str) -> Option<u32> {
    path.file_name()?.to_str()?.strip_prefix(prefix)?.parse().ok()
}

/// Reads a list of CPUs from a file; empty where there is no such file.
fn cpu_list(path: &Path) -> Vec<u32> {
    read(path).and_then(|text| cpu_list::parse(&text).ok()).unwrap_or_default()
}

pub(super) fn number(path: &Path) -> Option<u64> {
    read(path)?.trim().parse().ok()
}

pub(super) fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::topology::Domain;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn shared_policies_are_clusters() {
        let root = tree(&[
            ("present", "0-5\n"),
            ("cpufreq/policy0/related_cpus", "0 3 4 5\n"),
            ("cpufreq/policy0/scaling_cur_freq", "450000\n"),
            ("cpufreq/policy1/related_cpus", "1 2\n"),
            ("cpufreq/policy1/scaling_cur_freq", "<unknown>\n"),
            ("cpu1/cpuidle/state0/name", "WFI\n"),
            ("cpu1/cpuidle/state0/residency", "1\n"),
            ("cpu1/cpuidle/state10/name", "deep\n"),
            ("cpu1/cpuidle/state2/name", "cpu-sleep\n"),
        ]);
        let (topology, note) = topology(root.path());
        assert_eq!(note, None);
        assert_eq!(topology.clusters[0].cpus, [0, 3, 4, 5]);
        assert_eq!(topology.clusters[1].cpus, [1, 2]);
        assert_eq!(topology.policy_of(5), [0, 3, 4, 5]);
        let names: Vec<_> = topology.cpus[&1].idle_states.iter().map(|state| state.name.as_str()).collect();
        assert_eq!(names, ["WFI", "cpu-sleep", "deep"]);
        assert_eq!(topology.cpus[&1].idle_states[0].target_residency_ns, Some(1_000));
        assert_eq!(
            frequencies(root.path()),
            BTreeMap::from([(0, 450_000), (3, 450_000), (4, 450_000), (5, 450_000)])
        );
    }

    #[test]
    fn without_policies_the_cpus_own_topology_counts() {
        let root = tree(&[
            ("present", "0-3"),
            ("cpu0/topology/cluster_cpus_list", "0-1"),
            ("cpu1/topology/cluster_cpus_list", "0-1"),
            ("cpu2/topology/cluster_cpus_list", "2-3"),
            ("cpu3/topology/cluster_cpus_list", "2-3"),
        ]);
        let (topology, note) = topology(root.path());
        assert_eq!(topology.clusters.iter().map(|c| c.cpus.clone()).collect::<Vec<_>>(), [[0, 1], [2, 3]]);
        assert_eq!(note, None);
    }

    #[test]
    fn cpus_of_several_clocks_can_go_idle_together() {
        let mut files = vec![
            ("present", "0-3"),
            ("cpufreq/policy0/related_cpus", "0 1"),
            ("cpufreq/policy2/related_cpus", "2"),
            ("cpufreq/policy3/related_cpus", "3"),
        ];
        files.extend([0, 1, 2, 3].map(|cpu| match cpu {
            0 => ("cpu0/topology/cluster_cpus_list", "0-3"),
            1 => ("cpu1/topology/cluster_cpus_list", "0-3"),
            2 => ("cpu2/topology/cluster_cpus_list", "0-3"),
            _ => ("cpu3/topology/cluster_cpus_list", "0-3"),
        }));
        let (topology, _) = topology(tree(&files).path());
        let clusters: Vec<_> = topology
            .clusters
            .iter()
            .map(|cluster| (cluster.name.as_str(), cluster.cpus.as_slice(), cluster.domain))
            .collect();
        let expected: [(_, &[u32], _); 4] = [
            ("0", &[0, 1], Domain::Frequency),
            ("1", &[2], Domain::Frequency),
            ("2", &[3], Domain::Frequency),
            ("idle0", &[0, 1, 2, 3], Domain::Idle),
        ];
        assert_eq!(clusters, expected);
        assert_eq!(topology.cluster_of(3), "2");
    }

    #[test]
    fn without_anything_all_cpus_are_one_cluster_and_that_is_said() {
        let (topology, note) = topology(tree(&[("present", "0-1")]).path());
        assert_eq!(topology.clusters[0].cpus, [0, 1]);
        assert!(note.unwrap().contains("--cluster"));
    }
}
