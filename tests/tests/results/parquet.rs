//! Tables in Parquet, as DuckDB reads them: the queries of the documentation, and every sum to the nanosecond against the
//! snapshot of the same run.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{
    child::{Child, Ended},
    duckdb::{DuckDb, Row, columns, number, text},
    live,
    profiler::Profiler,
    trace::Random,
};
use nntrace_user::{
    export::parquet::FILES,
    report::snapshot::{ClusterRow, CpuRow, FrequencyRow, IdleRow, Snapshot},
};
use serde_json::Value;
use tempfile::TempDir;

const PAGE: &str = include_str!("../../../nntrace-user/docs/parquet.md");

/// Folder of runs and of their tables.
struct Fleet(TempDir);

impl Fleet {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join("fleet"))?;
        Ok(Self(folder))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs the profiler in the folder.
    fn run(&self, arguments: &[&str]) -> Result<Ended> {
        Child::run(Profiler::new()?.command().args(arguments).current_dir(self.0.path()))
    }

    /// Records a command.
    fn record(&self, name: &str, command: &Path) -> Result<()> {
        let command = command.to_str().context("a path that is text")?;
        self.run(&["record", "-o", name, "--json=/dev/null", "--", command])?.expect_code(0)?;
        Ok(())
    }

    /// Exports a run to a folder of the fleet.
    fn export(&self, run: &str, name: &str, options: &[&str]) -> Result<()> {
        let output = format!("fleet/{name}.parquet");
        self.run(&[&["export", run, "-o", &output], options].concat())?.expect_code(0)?;
        Ok(())
    }

    /// Returns the snapshot of a run.
    fn snapshot(&self, run: &str, options: &[&str]) -> Result<Snapshot> {
        let ended = self.run(&[&["replay", run, "--json"], options].concat())?.expect_code(0)?;
        nntrace_tests::snapshot::read(&ended.stdout)
    }
}

/// Returns the queries of the documentation, in its order.
fn documented_queries() -> Result<[&'static str; 5]> {
    let queries = PAGE.split("```sql\n").skip(1).filter_map(|rest| rest.split_once("```"));
    let queries: Vec<&str> = queries.map(|(query, _)| query).collect();
    queries.try_into().ok().context("the page has five queries")
}

/// Returns rows of the same form from values.
fn values<const N: usize>(rows: impl IntoIterator<Item = [Value; N]>) -> Vec<String> {
    let mut rows: Vec<String> =
        rows.into_iter().map(|row| row.map(|value| value.to_string()).join(" ")).collect();
    rows.sort();
    rows
}

