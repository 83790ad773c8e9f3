//! Processes and threads that come, go, are killed, or are somewhere else, while lanes are up: every mark counts, once.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use nntrace_common::diagnostic::DiagnosticKind;
use nntrace_tests::{
    express::{AMPLE, let_all_run, sections, sum_of_lines},
    live,
    native::Program,
    profiler::{Profiler, Run},
    results::Results as _,
};
use nntrace_user::report::snapshot::Snapshot;

/// Sections that each writes after the ones in which it waits for its lane.
const EACH: u64 = 200;

fn run(program: &Program, words: &[&str]) -> Result<Snapshot> {
    let command = std::iter::once(program.path()).chain(words.iter().map(Path::new));
    let Run { snapshot, ended } = Profiler::new()?.args(AMPLE).launch(command)?;
    ended.expect_code(0).with_context(|| format!("{words:?}"))?;
    let used = snapshot.source.express.with_context(|| format!("{words:?}: no thread used a lane"))?;
    ensure!(used.marks > 0 && used.lost == 0 && used.damaged == 0, "{words:?}: {used:?}");
    Ok(snapshot)
}

#[test]
fn forked_children_have_lanes_of_their_own() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let program = Program::build("express-processes.c")?;
    let snapshot = run(&program, &["fork"])?;
    let counts = ["parent", "child", "grandchild"].map(|name| sections(&snapshot, name));
    // The first two mark before and after their fork.
    assert_eq!(counts, [2 * EACH, 2 * EACH, EACH]);
    assert_eq!(snapshot.source.express.map(|used| used.threads), Some(3));
    let of_name = |name: &str| snapshot.functions.iter().filter(|row| row.name == name).count();
    assert_eq!(["parent", "child", "grandchild"].map(of_name), [1, 1, 1], "each is a process");
    assert_eq!(snapshot.odd_marks(), [].into(), "{:?}", snapshot.diagnostics);
    Ok(())
}

/// The section is the parent's, and ends there. What the child says of its end is its own mistake, if anybody sees it.
#[test]
fn a_section_that_a_fork_copies_counts_once() -> Result<()> {
    const FORKS: u64 = 40;
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let program = Program::build("express-processes.c")?;
    let snapshot = run(&program, &["inherit"])?;
    let counts = ["inherited", "parent", "child"].map(|name| sections(&snapshot, name));
    assert_eq!(counts, [FORKS, EACH + FORKS, 2 * FORKS]);
    let odd = snapshot.odd_marks();
    let unmatched = DiagnosticKind::UnmatchedEnd.name();
    assert!(odd.iter().all(|(kind, count)| *kind == unmatched && *count <= FORKS), "{odd:?}");
    Ok(())
}

#[test]
fn programs_are_replaced_while_lanes_are_up() -> Result<()> {
    const VFORKS: u64 = 3;
    const BORROWED: u64 = 10;
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let program = Program::build("express-processes.c")?;
    for (word, parent, thread, child, borrowed) in [
        ("vfork", 2 * VFORKS, 0, VFORKS, VFORKS * BORROWED),
        ("exec", 1, 0, 1, 0),
        ("exec-thread", 1, 1, 1, 0),
    ] {
        let snapshot = run(&program, &[word])?;
        let counts = ["parent", "thread", "child", "borrowed"].map(|name| sections(&snapshot, name));
        assert_eq!(counts, [parent * EACH, thread * EACH, child * EACH, borrowed], "{word}");
        assert_eq!(snapshot.odd_marks(), [].into(), "{word}: {:?}", snapshot.diagnostics);
    }
    Ok(())
}

#[test]
fn a_thousand_short_threads_lose_nothing() -> Result<()> {
    const THREADS: u64 = 1_000;
    const SECTIONS: u64 = 100;
    let Some(_live) = live::enter()? else { return Ok(()) };
    let program = Program::build("express-processes.c")?;
    let snapshot = run(&program, &["threads", &THREADS.to_string()])?;
    assert_eq!(sections(&snapshot, "thread"), THREADS * SECTIONS);
    assert_eq!(snapshot.overhead.marks, 2 * THREADS * SECTIONS);
    assert_eq!(snapshot.odd_marks(), [].into(), "{:?}", snapshot.diagnostics);
    Ok(())
}

