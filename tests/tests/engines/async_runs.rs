//! Asynchronous executions: each counts once, from the call that starts it to the end of the wait for it.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, Result};
use nntrace_common::{
    async_runs::{ASYNC_RUN, ASYNC_RUN_UNSEEN},
    diagnostic::DiagnosticKind,
    layer::Tag,
};
use nntrace_tests::{
    live, native,
    profiler::{Profiler, Run},
    results::Results as _,
    truth::Bounds,
};
use nntrace_user::report::snapshot::Snapshot;
use tempfile::TempDir;

/// How often the program takes a way.
const ROUNDS: u64 = 25;

/// A way in which executions are started and waited for: what each round of it has.
struct Way {
    name: &'static str,
    /// Executions from start to wait, and those whose ends are not seen.
    runs: (u64, u64),
    starts: u64,
    waits: u64,
    /// Functions that are left by an exception.
    unwound: u64,
}

const WAYS: [Way; 8] = [
    Way { name: "waited", runs: (1, 0), starts: 1, waits: 1, unwound: 0 },
    Way { name: "crossed", runs: (2, 0), starts: 2, waits: 2, unwound: 0 },
    Way { name: "elsewhere", runs: (1, 0), starts: 1, waits: 1, unwound: 0 },
    Way { name: "twice", runs: (1, 0), starts: 1, waits: 2, unwound: 0 },
    Way { name: "unseen", runs: (0, 2), starts: 2, waits: 0, unwound: 0 },
    Way { name: "failing", runs: (1, 0), starts: 1, waits: 1, unwound: 1 },
    Way { name: "unstarted", runs: (0, 0), starts: 1, waits: 1, unwound: 1 },
    Way { name: "marked", runs: (1, 0), starts: 1, waits: 1, unwound: 0 },
];

/// The engine and the program that calls it, in a folder that is removed with it.
struct Engine(TempDir);

impl Engine {
    fn build() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let source = |name: &str| native::source("async-engine").join(name);
        let library = ["c++", "-std=c++11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden"];
        let library = [&library[..], &["-Wl,-soname,libasync.so"]].concat();
        native::compile(&library, &[&source("engine.cc")], &folder.path().join("libasync.so"))?;
        let search = format!("-L{}", folder.path().display());
        let program = ["c++", "-std=c++11", "-O2", &search, "-lasync", "-Wl,-rpath,$ORIGIN"];
        native::compile(&program, &[&source("calls.cc")], &folder.path().join("calls"))?;
        Ok(Self(folder))
    }

    /// Profiles a way; returns the run, and between which bounds the time of all executions is.
    fn profile(&self, way: &str) -> Result<(Snapshot, Bounds)> {
        let map = native::source("async-engine").join("engine.toml");
        let profiler = Profiler::new()?.args(["--map".as_ref(), map.as_os_str()]);
        let Run { snapshot, ended } = profiler.launch([&self.0.path().join("calls"), Path::new(way)])?;
        let text = ended.expect_code(0)?.text();
        let mut truth: BTreeMap<String, Bounds> =
            serde_json::from_str(&text).with_context(|| text.clone())?;
        let bounds = truth.remove("runs").context("no bounds")?;
        Ok((snapshot, bounds))
    }
}

/// Checks that the number of sections by tag and name is this one in each round; 0 for functions without a row.
fn assert_functions(snapshot: &Snapshot, each: &[(&str, &str, u64)]) {
    let rows = snapshot.functions.iter();
    let counts: BTreeMap<(String, &str), u64> = rows
        .map(|row| ((Tag::new(row.layer, row.phase).to_string(), row.name.as_str()), row.count))
        .collect();
    let wanted = each.iter().filter(|(.., count)| *count > 0);
    let wanted: BTreeMap<_, _> =
        wanted.map(|&(tag, name, count)| ((tag.to_owned(), name), ROUNDS * count)).collect();
    assert_eq!(counts, wanted, "{:?}", snapshot.notes);
}

#[test]
fn an_execution_counts_once_however_it_is_started_and_waited_for() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let engine = Engine::build()?;
    let (seen, unseen) = (str::from_utf8(ASYNC_RUN)?, str::from_utf8(ASYNC_RUN_UNSEEN)?);
    for Way { name: way, runs, starts, waits, unwound } in WAYS {
        let (snapshot, bounds) = engine.profile(way).context(way)?;
        assert_functions(
            &snapshot,
            &[
                ("LA_PE", "classify", u64::from(way == "marked")),
                ("LR_PE", seen, runs.0),
                ("LR_PE", unseen, runs.1),
                ("LR_PE", "async_start", starts),
                ("LR_PE", "async_wait", waits),
                ("LC_PE", "async_operator", starts),
            ],
        );
        let [pid] = snapshot.pids()[..] else { panic!("{way}: {:?}", snapshot.pids()) };
        assert_eq!(snapshot.count(pid, "LR_PE"), ROUNDS * (runs.0 + runs.1), "{way}");
        assert_eq!(
            snapshot.count(pid, "LC_PE"),
            ROUNDS * starts,
            "{way}: what the calls do counts by itself"
        );
        if runs.0 > 0 {
            let row = snapshot.phase(pid, "LR_PE").context("no row")?;
            assert!(bounds.range().contains(&row.total_ns), "{way}: {} ns, {bounds:?}", row.total_ns);
        }
        if way == "waited" || way == "marked" {
            let ns = |tag| snapshot.phase(pid, tag).map(|row| (row.total_ns, row.exclusive_ns));
            let (total, exclusive) = ns("LR_PE").context("no row")?;
            let (operators, _) = ns("LC_PE").context("no row")?;
            assert_eq!(total - exclusive, operators, "{way}: each instant of an execution is somebody's");
        }
        let odd = if unwound > 0 {
            BTreeMap::from([(DiagnosticKind::Unwound.name(), ROUNDS * unwound)])
        } else {
            BTreeMap::new()
        };
        assert_eq!(snapshot.odd_marks(), odd, "{way}");
    }
    Ok(())
}

#[test]
fn an_execution_that_the_engine_waits_for_itself_is_that_calls() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let (snapshot, bounds) = Engine::build()?.profile("inferred")?;
    let each = [
        ("LR_PE", "async_infer", 1),
        ("LR_PE", "async_start", 1),
        ("LR_PE", "async_wait", 1),
        ("LC_PE", "async_operator", 1),
    ];
    assert_functions(&snapshot, &each);
    let [pid] = snapshot.pids()[..] else { panic!("{:?}", snapshot.pids()) };
    let row = snapshot.phase(pid, "LR_PE").context("no row")?;
    assert_eq!(row.count, ROUNDS);
    assert!(bounds.range().contains(&row.total_ns), "{} ns, {bounds:?}", row.total_ns);
    Ok(())
}