/// Checks that the tables of one run have the sums of its snapshot.
fn assert_equal(tables: &DuckDb, run: &str, snapshot: &Snapshot) -> Result<()> {
    let query = |columns: &str, table: &str, condition: &str| {
        let from = format!("FROM read_parquet('fleet/*/{table}.parquet') WHERE run = '{run}'");
        tables.rows(&format!("SELECT {columns} {from} {condition} GROUP BY ALL"))
    };
    let sums = "sum(count) AS count, sum(total_ns) AS total_ns, sum(exclusive_ns) AS exclusive_ns";
    let key = ["pid", "layer", "phase", "count", "total_ns", "exclusive_ns"];

    let phases = query(&format!("pid, layer, phase, {sums}"), "totals", "AND kind = 'phase'")?;
    let expected = snapshot.phases.iter().map(|row| {
        let tag = [row.layer.code().into(), row.phase.code().into()];
        let [layer, phase] = tag;
        [row.pid.into(), layer, phase, row.count.into(), row.total_ns.into(), row.exclusive_ns.into()]
    });
    assert_eq!(columns(&phases, &key), values(expected), "phases of {run}");

    let stacks = query(&format!("pid, stack, {sums}"), "totals", "AND kind = 'stack'")?;
    let expected = snapshot.stacks.iter().map(|row| {
        let path: Vec<String> = row.path.iter().map(ToString::to_string).collect();
        [
            row.pid.into(),
            path.join(";").into(),
            row.count.into(),
            row.total_ns.into(),
            row.exclusive_ns.into(),
        ]
    });
    let key_of_stacks = ["pid", "stack", "count", "total_ns", "exclusive_ns"];
    assert_eq!(columns(&stacks, &key_of_stacks), values(expected), "stacks of {run}");

    // Functions: from the table of totals, and from the sections themselves.
    let key = [&key[..1], &["layer", "phase", "name"], &key[3..]].concat();
    let expected = values(snapshot.functions.iter().map(|row| {
        let [layer, phase] = [row.layer.code().into(), row.phase.code().into()];
        let name = row.name.as_str().into();
        [row.pid.into(), layer, phase, name, row.count.into(), row.total_ns.into(), row.exclusive_ns.into()]
    }));
    assert!(!expected.is_empty(), "{run} has no function");
    let functions = query(&format!("pid, layer, phase, name, {sums}"), "totals", "AND kind = 'function'")?;
    assert_eq!(columns(&functions, &key), expected, "functions of {run}");
    let of_spans = "count(*) FILTER (NOT in_itself) AS count, \
                    coalesce(sum(own_ns) FILTER (NOT in_itself), 0) AS total_ns, sum(exclusive_ns) AS exclusive_ns";
    let spans = query(&format!("pid, layer, phase, name, {of_spans}"), "spans", "AND NOT provisional")?;
    assert_eq!(columns(&spans, &key), expected, "sections of {run}");

    let states = ["state", "idle_state", "idle_name", "khz", "ns"];
    let of_states = "state, idle_state, idle_name, khz, sum(ns) AS ns";
    let cpus = query(&format!("cpu, cluster, {of_states}"), "cpu_intervals", "")?;
    let expected = snapshot.cpus.iter().flat_map(states_of_cpu);
    assert_eq!(
        columns(&cpus, &[&["cpu", "cluster"], &states[..]].concat()),
        values(expected),
        "CPUs of {run}"
    );
    let clusters = query(&format!("cluster, {of_states}"), "cluster_intervals", "")?;
    let expected = snapshot.clusters.iter().flat_map(states_of_cluster);
    assert_eq!(columns(&clusters, &[&["cluster"], &states[..]].concat()), values(expected), "{run}");

    let key =
        ["pid", "name", "iteration", "count", "open", "total_ns", "exclusive_ns", "wall_ns", "missing_ns"];
    let iterations = query(&format!("{}, end_ns - begin_ns AS wall", key.join(", ")), "iterations", "")?;
    let ended: Vec<_> = iterations.iter().filter(|row| number(row, "open") == 0).cloned().collect();
    let expected = snapshot.iterations.iter().flat_map(|root| {
        root.slowest.iter().map(move |row| {
            let name = root.name.as_str().into();
            let [total, exclusive] = [row.total_ns.into(), row.exclusive_ns.into()];
            let [wall, missing] = [row.wall_ns.into(), row.missing_ns.into()];
            [
                root.pid.into(),
                name,
                row.iter.into(),
                row.count.into(),
                0.into(),
                total,
                exclusive,
                wall,
                missing,
            ]
        })
    });
    assert_eq!(columns(&ended, &key), values(expected), "iterations of {run}");
    let open = snapshot.iterations.iter().map(|row| row.open).sum::<u64>();
    assert_eq!((iterations.len() - ended.len()) as u64, open, "iterations of {run}");
    for row in &iterations {
        assert_eq!(row["wall"].as_u64().unwrap_or(0), number(row, "wall_ns"), "{row:?}");
    }
    Ok(())
}

/// Returns the states of a CPU and the time in them, without those that it was never in.
fn states_of_cpu(row: &CpuRow) -> Vec<[Value; 7]> {
    let others = [row.idle_unknown_ns, row.offline_ns, row.unknown_ns];
    let states = states("running", &row.idle, &row.running, others);
    let cluster = if row.cluster.is_empty() { Value::Null } else { row.cluster.as_str().into() };
    let with_cpu = |[a, b, c, d, e]: [Value; 5]| [row.cpu.into(), cluster.clone(), a, b, c, d, e];
    states.map(with_cpu).collect()
}

/// Returns the states of a cluster and the time in them, without those that it was never in.
fn states_of_cluster(row: &ClusterRow) -> Vec<[Value; 6]> {
    let others = [row.idle_unknown_ns, row.offline_ns, row.unknown_ns];
    let states = states("active", &row.idle, &row.active, others);
    states.map(|[a, b, c, d, e]| [row.cluster.as_str().into(), a, b, c, d, e]).collect()
}