#[test]
fn sections_that_ended_threads_left_open_are_told() -> Result<()> {
    const THREADS: u64 = 64;
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let program = Program::build("express-processes.c")?;
    let snapshot = run(&program, &["left", &THREADS.to_string()])?;
    assert_eq!(sections(&snapshot, "thread"), THREADS * EACH);
    assert_eq!(snapshot.odd_marks(), [(DiagnosticKind::OpenAtEnd.name(), 2 * THREADS)].into());
    Ok(())
}

/// Returns the sections that have ended and the instants among this many marks.
const fn of_marks(written: u64) -> (u64, u64) {
    (written / 3, (written + 1) / 3)
}

#[test]
fn what_a_killed_program_has_written_counts() -> Result<()> {
    const CHILDREN: usize = 50;
    let Some(_live) = live::enter()? else { return Ok(()) };
    let program = Program::build("express-killed.c")?;
    let command = [program.path(), Path::new(&CHILDREN.to_string()), Path::new("150")].map(Path::to_owned);
    let Run { snapshot, ended } = Profiler::new()?.args(AMPLE).launch(command)?;
    let told = ended.expect_code(0)?.text();
    let used = snapshot.source.express.context("no thread used a lane")?;
    println!("{used:?}");
    ensure!(used.marks > 0 && used.lost == 0 && used.damaged == 0, "{used:?}");
    // Totals are exact, whatever the rings have room for. Instants are records only.
    let ended: BTreeMap<u32, u64> = snapshot.phases.iter().map(|row| (row.pid, row.count)).collect();
    let instants: BTreeMap<u32, u64> = snapshot.tracks.iter().map(|row| (row.pid, row.instants)).collect();
    assert_eq!(told.lines().count(), CHILDREN);
    for line in told.lines() {
        let (pid, written) = line.split_once(' ').with_context(|| line.to_owned())?;
        let (pid, written) = (pid.parse()?, written.parse()?);
        let counted = [&ended, &instants].map(|counts| counts.get(&pid).copied().unwrap_or(0));
        // The last may be written and not counted yet.
        let expected = [of_marks(written), of_marks(written + 1)];
        let [sections, instants] = counted;
        let dropped = snapshot.loss.records_dropped;
        let is_counted = |&(all_sections, all_instants): &(u64, u64)| {
            sections == all_sections
                && (all_instants.saturating_sub(dropped)..=all_instants).contains(&instants)
        };
        ensure!(expected.iter().any(is_counted), "{written} marks of {pid}: {counted:?} of {expected:?}");
    }
    let odd = snapshot.odd_marks();
    let open = DiagnosticKind::OpenAtEnd.name();
    assert!(odd.iter().all(|(kind, count)| *kind == open && *count <= CHILDREN as u64), "{odd:?}");
    Ok(())
}

#[test]
fn programs_of_another_user_and_in_other_namespaces_have_lanes() -> Result<()> {
    const NOBODY: &str = "65534";
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let program = Program::build("express-steps.c")?;
    let_all_run(&program)?;
    let user = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"];
    let namespaces = ["unshare", "--mount", "--user", "--map-root-user", "--pid", "--fork"];
    let both = [&user[..], &namespaces].concat();
    for way in [&user[..], &namespaces, &both] {
        let steps = ["run 100", "await 1", "run 20000"].map(PathBuf::from);
        let command = way.iter().map(PathBuf::from).chain([program.path().to_owned()]).chain(steps);
        // Probed before another process executes it.
        let profiler = Profiler::new()?.args(AMPLE).args([Path::new("--lib"), program.path()]);
        let Run { snapshot, ended } = profiler.launch(command)?;
        let written = sum_of_lines(&ended.expect_code(0).with_context(|| format!("{way:?}"))?)?;
        let used = snapshot.source.express.with_context(|| format!("{way:?}: no thread used a lane"))?;
        assert_eq!((sections(&snapshot, "work"), used.lost), (written, 0), "{way:?}: {used:?}");
        assert!(used.marks > 0, "{way:?}: {used:?}");
        assert_eq!(snapshot.odd_marks(), [].into(), "{way:?}: {:?}", snapshot.diagnostics);
    }
    Ok(())
}
