//! An ordinary user with the two required capabilities only: unknown values are not 0, and inaccessible files are not
//! missing ones.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    process::Command,
};

use anyhow::{Context as _, Result};
use nntrace_tests::{binaries, child::Child, live, snapshot};

/// `nobody`.
const USER: &str = "65534";

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
