//! Further power information of the kernel, shown beside residency: power domains, PSCI, limits, suspend.

use std::{collections::BTreeMap, fs, path::Path};

use nntrace_common::time_count::TimeCount;

use super::kernel::{Kernel, KernelError};
use crate::model::run_facts::{CpuEvidenceRow, Evidence, PowerDomainRow, PsciRow, SuspendRow};

/// Folder of the kernel's power domains, where debugfs is mounted.
pub(crate) const POWER_DOMAINS: &str = "/sys/kernel/debug/pm_genpd";

/// Time (ns), entries and rejected entries by domain and state.
pub(crate) type PowerDomains = BTreeMap<(String, String), (u64, u64, u64)>;

/// Counts at the begin of the window, to be compared with those at its end.
#[derive(Debug, Default)]
pub struct Baseline {
    domains: PowerDomains,
    attached: Vec<&'static str>,
}

impl Baseline {
    /// Reads the counts; `attached` are the attached tracepoints as `Kernel::attach_evidence` returns them.
    #[must_use]
    pub fn read(attached: Vec<&'static str>) -> Self {
        Self { domains: power_domains(Path::new(POWER_DOMAINS)), attached }
    }

    /// Returns the evidence until `end` (ns); power domains only at the end of the window, since reading them takes
    /// their locks.
    ///
    /// # Errors
    /// When the kernel's maps cannot be read.
    pub fn until(
        &self,
        kernel: &Kernel,
        cpus: impl Iterator<Item = u32>,
        end: u64,
        is_over: bool,
    ) -> Result<Evidence, KernelError> {
        let (mut by_cpu, mut psci, suspends) = kernel.read_evidence()?;
        let has = |name: &str| self.attached.contains(&name);
        let rows = cpus.filter_map(|cpu| {
            let evidence = by_cpu.get_mut(cpu as usize)?;
            let open = evidence.psci.end(end).map(|ns| (evidence.psci_parameter, ns));
            let mut states = psci.remove(&cpu).unwrap_or_default();
            if let Some((parameter, ns)) = open {
                let total: &mut TimeCount = states.entry(parameter).or_default();
                total.ns += ns;
                total.count += 1;
            }
            Some(CpuEvidenceRow {
                cpu,
                psci: states
                    .into_iter()
                    .map(|(parameter, TimeCount { ns, count })| PsciRow { parameter, ns, count })
                    .collect(),
                above: has("cpu_idle_miss").then_some(evidence.above),
                below: has("cpu_idle_miss").then_some(evidence.below),
                min_khz: (evidence.min_khz != 0).then_some(evidence.min_khz),
                max_khz: (evidence.max_khz != 0).then_some(evidence.max_khz),
            })
        });
        Ok(Evidence {
            sources: self.attached.iter().map(|&name| name.into()).collect(),
            cpus: rows.collect(),
            power_domains: if is_over {
                changes(&self.domains, &power_domains(Path::new(POWER_DOMAINS)))
            } else {
                Vec::new()
            },
            suspends: has("suspend_resume")
                .then_some(SuspendRow { ns: suspends.total.ns, count: suspends.total.count }),
        })
    }
}

/// Reads the counts of the kernel's power domains under `root`, where they are exposed: `State`, `Time Spent(ms)`,
/// `Usage` and `Rejected` are the first columns in every version.
#[must_use]
pub(crate) fn power_domains(root: &Path) -> PowerDomains {
    let mut found = PowerDomains::new();
    for domain in fs::read_dir(root).into_iter().flatten().flatten() {
        let Ok(text) = fs::read_to_string(domain.path().join("idle_states")) else { continue };
        let name = domain.file_name().to_string_lossy().into_owned();
        for line in text.lines().skip(1) {
            let mut words = line.split_whitespace();
            let state = words.next().unwrap_or_default();
            let mut number = || words.next()?.parse::<u64>().ok();
            if let (Some(ms), Some(usage), Some(rejected)) = (number(), number(), number()) {
                let counts = (ms.saturating_mul(1_000_000), usage, rejected);
                found.insert((name.clone(), state.to_owned()), counts);
            }
        }
    }
    found
}

/// Returns the differences of the counts, without the states that did not change.
fn changes(before: &PowerDomains, after: &PowerDomains) -> Vec<PowerDomainRow> {
    let rows = after.iter().map(|((domain, state), &(ns, usage, rejected))| {
        let old = before.get(&(domain.clone(), state.clone())).copied().unwrap_or((ns, usage, rejected));
        PowerDomainRow {
            domain: domain.clone(),
            state: state.clone(),
            ns: ns.saturating_sub(old.0),
            usage: usage.saturating_sub(old.1),
            rejected: rejected.saturating_sub(old.2),
        }
    });
    rows.filter(|row| (row.ns, row.usage, row.rejected) != (0, 0, 0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_domains_are_read_in_the_forms_of_several_kernels() {
        let root = tempfile::tempdir().unwrap();
        let write = |domain: &str, text: &str| {
            let folder = root.path().join(domain);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("idle_states"), text).unwrap();
        };
        write(
            "cluster0",
            "State          Time Spent(ms) Usage          Rejected\nS0             29817          537            8\n",
        );
        write(
            "cluster1",
            "State          Time Spent(ms) Usage      Rejected   Above      Below\nS0             5   6   7   270        0\nS1    1  2  3 4 5\n",
        );
        write("empty", "State          Time Spent(ms) Usage          Rejected\n");
        fs::create_dir(root.path().join("nothing")).unwrap();
        let before = power_domains(root.path());
        let key = |domain: &str, state: &str| (domain.to_owned(), state.to_owned());
        let expected = [
            (key("cluster0", "S0"), (29_817_000_000, 537, 8)),
            (key("cluster1", "S0"), (5_000_000, 6, 7)),
            (key("cluster1", "S1"), (1_000_000, 2, 3)),
        ];
        assert_eq!(before, PowerDomains::from(expected));
        write(
            "cluster0",
            "State          Time Spent(ms) Usage          Rejected\nS0             29830          540            9\n",
        );
        let rows = changes(&before, &power_domains(root.path()));
        let changed = PowerDomainRow {
            domain: "cluster0".into(),
            state: "S0".into(),
            ns: 13_000_000,
            usage: 3,
            rejected: 1,
        };
        assert_eq!(rows, [changed]);
        assert_eq!(power_domains(&root.path().join("none")), PowerDomains::new());
    }
}
