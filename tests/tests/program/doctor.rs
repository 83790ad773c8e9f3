//! `doctor`: what it says of this machine is what a run finds, for root, for users, and without tracefs.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use nntrace_tests::{
    binaries,
    child::{Child, Ended},
    live,
    profiler::Profiler,
    snapshot,
};
use serde_json::Value;

/// `nobody`.
const USER: &str = "65534";

/// Runs a command that ends with `doctor --json`; returns its exit status and what it found.
fn doctor(command: &mut Command) -> Result<(Option<i32>, Value)> {
    let ended = Child::run(command.args(["doctor", "--json"]))?;
    let found = serde_json::from_slice(&ended.stdout).with_context(|| ended.stderr.clone())?;
    Ok((ended.status.code(), found))
}

fn of<'a>(found: &'a Value, name: &str) -> Result<&'a Value> {
    let capabilities = found["capabilities"].as_array().context("no capabilities")?;
    capabilities.iter().find(|capability| capability["name"] == name).with_context(|| name.to_owned())
}

/// Returns the status of capabilities.
fn statuses<'a>(found: &'a Value, names: &[&str]) -> Result<Vec<&'a str>> {
    names.iter().map(|name| of(found, name)?["status"].as_str().context("no status")).collect()
}

/// Returns the commands that provide a capability. We are root, and sudo may not be installed.
fn fixes(found: &Value, name: &str) -> Result<Vec<String>> {
    let fixes = of(found, name)?["fixes"].as_array().context("no fixes")?.iter();
    fixes.map(|fix| Ok(fix.as_str().context("no text")?.replace("sudo ", ""))).collect()
}

/// Copy of the profiler in a folder that every user may enter.
fn copy(folder: &Path) -> Result<PathBuf> {
    fs::set_permissions(folder, Permissions::from_mode(0o755))?;
    let program = folder.join("nntrace-bpf");
    fs::copy(binaries::profiler()?, &program)?;
    Ok(program)
}

#[test]
fn root_has_what_this_machine_has() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let (code, found) = doctor(&mut Command::new(binaries::profiler()?))?;
    assert_eq!((code, &found["can_trace"]), (Some(0), &Value::Bool(true)), "{found:#}");
    let required = ["privileges", "kernel programs", "uprobes", "other users' processes", "power events"];
    assert!(statuses(&found, &required)?.iter().all(|status| *status == "present"), "{found:#}");
    let cpus = Path::new("/sys/devices/system/cpu");
    for (name, is_there) in [
        ("BTF", live::has_btf()),
        ("tracefs", Path::new("/sys/kernel/tracing/events").is_dir()),
        ("child processes", Path::new("/sys/kernel/tracing/events").is_dir()),
        ("idle states", cpus.join("cpu0/cpuidle/state0").exists()),
        (
            "CPU frequencies",
            fs::read_dir(cpus.join("cpufreq")).is_ok_and(|mut policies| policies.next().is_some()),
        ),
    ] {
        let capability = of(&found, name)?;
        assert_eq!(capability["status"] == "present", is_there, "{capability:#}");
        assert_ne!(capability["found"], "", "{capability:#}");
    }
    let ended = Child::run(Command::new(binaries::profiler()?).arg("doctor"))?.expect_code(0)?;
    let first = ended.text().lines().next().unwrap_or_default().to_owned();
    assert!(first.starts_with("Linux ") && first.ends_with(": live runs work here"), "{first}");
    Ok(())
}

#[test]
fn a_user_is_told_what_is_missing_and_the_advised_command_provides_it() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let program = copy(folder.path())?;
    let as_user = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]).arg(&program);
        command
    };
    let (code, found) = doctor(&mut as_user())?;
    assert_eq!((code, &found["can_trace"]), (Some(1), &Value::Bool(false)), "{found:#}");
    let names = ["privileges", "kernel programs", "uprobes", "power events", "other users' processes"];
    assert_eq!(
        statuses(&found, &names)?,
        ["absent", "unknown", "unknown", "unknown", "partial"],
        "{found:#}"
    );
    let commands = fixes(&found, "privileges")?;
    let [as_root, for_group] = &commands[..] else { panic!("{commands:?}") };
    let ended = Child::run(Command::new("sh").arg("-c").arg(as_root))?.expect_code(0)?;
    assert!(ended.text().contains("live runs work here"), "{}", ended.text());
    let for_group = for_group.replace("GROUP", USER);
    Child::run(Command::new("sh").arg("-c").arg(for_group))?.expect_code(0)?;
    let (code, found) = doctor(&mut as_user())?;
    let names = ["privileges", "kernel programs", "power events", "other users' processes"];
    assert_eq!(statuses(&found, &names)?, ["present", "present", "present", "partial"], "{found:#}");
    // Before Linux 6.6 the kernel lets only root probe functions.
    assert_eq!(code == Some(0), of(&found, "uprobes")?["status"] == "present", "{found:#}");
    Ok(())
}

