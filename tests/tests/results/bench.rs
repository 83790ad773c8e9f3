//! `nntrace-bpf bench`: runs of a command in a folder, for `diff`.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use nntrace_tests::{
    child::{Child, Ended},
    live,
    marks::around,
    profiler::Profiler,
    results::Results as _,
};
use nntrace_user::report::snapshot::Snapshot;

/// Returns the names in a folder, sorted.
fn names(folder: &Path) -> Result<Vec<String>> {
    let names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// Returns a command line that writes marks, and keeps count of its calls in a file.
fn counting(count: &Path, then: &str) -> Vec<OsString> {
    let script = format!(
        "n=$(cat '{count}' 2>/dev/null || echo 0); echo $((n + 1)) > '{count}'; \"$@\"; {then}",
        count = count.display()
    );
    let marks = [OsString::from(env!("CARGO_BIN_EXE_mark-raw"))].into_iter().chain(around("LR_PE", []));
    ["sh", "-c", &script, "sh"].into_iter().map(OsString::from).chain(marks).collect()
}

fn bench(words: &[&str], folder: &Path, command: &[OsString]) -> Result<Ended> {
    let mut profiler = Profiler::new()?;
    Child::run(profiler.command().arg("bench").args(words).arg("-o").arg(folder).arg("--").args(command))
}

#[test]
fn each_run_is_whole_and_diff_takes_the_folder() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (runs, count) = (folder.path().join("before"), folder.path().join("count"));
    let command = counting(&count, "echo printed");
    // It is not launched itself: named, it is probed before it runs.
    let lib = ["--lib", env!("CARGO_BIN_EXE_mark-raw")];
    let words = [&["--runs", "3", "--warm-up", "1", "--level", "sched"][..], &lib].concat();
    let ended = bench(&words, &runs, &command)?.expect_code(0)?;
    assert_eq!(ended.text(), "printed\n".repeat(4), "the command's own output is all there is on stdout");
    assert!(
        ended.stderr.contains("warm-up 1 of 1: ") && ended.stderr.contains("run 3 of 3: "),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("nntrace-bpf diff"), "{}", ended.stderr);
    assert_eq!(names(&runs)?, ["run-001.json", "run-002.json", "run-003.json"]);
    assert_eq!(fs::read_to_string(&count)?.trim(), "4");
    for name in names(&runs)? {
        let snapshot: Snapshot = serde_json::from_slice(&fs::read(runs.join(name))?)?;
        let [pid] = snapshot.pids()[..] else { panic!("one process: {:?}", snapshot.phases) };
        assert_eq!(snapshot.count(pid, "LR_PE"), 1);
        assert!(!snapshot.threads.is_empty(), "the options are those of each run");
    }

    // More of them, and others in their place, are asked for by name.
    let refused = bench(&["--runs", "1"], &runs, &command)?.expect_code(1)?;
    assert!(
        refused.stderr.contains("is not empty") && refused.stderr.contains("--add"),
        "{}",
        refused.stderr
    );
    bench(&["--runs", "1", "--add"], &runs, &command)?.expect_code(0)?;
    assert_eq!(names(&runs)?.last().map(String::as_str), Some("run-004.json"));
    let mut profiler = Profiler::new()?;
    let compared = Child::run(profiler.command().arg("diff").args([&runs, &runs]))?.expect_code(0)?.text();
    assert!(compared.contains("4 runs"), "{compared}");
    bench(&["--runs", "2", "--force"], &runs, &command)?.expect_code(0)?;
    assert_eq!(names(&runs)?, ["run-001.json", "run-002.json"]);
    // Until there are others, those that are there stay.
    let failing = [OsString::from("false")];
    bench(&["--runs", "2", "--force"], &runs, &failing)?.expect_code(1)?;
    assert_eq!(names(&runs)?, ["run-001.json", "run-002.json"]);

    // What is not a run's is nobody's to remove.
    fs::write(runs.join("notes.txt"), "mine")?;
    let refused = bench(&["--runs", "1", "--force"], &runs, &command)?.expect_code(1)?;
    assert!(refused.stderr.contains("not runs"), "{}", refused.stderr);
    assert_eq!(names(&runs)?, ["notes.txt", "run-001.json", "run-002.json"]);
    Ok(())
}

#[test]
fn a_run_that_fails_is_the_last_and_is_not_kept() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (runs, count) = (folder.path().join("runs"), folder.path().join("count"));
    let ended =
        bench(&["--runs", "5"], &runs, &counting(&count, "[ $n -lt 2 ] || exit 7"))?.expect_code(7)?;
    assert!(ended.stderr.contains("run 3 of 5 exited with status 7"), "{}", ended.stderr);
    assert_eq!(names(&runs)?, ["run-001.json", "run-002.json"]);
    assert_eq!(fs::read_to_string(&count)?.trim(), "3", "there are no more");
    Ok(())
}

#[test]
fn a_signal_ends_the_run_and_those_to_come() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (runs, count) = (folder.path().join("runs"), folder.path().join("count"));
    let command = counting(&count, "[ $n -lt 1 ] || { echo waits; exec sleep 600; }");
    let mut profiler = Profiler::new()?;
    let child = Child::start(profiler.command().arg("bench").arg("-o").arg(&runs).arg("--").args(&command))?;
    assert_eq!(child.lines(1)?, ["waits"]);
    child.signal(Signal::SIGTERM)?;
    let ended = child.wait()?;
    assert_eq!(ended.code(), Some(130));
    assert!(ended.stderr.contains("ended by a signal: 1 run in "), "{}", ended.stderr);
    assert_eq!(names(&runs)?, ["run-001.json"]);
    Ok(())
}

#[test]
fn under_sudo_the_runs_belong_to_the_user() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (uid, gid) = (65_534, 65_533);
    std::os::unix::fs::chown(folder.path(), Some(uid), Some(gid))?;
    let runs = folder.path().join("runs");
    let mut profiler = Profiler::new()?.called_by(uid, gid)?;
    let command = profiler.command().args(["bench", "--runs", "1", "-o"]).arg(&runs).args(["--", "true"]);
    Child::run(command)?.expect_code(0)?;
    for path in [runs.clone(), runs.join("run-001.json")] {
        let found = fs::metadata(&path).with_context(|| path.display().to_string())?;
        assert_eq!((found.uid(), found.gid()), (uid, gid), "{}", path.display());
    }
    Ok(())
}

#[test]
fn command_lines_that_are_no_series_of_runs_are_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let runs: PathBuf = folder.path().join("runs");
    for (words, reason) in [
        (&["bench", "--", "true"][..], "with -o"),
        (&["bench", "-o", "x.json", "--", "true"], "with -o"),
        (&["bench", "-o", "RUNS"], "after `--`"),
        (&["bench", "-o", "RUNS", "--json", "--", "true"], "--json"),
        (&["bench", "-o", "RUNS", "--runs", "0", "--", "true"], "0 is not in 1..=1000"),
    ] {
        let mut profiler = Profiler::new()?;
        let words = words.iter().map(|word| if *word == "RUNS" { runs.as_os_str() } else { word.as_ref() });
        let ended = Child::run(profiler.command().args(words))?.expect_code(2)?;
        assert!(ended.stderr.contains(reason), "{reason}: {}", ended.stderr);
    }
    assert!(!runs.exists());
    Ok(())
}
