//! Description of the host in the header of a trace, before its first event: clusters and tables of idle states as
//! idlestat writes them, also in comments.
//!
//! ```text
//! clusterA:
//!     core0
//!         cpu1
//! cpuid 1:
//!     WFI
//!     1
//!     (null)
//!     -1
//! ```
//!
//! After `cpuid N:`, the lines are alternately the name and the target residency (us) of each idle state.

use nntrace_common::power::MAX_IDLE_STATES;

use crate::model::topology::{ClusterDescription, Domain, IdleStateDescription, Topology};

/// Parser of the lines before the first event.
#[derive(Debug, Default)]
pub(crate) struct HeaderReader {
    part: Part,
}

#[derive(Debug, Default)]
enum Part {
    /// Outside of a description.
    #[default]
    Nowhere,
    /// CPUs of the last cluster.
    Cluster,
    /// Idle states of this CPU; with `name`, the residency of that state comes next.
    IdleStates { cpu: u32, name: Option<String>, lines: usize },
}

impl HeaderReader {
    /// Parses a line, and adds its description; returns whether it has one.
    pub(crate) fn feed(&mut self, line: &[u8], topology: &mut Topology) -> bool {
        let Ok(line) = str::from_utf8(line) else { return false };
        let text = line.trim_start_matches('#').trim();
        if let Some(name) = text.strip_prefix("cluster").and_then(|rest| rest.strip_suffix(':'))
            && is_word(name)
        {
            let name = name.to_owned();
            topology.clusters.push(ClusterDescription { name, cpus: Vec::new(), domain: Domain::Both });
            self.part = Part::Cluster;
            return true;
        }
        if let Some(cpu) = text.strip_prefix("cpuid ").and_then(|rest| rest.strip_suffix(':')?.parse().ok()) {
            topology.cpus.entry(cpu).or_default().idle_states.clear();
            self.part = Part::IdleStates { cpu, name: None, lines: 0 };
            return true;
        }
        match &mut self.part {
            Part::Nowhere => false,
            Part::Cluster => {
                let number = |prefix: &str| text.strip_prefix(prefix)?.parse::<u32>().ok();
                if let Some(cpu) = number("cpu") {
                    topology.cpus.entry(cpu).or_default();
                    if let Some(cluster) = topology.clusters.last_mut() {
                        cluster.cpus.push(cpu);
                    }
                    return true;
                }
                let is_core = number("core").is_some();
                if !is_core {
                    self.part = Part::Nowhere;
                }
                is_core
            }
            Part::IdleStates { cpu, name, lines } => {
                // The tables have a limited number of states.
                if *lines >= 2 * MAX_IDLE_STATES || !line.starts_with(['\t', ' ', '#']) {
                    self.part = Part::Nowhere;
                    return false;
                }
                *lines += 1;
                let Some(known) = name.take() else {
                    *name = Some(text.to_owned());
                    return true;
                };
                if known != "(null)" {
                    let states = &mut topology.cpus.entry(*cpu).or_default().idle_states;
                    states.push(IdleStateDescription {
                        name: known,
                        level: states.len() as u32,
                        target_residency_ns: text.parse::<u64>().ok().map(|us| us.saturating_mul(1_000)),
                        ..IdleStateDescription::default()
                    });
                }
                true
            }
        }
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Topology, Vec<bool>) {
        let (mut reader, mut topology) = (HeaderReader::default(), Topology::default());
        let taken = text.lines().map(|line| reader.feed(line.as_bytes(), &mut topology)).collect();
        (topology, taken)
    }

    #[test]
    fn clusters_and_their_idle_states() {
        let text = "idlestat version = 0.8\ncpus=3\nclusterA:\n\tcore0\n\t\tcpu1\n\tcore1\n\t\tcpu2\nclusterB:\n\tcore0\n\
                    \t\tcpu0\ncpuid 1:\n\tWFI\n\t1\n\tcluster-sleep-b\n\t3000\n\t(null)\n\t-1\ncpuid 0:\n\tWFI\n\t-1\n";
        let (topology, taken) = read(text);
        assert_eq!(taken.iter().filter(|taken| !**taken).count(), 2);
        let clusters: Vec<_> =
            topology.clusters.iter().map(|c| (c.name.as_str(), c.cpus.as_slice())).collect();
        assert_eq!(clusters, [("A", &[1, 2][..]), ("B", &[0][..])]);
        assert_eq!(topology.idle_name(1, 1), "cluster-sleep-b");
        assert_eq!(topology.cpus[&1].idle_states[1].target_residency_ns, Some(3_000_000));
        assert_eq!(topology.cpus[&0].idle_states[0].target_residency_ns, None);
        assert_eq!(topology.cpus[&1].idle_states.len(), 2);
    }

    #[test]
    fn a_header_in_comments_counts_and_other_comments_do_not() {
        let (topology, taken) =
            read("# clusterA:\n# \tcore0\n# \t\tcpu0\n\n# CPU 0 notifies\n#  ClusterB |  C1  |\n# cpu1\n");
        assert_eq!(topology.clusters.len(), 1);
        assert_eq!(topology.clusters[0].cpus, [0]);
        assert_eq!(taken, [true, true, true, false, false, false, false]);
    }
}