#[test]
fn capabilities_that_nothing_can_give_back_have_no_command() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    for (dropped, name) in [("-bpf,-sys_admin", "CAP_BPF"), ("-perfmon,-sys_admin", "CAP_PERFMON")] {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set", dropped]).arg(binaries::profiler()?);
        let (code, found) = doctor(&mut command)?;
        assert_eq!(code, Some(1), "{dropped}: {found:#}");
        let text = of(&found, "privileges")?["found"].as_str().context("no text")?;
        assert!(
            text.starts_with(&format!("this process lacks {name} (")) && text.contains("--cap-add"),
            "{text}"
        );
        assert_eq!(fixes(&found, "privileges")?, Vec::<String>::new());
    }
    // Those of other capabilities do not matter to what is required.
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-net_admin,-sys_ptrace"]).arg(binaries::profiler()?);
    let (code, found) = doctor(&mut command)?;
    assert_eq!(code, Some(0), "{found:#}");
    assert_eq!(statuses(&found, &["privileges", "other users' processes"])?, ["present", "partial"]);
    Ok(())
}

#[test]
fn without_tracefs_the_command_that_mounts_it_mends_what_needs_it() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let script = "umount -l /sys/kernel/tracing; umount -Rl /sys/kernel/debug 2>/dev/null; \"$0\" doctor --json; sh -c \"$1\" && \
                  exec \"$0\" doctor --json";
    let mount = "mount -t tracefs tracefs /sys/kernel/tracing";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(binaries::profiler()?).arg(mount);
    let ended = Child::run(&mut command)?.expect_code(0)?;
    let found: Vec<Value> =
        serde_json::Deserializer::from_slice(&ended.stdout).into_iter().collect::<Result<_, _>>()?;
    let [without, with] = &found[..] else { panic!("{}", ended.text()) };
    let names = ["tracefs", "child processes", "uprobes"];
    assert_eq!(fixes(without, "tracefs")?, [mount]);
    assert_eq!(fixes(without, "child processes")?, [mount]);
    assert_eq!(statuses(without, &names)?, ["absent", "partial", "present"], "{without:#}");
    assert_eq!(statuses(with, &names)?, ["present", "present", "present"], "{with:#}");
    Ok(())
}

/// As on boards whose kernels were built without `CONFIG_UPROBE_EVENTS`: perf has no such device there.
#[test]
fn without_probes_on_functions_a_run_shows_the_cpus_and_says_why_once() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let run = |words: &[&str]| -> Result<Ended> {
        let mut profiler = Profiler::without("/sys/bus/event_source/devices")?.args(words);
        Child::run(profiler.command())
    };
    let (option, mark) = ("CONFIG_UPROBE_EVENTS", env!("CARGO_BIN_EXE_mark-raw"));
    let ended = run(&["doctor", "--json"])?;
    let found: Value = serde_json::from_slice(&ended.stdout)?;
    assert_eq!((ended.status.code(), &found["can_show_cpus"]), (Some(1), &Value::Bool(true)), "{found:#}");
    let uprobes = of(&found, "uprobes")?;
    assert!(uprobes["status"] == "absent" && uprobes["found"].to_string().contains(option), "{uprobes:#}");
    let ended = run(&["--json", "--", mark, "B|1|[NN_LR_PE]Run", "E|1"])?.expect_code(0)?;
    let snapshot = snapshot::read(&ended.stdout)?;
    let notes = snapshot.notes.iter().filter(|note| note.contains(option)).count();
    let others = snapshot.notes.iter().filter(|note| note.contains("cannot attach")).count();
    assert_eq!((notes, others), (1, 0), "{:?}", snapshot.notes);
    assert!(!snapshot.cpus.is_empty() && snapshot.phases.is_empty());
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("run").display().to_string();
    let ended =
        run(&["record", "-o", &path, "--call", "libc.so.6:getpid()->i32", "--", "true"])?.expect_code(1)?;
    assert!(ended.stderr.contains(option), "{}", ended.stderr);
    Ok(())
}
