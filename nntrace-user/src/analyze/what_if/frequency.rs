//! Frequencies of the CPUs that work ran on.

use std::{collections::BTreeMap, str::FromStr};

use crate::analyze::run_graph::{frequencies::Frequencies, graph::Graph};

/// Share of the work on a cluster whose frequency has to be known, percent.
const LEAST_KNOWN: u64 = 90;

/// Frequency of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frequency {
    /// Cluster.
    pub(super) cluster: String,
    /// Frequency, kHz.
    pub(super) khz: u32,
}

impl FromStr for Frequency {
    type Err = String;

    /// Parses `big=1800000`, in kHz.
    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.rsplit_once('=').and_then(|(cluster, khz)| {
            let khz = khz.parse().ok().filter(|khz| *khz > 0)?;
            (!cluster.is_empty()).then(|| Self { cluster: cluster.into(), khz })
        });
        parsed.ok_or_else(|| {
            format!("expected a cluster and its frequency in kHz, such as big=1800000, and not {text}")
        })
    }
}

impl Frequency {
    /// Scales what ran on the cluster to this frequency.
    ///
    /// # Errors
    /// With the reason, when the cluster, what ran on it or its frequencies are not known.
    pub(super) fn scale(&self, frequencies: &Frequencies, graph: &mut Graph) -> Result<(), String> {
        let Self { cluster: name, khz } = self;
        let cluster = frequencies.0.iter().find(|cluster| cluster.name == *name).ok_or_else(|| {
            let names: Vec<&str> = frequencies.0.iter().map(|cluster| &*cluster.name).collect();
            let names = if names.is_empty() { "none".into() } else { names.join(", ") };
            format!("no cluster {name} with events of its frequency is in the run; there is {names}")
        })?;
        let (mut known, mut all) = (0, 0);
        let mut scaled: Vec<(usize, u64)> = Vec::new();
        for (number, point) in graph.points.iter().enumerate() {
            if point.run == 0 || !point.cpu.is_some_and(|cpu| cluster.cpus.contains(&cpu)) {
                continue;
            }
            let (mut cycles, mut unknown) = (0_u128, 0);
            cluster.visit(point.time.saturating_sub(point.run), point.time, |ns, khz| match khz {
                Some(khz) => cycles += u128::from(ns) * u128::from(khz),
                None => unknown += ns,
            });
            all += point.run;
            known += point.run - unknown;
            let half = u128::from(*khz) / 2;
            let run = u64::try_from((cycles + half) / u128::from(*khz)).unwrap_or(u64::MAX);
            scaled.push((number, run.saturating_add(unknown)));
        }
        if all == 0 {
            return Err(format!(
                "nothing is known to have run on cluster {name}: --freq needs context switches (--level sched)"
            ));
        }
        if known * 100 < all * LEAST_KNOWN {
            return Err(format!(
                "the frequency of cluster {name} is known for {known} of {all} ns of the work on it: --freq needs its changes in the \
                 recording"
            ));
        }
        for (number, run) in scaled {
            graph.points[number].run = run;
        }
        Ok(())
    }
}

/// Returns the frequencies (kHz) of the work of each component, where it varied: the lowest and the highest.
pub(super) fn varied(frequencies: &Frequencies, graph: &Graph) -> BTreeMap<u32, (u32, u32)> {
    let mut ranges: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for (number, point) in (0..).zip(&graph.points) {
        let Some(cluster) = point.cpu.and_then(|cpu| frequencies.of_cpu(cpu)) else { continue };
        let begin = point.time.saturating_sub(point.run);
        cluster.visit(begin, point.time, |_, khz| {
            if let Some(khz) = khz.filter(|_| graph.before(number).is_some()) {
                let range = ranges.entry(point.component).or_insert((khz, khz));
                *range = (range.0.min(khz), range.1.max(khz));
            }
        });
    }
    ranges.retain(|_, (lowest, highest)| lowest != highest);
    ranges
}
