//! Operators that are hooked in an engine which does not know of it: each call is a section, however it ends, and the program
//! computes the same.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use nntrace_common::{diagnostic::DiagnosticKind, layer::Tag};
use nntrace_tests::{child::Child, hooked::Hooked, live, profiler::Profiler, results::Results as _};
use nntrace_user::report::snapshot::Snapshot;

/// Rounds of each way.
const ROUNDS: u64 = 300;

/// Way in which operators are called, and the sections of each round.
struct Way {
    name: &'static str,
    sections: &'static [(&'static str, &'static str, u64)],
}

/// Sections of the way `counts`.
const COUNTS: &[(&str, &str, u64)] =
    &[("LR_PE", "run", 1), ("LC_PE", "first sum", 1), ("LC_PE", "second sum", 1), ("LC_PE", "product", 1)];

const WAYS: [Way; 7] = [
    Way { name: "counts", sections: COUNTS },
    Way {
        name: "throws",
        sections: &[
            ("LR_PE", "run", 2),
            ("LC_PE", "outer", 1),
            ("LC_PE", "thrower", 1),
            ("LC_PE", "after", 1),
        ],
    },
    Way {
        name: "jumps",
        sections: &[
            ("LR_PE", "run", 2),
            ("LC_PE", "outer", 1),
            ("LC_PE", "jumper", 1),
            ("LC_PE", "after", 1),
        ],
    },
    // Those that compute a constant are a part of the load.
    Way { name: "constants", sections: &[("LR_PC", "model", 1), ("LR_PE", "run", 1), ("LC_PE", "sum", 1)] },
    Way { name: "results", sections: &[("LC_PCO", "product", 1), ("LC_PCO", "number", 3)] },
    Way { name: "walks", sections: &[("LR_PE", "run", 1), ("LC_PE", "walker", 1)] },
    // One in itself counts once.
    Way { name: "recursion", sections: &[("LR_PE", "run", 1), ("LC_PE", "again", 1)] },
];

/// Name of the time that a thread waits until its lane is read.
const WAITING: &str = "waiting for nntrace-bpf";

/// Returns the number of sections by tag and name, in all processes.
fn counts(snapshot: &Snapshot) -> BTreeMap<(String, String), u64> {
    let mut counts = BTreeMap::new();
    for row in snapshot.functions.iter().filter(|row| row.name != WAITING) {
        *counts.entry((Tag::new(row.layer, row.phase).to_string(), row.name.clone())).or_default() +=
            row.count;
    }
    counts
}

fn expected(sections: &[(&str, &str, u64)], rounds: u64) -> BTreeMap<(String, String), u64> {
    sections.iter().map(|&(tag, name, count)| ((tag.to_owned(), name.to_owned()), count * rounds)).collect()
}

fn check(snapshot: &Snapshot, expected: &BTreeMap<(String, String), u64>) -> Result<()> {
    let counts = counts(snapshot);
    ensure!(
        counts == *expected,
        "sections are {counts:?}, expected {expected:?}: {:?} {:?}",
        snapshot.notes,
        snapshot.diagnostics
    );
    let lanes = snapshot.source.express.as_ref().context("no lane")?;
    ensure!(lanes.lost == 0 && lanes.damaged == 0, "{lanes:?}: {:?}", snapshot.notes);
    Ok(())
}

#[test]
fn each_call_is_a_section_in_programs_that_are_linked_with_the_engine_and_that_load_it() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let engine = Hooked::build()?;
    for way in &WAYS {
        for program in ["linked", "loads"] {
            let snapshot = engine.hooked(program, way.name, ROUNDS)?;
            check(&snapshot, &expected(way.sections, ROUNDS))
                .with_context(|| format!("{program} {}", way.name))?;
            let odd = snapshot.odd_marks();
            // The run around an operator that jumps out of it is left without a return.
            let unwound = DiagnosticKind::Unwound.name();
            ensure!(
                odd.keys().all(|kind| *kind == unwound && ["jumps", "throws"].contains(&way.name)),
                "{}: {odd:?}",
                way.name
            );
        }
    }
    Ok(())
}

#[test]
fn hooks_count_what_probes_count() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let engine = Hooked::build()?;
    for way in WAYS.iter().filter(|way| way.name != "walks") {
        let probed = engine.profile(&["--engine-level", "op", "--no-hooks"], "linked", way.name, ROUNDS)?;
        ensure!(probed.source.engines[0].hooked == 0, "{:?}", probed.source.engines);
        let (probed, wanted) = (counts(&probed), expected(way.sections, ROUNDS));
        ensure!(probed == wanted, "{}: {probed:?}, expected {wanted:?}", way.name);
    }
    Ok(())
}

