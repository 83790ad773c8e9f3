//! Template of an energy model file for this host.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use super::sysfs::{self, children, read};
use crate::model::{
    cpu_list,
    energy::{self, KernelPowers, KernelUnit, PowerUnit},
};

/// Folder of the kernel's own energy model in debugfs, readable by root.
pub const KERNEL_MODEL: &str = "/sys/kernel/debug/energy_model";

/// First release whose powers are in uW, if they have a unit; earlier ones have mW.
const MICROWATTS_SINCE: (u32, u32) = (6, 0);
/// Lower bound of a CPU's power at its highest frequency, uW: hardly any CPU takes that many mW.
const LEAST_MICROWATTS: u64 = 20_000;

/// Returns the template for the CPUs under `root`, and notes on what could not be found out. The powers are those
/// that the kernel `release` exposes under `kernel_model`, else 0.
#[must_use]
pub fn template(root: &Path, kernel_model: &Path, release: &str) -> (String, Vec<String>) {
    let (topology, note) = sysfs::topology(root);
    let mut notes = Vec::from_iter(note);
    if let Err(error) = fs::read_dir(kernel_model)
        && error.kind() == io::ErrorKind::PermissionDenied
    {
        notes.push(format!(
            "{}: {error}; root may see powers of CPUs there, if the kernel knows them",
            kernel_model.display()
        ));
    }
    let text = energy::template(&topology, &sysfs::opps(root), &kernel_powers(kernel_model, release));
    (text, notes)
}

/// Reads the kernel's power values of CPUs.
fn kernel_powers(folder: &Path, release: &str) -> Vec<KernelPowers> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    // Domains of other devices have no list of CPUs.
    let mut domains: Vec<KernelPowers> = entries
        .filter_map(|folder| domain(&folder, release))
        .filter(|domain| !domain.powers.is_empty())
        .collect();
    domains.sort_by(|a, b| a.cpus.cmp(&b.cpus));
    domains
}

fn domain(folder: &Path, release: &str) -> Option<KernelPowers> {
    let cpus = cpu_list::parse(&read(&folder.join("cpus"))?).ok()?;
    let number = |path: PathBuf| read(&path)?.trim().parse::<u64>().ok();
    let power = |state: PathBuf| {
        let khz = number(state.join("frequency"))?.try_into().ok()?;
        Some((khz, number(state.join("power"))?))
    };
    let powers: BTreeMap<u32, u64> = children(folder, "ps:").into_iter().filter_map(power).collect();
    let dearest = powers.values().copied().max().unwrap_or(0);
    let told = |name: &str| read(&folder.join(name));
    let unit = unit(told("units").as_deref(), told("flags").as_deref(), release, dearest);
    Some(KernelPowers { cpus, powers, unit })
}

