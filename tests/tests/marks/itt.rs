//! Tasks that libraries show by ITT: the collector makes marks of them that nest by the contract, and harms nobody.

use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use nntrace_common::layer::Tag;
use nntrace_tests::{
    binaries,
    child::{Child, Ended},
    itt::{Itt, LIBRARY, VARIABLE},
    live,
    profiler::{Profiler, Run},
    results::Results as _,
    snapshot,
};
use nntrace_user::report::snapshot::Snapshot;

/// Inferences of the engine.
const INFERENCES: u64 = 30;

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("the path is text")
}

/// Profiles a program with the collector in its environment; returns what came of it, without any odd mark.
fn profiled(itt: &Itt, argument: &str, variables: &[(&str, &str)]) -> Result<Snapshot> {
    let library = itt.library();
    let profiler =
        variables.iter().fold(Profiler::new()?, |profiler, (name, value)| profiler.env(name, value));
    let run = profiler.env(VARIABLE, text(&library)?).launch([text(itt.program())?, argument])?;
    run.ended.expect_code(0)?;
    assert_eq!(run.snapshot.odd_marks(), [].into(), "{argument}: {:?}", run.snapshot.diagnostics);
    Ok(run.snapshot)
}

/// Runs a program with the collector, and nobody who listens.
fn alone(itt: &Itt, argument: &str) -> Result<Ended> {
    Child::run(Command::new(itt.program()).arg(argument).env(VARIABLE, itt.library()))?.expect_code(0)
}

/// Returns the only process with results.
fn pid(snapshot: &Snapshot) -> Result<u32> {
    let pids = snapshot.pids();
    ensure!(pids.len() == 1, "processes with results: {pids:?}");
    Ok(pids[0])
}

/// Returns how often each function ran: by tag and name.
fn functions(snapshot: &Snapshot, pid: u32) -> BTreeMap<(String, &str), u64> {
    let rows = snapshot.functions.iter().filter(|row| row.pid == pid);
    rows.map(|row| ((Tag::new(row.layer, row.phase).to_string(), row.name.as_str()), row.count)).collect()
}

fn expected<'a>(rows: &[(&str, &'a str, u64)]) -> BTreeMap<(String, &'a str), u64> {
    rows.iter().map(|&(tag, name, count)| ((tag.to_owned(), name), count)).collect()
}

fn counts(rows: &[(&str, u64)]) -> BTreeMap<String, u64> {
    rows.iter().map(|&(tag, count)| (tag.to_owned(), count)).collect()
}

/// Sections that are there once: a second compilation is in the first, and a primitive is created in the first inference.
const ONCE: [(&str, &str, u64); 6] = [
    ("LR_PI", "Read model", 1),
    ("LR_PC", "Compile model", 1),
    ("LC_PC", "convolution", 2),
    ("LC_PC", "Node::execute", 1),
    ("LC_PC", "reshape", 1),
    ("LC_PC", "reorder", 1),
];

#[test]
fn the_tasks_of_an_engine_are_its_layers_and_phases() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let itt = Itt::build("itt-network.c")?;
    let snapshot = profiled(&itt, &INFERENCES.to_string(), &[])?;
    let pid = pid(&snapshot)?;
    let each = [
        ("LC_PE", "infer"),
        ("LC_PE", "Convolution::execute"),
        ("LC_PE", "conv1"),
        ("LC_PE", "convolution"),
        ("LC_PE", "Pooling::execute"),
        ("LC_PE", "pool1"),
        ("LC_PE", "pooling"),
        // Of the threads that help.
        ("LU_PE", "convolution"),
        ("LU_PE", "pooling"),
    ];
    let all: Vec<_> = ONCE.into_iter().chain(each.map(|(tag, name)| (tag, name, INFERENCES))).collect();
    assert_eq!(functions(&snapshot, pid), expected(&all));
    let totals = [("LC_PC", 3), ("LC_PE", INFERENCES), ("LR_PC", 1), ("LR_PI", 1), ("LU_PE", 0)];
    assert_eq!(snapshot.counts(pid), counts(&totals));
    let loaded: Vec<_> =
        snapshot.notes.iter().filter(|note| note.contains("show by ITT are marks")).collect();
    assert_eq!(loaded.len(), 1, "{:?}", snapshot.notes);
    Ok(())
}

#[test]
fn operators_can_be_left_out() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let itt = Itt::build("itt-network.c")?;
    let snapshot = profiled(&itt, &INFERENCES.to_string(), &[("NNTRACE_ITT", "run")])?;
    let totals = [("LC_PE", INFERENCES), ("LR_PC", 1), ("LR_PI", 1)];
    assert_eq!(snapshot.counts(pid(&snapshot)?), counts(&totals));
    Ok(())
}

