//! Options that the kernel was built with, as far as it shows them.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

use flate2::read::GzDecoder;

use super::Finding;

/// Options that runs use, each with what it is used for.
const USED: [(&str, &str); 8] = [
    ("CONFIG_BPF_SYSCALL", "kernel programs"),
    ("CONFIG_PERF_EVENTS", "probes and counters"),
    ("CONFIG_EVENT_TRACING", "events of the kernel"),
    ("CONFIG_BPF_EVENTS", "programs on events and functions"),
    ("CONFIG_UPROBE_EVENTS", "marks of functions, engines, --call"),
    ("CONFIG_DEBUG_INFO_BTF", "--marks syscall, files of targets, containers"),
    ("CONFIG_CPU_FREQ", "frequencies"),
    ("CONFIG_CPU_IDLE", "idle states"),
];

/// The kernel's own copy, gzipped, where it was built with `CONFIG_IKCONFIG_PROC`.
const OWN: &str = "/proc/config.gz";

/// Bytes of a configuration at most: the largest have some 300,000.
const LONGEST: u64 = 4 << 20;

pub(super) fn options() -> Finding {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    let installed = format!("/boot/config-{release}");
    let own = || File::open(OWN).and_then(|file| read(GzDecoder::new(file)));
    match own()
        .map(|text| (OWN, text))
        .or_else(|_| Ok::<_, io::Error>((&*installed, read(File::open(&installed)?)?)))
    {
        Ok((path, text)) => of_text(path, &text),
        Err(error) => without_file(&error, Path::new("/lib/modules").join(release).as_path(), &installed),
    }
}

fn read(from: impl io::Read) -> io::Result<String> {
    let mut text = String::new();
    from.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

fn of_text(path: &str, text: &str) -> Finding {
    let is_set = |option: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(option)?.strip_prefix('='));
        value.is_some_and(|value| value == "y" || value == "m")
    };
    let missing: Vec<String> = USED
        .into_iter()
        .filter(|(option, _)| !is_set(option))
        .map(|(option, purpose)| format!("{option} ({purpose})"))
        .collect();
    if missing.is_empty() {
        Finding::present(format!("all that runs use are set in {path}"))
    } else {
        Finding::partial(
            format!("not set in {path}: {}; another kernel is needed for these", missing.join(", ")),
            Vec::new(),
        )
    }
}

fn without_file(error: &io::Error, modules: &Path, installed: &str) -> Finding {
    let mut finding = Finding::unknown(format!("neither {OWN} nor {installed} can be read: {error}"));
    let module = modules.join("kernel/kernel");
    let is_module = ["configs.ko", "configs.ko.xz", "configs.ko.zst", "configs.ko.gz"]
        .iter()
        .any(|name| module.join(name).exists());
    finding.fixes.extend(is_module.then(|| "sudo modprobe configs".to_owned()));
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::doctor::Status;

    #[test]
    fn options_that_are_not_set_are_named_with_what_they_are_for() {
        let set = |option: &&(&str, &str)| format!("{}=y\n", option.0);
        let all: String = USED.iter().map(|option| set(&option)).collect();
        assert_eq!(of_text("config", &all).status, Status::Present);
        let most: String =
            USED.iter().filter(|(option, _)| !option.contains("UPROBE")).map(|option| set(&option)).collect();
        let found = of_text(
            "config",
            &format!("{most}# CONFIG_UPROBE_EVENTS is not set\nCONFIG_UPROBE_EVENTS_X=y\n"),
        );
        assert_eq!(found.status, Status::Partial);
        assert_eq!(
            found.found,
            "not set in config: CONFIG_UPROBE_EVENTS (marks of functions, engines, --call); another kernel is needed for these"
        );
    }

    #[test]
    fn a_configuration_in_a_module_has_the_command_that_loads_it() {
        let modules = tempfile::tempdir().unwrap();
        let error = io::Error::from_raw_os_error(nix::libc::ENOENT);
        let found = || without_file(&error, modules.path(), "/boot/config-x");
        assert!(found().status == Status::Unknown && found().fixes.is_empty());
        fs::create_dir_all(modules.path().join("kernel/kernel")).unwrap();
        fs::write(modules.path().join("kernel/kernel/configs.ko.xz"), "").unwrap();
        assert_eq!(found().fixes, ["sudo modprobe configs"]);
    }
}