fn states(
    running: &str,
    idle: &[IdleRow],
    frequencies: &[FrequencyRow],
    others: [u64; 3],
) -> impl Iterator<Item = [Value; 5]> + use<> {
    let mut states: Vec<(u64, [Value; 4])> = Vec::new();
    let null = || Value::Null;
    for row in idle {
        states.push((row.ns, ["idle".into(), row.state.into(), row.name.as_str().into(), null()]));
    }
    for row in frequencies {
        states.push((row.ns, [running.into(), null(), null(), row.khz.into()]));
    }
    for (name, ns) in ["idle_unknown", "offline", "unknown"].into_iter().zip(others) {
        states.push((ns, [name.into(), null(), null(), null()]));
    }
    let states = states.into_iter().filter(|(ns, _)| *ns > 0);
    states.map(|(ns, [state, idle, name, khz])| [state, idle, name, khz, ns.into()])
}

#[test]
fn the_documented_queries_answer_as_snapshots_do() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let fleet = Fleet::new()?;
    let Some(tables) = DuckDb::in_folder(fleet.0.path())? else { return Ok(()) };
    let program = job_queue()?;
    for (run, options) in [("before", &["--board", "b1"][..]), ("after", &["--board", "b2"])] {
        fleet.record(run, &program)?;
        fleet.export(run, run, &[&["--run", run], options].concat())?;
    }
    let before = fleet.snapshot("before", &[])?;
    let after = fleet.snapshot("after", &[])?;
    for (run, snapshot) in [("before", &before), ("after", &after)] {
        assert_eq!(snapshot.loss.records_dropped, 0);
        assert_equal(&tables, run, snapshot)?;
    }
    let both = || [("b1", &before), ("b2", &after)].into_iter();

    let [slowest, functions, clusters, slower, iterations] =
        <[Vec<Row>; 5]>::try_from(tables.all(&documented_queries()?)?).ok().context("five results")?;
    let expected = both().flat_map(|(board, snapshot)| {
        snapshot.phases.iter().map(move |row| {
            let tag = [row.layer.code().into(), row.phase.code().into()];
            let [layer, phase] = tag;
            [board.into(), layer, phase, row.count.into(), row.total_ns.into(), row.exclusive_ns.into()]
        })
    });
    let key = ["board", "layer", "phase", "count", "total_ns", "exclusive_ns"];
    assert_eq!(columns(&slowest, &key), values(expected));

    let sum = |name: &str, snapshots: &[&Snapshot]| {
        let rows = snapshots.iter().flat_map(|snapshot| &snapshot.functions);
        let rows = rows.filter(|row| row.name == name);
        rows.fold((0, 0), |(count, ns), row| (count + row.count, ns + row.total_ns))
    };
    let kernel = nix::sys::utsname::uname()?.release().to_string_lossy().into_owned();
    assert_eq!(functions.len(), 2, "{functions:?}");
    for row in &functions {
        let sums = (number(row, "count"), number(row, "total_ns"));
        assert_eq!(sums, sum(text(row, "name"), &[&before, &after]), "{row:?}");
        assert_eq!(text(row, "kernel"), kernel);
    }
    for row in &slower {
        let name = text(row, "name");
        let sums = [
            (number(row, "count_before"), number(row, "total_before_ns")),
            (number(row, "count_after"), number(row, "total_after_ns")),
        ];
        assert_eq!(sums, [sum(name, &[&before]), sum(name, &[&after])], "{row:?}");
    }
    assert_eq!(slower.len(), 2, "{slower:?}");

    let mut shares: BTreeMap<(&str, &str), (f64, u64)> = BTreeMap::new();
    for row in &clusters {
        let sums = shares.entry((text(row, "board"), text(row, "cluster"))).or_default();
        sums.0 += row["share"].as_f64().context("a share")?;
        sums.1 += number(row, "ns");
    }
    let windows = both().flat_map(|(board, snapshot)| {
        snapshot.clusters.iter().map(move |row| ((board, row.cluster.as_str()), snapshot.window.length_ns()))
    });
    let found = shares.iter().map(|(key, (_, ns))| (*key, *ns)).collect::<BTreeMap<_, _>>();
    assert_eq!(found, windows.collect());
    assert!(shares.values().all(|(share, _)| (share - 1.0).abs() < 1e-9), "{shares:?}");

    assert_eq!(iterations.len(), 2, "{iterations:?}");
    for row in &iterations {
        let (_, snapshot) = both().find(|(board, _)| *board == text(row, "board")).context("a board")?;
        let all = &snapshot.iterations;
        assert_eq!(number(row, "iterations"), all.iter().map(|row| row.count).sum::<u64>());
        assert_eq!(number(row, "total_ns"), all.iter().map(|row| row.total_ns).sum::<u64>());
        assert_eq!(number(row, "wall_ns"), all.iter().map(|row| row.wall_ns).sum::<u64>());
        let counts = snapshot.hand_overs.context("nothing was handed over")?;
        assert_eq!((number(row, "handovers"), counts.received), (25, 25));
        assert!(number(row, "p95_latency_ns") > 0);
    }
    every_hand_over_is_taken_by_a_section(&tables)?;
    facts_are_those_of_the_recording(&tables, &after)
}

