//! Capabilities of the host and of this process, by what the kernel's files show.

use std::{fs, io, path::Path};

use nix::sys::resource::{Resource, getrlimit};

use super::{Finding, fixes};
use crate::{
    caller::{self, RunAs},
    live::{
        device_usage,
        hooks::Hooks,
        kernel::{ENOUGH_FILES, has_btf},
        perf_events::{PerfCounters, PerfEvent},
        privilege,
        rails::{RailReader, SYSFS},
        sysfs, tracefs,
    },
    model::{cpu_list, rails::RailRow},
};

/// Event that every CPU with performance counters counts.
const COUNTED: &str = "instructions";

pub(super) fn privileges() -> Finding {
    let lacking = privilege::lacking_here();
    if lacking.is_empty() {
        return Finding::present("this process has what the kernel requires");
    }
    let found = format!("this process lacks {}", lacking.join(" and "));
    if privilege::out_of_reach().is_empty() {
        return Finding::absent(found, fixes::privileges());
    }
    let why = "and so does all that it starts: in a container, start that with --cap-add=BPF --cap-add=PERFMON; else run it \
               where they were not dropped";
    Finding::absent(format!("{found}, {why}"), Vec::new())
}

pub(super) fn other_users() -> Finding {
    if privilege::may_trace_all() {
        return Finding::present("this process may trace the processes of all users");
    }
    let own =
        if caller::confined().is_some() { "the user's own processes" } else { "processes of the same user" };
    Finding::partial(format!("only {own} can be traced"), fixes::as_root())
}

pub(super) fn hooks() -> Finding {
    let prepared = RunAs::sudo_caller()
        .map_err(|error| error.to_string())
        .and_then(|user| Hooks::of_user(user.as_ref()).map_err(|error| error.to_string()));
    match prepared {
        Ok(_) => Finding::present("their library can be loaded into commands"),
        Err(reason) => Finding::absent(reason, Vec::new()),
    }
}

pub(super) fn descriptors() -> Finding {
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((soft, hard)) => descriptors_of(soft, hard),
        Err(error) => Finding::unknown(format!("the limit is not known: {error}")),
    }
}

fn descriptors_of(soft: u64, hard: u64) -> Finding {
    let found = format!("this process may have {soft} files open");
    if soft >= ENOUGH_FILES {
        Finding::present(found)
    } else {
        let fix = if hard >= ENOUGH_FILES {
            format!("ulimit -n {ENOUGH_FILES}")
        } else {
            format!("sudo prlimit --nofile={ENOUGH_FILES}:{ENOUGH_FILES} --pid $$")
        };
        Finding::partial(format!("{found}: a long run of many processes needs {ENOUGH_FILES}"), vec![fix])
    }
}

pub(super) fn btf() -> Finding {
    if has_btf() {
        Finding::present("the kernel describes its structures")
    } else {
        Finding::absent(
            "the kernel does not describe its structures: it was built without CONFIG_DEBUG_INFO_BTF",
            Vec::new(),
        )
    }
}

pub(super) fn tracefs() -> Finding {
    match tracefs::mount_point() {
        Some(mount) => Finding::present(format!("mounted on {}", mount.display())),
        None => Finding::absent(tracefs::lacking(), fixes::tracefs()),
    }
}

pub(super) fn idle_states() -> Finding {
    idle_states_under(Path::new(sysfs::CPUS))
}

fn idle_states_under(root: &Path) -> Finding {
    let (topology, _) = sysfs::topology(root);
    let driver = sysfs::read(&root.join("cpuidle/current_driver")).map(|name| name.trim().to_owned());
    let driver = driver.filter(|name| !name.is_empty() && name != "none");
    let names = topology.cpus.values().map(|cpu| {
        let names: Vec<&str> = cpu.idle_states.iter().map(|state| state.name.as_str()).collect();
        names.join(", ")
    });
    let mut names: Vec<String> = names.filter(|names| !names.is_empty()).collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        return Finding::absent(
            "no cpuidle driver is in use: how deep an idle CPU slept is not known",
            Vec::new(),
        );
    }
    Finding::present(format!("{}: {}", driver.as_deref().unwrap_or("driver not known"), names.join("; ")))
}