/// Lines of the kernel programs take room on the stack, which engines' programs have least of.
#[test]
fn probes_count_the_same_with_the_log_on() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let engine = Hooked::build()?;
    for level in ["-v", "-vv", "-vvv"] {
        let options = ["--engine-level", "op", "--no-hooks", level];
        let counted = counts(&engine.profile(&options, "linked", "throws", ROUNDS)?);
        let wanted = expected(WAYS[1].sections, ROUNDS);
        ensure!(counted == wanted, "{level}: {counted:?}, expected {wanted:?}");
    }
    Ok(())
}

#[test]
fn threads_return_are_cancelled_and_end_in_operators() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let snapshot = Hooked::build()?.hooked("loads", "threads", ROUNDS)?;
    let mut wanted = expected(COUNTS, 8 * ROUNDS);
    *wanted.get_mut(&("LR_PE".to_owned(), "run".to_owned())).context("runs")? += 2;
    wanted.extend(expected(&[("LC_PE", "waiter", 1), ("LC_PE", "leaver", 1)], 1));
    check(&snapshot, &wanted)
}

#[test]
fn an_object_has_its_own_name_at_the_address_of_another() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let snapshot = Hooked::build()?.hooked("linked", "names", ROUNDS)?;
    let half = ROUNDS / 2;
    check(&snapshot, &expected(&[("LR_PE", "run", 2), ("LC_PE", "even", 1), ("LC_PE", "odd", 1)], half))
}

#[test]
fn children_have_hooks_and_lanes_of_their_own() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let engine = Hooked::build()?;
    for program in ["linked", "loads"] {
        let snapshot = engine.hooked(program, "forks", ROUNDS)?;
        ensure!(snapshot.pids().len() == 4, "{:?}", snapshot.pids());
        check(&snapshot, &expected(COUNTS, 4 * ROUNDS)).context(program)?;
    }
    Ok(())
}

#[test]
fn an_engine_is_hooked_each_time_that_it_is_loaded() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let snapshot = Hooked::build()?.hooked("loads", "reloads", ROUNDS)?;
    check(&snapshot, &expected(COUNTS, 20 * ROUNDS))
}

#[test]
fn many_operators_a_second_lose_none() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let rounds = 50_000;
    let snapshot = Hooked::build()?.hooked("loads", "counts", rounds)?;
    check(&snapshot, &expected(COUNTS, rounds))
}

#[test]
fn operators_have_names_that_a_lane_has_no_room_for() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let names: Vec<String> = (0..700).map(|number| format!("operator {number}")).collect();
    let sections: Vec<_> = names.iter().map(|name| ("LC_PE", name.as_str(), 1)).collect();
    let snapshot = Hooked::build()?.hooked("linked", "many", 20)?;
    let mut wanted = expected(&sections, 20);
    wanted.extend(expected(&[("LR_PE", "run", 1)], 20));
    check(&snapshot, &wanted)
}

#[test]
fn a_program_without_the_library_is_named() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let snapshot = Hooked::build()?.hooked("loads", "executes", ROUNDS)?;
    let mut wanted = expected(COUNTS, ROUNDS);
    wanted.extend(expected(&[("LR_PE", "run", 2)], ROUNDS));
    check(&snapshot, &wanted)?;
    let is_named = |note: &String| {
        note.starts_with("operators of ") && note.contains("may be missing: it has not loaded")
    };
    ensure!(snapshot.notes.iter().filter(|note| is_named(note)).count() == 1, "{:?}", snapshot.notes);
    Ok(())
}

#[test]
fn hooks_are_refused_where_there_is_nothing_to_hook() -> Result<()> {
    for (words, reason) in [
        (&["--hooks", "--pid", "1"][..], "--hooks is for a command"),
        (&["--hooks", "--marks", "uprobe", "--", "true"], "the express lane"),
        (&["--hooks", "--engine", "none", "--", "true"], "--engine none takes none"),
    ] {
        let mut profiler = Profiler::new()?.args(words);
        let ended = Child::run(profiler.command())?;
        ensure!(ended.code() == Some(2) && ended.stderr.contains(reason), "{words:?}: {ended:?}");
    }
    Ok(())
}