#[test]
fn names_are_cut_behind_a_character_and_hold_nothing_that_ends_them() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let itt = Itt::build("itt-odd.c")?;
    let snapshot = profiled(&itt, "names", &[])?;
    let mut functions = functions(&snapshot, pid(&snapshot)?);
    let (long, mut short): (Vec<&str>, Vec<&str>) =
        functions.keys().map(|&(_, name)| name).partition(|name| name.contains("ü€ü€"));
    short.sort_unstable();
    let unnamed = "dnnl::primitive::execute";
    let others = ["B|1|[x]|", "[NN_LR_PE", "a_b=c", unnamed, "line_break_tab_[31m", "with a time"];
    assert_eq!(short, others);
    assert_eq!(long.len(), 2, "{long:?}");
    for name in long {
        // The other one begins in the middle of a character.
        let name = name.trim_start_matches('\u{fffd}');
        assert!(name.len() > 200 && "€ü".repeat(500).contains(name), "{name}");
    }
    assert_eq!(
        functions.remove(&("LC_PE".to_owned(), unnamed)),
        Some(2),
        "without a name, and by an address"
    );
    Ok(())
}

#[test]
fn a_programs_own_tasks_are_marks_where_their_names_say_so() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let itt = Itt::build("itt-odd.c")?;
    let snapshot = profiled(&itt, "tags", &[])?;
    let pid = pid(&snapshot)?;
    let all =
        [("LA_PE", "classify", 1), ("LR_PC", "late", 1), ("LR_PE", "inside", 6), ("LC_PE", "direct", 1)];
    assert_eq!(functions(&snapshot, pid), expected(&all));
    let [iterations] = &snapshot.iterations[..] else { panic!("{:?}", snapshot.iterations) };
    assert_eq!((iterations.name.as_str(), iterations.count, iterations.slowest[0].iter), ("classify", 1, 3));
    let stacks = snapshot.stack_counts(pid);
    assert_eq!(stacks.get("LA_PE LC_PE!"), Some(&1), "the layer between them is missing: {stacks:?}");
    Ok(())
}

#[test]
fn threads_that_create_the_same_names_get_the_same() -> Result<()> {
    let itt = Itt::build("itt-odd.c")?;
    for _ in 0..5 {
        alone(&itt, "threads")?;
    }
    let Some(_live) = live::enter()? else { return Ok(()) };
    let snapshot = profiled(&itt, "threads", &[])?;
    let functions = functions(&snapshot, pid(&snapshot)?);
    assert_eq!(functions.len(), 100);
    assert!(functions.values().all(|&count| count == 8 * 20), "{functions:?}");
    Ok(())
}

#[test]
fn a_child_that_is_forked_in_a_task_ends_none_of_its_parents() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let itt = Itt::build("itt-odd.c")?;
    let snapshot = profiled(&itt, "forks", &[])?;
    let pids = snapshot.pids();
    ensure!(pids.len() == 2, "{pids:?}");
    let (parent, child): (Vec<u32>, Vec<u32>) = pids
        .into_iter()
        .partition(|&pid| functions(&snapshot, pid).contains_key(&("LC_PE".to_owned(), "parent")));
    let of_parent = [("LC_PE", "parent", 1), ("LC_PE", "primitive", 2)];
    assert_eq!(functions(&snapshot, parent[0]), expected(&of_parent));
    // Nobody in the child does what it could help with.
    let of_child = [("LC_PE", "child", 1), ("LC_PE", "primitive", 1)];
    assert_eq!(functions(&snapshot, child[0]), expected(&of_child));
    Ok(())
}

#[test]
fn tasks_nest_as_deep_as_there_is_room_for() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let itt = Itt::build("itt-odd.c")?;
    let snapshot = profiled(&itt, "deep", &[])?;
    let pid = pid(&snapshot)?;
    let all = [("LC_PE", "after", 1), ("LC_PE", "deep", 1)];
    assert_eq!(functions(&snapshot, pid), expected(&all));
    assert_eq!(snapshot.stack_counts(pid).values().sum::<u64>(), 65);
    Ok(())
}

#[test]
fn ends_without_begins_and_crossed_regions_leave_no_section_open() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let itt = Itt::build("itt-odd.c")?;
    let snapshot = profiled(&itt, "crossed", &[])?;
    let all = [("LR_PC", "Compile model", 20), ("LC_PC", "inside", 20), ("LC_PE", "outside", 20)];
    assert_eq!(functions(&snapshot, pid(&snapshot)?), expected(&all));
    Ok(())
}

#[test]
fn overlapped_tasks_are_slices_on_the_track_of_their_domain() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let itt = Itt::build("itt-odd.c")?;
    let snapshot = profiled(&itt, "slices", &[])?;
    let mut rows: Vec<_> =
        snapshot.tracks.iter().map(|row| (row.track.len(), row.name.len(), row.slices, row.open)).collect();
    rows.sort_unstable();
    let names = ["store", "load_it"].map(|name| ("my.app".len(), name.len(), 20, 0));
    assert_eq!(rows, [names[0], names[1], (80, 120, 20, 0)], "{:?}", snapshot.tracks);
    Ok(())
}