pub(super) fn frequencies() -> Finding {
    frequencies_under(Path::new(sysfs::CPUS))
}

fn frequencies_under(root: &Path) -> Finding {
    let policies = sysfs::opps(root).into_iter().map(|(cpus, khz)| {
        let cpus = cpu_list::format(&cpus);
        match (khz.iter().min(), khz.iter().max()) {
            (Some(least), Some(most)) => format!("CPUs {cpus}: {}-{} MHz", least / 1_000, most / 1_000),
            _ => format!("CPUs {cpus}"),
        }
    });
    let policies: Vec<String> = policies.collect();
    if policies.is_empty() {
        let why = "no cpufreq policy: this machine does not let Linux choose frequencies, as most virtual machines, or its cpufreq \
                   driver is not loaded";
        return Finding::absent(why, Vec::new());
    }
    Finding::present(policies.join("; "))
}

pub(super) fn clusters() -> Finding {
    clusters_under(Path::new(sysfs::CPUS))
}

fn clusters_under(root: &Path) -> Finding {
    let (topology, note) = sysfs::topology(root);
    let clusters = topology.clusters.iter();
    let clusters: Vec<String> = clusters
        .map(|cluster| format!("{}: CPUs {}", cluster.name, cpu_list::format(&cluster.cpus)))
        .collect();
    match note {
        None => Finding::present(clusters.join("; ")),
        Some(note) => Finding::partial(note, Vec::new()),
    }
}

pub(super) fn counters() -> Finding {
    let event: Result<PerfEvent, String> = COUNTED.parse();
    match event.map(|event| PerfCounters::open(&[event])) {
        Ok(Ok(counters)) if counters.notes.is_empty() => {
            Finding::present(format!("{COUNTED} are counted on all CPUs"))
        }
        Ok(Ok(counters)) => Finding::partial(counters.notes.join("; "), Vec::new()),
        Ok(Err(error)) => {
            let fixes = if privilege::lacking_here().is_empty() { Vec::new() } else { fixes::privileges() };
            Finding::absent(error.to_string(), fixes)
        }
        Err(error) => Finding::unknown(error),
    }
}

pub(super) fn rails() -> Finding {
    rails_under(Path::new(SYSFS))
}

fn rails_under(sysfs: &Path) -> Finding {
    let rails = RailReader::find(sysfs, None).read();
    let found: Vec<String> = rails.rails.iter().map(RailRow::path).collect();
    let unreadable: Vec<String> =
        rails.unreadable.iter().map(|rail| format!("{} ({})", rail.rail, rail.reason)).collect();
    let refused = format!("cannot be read: {}", unreadable.join(", "));
    match (found.is_empty(), unreadable.is_empty()) {
        (true, true) => Finding::absent(
            "no sensor of energy or power in hwmon, IIO and powercap; a model of this machine's CPUs gives an estimate instead",
            vec![format!("{} energy-model init model.toml", fixes::program())],
        ),
        (true, false) => Finding::absent(refused, fixes::as_root()),
        (false, true) => Finding::present(found.join(", ")),
        (false, false) => Finding::partial(format!("{}; {refused}", found.join(", ")), fixes::as_root()),
    }
}

pub(super) fn devices() -> Finding {
    devices_under(Path::new(SYSFS))
}

