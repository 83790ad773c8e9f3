//! Files of results: they exist when complete, and are otherwise unchanged.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use nntrace_tests::{
    binaries,
    child::{Child, Ended},
    live,
    profiler::Profiler,
};
use nntrace_user::report::snapshot::Snapshot;
use tempfile::TempDir;

const BEFORE: &str = "something else, and longer than nothing";

/// Folder with a trace and an old file of results.
struct Folder(TempDir);

impl Folder {
    fn new() -> Result<Self> {
        let folder = Self(tempfile::tempdir()?);
        fs::write(
            folder.path("trace.txt"),
            "  app-1 (  1) [000] .... 1.000000: tracing_mark_write: B|1|[NN_LR_PE]run\n  \
               app-1 (  1) [000] .... 1.500000: tracing_mark_write: E|1\n",
        )?;
        fs::write(folder.path("old.json"), BEFORE)?;
        Ok(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Checks that the folder is unchanged.
    fn check_unchanged(&self) -> Result<()> {
        let names = fs::read_dir(self.0.path())?
            .map(|entry| Ok(entry?.file_name().into_string().unwrap_or_default()));
        let mut names = names.collect::<Result<Vec<_>>>()?;
        names.sort();
        assert_eq!(names, ["old.json", "trace.txt"]);
        assert_eq!(fs::read_to_string(self.path("old.json"))?, BEFORE);
        Ok(())
    }

    /// Runs the profiler in the folder.
    fn run(&self, arguments: &[&str]) -> Result<Ended> {
        Child::run(Profiler::new()?.command().args(arguments).current_dir(self.0.path()))
    }
}

fn snapshot(path: &Path) -> Result<Snapshot> {
    nntrace_tests::snapshot::read(&fs::read(path)?)
        .with_context(|| format!("{} is no snapshot", path.display()))
}

#[test]
fn what_was_there_stays_until_the_results_are_whole() -> Result<()> {
    let folder = Folder::new()?;
    for (arguments, expected) in [
        // Neither for a missing trace, nor for an impossible place, nor for an existing name.
        (&["replay", "none.txt", "--json=old.json", "--force", "-o", "new.csv"][..], "none.txt"),
        (&["replay", "trace.txt", "--json=old.json", "--force", "-o", "none/new.csv"], "no folder none"),
        (&["replay", "trace.txt", "-o", "new.csv", "-o", "old.json"], "old.json exists already; --force"),
        (&["replay", "trace.txt", "-o", "new.csv", "--json=/dev/full", "-o", "/proc/new.svg"], "/proc"),
        (&["replay", "trace.txt", "-o", "new.csv", "-o", "new.csv"], "new.csv are the same file"),
        (&["replay", "trace.txt", "-o", "old.json", "--json=./old.json", "--force"], "are the same file"),
        (&["topology", "old.json"], "old.json exists already; --force"),
    ] {
        let ended = folder.run(arguments)?.expect_code(1)?;
        assert!(ended.stderr.contains(expected), "{arguments:?}: {}", ended.stderr);
        folder.check_unchanged()?;
    }
    Ok(())
}

#[test]
fn a_full_disk_leaves_every_file_as_it_was() -> Result<()> {
    let folder = Folder::new()?;
    // The second does not fit: a small mount of its own serves as a full disk.
    let script = "mount -t tmpfs -o size=16k tmpfs mnt && cp trace.txt old.json mnt && cd mnt && \
                  (dd if=/dev/zero of=filler bs=1k; true) 2>/dev/null && \
                  \"$0\" replay trace.txt --json=old.json --force; code=$?; cat old.json; ls -A; exit $code";
    fs::create_dir(folder.path("mnt"))?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(binaries::profiler()?).current_dir(folder.0.path());
    if !nix::unistd::Uid::effective().is_root() {
        eprintln!("skipped: mounting needs root");
        return Ok(());
    }
    let ended = Child::run(&mut command)?.expect_code(1)?;
    assert!(ended.stderr.contains("cannot write old.json: No space left on device"), "{}", ended.stderr);
    assert_eq!(ended.text(), format!("{BEFORE}filler\nold.json\ntrace.txt\n"));
    Ok(())
}

#[test]
fn by_force_a_file_is_replaced_and_keeps_its_mode() -> Result<()> {
    let folder = Folder::new()?;
    let old = folder.path("old.json");
    fs::set_permissions(&old, fs::Permissions::from_mode(0o600))?;
    folder.run(&["replay", "trace.txt", "--json=old.json", "--force", "-o", "new.json"])?.expect_code(0)?;
    assert_eq!(fs::metadata(&old)?.mode() & 0o7777, 0o600);
    assert_eq!(fs::read(&old)?, fs::read(folder.path("new.json"))?);
    snapshot(&old)?;
    Ok(())
}

#[test]
fn devices_and_descriptors_need_no_force() -> Result<()> {
    let folder = Folder::new()?;
    let ended = folder.run(&["replay", "trace.txt", "--json=/dev/stdout"])?.expect_code(0)?;
    assert_eq!(ended.stdout, folder.run(&["replay", "trace.txt", "--json"])?.stdout);
    let ended = folder.run(&["replay", "trace.txt", "--json=/dev/full"])?.expect_code(1)?;
    assert_eq!(ended.stderr, "nntrace-bpf: cannot write /dev/full: No space left on device (os error 28)\n");
    folder.check_unchanged()?;

    // A file that a shell appends to is kept, and a named pipe is read by its reader.
    let script = "echo before > out; \"$0\" replay trace.txt --json=/dev/fd/7 7>> out || exit; \
                  mkfifo pipe.json; cat pipe.json > read & \"$0\" replay trace.txt -o pipe.json; wait";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(binaries::profiler()?).current_dir(folder.0.path());
    Child::run(&mut command)?.expect_code(0)?;
    let json = fs::read(folder.path("read"))?;
    assert_eq!(fs::read(folder.path("out"))?, [&b"before\n"[..], &json].concat());
    Ok(())
}

#[test]
fn a_command_that_cannot_start_costs_no_file() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = Folder::new()?;
    let ended = folder
        .run(&["--json=old.json", "--force", "-o", "new.csv", "--", "/no/such/command"])?
        .expect_code(1)?;
    assert!(ended.stderr.contains("/no/such/command"), "{}", ended.stderr);
    folder.check_unchanged()?;
    // Nor does a command start when there is no place for the results.
    folder.run(&["-o", "none/new.csv", "--", "touch", "started"])?.expect_code(1)?;
    folder.check_unchanged()
}

#[test]
fn signals_that_would_kill_end_it_with_its_results() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    for signal in [Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGALRM, Signal::SIGQUIT, Signal::SIGHUP] {
        let folder = Folder::new()?;
        let file = folder.path("new.json");
        let profiler = Profiler::new()?.args(["--marks", "none", "-o"]).args([&file]).attach()?;
        assert!(!file.exists());
        profiler.signal(signal)?;
        let run = profiler.finish().with_context(|| signal.to_string())?;
        run.ended.expect_code(0)?;
        assert_eq!(snapshot(&file)?, run.snapshot);
    }
    Ok(())
}

#[test]
fn killed_it_leaves_nothing() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = Folder::new()?;
    let arguments = ["--marks", "none", "--force", "-o", "old.json", "-o", "new.json"];
    let mut profiler = Profiler::new()?.args(arguments);
    profiler.command().current_dir(folder.0.path());
    let profiler = profiler.attach()?;
    profiler.signal(Signal::SIGKILL)?;
    profiler.ended()?;
    folder.check_unchanged()
}

#[test]
fn a_reader_that_goes_away_ends_it() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = Folder::new()?;
    // Lines of JSON, and tables: neither has an end of its own.
    for option in ["--json-lines", "--fast-probes"] {
        let script = "{ \"$0\" --marks none --interval 50ms \"$1\" 2> errors; echo $? > code; } | head -n 1";
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(binaries::profiler()?).arg(option).current_dir(folder.0.path());
        let ended = Child::run(&mut command)?.expect_code(0)?;
        assert_eq!(ended.text().lines().count(), 1);
        assert_eq!(fs::read_to_string(folder.path("code"))?, "0\n");
        assert_eq!(fs::read_to_string(folder.path("errors"))?, "");
    }
    Ok(())
}