#[test]
fn it_is_heard_from_attach_to_detach() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let itt = Itt::build("itt-odd.c")?;
    let mut command = Command::new(itt.program());
    let mut child = Child::start(command.arg("commands").env(VARIABLE, itt.library()))?;
    let mut answers = 0;
    let mut ask = |child: &mut Child, line: &str| {
        answers += 1;
        child.send_line(line)?;
        child.lines(answers)
    };
    ask(&mut child, "open")?;
    for round in 1..=2 {
        let pid = child.pid();
        let profiler = Profiler::new()?.args(["--pid", &pid.to_string()]).attach()?;
        if round == 1 {
            // Nobody has seen it begin.
            ask(&mut child, "close")?;
        }
        ask(&mut child, "run 100")?;
        profiler.signal(Signal::SIGINT)?;
        let Run { snapshot, ended } = profiler.finish()?;
        ended.expect_code(0)?;
        assert_eq!(snapshot.odd_marks(), [].into(), "{:?}", snapshot.diagnostics);
        assert_eq!(functions(&snapshot, pid), expected(&[("LC_PE", "work", 100)]));
        ask(&mut child, "run 100")?;
    }
    Ok(())
}

#[test]
fn names_without_end_take_no_more_memory_than_there_is_for_them() -> Result<()> {
    let ended = alone(&Itt::build("itt-odd.c")?, "flood")?;
    assert_eq!(ended.text(), "(others)\n");
    Ok(())
}

#[test]
fn another_version_is_left_alone() -> Result<()> {
    alone(&Itt::build("itt-odd.c")?, "unfit")?;
    Ok(())
}

/// Launches the engine by a copy of the profiler in this place of a folder, with the collector in another.
fn installed(itt: &Itt, program: &str, library: &str, variables: &[(&str, &str)]) -> Result<Snapshot> {
    let root = tempfile::tempdir_in(itt.folder())?;
    fs::set_permissions(root.path(), Permissions::from_mode(0o755))?;
    for (from, to) in [(&binaries::profiler()?, program), (&itt.library(), library)] {
        let to = root.path().join(to);
        fs::create_dir_all(to.parent().context("it is in a folder")?)?;
        fs::copy(from, &to)?;
    }
    let mut command = Command::new(root.path().join(program));
    command.env_remove(VARIABLE).envs(variables.iter().copied());
    command.args(["--json", "--"]).arg(itt.program()).arg(INFERENCES.to_string());
    let ended = Child::run(&mut command)?;
    snapshot::read(&ended.stdout).with_context(|| ended.stderr)
}

#[test]
fn a_command_is_handed_the_collector_that_is_installed_with_the_profiler() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let itt = Itt::build("itt-network.c")?;
    for (program, library) in [
        ("unpacked/nntrace-bpf", format!("unpacked/{LIBRARY}")),
        ("usr/bin/nntrace-bpf", format!("usr/lib/nntrace-bpf/{LIBRARY}")),
    ] {
        let snapshot = installed(&itt, program, &library, &[])?;
        assert_eq!(snapshot.count(pid(&snapshot)?, "LC_PE"), INFERENCES, "{:?}", snapshot.notes);
    }
    let elsewhere = installed(&itt, "bin/nntrace-bpf", &format!("etc/{LIBRARY}"), &[])?;
    assert!(elsewhere.pids().is_empty(), "{:?}", elsewhere.functions);
    let beside = format!("bin/{LIBRARY}");
    let other = installed(&itt, "bin/nntrace-bpf", &beside, &[(VARIABLE, "/no/such/collector.so")])?;
    assert!(other.pids().is_empty(), "the collector of somebody else stays");
    Ok(())
}

#[test]
fn a_collector_that_the_commands_user_may_not_read_is_named() -> Result<()> {
    /// `nobody`.
    const USER: (&str, &str) = ("SUDO_UID", "65534");
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let itt = Itt::build("itt-network.c")?;
    fs::set_permissions(itt.folder(), Permissions::from_mode(0o755))?;
    let beside = format!("bin/{LIBRARY}");
    let about = |snapshot: &Snapshot| {
        snapshot.notes.iter().any(|note| note.contains(&format!("{LIBRARY} cannot be read by")))
    };
    let seen = installed(&itt, "bin/nntrace-bpf", &beside, &[USER])?;
    assert_eq!(seen.count(pid(&seen)?, "LC_PE"), INFERENCES, "{:?}", seen.notes);
    assert!(!about(&seen), "{:?}", seen.notes);
    fs::set_permissions(itt.library(), Permissions::from_mode(0o600))?;
    let unseen = installed(&itt, "bin/nntrace-bpf", &beside, &[USER])?;
    assert!(unseen.pids().is_empty() && about(&unseen), "{:?}", unseen.notes);
    Ok(())
}
