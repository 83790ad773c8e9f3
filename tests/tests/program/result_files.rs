//! Files of results: they exist when complete, and are otherwise unchanged.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use nntrace_tests::{
    binaries,
    child::{Child, Ended, signal_of},
    live,
    profiler::Profiler,
    wait,
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
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
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

/// Copies the fixture of a recording to a folder of this name.
fn recording(folder: &Folder, name: &str) -> Result<()> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recording-v1");
    fs::create_dir(folder.path(name))?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), folder.path(name).join(entry.file_name()))?;
    }
    Ok(())
}

/// Returns the names and contents of all files below a folder, and its folders.
fn contents(folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(contents(&path)?);
            found.insert(path, Vec::new());
        } else {
            found.insert(path.clone(), fs::read(&path)?);
        }
    }
    Ok(found)
}

#[test]
fn a_recording_stays_where_no_run_begins() -> Result<()> {
    let folder = Folder::new()?;
    recording(&folder, "run")?;
    let before = contents(folder.0.path())?;
    for words in [
        &["--pid", "4194304"][..],
        &["--comm", "nobody-is-named-so"],
        &["--engine", "onnxrutime", "--", "true"],
        &["--map", "none.toml", "--", "true"],
        &["--json=none/x.json", "--", "true"],
        &["-o", "old.json", "--json=old.json", "--", "true"],
        &["--cluster", "big=8191", "--", "true"],
        &["--baseline", "none.json", "--table", "idle", "--", "true"],
        &["--", "./missing"],
        &["--", "./trace.txt"],
    ] {
        let arguments = [&["record", "--force", "-o", "run"], words].concat();
        let ended = folder.run(&arguments)?;
        assert!(matches!(ended.code(), Some(1 | 2)), "{words:?}: {} {}", ended.status, ended.stderr);
        assert!(contents(folder.0.path())? == before, "{words:?}");
    }
    Ok(())
}

#[test]
fn a_recording_stays_without_privilege() -> Result<()> {
    if !nix::unistd::Uid::effective().is_root() {
        eprintln!("skipped: changing the user needs root");
        return Ok(());
    }
    let folder = Folder::new()?;
    recording(&folder, "run")?;
    let program = folder.path("nntrace-bpf");
    fs::copy(binaries::profiler()?, &program)?;
    let mut command = Command::new("sh");
    let script = "chmod 755 . && chown -R 65534:65534 run && \
                  exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all ./nntrace-bpf \"$@\"";
    command.args(["-c", script, "sh", "record", "--force", "-o", "run", "--", "true"]);
    let before = contents(&folder.path("run"))?;
    Child::run(command.current_dir(folder.0.path()))?.expect_code(1)?;
    assert!(contents(&folder.path("run"))? == before);
    Ok(())
}

#[test]
fn a_folder_with_anything_else_is_left_alone() -> Result<()> {
    let folder = Folder::new()?;
    recording(&folder, "run")?;
    fs::write(folder.path("run/thesis.txt"), "years of work")?;
    let before = contents(folder.0.path())?;
    for words in [&["--"][..], &["--flight", "1s", "--"]] {
        let arguments = [&["record", "--force", "-o", "run"], words, &["true"]].concat();
        let ended = folder.run(&arguments)?.expect_code(1)?;
        assert!(ended.stderr.contains("thesis.txt in it is not part"), "{}", ended.stderr);
        assert!(contents(folder.0.path())? == before);
    }
    Ok(())
}

#[test]
fn a_recording_is_replaced_by_one_that_runs() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = Folder::new()?;
    recording(&folder, "run")?;
    std::os::unix::fs::symlink("run", folder.path("link"))?;
    let number = fs::metadata(folder.path("run"))?.ino();
    let before = fs::read(folder.path("run/run.nnt"))?;
    folder.run(&["record", "--force", "-o", "link", "--json", "--", "true"])?.expect_code(0)?;
    assert!(fs::read(folder.path("run/run.nnt"))? != before);
    assert_eq!(fs::metadata(folder.path("run"))?.ino(), number);
    let names = contents(&folder.path("run"))?;
    assert!(names.keys().all(|path| !path.to_string_lossy().contains(".nntrace-bpf-")), "{:?}", names.keys());
    folder.run(&["info", "run", "--check"])?.expect_code(0)?;
    folder.run(&["replay", "run", "--json"])?.expect_code(0)?;
    Ok(())
}