/// Determines the unit of a domain's powers, the highest of which is `dearest`.
///
/// Source: `kernel/power/energy_model.c`: `units` names the unit in 5.11 to 5.15; in `flags`, later, bit 0 means that
/// there is a unit and bit 2 that the powers are artificial, and the unit depends on the release. Vendor kernels may
/// deviate from that, so the powers must also be plausible for a CPU.
fn unit(units: Option<&str>, flags: Option<&str>, release: &str, dearest: u64) -> KernelUnit {
    const HAS_UNIT: u32 = 1;
    const IS_MADE_UP: u32 = 1 << 2;
    let none = |reason: &str| KernelUnit::None(reason.into());
    match units.map(str::trim) {
        Some("milliWatts") => return KernelUnit::Stated(PowerUnit::MilliW),
        Some(other) => return KernelUnit::None(format!("the kernel says {other:?}")),
        None => {}
    }
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).ok());
    match flags {
        None => return none("this kernel does not tell"),
        Some(flags) if flags & IS_MADE_UP != 0 => return none("they only compare with each other"),
        Some(flags) if flags & HAS_UNIT == 0 => return none("they are in an abstract scale"),
        Some(_) => {}
    }
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let (Some(major), Some(minor)) = (numbers.next(), numbers.next()) else {
        return KernelUnit::None(format!("that depends on the kernel's release, and {release:?} is none"));
    };
    match ((major, minor) >= MICROWATTS_SINCE, dearest >= LEAST_MICROWATTS) {
        (true, true) => KernelUnit::Stated(PowerUnit::MicroW),
        (false, false) => KernelUnit::Stated(PowerUnit::MilliW),
        (is_new, _) => KernelUnit::None(format!(
            "by the kernel's release ({release}) they are in {}, but {dearest} is not what a CPU takes then",
            if is_new { "uW" } else { "mW" }
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    /// Returns the template for a tree whose kernel model is in `em`, and checks that it is a valid model.
    fn template_of(files: &[(&str, &str)]) -> (String, energy::EnergyModel) {
        let root = tree(files);
        let (text, _) = template(root.path(), &root.path().join("em"), "6.6.30-board");
        let model = energy::parse("template.toml", &text).unwrap();
        (text, model)
    }

    #[test]
    fn two_clusters_with_all_that_a_board_tells() {
        let (text, model) = template_of(&[
            ("present", "0-5\n"),
            ("cpufreq/policy0/related_cpus", "0 3 4 5\n"),
            ("cpufreq/policy0/scaling_available_frequencies", "450000 575000 \n"),
            ("cpufreq/policy0/scaling_boost_frequencies", "850000 \n"),
            ("cpufreq/policy1/related_cpus", "1 2\n"),
            ("cpufreq/policy1/cpuinfo_min_freq", "450000\n"),
            ("cpufreq/policy1/cpuinfo_max_freq", "1100000\n"),
            ("cpu0/cpuidle/state0/name", "WFI\n"),
            ("cpu0/cpuidle/state1/name", "cpu-sleep-0\n"),
            ("cpu0/cpuidle/state2/name", "odd \"name\"\\\n"),
            ("cpu1/cpuidle/state0/name", "WFI\n"),
            ("em/cpu0/cpus", "0,3-5\n"),
            ("em/cpu0/flags", "0x1\n"),
            ("em/cpu0/ps:450000/frequency", "450000\n"),
            ("em/cpu0/ps:450000/power", "42000\n"),
            ("em/cpu0/ps:850000/frequency", "850000\n"),
            ("em/cpu0/ps:850000/power", "110500\n"),
            ("em/gpu/ps:1/frequency", "1\n"),
        ]);
        insta::assert_snapshot!(text);
        assert_eq!(model.unit, Some(PowerUnit::MicroW));
        assert_eq!(model.clusters[0].cpus, Some(vec![0, 3, 4, 5]));
        let cores: Vec<_> =
            model.clusters[0].p_states.iter().map(|state| (state.khz, state.power.core)).collect();
        assert_eq!(cores, [(450_000, 42_000.0), (575_000, 0.0), (850_000, 110_500.0)]);
        assert_eq!(model.clusters[0].idle[2].name, "odd \"name\"\\");
        assert_eq!(model.clusters[1].p_states.len(), 2);
    }

    #[test]
    fn clocks_and_the_idle_domain_apart() {
        let mut files = vec![
            ("present", "0-2"),
            ("cpufreq/policy0/related_cpus", "0 1"),
            ("cpufreq/policy0/scaling_available_frequencies", "500000"),
            ("cpufreq/policy2/related_cpus", "2"),
        ];
        for list in [
            "cpu0/topology/cluster_cpus_list",
            "cpu1/topology/cluster_cpus_list",
            "cpu2/topology/cluster_cpus_list",
        ] {
            files.push((list, "0-2"));
        }
        let (text, model) = template_of(&files);
        insta::assert_snapshot!(text.split_once("\n\n[[").unwrap().1);
        let shapes: Vec<_> = model
            .clusters
            .iter()
            .map(|cluster| (cluster.name.as_str(), cluster.p_states.len(), cluster.idle[0].name.as_str()))
            .collect();
        assert_eq!(
            shapes,
            [("0", 1, "default-idle"), ("1", 0, "default-idle"), ("idle0", 0, "default-idle")]
        );
    }

    #[test]
    fn a_machine_that_tells_nothing() {
        let (_, model) = template_of(&[("present", "0-1")]);
        assert_eq!(model.clusters[0].cpus, Some(vec![0, 1]));
        assert_eq!((model.clusters.len(), model.clusters[0].p_states.len()), (1, 0));
        assert_eq!(model.notes.len(), 1);
    }

    #[test]
    fn this_machine() {
        let (text, _) = template(Path::new(sysfs::CPUS), Path::new(KERNEL_MODEL), "6.1.0");
        let model = energy::parse("template.toml", &text).unwrap();
        let (topology, _) = sysfs::topology(Path::new(sysfs::CPUS));
        assert_eq!(model.clusters.len(), topology.clusters.len());
    }

    #[test]
    fn the_unit_of_the_kernels_powers_is_found_out_not_assumed() {
        let stated = |unit| KernelUnit::Stated(unit);
        for (units, flags, release, dearest, expected) in [
            (Some("milliWatts\n"), None, "5.11.0", 900, stated(PowerUnit::MilliW)),
            (None, Some("0x1\n"), "5.19.3", 900, stated(PowerUnit::MilliW)),
            (None, Some("0x3\n"), "6.12.30-rt", 900_000, stated(PowerUnit::MicroW)),
        ] {
            assert_eq!(unit(units, flags, release, dearest), expected);
        }
        for (units, flags, release, dearest, reason) in [
            (Some("bogoWatts\n"), None, "5.11.0", 900, "the kernel says \"bogoWatts\""),
            (None, None, "5.4.0", 900, "this kernel does not tell"),
            (None, Some("0x0\n"), "6.1.0", 900, "they are in an abstract scale"),
            (None, Some("0x5\n"), "6.1.0", 900, "they only compare with each other"),
            (
                None,
                Some("0x1\n"),
                "6.1.0",
                900,
                "by the kernel's release (6.1.0) they are in uW, but 900 is not what a CPU takes then",
            ),
            (
                None,
                Some("0x1\n"),
                "5.15.0",
                900_000,
                "by the kernel's release (5.15.0) they are in mW, but 900000 is not what a CPU takes then",
            ),
        ] {
            assert_eq!(unit(units, flags, release, dearest), KernelUnit::None(reason.into()));
        }
    }
}