/// Returns the program that hands jobs over.
fn job_queue() -> Result<PathBuf> {
    let path = nntrace_tests::binaries::profile_dir()?.join("job-queue");
    ensure!(path.is_file(), "{} is missing: run `cargo build -p nntrace-tests` first", path.display());
    Ok(path)
}

/// The taking section begins when the work is taken, on the thread that takes it; the work is handed over within a section
/// of the iteration.
fn every_hand_over_is_taken_by_a_section(tables: &DuckDb) -> Result<()> {
    let rows = tables.rows(
        "SELECT h.run, count(*) AS count, count(taking.begin_ns) AS taken, count(giving.begin_ns) AS given,
                bool_and(latency_ns = received_ns - sent_ns AND latency_ns >= 0) AS is_sound
         FROM read_parquet('fleet/*/handovers.parquet') AS h
         LEFT JOIN read_parquet('fleet/*/spans.parquet') AS taking
           ON (taking.run, taking.tid, taking.begin_ns) = (h.run, h.receiver_tid, h.received_ns)
              AND taking.name = 'convert_image'
         LEFT JOIN read_parquet('fleet/*/spans.parquet') AS giving
           ON (giving.run, giving.tid, giving.name) = (h.run, h.sender_tid, h.iteration_name)
              AND h.sent_ns BETWEEN giving.begin_ns AND giving.end_ns
              AND giving.attributes LIKE '%#iter=' || h.iteration || '#%'
         GROUP BY ALL",
    )?;
    let expected = ["after", "before"].map(|run| [run.into(), 25.into(), 25.into(), 25.into(), true.into()]);
    assert_eq!(columns(&rows, &["run", "count", "taken", "given", "is_sound"]), values(expected));
    Ok(())
}

fn facts_are_those_of_the_recording(tables: &DuckDb, snapshot: &Snapshot) -> Result<()> {
    let rows = tables.rows(
        "SELECT * REPLACE (epoch_ns(began_at) AS began_at), epoch_ns(now()) AS now_ns
         FROM read_parquet('fleet/*/run.parquet') WHERE run = 'after'",
    )?;
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!(number(row, "schema_version"), 1);
    assert_eq!(
        (text(row, "board"), text(row, "source"), text(row, "clock")),
        ("b2", "recording", "monotonic")
    );
    assert_eq!(text(row, "kernel"), snapshot.host.kernel);
    assert_eq!(number(row, "begin_ns"), snapshot.window.begin_ns);
    assert_eq!(number(row, "end_ns"), snapshot.window.end_ns);
    assert_eq!(number(row, "marks"), snapshot.overhead.marks);
    assert_eq!((number(row, "records_dropped"), number(row, "exit_status")), (0, 0));
    assert!(text(row, "command").contains("job-queue"), "{row:?}");
    let real = number(row, "clock_realtime_ns") - number(row, "clock_monotonic_ns");
    assert_eq!(number(row, "began_at"), real + snapshot.window.begin_ns);
    // The run was a moment ago.
    let age = number(row, "now_ns").saturating_sub(number(row, "began_at"));
    assert!(age > 0 && age < 3_600_000_000_000, "{age} ns ago");
    Ok(())
}

/// Names that mean something to someone.
const NAMES: [&str; 9] =
    ["conv", "it's", "\"; DROP TABLE spans; --", "a,b\\", "\u{202e}txt", "\u{1f980}", "NULL", "{}", "a b"];

