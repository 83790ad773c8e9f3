//! An ordinary user with the two required capabilities only: unknown values are not 0, and inaccessible files are not
//! missing ones.

use std::{
    ffi::OsStr,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use nntrace_tests::{binaries, child::Child, live, marks::SLEEP, results::Results as _, snapshot};

/// `nobody`.
const USER: &str = "65534";

/// Copy of the profiler with the capabilities that its own message advises.
fn with_capabilities(folder: &Path) -> Result<PathBuf> {
    fs::set_permissions(folder, Permissions::from_mode(0o755))?;
    let program = folder.join("nntrace-bpf");
    fs::copy(binaries::profiler()?, &program)?;
    let all = "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search+ep";
    Child::run(Command::new("setcap").arg(all).arg(&program))?.expect_code(0)?;
    Ok(program)
}

/// Runs something as the user.
fn as_user(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]).arg(program);
    command
}

/// Copy of a program that writes marks, as each user may run it; by its mode it may run as root.
fn marks(folder: &Path, name: &str, mode: u32) -> Result<PathBuf> {
    let path = folder.join(name);
    fs::copy(env!("CARGO_BIN_EXE_mark-raw"), &path)?;
    fs::set_permissions(&path, Permissions::from_mode(mode))?;
    Ok(path)
}

#[test]
fn capabilities_of_the_program_open_nothing_that_its_user_may_not_see() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let program = with_capabilities(folder.path())?;
    let secret = folder.path().join("secret.toml");
    fs::write(&secret, "password = 7")?;
    fs::set_permissions(&secret, Permissions::from_mode(0o600))?;
    let of_root = Child::start(Command::new("sleep").arg("1000"))?;
    let pid = of_root.pid().to_string();
    let secret = secret.to_string_lossy();
    for (words, reason) in [
        (&["--pid", &pid, "--duration", "1s"][..], "not permitted: the process belongs to another user"),
        (&["record", "-o", "/tmp/x", "--call", "libc.so.6:read(i32)->i32", "--pid", &pid], "not permitted"),
        (&["--energy-model", &secret, "--duration", "1s"], "Permission denied"),
        (&["--topology", &secret, "--duration", "1s"], "Permission denied"),
        (&["--map", &secret, "--duration", "1s"], "Permission denied"),
        (&["energy-model", "check", &secret], "Permission denied"),
        (&["engines", "--map", &secret], "Permission denied"),
    ] {
        let ended = Child::run(as_user(&program).args(words).current_dir("/"))?;
        assert!(!ended.status.success(), "{words:?}");
        assert!(ended.stderr.contains(reason), "{words:?}: {}", ended.stderr);
        assert!(!ended.stderr.contains("password"), "{words:?}: {}", ended.stderr);
    }
    Ok(())
}

#[test]
fn a_setuid_program_gets_no_privileges_below_it_and_is_not_traced_where_it_has_them() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    if !live::has_btf() {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let program = with_capabilities(folder.path())?;
    let own = marks(folder.path(), "own", 0o755)?;
    let setuid = marks(folder.path(), "of-root", 0o4755)?;
    let mark = ["B|1|[NN_LR_PE]Own", "E|1"];
    // Started by the profiler, it runs as any other program.
    let ended =
        Child::run(as_user(&program).args(["--json", "--"]).arg(&setuid).args(mark))?.expect_code(0)?;
    let snapshot = snapshot::read(&ended.stdout)?;
    let [pid] = snapshot.pids()[..] else { panic!("one process: {:?}", snapshot.notes) };
    assert_eq!(snapshot.count(pid, "LR_PE"), 1);
    // In a process that runs already, it is root's, and nobody traces it.
    let script = format!(
        "read go; {0} {1}; {2} {1} {SLEEP}; {0} {1}",
        own.display(),
        mark.map(|text| format!("'{text}'")).join(" "),
        setuid.display()
    );
    let mut shell = as_user("sh");
    let mut shell = Child::start(shell.args(["-c", &script]))?;
    let pid = shell.pid().to_string();
    let mut profiler = as_user(&program);
    // Their files are probed before either runs.
    profiler.args(["--json-lines", "--interval", "1h", "--pid", &pid]);
    profiler.arg("--lib").arg(&own).arg("--lib").arg(&setuid);
    let profiler = Child::start(&mut profiler)?;
    profiler.lines(1)?;
    shell.send_line("go")?;
    shell.wait()?.expect_code(0)?;
    let ended = profiler.wait()?.expect_code(0)?;
    let last = ended.text().lines().last().context("a snapshot")?.to_owned();
    let snapshot = snapshot::read(last.as_bytes())?;
    let counts: u64 = snapshot.pids().into_iter().map(|pid| snapshot.count(pid, "LR_PE")).sum();
    assert_eq!((snapshot.pids().len(), counts), (2, 2), "{:?}", snapshot.notes);
    assert!(
        snapshot.notes.iter().any(|note| note.contains("such as a setuid program")),
        "{:?}",
        snapshot.notes
    );
    Ok(())
}