fn devices_under(sysfs: &Path) -> Finding {
    let found = device_usage::names(sysfs);
    if !found.is_empty() {
        return Finding::present(found.join(", "));
    }
    let fixes = match fs::read_dir(sysfs.join("kernel/debug")).map(|mut entries| entries.next().is_some()) {
        Ok(true) => Vec::new(),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => fixes::as_root(),
        Ok(false) | Err(_) => vec!["mount -t debugfs none /sys/kernel/debug".into()],
    };
    Finding::absent(
        "no accel or render node in /sys/class, no load file in debugfs or /sys/class/devfreq",
        fixes,
    )
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::live::doctor::Status;

    fn tree(files: &[(&str, &str)]) -> TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn idle_states_are_named_with_their_driver() {
        let none =
            idle_states_under(tree(&[("present", "0-1"), ("cpuidle/current_driver", "none\n")]).path());
        assert_eq!(none.status, Status::Absent);
        let states = [
            ("present", "0-1"),
            ("cpuidle/current_driver", "psci_idle\n"),
            ("cpu0/cpuidle/state0/name", "WFI\n"),
            ("cpu0/cpuidle/state1/name", "cpu-sleep\n"),
            ("cpu1/cpuidle/state0/name", "WFI\n"),
        ];
        let found = idle_states_under(tree(&states).path());
        assert_eq!(found, Finding::present("psci_idle: WFI; WFI, cpu-sleep"));
    }

    #[test]
    fn policies_have_their_frequencies() {
        assert_eq!(frequencies_under(tree(&[("present", "0")]).path()).status, Status::Absent);
        let policies = [
            ("cpufreq/policy0/related_cpus", "0 1"),
            ("cpufreq/policy0/scaling_available_frequencies", "408000 1008000 1800000"),
            ("cpufreq/policy2/related_cpus", "2"),
        ];
        let found = frequencies_under(tree(&policies).path());
        assert_eq!(found, Finding::present("CPUs 0-1: 408-1800 MHz; CPUs 2"));
    }

    #[test]
    fn clusters_that_are_a_guess_are_partial() {
        let guess = clusters_under(tree(&[("present", "0-1")]).path());
        assert_eq!(guess.status, Status::Partial);
        let known = [
            ("present", "0-3"),
            ("cpufreq/policy0/related_cpus", "0 1"),
            ("cpufreq/policy2/related_cpus", "2 3"),
        ];
        let found = clusters_under(tree(&known).path());
        assert_eq!(found.status, Status::Present);
        assert!(found.found.contains("CPUs 0-1") && found.found.contains("CPUs 2-3"), "{}", found.found);
    }

    #[test]
    fn a_low_limit_of_open_files_has_the_command_that_this_user_may_run() {
        assert_eq!(descriptors_of(ENOUGH_FILES, ENOUGH_FILES).status, Status::Present);
        let low = descriptors_of(256, 4_096);
        assert_eq!((low.status, &low.fixes[..]), (Status::Partial, &["ulimit -n 1024".to_owned()][..]));
        assert!(descriptors_of(256, 512).fixes[0].starts_with("sudo prlimit"));
    }

    #[test]
    fn devices_are_named_by_their_nodes_and_their_loads() {
        let none = devices_under(tree(&[]).path());
        assert_eq!((none.status, none.fixes.len()), (Status::Absent, 1));
        let files = [
            ("class/accel/accel0/dev", "261:0\n"),
            ("class/drm/renderD128/dev", "226:128\n"),
            ("class/drm/version", "drm 1.1.0 20060810\n"),
            ("class/devfreq/fb000000.gpu/load", "12@300000000Hz\n"),
        ];
        let found = devices_under(tree(&files).path());
        assert_eq!(
            (found.status, &*found.found),
            (Status::Present, "accel0, renderD128, fb000000.gpu (device-wide)")
        );
    }

    #[test]
    fn rails_that_root_alone_may_read_are_no_rails_that_are_not_there() {
        let none = rails_under(tree(&[]).path());
        assert!(none.status == Status::Absent && none.fixes[0].ends_with(" energy-model init model.toml"));
        let hwmon =
            [("class/hwmon/hwmon0/name", "ina226\n"), ("class/hwmon/hwmon0/power1_input", "1500000\n")];
        let found = rails_under(tree(&hwmon).path());
        assert_eq!(found.status, Status::Present, "{}", found.found);
        assert!(found.found.contains("hwmon/ina226"), "{}", found.found);
        let unreadable =
            [("class/hwmon/hwmon0/name", "ina226\n"), ("class/hwmon/hwmon0/power1_input", "none\n")];
        let found = rails_under(tree(&unreadable).path());
        assert_eq!(found.status, Status::Absent);
        assert!(found.found.starts_with("cannot be read: "), "{}", found.found);
    }
}