/// Returns a trace of marks on threads and of power events of four CPUs.
fn trace(seed: u64, events: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut text = Vec::new();
    let mut open = [0_u32; 3];
    let mut line = |micros: u64, tid: u64, cpu: u64, event: &[u8]| {
        let (seconds, micros) = (10 + micros / 1_000_000, micros % 1_000_000);
        let mut head = String::new();
        let _ = write!(head, "  app-{tid} (  70) [00{cpu}] .... {seconds}.{micros:06}: ");
        text.extend([head.as_bytes(), event, b"\n"].concat());
    };
    for number in 0..events {
        let micros = 10 * number + random.below(9);
        let (thread, cpu) = (random.below(3), random.below(4));
        let (place, tid) = (thread as usize, 70 + thread);
        match random.below(8) {
            0..3 if open[place] < 6 => {
                open[place] += 1;
                let tag = ["LR_PE", "LC_PCO", "LA_PP", "LD_PE"][random.below(4) as usize];
                let prefix = ["", "", "", "[SUB]"][random.below(4) as usize];
                let name = NAMES[random.below(NAMES.len() as u64) as usize];
                let mark = format!("tracing_mark_write: B|70|{prefix}[NN_{tag}]{name}");
                // Text of another encoding, and a NUL.
                let rest: &[u8] = if random.below(50) == 0 { b"\xff\xfe\0x" } else { b"" };
                line(micros, tid, cpu, &[mark.as_bytes(), rest].concat());
            }
            3..5 if open[place] > 0 => {
                open[place] -= 1;
                line(micros, tid, cpu, b"tracing_mark_write: E|70");
            }
            5 => {
                let khz = 500_000 * (1 + random.below(3));
                line(micros, 1, cpu, format!("cpu_frequency: state={khz} cpu_id={cpu}").as_bytes());
            }
            6 => line(micros, 1, cpu, format!("cpu_idle: state={} cpu_id={cpu}", random.below(3)).as_bytes()),
            _ => line(micros, 1, cpu, format!("cpu_idle: state=4294967295 cpu_id={cpu}").as_bytes()),
        }
    }
    text
}

#[test]
fn tables_of_a_trace_have_the_sums_of_its_snapshot() -> Result<()> {
    let fleet = Fleet::new()?;
    let Some(tables) = DuckDb::in_folder(fleet.0.path())? else { return Ok(()) };
    let host = ["--cluster", "little=0-1", "--cluster", "big=2-3"];
    for seed in 0..4 {
        let (file, run) = (format!("trace{seed}.txt"), format!("run{seed}"));
        fs::write(fleet.path(&file), trace(seed, 4_000))?;
        let label = ["--board", "läuft \"gut\"", "--run", &run, "--iteration-root", "conv"];
        fleet.export(&file, &run, &[&host[..], &label[..]].concat())?;
        let asked = ["--iteration-root", "conv", "--slowest", "10000"];
        let snapshot = fleet.snapshot(&file, &[&host[..], &asked].concat())?;
        let iterations = snapshot.iterations.iter().map(|row| row.slowest.len()).sum::<usize>();
        assert!(iterations > 20 && snapshot.clusters.len() == 2);
        assert_equal(&tables, &run, &snapshot)?;
    }
    let boards =
        tables.rows("SELECT DISTINCT board, source, began_at FROM read_parquet('fleet/*/run.parquet')")?;
    let expected = values([["läuft \"gut\"".into(), "trace".into(), Value::Null]]);
    assert_eq!(columns(&boards, &["board", "source", "began_at"]), expected);
    let names = tables.rows("SELECT DISTINCT name FROM read_parquet('fleet/*/spans.parquet')")?;
    let found: Vec<&str> = names.iter().map(|row| text(row, "name")).collect();
    assert!(NAMES.iter().all(|name| found.contains(name)), "{found:?}");
    assert!(found.iter().any(|name| name.contains('\u{fffd}')), "{found:?}");
    Ok(())
}