#[test]
fn a_setuid_program_that_runs_already_is_not_traced_with_its_parent() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let program = with_capabilities(folder.path())?;
    for (mode, is_traced) in [(0o755, true), (0o4755, false)] {
        let flood = folder.path().join(format!("flood-{mode:o}"));
        fs::copy(env!("CARGO_BIN_EXE_mark-flood"), &flood)?;
        fs::set_permissions(&flood, Permissions::from_mode(mode))?;
        let script = format!("{} --seconds 600 --threads 1 --pause-us 1000; true", flood.display());
        let shell = Child::start(as_user("sh").args(["-c", &script]))?;
        shell.lines(1)?;
        let pid = shell.pid().to_string();
        let mut profiler = as_user(&program);
        profiler.args(["--json", "--duration", "1s", "--pid", &pid, "--lib"]).arg(&flood);
        let snapshot = snapshot::read(&Child::run(&mut profiler)?.expect_code(0)?.stdout)?;
        assert_eq!(!snapshot.pids().is_empty(), is_traced, "{mode:o}: {:?}", snapshot.notes);
        Child::run(Command::new("pkill").arg("-P").arg(&pid))?;
        shell.wait()?;
    }
    Ok(())
}

#[test]
fn events_are_counted_without_the_kernels_statistics_and_the_notes_are_right() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
    let program = folder.path().join("nntrace-bpf");
    fs::copy(binaries::profiler()?, &program)?;
    Child::run(Command::new("setcap").arg("cap_bpf,cap_perfmon+ep").arg(&program))
        .context("setcap: run `cargo xtask test`, which installs it")?
        .expect_code(0)?;
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]).arg(&program);
    command.args(["--json", "--duration", "1s"]);
    if live::has_btf() {
        command.args(["--level", "sched"]);
    }
    let ended = Child::run(command.args(["--", "sleep", "1"]))?.expect_code(0)?;
    let snapshot = snapshot::read(&ended.stdout)?;

    let overhead = &snapshot.overhead;
    assert_eq!((overhead.ns_per_mark, overhead.ns_per_power_event), (None, None), "nobody knows");
    assert_eq!(overhead.ns_per_sched_event, None, "nobody knows");
    if live::has_btf() {
        assert!(overhead.sched_events > Some(0), "{overhead:?}");
    }
    let seen: u64 = snapshot.cpus.iter().flat_map(|cpu| &cpu.idle).map(|row| row.hits).sum();
    assert!(overhead.power_events >= seen, "{seen} idle states were entered: {overhead:?}");
    assert!(snapshot.loss.records_produced > 0, "{:?}", snapshot.loss);

    let about = |text: &str| snapshot.notes.iter().any(|note| note.contains(text));
    assert!(!about("tracefs is not mounted"), "{:?}", snapshot.notes);
    let is_closed = |folder: fs::Metadata| folder.permissions().mode() & 0o005 != 0o005;
    let closed = fs::metadata("/sys/kernel/tracing").is_ok_and(is_closed);
    assert!(!closed || about("this user may not read it"), "{:?}", snapshot.notes);
    Ok(())
}