#[test]
fn inputs_are_not_overwritten() -> Result<()> {
    let folder = Folder::new()?;
    recording(&folder, "run")?;
    folder.run(&["replay", "trace.txt", "--json=a.json"])?.expect_code(0)?;
    fs::copy(folder.path("trace.txt"), folder.path("trace.csv"))?;
    fs::hard_link(folder.path("trace.csv"), folder.path("same.csv"))?;
    std::os::unix::fs::symlink("trace.csv", folder.path("link.csv"))?;
    std::os::unix::fs::symlink("run/run.nnt", folder.path("link.json"))?;
    std::os::unix::fs::symlink("run/run.nnt", folder.path("link.nnpack"))?;
    fs::write(folder.path("model.toml"), "unit = \"mW\"\n[[cluster]]\nname = \"a\"\ncpus = \"0\"\n")?;
    fs::hard_link(folder.path("model.toml"), folder.path("model.csv"))?;
    fs::write(folder.path("run/files.json"), "{\"files\": []}")?;
    let before = contents(folder.0.path())?;
    for words in [
        &["replay", "trace.csv", "-o", "trace.csv"][..],
        &["replay", "trace.csv", "-o", "same.csv"],
        &["replay", "trace.csv", "-o", "./link.csv"],
        &["replay", "link.csv", "-o", "same.csv"],
        &["diff", "a.json", "a.json", "-o", "a.json"],
        &["export", "run", "-o", "run/files.json"],
        &["export", "run", "-o", "link.json"],
        &["pack", "run", "-o", "run/cpu0.nnt"],
        &["pack", "run", "-o", "link.nnpack"],
        &["replay", "trace.csv", "--energy-model", "model.toml", "-o", "model.csv"],
    ] {
        let ended = folder.run(&[words, &["--force"]].concat())?.expect_code(1)?;
        assert!(ended.stderr.contains("is an input of this run"), "{words:?}: {}", ended.stderr);
        assert!(contents(folder.0.path())? == before, "{words:?}");
    }
    Ok(())
}

#[test]
fn packs_follow_the_rules_of_result_files() -> Result<()> {
    let folder = Folder::new()?;
    recording(&folder, "run")?;
    // A device takes the bytes, and stays one.
    let device = Path::new("/dev/null");
    let before = fs::metadata(device)?;
    for force in [&[][..], &["--force"]] {
        folder.run(&[&["pack", "run", "-o", "/dev/null"], force].concat())?.expect_code(0)?;
        let after = fs::metadata(device)?;
        assert_eq!((before.ino(), before.rdev(), before.mode()), (after.ino(), after.rdev(), after.mode()));
    }
    let ended = folder.run(&["pack", "run", "-o", "/dev/full"])?.expect_code(1)?;
    assert!(ended.stderr.contains("cannot write /dev/full: No space left"), "{}", ended.stderr);
    // So does a descriptor, and a file keeps its mode and its links.
    let piped = folder.run(&["pack", "run", "-o", "/dev/stdout"])?.expect_code(0)?;
    fs::write(folder.path("old.nnpack"), "old")?;
    fs::set_permissions(folder.path("old.nnpack"), fs::Permissions::from_mode(0o600))?;
    std::os::unix::fs::symlink("old.nnpack", folder.path("link.nnpack"))?;
    let ended = folder.run(&["pack", "run", "-o", "link.nnpack"])?.expect_code(1)?;
    assert!(ended.stderr.contains("link.nnpack exists already; --force"), "{}", ended.stderr);
    folder.run(&["pack", "run", "-o", "link.nnpack", "--force"])?.expect_code(0)?;
    assert!(fs::symlink_metadata(folder.path("link.nnpack"))?.is_symlink());
    assert_eq!(fs::metadata(folder.path("old.nnpack"))?.mode() & 0o777, 0o600);
    assert!(fs::read(folder.path("old.nnpack"))? == piped.stdout);
    Ok(())
}

#[test]
fn signals_leave_no_unfinished_folder() -> Result<()> {
    let folder = Folder::new()?;
    // A trace that comes through a pipe, and no further.
    let pipe = folder.path("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU)?;
    let before = fs::read_dir(folder.0.path())?.count();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        for words in [
            &["export", "pipe", "--board", "b", "-o", "out.parquet"][..],
            &["export", "pipe", "-o", "out.pftrace"],
        ] {
            let mut profiler = Profiler::new()?.args(words);
            let child = Child::start(profiler.command().current_dir(folder.0.path()))?;
            let mut writer = fs::OpenOptions::new().write(true).open(&pipe)?;
            writer.write_all(b"# tracer: nop\n")?;
            let is_begun = || fs::read_dir(folder.0.path()).is_ok_and(|entries| entries.count() > before);
            if words.contains(&"out.parquet") {
                wait::until("an unfinished folder", || Ok(is_begun().then_some(())))?;
            }
            child.signal(signal)?;
            let ended = child.wait()?;
            assert_eq!(signal_of(ended.status), Some(signal as i32), "{words:?}: {}", ended.stderr);
            assert_eq!((fs::read_dir(folder.0.path())?.count(), &*ended.stderr), (before, ""), "{words:?}");
        }
    }
    Ok(())
}
