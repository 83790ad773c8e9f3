//! A model file to fill in, for a machine that is described.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use super::model::PowerUnit;
use crate::model::{
    cpu_list,
    topology::{ClusterDescription, Domain, Topology},
};

/// Powers of some CPUs, as the kernel has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelPowers {
    /// The CPUs.
    pub cpus: Vec<u32>,
    /// Power of one of them that runs, by frequency in kHz.
    pub powers: BTreeMap<u32, u64>,
    /// Unit of the powers.
    pub unit: KernelUnit,
}

/// Unit of the kernel's powers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KernelUnit {
    /// It is known.
    Stated(PowerUnit),
    /// It is not known, or there is none, for this reason.
    None(String),
}

const HEAD: &str = "\
# Energy model of this machine, for `nntrace-bpf --energy-model FILE` (the file's name must end in .toml).
# Fill in the powers: what stays 0 costs nothing. What the numbers mean:
#
#   opps     `cluster`: power of the cluster while any of its CPUs runs and this is its frequency
#            `core`: power of one CPU that runs at it, on top of that
#   idle     `cluster`: power of the cluster while all its CPUs are idle and this is the deepest state in common
#            `core`: power of one CPU in this state
#            `entry = { cluster = .., core = .. }` may stand there too: energy of one stay, on top of the powers
#   wakeup   energy of a wake-up: of the cluster from a state deeper than the first, of a CPU from the first

";
const UNIT: &str = "\
# The unit of every power: \"W\", \"mW\" or \"uW\". Without one, results are relative.
";
const ENERGY_UNIT: &str = "\
# The unit of `wakeup` and `entry`: \"J\", \"mJ\", \"uJ\" or \"nJ\". It needs `unit`.
# energy_unit = \"uJ\"
";
const SOURCE: &str =
    "# Powers of cores are from the kernel's energy model (/sys/kernel/debug/energy_model).\n";

/// The text of a model in our TOML form with all clusters, frequencies and idle states of a machine. `opps` are the
/// frequencies (kHz) of CPUs that share a clock. Powers are 0 except for those that the kernel knows.
#[must_use]
pub(crate) fn template(
    topology: &Topology,
    opps: &[(Vec<u32>, Vec<u32>)],
    kernel: &[KernelPowers],
) -> String {
    let mut text = HEAD.to_owned();
    if !kernel.is_empty() {
        text.push_str(SOURCE);
    }
    text.push_str(UNIT);
    let units: Vec<&KernelUnit> = kernel.iter().map(|powers| &powers.unit).collect();
    match units.first() {
        Some(&first) if units.iter().any(|&unit| unit != first) => {
            text.push_str(
                "# The kernel's powers are not all in one unit: bring them to one.\n# unit = \"mW\"\n",
            );
        }
        Some(KernelUnit::Stated(unit)) => line(&mut text, &format!("unit = \"{}\"", unit.symbol())),
        Some(KernelUnit::None(reason)) => {
            line(&mut text, &format!("# Of the kernel's powers it is not told: {reason}."));
            text.push_str("# unit = \"mW\"\n");
        }
        None => text.push_str("# unit = \"mW\"\n"),
    }
    text.push_str(ENERGY_UNIT);
    for description in &topology.clusters {
        cluster(&mut text, topology, description, opps, kernel);
    }
    text
}

/// Writing to a string cannot fail.
fn line(text: &mut String, line: &str) {
    let _ = writeln!(text, "{line}");
}

fn cluster(
    text: &mut String,
    topology: &Topology,
    description: &ClusterDescription,
    opps: &[(Vec<u32>, Vec<u32>)],
    kernel: &[KernelPowers],
) {
    line(text, "\n[[cluster]]");
    line(text, &format!("name = {}", quoted(&description.name)));
    line(text, &format!("cpus = \"{}\"", cpu_list::format(&description.cpus)));
    let is_here = |cpus: &[u32]| cpus.iter().any(|cpu| description.cpus.contains(cpu));
    if description.domain.shares_clock() {
        let mut powers: BTreeMap<u32, u64> = BTreeMap::new();
        let frequencies = opps.iter().filter(|(cpus, _)| is_here(cpus)).flat_map(|(_, khz)| khz);
        powers.extend(frequencies.map(|&khz| (khz, 0)));
        let known = kernel.iter().filter(|domain| is_here(&domain.cpus)).flat_map(|domain| &domain.powers);
        powers.extend(known.map(|(&khz, &power)| (khz, power)));
        if powers.is_empty() {
            text.push_str(
                "# This machine tells no frequencies. One row prices all running time, as a range of no width:\n\
                 #   { mhz = 1000, cluster = 0, core = 0 },\n",
            );
        }
        text.push_str("opps = [\n");
        for (khz, power) in powers {
            line(text, &format!("  {{ khz = {khz}, cluster = 0, core = {power} }},"));
        }
        text.push_str("]\n");
    }
    let costs = match description.domain {
        Domain::Both => "cluster = 0, core = 0",
        Domain::Idle => "cluster = 0",
        Domain::Frequency => "core = 0",
    };
    text.push_str("idle = [\n");
    for name in idle_names(topology, &description.cpus) {
        line(text, &format!("  {{ name = {}, {costs} }},", quoted(&name)));
    }
    text.push_str("]\n");
    line(text, &format!("# wakeup = {{ {costs} }}"));
}

/// The names of the idle states of some CPUs, from the shallowest to the deepest.
fn idle_names(topology: &Topology, cpus: &[u32]) -> Vec<String> {
    let described = cpus.iter().filter_map(|cpu| topology.cpus.get(cpu)).flat_map(|cpu| &cpu.idle_states);
    let by_level: BTreeSet<(u32, &str)> = described.map(|state| (state.level, state.name.as_str())).collect();
    let mut names: Vec<String> = Vec::new();
    for (_, name) in by_level {
        if !name.is_empty() && !names.iter().any(|other| other == name) {
            names.push(name.into());
        }
    }
    if names.is_empty() {
        // Without a driver there is the kernel's default idle alone, which shows as state 1.
        names.extend(cpus.first().map(|&cpu| topology.idle_name(cpu, 1)));
    }
    names
}

/// As a string of TOML.
pub(super) fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}