#[test]
fn sections_of_a_range_are_those_of_the_range() -> Result<()> {
    let fleet = Fleet::new()?;
    let Some(tables) = DuckDb::in_folder(fleet.0.path())? else { return Ok(()) };
    let mut text = trace(9, 4_000);
    fs::write(fleet.path("whole.txt"), &text)?;
    // A trace out of order is gone through again: its sections come once all the same.
    let begin = text.split(|byte| *byte == b'\n').next().context("a line")?.to_vec();
    text.drain(..=begin.len());
    text.extend([&begin[..], b"\n"].concat());
    fs::write(fleet.path("unordered.txt"), &text)?;
    let range = ["--time-range", "10.01..10.025"];
    for (file, options) in [("whole.txt", &range[..]), ("unordered.txt", &[])] {
        fleet.export(file, file, &[&["--board", "b", "--run", file], options].concat())?;
        assert_equal(&tables, file, &fleet.snapshot(file, options)?)?;
    }
    let rows = tables.rows(
        "SELECT min(begin_ns) AS begin, max(end_ns) AS end FROM read_parquet('fleet/*/spans.parquet')
         WHERE run = 'whole.txt'",
    )?;
    assert!(number(&rows[0], "begin") >= 10_010_000_000 && number(&rows[0], "end") <= 10_025_000_000);
    Ok(())
}

#[test]
fn a_run_without_anything_has_empty_tables() -> Result<()> {
    let fleet = Fleet::new()?;
    let Some(tables) = DuckDb::in_folder(fleet.0.path())? else { return Ok(()) };
    fs::write(fleet.path("empty.txt"), "  a-1 (  1) [000] .... 1.000000: sched_wakeup: comm=a pid=1\n")?;
    fleet.export("empty.txt", "empty", &["--board", "b"])?;
    for file in FILES {
        let rows =
            tables.rows(&format!("SELECT count(*) AS rows, any_value(run) AS run FROM 'fleet/*/{file}'"))?;
        assert_eq!(number(&rows[0], "rows"), u64::from(file == "run.parquet"), "{file}");
    }
    let run = tables.rows("SELECT run FROM 'fleet/*/run.parquet'")?;
    assert_eq!(text(&run[0], "run"), "empty");
    Ok(())
}

#[test]
fn one_run_gives_the_same_bytes_again() -> Result<()> {
    let fleet = Fleet::new()?;
    fs::write(fleet.path("trace.txt"), trace(5, 3_000))?;
    for name in ["one", "two"] {
        fleet.export("trace.txt", name, &["--board", "b"])?;
    }
    // Replacing it by the same is the same, too.
    fleet.export("trace.txt", "two", &["--board", "b", "--force"])?;
    for file in FILES {
        let bytes = |name: &str| fs::read(fleet.path(&format!("fleet/{name}.parquet/{file}")));
        let (one, two) = (bytes("one")?, bytes("two")?);
        assert!(one == two && !one.is_empty(), "{file}");
    }
    Ok(())
}

#[test]
fn a_refusal_says_what_to_do_and_leaves_nothing() -> Result<()> {
    let fleet = Fleet::new()?;
    fs::write(fleet.path("trace.txt"), trace(5, 30))?;
    fs::create_dir(fleet.path("fleet/mine.parquet"))?;
    fs::write(fleet.path("fleet/mine.parquet/thesis.txt"), "")?;
    for (arguments, code, expected) in [
        (&["trace.txt", "-o", "a.parquet"][..], 1, "--board NAME"),
        (&["none.txt", "-o", "a.parquet", "--board", "b"], 1, "none.txt"),
        (&["trace.txt", "-o", "none/a.parquet", "--board", "b"], 1, "none"),
        (&["trace.txt", "-o", "fleet/mine.parquet", "--board", "b"], 1, "is not an empty folder"),
        (&["trace.txt", "-o", "fleet/mine.parquet", "--board", "b", "--force"], 1, "thesis.txt"),
        (&["trace.txt", "-o", "a.csv", "--board", "b"], 1, "leave them out"),
        (&["trace.txt", "-o", "a", "--board", "b"], 2, ".parquet"),
    ] {
        let ended = fleet.run(&[&["export"], arguments].concat())?.expect_code(code)?;
        assert!(ended.stderr.contains(expected), "{arguments:?}: {}", ended.stderr);
        let left = fs::read_dir(fleet.0.path())?.chain(fs::read_dir(fleet.path("fleet"))?);
        let names = left.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let mut names = names.collect::<Result<Vec<_>>>()?;
        names.sort();
        assert_eq!(names, ["fleet", "mine.parquet", "trace.txt"], "{arguments:?}");
    }
    assert!(fleet.path("fleet/mine.parquet/thesis.txt").exists());
    Ok(())
}
