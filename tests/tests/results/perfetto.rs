//! Traces for Perfetto, as its own importer reads them: every section, every event of a CPU and every hand-over, to the
//! nanosecond against our own results.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use nntrace_tests::{
    child::{Child, Ended},
    duckdb::{Row, number, text},
    fixtures::fixture,
    live,
    perfetto::Importer,
    profiler::Profiler,
    recording::Recording,
};
use nntrace_user::report::snapshot::{DispatchOverheadRow, Snapshot};
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

/// Section, as `print --json-lines` has it.
#[derive(Debug, Deserialize)]
struct Section {
    /// Null in traces.
    pid: Option<u64>,
    tid: u64,
    /// Name by ancestry; null in traces.
    thread: Option<String>,
    begin_ns: u64,
    /// Null where it had not ended.
    duration_ns: Option<u64>,
    exclusive_ns: Option<u64>,
    layer: Option<String>,
    phase: Option<String>,
    name: String,
    attributes: BTreeMap<String, String>,
}

/// Run that was exported.
struct Exported {
    folder: TempDir,
    run: PathBuf,
    importer: Importer,
}

fn run(arguments: &[&str], run: &Path) -> Result<Ended> {
    let mut profiler = Profiler::new()?.args(arguments).args([run]);
    Child::run(profiler.command())?.expect_code(0)
}

impl Exported {
    /// Exports a run, and has it written beside a replay; `None` where there is no importer.
    fn of(run: &Path, options: &[&str]) -> Result<Option<Self>> {
        let Some(importer) = Importer::find()? else { return Ok(None) };
        let exported = Self { folder: tempfile::tempdir()?, run: run.to_owned(), importer };
        for (command, name) in [("export", "run.pftrace"), ("replay", "again.perfetto-trace")] {
            let output = exported.folder.path().join(name);
            let mut profiler =
                Profiler::new()?.args([command, "-o"]).args([&output]).args([run]).args(options);
            Child::run(profiler.command())?.expect_code(0)?;
        }
        let again = fs::read(exported.folder.path().join("again.perfetto-trace"))?;
        assert!(fs::read(exported.trace())? == again, "an export and a replay differ");
        Ok(Some(exported))
    }

    fn trace(&self) -> PathBuf {
        self.folder.path().join("run.pftrace")
    }

    fn rows(&self, query: &str) -> Result<Vec<Row>> {
        let mut results = self.importer.rows(&self.trace(), &[query])?;
        results.pop().context("one result")
    }

    /// Returns the number that a query gives.
    fn number(&self, query: &str) -> Result<u64> {
        let rows = self.rows(query)?;
        let number = rows.first().and_then(|row| row.values().next()).and_then(Value::as_u64);
        number.with_context(|| format!("{query}: {rows:?}"))
    }

    fn sections(&self) -> Result<Vec<Section>> {
        let text = run(&["print", "--json-lines"], &self.run)?.stdout;
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| Ok(serde_json::from_slice(line)?)).collect()
    }

    fn snapshot(&self, options: &[&str]) -> Result<Snapshot> {
        let ended = run(&[&["replay", "--json"], options].concat(), &self.run)?;
        nntrace_tests::snapshot::read(&ended.stdout)
    }

    /// Checks that the importer has taken everything, and that it can show it.
    fn assert_sound(&self) -> Result<()> {
        // It is silent about some of what it leaves out, but counts it.
        let lost = self.rows(
            "SELECT name, severity, value FROM stats WHERE value > 0 AND (
               severity IN ('error', 'data_loss') OR name GLOB '*skipped*' OR name GLOB '*error*'
               OR name GLOB '*drop*' OR name GLOB 'flow_*' OR name GLOB '*without*' OR name GLOB '*mismatch*')",
        )?;
        assert!(lost.is_empty(), "{lost:?}");
        let overlapping = self.rows(
            "SELECT * FROM (
               SELECT id, track_id, name, ts, dur, lead(ts) OVER (PARTITION BY track_id, depth ORDER BY ts, id) AS next
               FROM slice WHERE dur >= 0)
             WHERE next < ts + dur",
        )?;
        assert!(overlapping.is_empty(), "{overlapping:?}");
        // A CPU may have several events in an instant of a trace; a cluster has one state.
        let twice = self.rows(
            "SELECT track.name, ts FROM counter JOIN track ON track.id = track_id WHERE track.name GLOB 'cluster *'
             GROUP BY 1, 2 HAVING count(*) > 1",
        )?;
        assert!(twice.is_empty(), "{twice:?}");
        let keys = self
            .rows("SELECT DISTINCT key FROM args WHERE key GLOB 'debug.*' AND key GLOB '*[^A-Za-z0-9_.]*'")?;
        assert!(keys.is_empty(), "{keys:?}");
        assert_eq!(self.number("SELECT count(*) FROM slice WHERE ts < 0 OR dur < -1")?, 0);
        Ok(())
    }

    /// Checks that slices are the sections.
    fn assert_slices(&self, sections: &[Section]) -> Result<()> {
        assert!(!sections.is_empty());
        let with_exclusive = sections.iter().all(|section| section.exclusive_ns.is_some());
        let mut expected: BTreeMap<(u64, &str), (u64, u64, u64)> = BTreeMap::new();
        for section in sections {
            let sums = expected.entry((section.tid, &section.name)).or_default();
            sums.0 += 1;
            sums.1 += section.duration_ns.context("a section that had not ended")?;
            sums.2 += section.exclusive_ns.unwrap_or(0);
        }
        let found = self.rows(
            "WITH RECURSIVE above(id, ancestor) AS (
               SELECT id, parent_id FROM slice WHERE category <> 'hand_over'
               UNION ALL
               SELECT above.id, bar.parent_id FROM above JOIN slice AS bar ON bar.id = ancestor
               WHERE bar.category = 'hand_over'),
             inside AS (
               SELECT ancestor, sum(dur) AS ns FROM above JOIN slice USING (id) GROUP BY 1)
             SELECT tid, slice.name AS name, count(*) AS count, sum(dur) AS ns,
                    sum(dur - coalesce((SELECT inside.ns FROM inside WHERE ancestor = slice.id), 0)) AS exclusive
             FROM slice JOIN thread_track ON slice.track_id = thread_track.id JOIN thread USING (utid)
             WHERE category <> 'hand_over' GROUP BY 1, 2",
        )?;
        let mut sums: BTreeMap<(u64, &str), (u64, u64, u64)> = BTreeMap::new();
        for row in &found {
            let exclusive = if with_exclusive { number(row, "exclusive") } else { 0 };
            let key = (number(row, "tid"), text(row, "name"));
            sums.insert(key, (number(row, "count"), number(row, "ns"), exclusive));
        }
        assert_eq!(sums, expected);

        // Not one of them is elsewhere.
        let count = self.number("SELECT count(*) FROM slice WHERE category <> 'hand_over'")?;
        assert_eq!(count, sections.len() as u64);
        let first = self.number("SELECT min(ts) FROM slice WHERE category <> 'hand_over'")?;
        assert_eq!(Some(first), sections.iter().map(|section| section.begin_ns).min());

        let mut expected: BTreeMap<String, u64> = BTreeMap::new();
        for section in sections {
            let [layer, phase] = [&section.layer, &section.phase].map(|code| code.as_deref().unwrap_or("?"));
            *expected.entry(format!("{layer},{phase} {layer}_{phase}")).or_default() += 1;
        }
        let found = self.rows(
            "SELECT category || ' ' || extract_arg(arg_set_id, 'debug.layer_phase') AS tag, count(*) AS count
             FROM slice WHERE category <> 'hand_over' GROUP BY 1",
        )?;
        let found = found.iter().map(|row| (text(row, "tag").to_owned(), number(row, "count")));
        assert_eq!(found.collect::<BTreeMap<_, _>>(), expected);
        for (key, argument) in [("iter", "iteration"), ("acct", "account")] {
            let expected = sections.iter().filter(|section| section.attributes.contains_key(key)).count();
            let query = format!(
                "SELECT count(*) FROM slice WHERE extract_arg(arg_set_id, 'debug.{argument}') IS NOT NULL"
            );
            assert_eq!(self.number(&query)?, expected as u64, "{key}");
        }
        Ok(())
    }

    /// Checks the names of threads and processes of a recording.
    fn assert_named(&self, sections: &[Section], snapshot: &Snapshot) -> Result<()> {
        let expected: BTreeSet<(u64, u64, &str)> = sections
            .iter()
            .filter_map(|section| Some((section.pid?, section.tid, section.thread.as_deref()?)))
            .collect();
        let rows = self.rows(
            "SELECT DISTINCT pid, tid, thread.name AS name
             FROM slice JOIN thread_track ON slice.track_id = thread_track.id
             JOIN thread USING (utid) JOIN process USING (upid) WHERE category <> 'hand_over'",
        )?;
        let found = rows.iter().map(|row| (number(row, "pid"), number(row, "tid"), text(row, "name")));
        assert_eq!(found.collect::<BTreeSet<_>>(), expected);
        let names: BTreeMap<u64, &str> =
            snapshot.phases.iter().map(|row| (row.pid.into(), row.comm.as_str())).collect();
        let rows = self.rows("SELECT pid, name FROM process WHERE pid <> 0")?;
        let found = rows.iter().map(|row| (number(row, "pid"), text(row, "name")));
        assert_eq!(found.collect::<BTreeMap<_, _>>(), names);
        Ok(())
    }

    /// Checks that there is a flow for each hand-over, from where work was sent to where it was taken.
    fn assert_flows(&self, snapshot: &Snapshot) -> Result<u64> {
        let received = snapshot.hand_overs.unwrap_or_default().received;
        let flows = self.number("SELECT count(*) FROM flow")?;
        assert_eq!(flows, received);
        // A flow ends at the setup bar, at the section that does the work, or at an instant.
        let sound = self.number(
            "SELECT count(*) FROM flow
             JOIN slice AS sent ON sent.id = slice_out JOIN slice AS taken ON taken.id = slice_in
             WHERE sent.name = 'nn.send' AND taken.ts >= sent.ts
               AND (taken.name IN ('nn.recv', 'setup')
                    OR taken.category <> 'hand_over' AND extract_arg(taken.arg_set_id, 'debug.flow_anchor') = 'start')
               AND extract_arg(sent.arg_set_id, 'debug.handle') IS NOT NULL",
        )?;
        assert_eq!(sound, flows);
        Ok(flows)
    }

    /// Checks the tracks of CPUs and clusters; returns the number of events of CPUs.
    fn assert_power(&self, snapshot: &Snapshot) -> Result<u64> {
        let events = self.number(
            "SELECT count(*) FROM counter JOIN cpu_counter_track AS track ON track.id = track_id
             WHERE track.name IN ('cpuidle', 'cpufreq')",
        )?;
        assert_eq!(events, snapshot.overhead.power_events);
        let end = snapshot.window.end_ns;
        let times = self.rows(&format!(
            "SELECT track, value, sum(ns) AS ns FROM (
               SELECT track.name AS track, CAST(value AS INT) AS value,
                      coalesce(lead(ts) OVER (PARTITION BY track_id ORDER BY ts), {end}) - ts AS ns
               FROM counter JOIN track ON track.id = track_id WHERE track.name GLOB 'cluster *')
             GROUP BY 1, 2"
        ))?;
        let found: BTreeMap<(String, i64), u64> = times
            .iter()
            .map(|row| {
                let value = row["value"].as_i64().expect("a value");
                ((text(row, "track").to_owned(), value), number(row, "ns"))
            })
            .filter(|(_, ns)| *ns > 0)
            .collect();
        let mut expected: BTreeMap<(String, i64), u64> = BTreeMap::new();
        for row in &snapshot.clusters {
            let mut add = |counter: &str, value: i64, ns: u64| {
                if ns > 0 {
                    *expected.entry((format!("cluster {} {counter}", row.cluster), value)).or_default() += ns;
                }
            };
            for active in &row.active {
                add("frequency", active.khz.unwrap_or(0).into(), active.ns);
                add("idle state", 0, active.ns);
            }
            for idle in &row.idle {
                add("frequency", 0, idle.ns);
                add("idle state", i64::from(idle.state) + 1, idle.ns);
            }
            for ns in [row.idle_unknown_ns, row.offline_ns, row.unknown_ns] {
                add("frequency", 0, ns);
                add("idle state", -1, ns);
            }
            for concurrency in &row.concurrency {
                add("running CPUs", concurrency.running_cpus.map_or(-1, i64::from), concurrency.ns);
            }
        }
        assert_eq!(found, expected);
        Ok(events)
    }
}

/// Checks everything that the export of a recording has.
fn assert_recording(folder: &Path) -> Result<Option<Exported>> {
    let Some(exported) = Exported::of(folder, &[])? else { return Ok(None) };
    exported.assert_sound()?;
    let sections = exported.sections()?;
    let snapshot = exported.snapshot(&[])?;
    exported.assert_slices(&sections)?;
    exported.assert_named(&sections, &snapshot)?;
    assert_eq!(exported.assert_flows(&snapshot)?, 25);
    exported.assert_power(&snapshot)?;
    Ok(Some(exported))
}

#[test]
fn a_recording_is_read_by_the_importer_as_by_us() -> Result<()> {
    let Some(exported) = assert_recording(&fixture("recording-v1"))? else { return Ok(()) };
    // Of the whole clock, though times are those of the monotonic one.
    let clocks = exported.rows("SELECT DISTINCT clock_name FROM clock_snapshot ORDER BY 1")?;
    let names: Vec<&str> = clocks.iter().map(|row| text(row, "clock_name")).collect();
    assert_eq!(names, ["BOOTTIME", "MONOTONIC", "REALTIME"]);
    assert_eq!(exported.number("SELECT count(*) FROM counter WHERE ts > 0")?, 11);
    Ok(())
}

#[test]
fn a_live_recording_is_read_by_the_importer_as_by_us() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let program = nntrace_tests::binaries::profile_dir()?.join("job-queue");
    let folder = tempfile::tempdir()?;
    let live = folder.path().join("live.pftrace");
    let recording = Recording::of(&["-o", live.to_str().context("no text")?], [&program])?;
    assert_eq!(recording.run.snapshot.loss.records_dropped, 0);
    let Some(exported) = assert_recording(&recording.path())? else { return Ok(()) };
    // Written beside the recording while the run went on: of the same slices, flows, and events and states of CPUs.
    for query in [
        "SELECT tid, slice.name AS name, ts, dur, extract_arg(slice.arg_set_id, 'debug.layer_phase') AS tag
         FROM slice JOIN thread_track ON slice.track_id = thread_track.id JOIN thread USING (utid)
         WHERE extract_arg(slice.arg_set_id, 'debug.mark') IS NULL ORDER BY 1, 3, 4 DESC, 2",
        "SELECT sent.ts AS sent, taken.ts AS taken FROM flow
         JOIN slice AS sent ON sent.id = slice_out JOIN slice AS taken ON taken.id = slice_in ORDER BY 1, 2",
        "SELECT track.name AS name, ts, value FROM counter JOIN track ON track.id = track_id ORDER BY 1, 2, 3",
    ] {
        let found = exported.importer.rows(&live, &[query])?.pop().context("one result")?;
        assert_eq!(found, exported.rows(query)?, "{query}");
    }
    Ok(())
}

#[test]
fn sections_of_a_systrace_are_slices() -> Result<()> {
    let trace = fixture("nnapi/omr1.trace.txt.zst");
    let Some(exported) = Exported::of(&trace, &[])? else { return Ok(()) };
    exported.assert_sound()?;
    let mut sections = exported.sections()?;
    // These two are of threads that take no part in the accounting.
    sections.retain(|section| section.duration_ns.is_some() || !section.name.contains("ISensors::poll"));
    assert!(sections.len() > 4_000, "{}", sections.len());
    exported.assert_slices(&sections)
}

/// Calls of a driver, some with a setup, one with something in it, one reported by a callback; and work taken too early.
const HAND_OVERS: &str = include_str!("../../fixtures/perfetto/hand_overs.txt");

/// Returns the text of the trace of [`HAND_OVERS`].
fn hand_overs_text() -> String {
    let lines = HAND_OVERS.lines().map(|line| {
        let mut words = line.splitn(4, ' ');
        let mut next = || words.next().expect("four words");
        let [time, tid, pid] = [next(), next(), next()].map(|word| word.parse::<u64>().expect("a number"));
        nntrace_tests::trace::line(time, tid as u32, pid as u32, next()) + "\n"
    });
    lines.collect()
}

/// Idle CPUs while work waits are counters, whose times are those of the report; without the option there are none.
#[test]
fn idle_cpus_while_work_waits_are_counters() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("idle.trace");
    let idle =
        [(1_200, 0, 1), (1_450, 0, u32::MAX), (1_300, 1, u32::MAX), (4_100, 1, 0), (9_000, 1, u32::MAX)];
    let idle = idle.map(|(ns, cpu, state)| {
        format!("          <idle>-0     [{cpu:03}] d..1. 0.{ns:09}: cpu_idle: state={state} cpu_id={cpu}\n")
    });
    fs::write(&trace, idle.concat() + &hand_overs_text())?;
    for run in [trace, fixture("recording-v1")] {
        let Some(off) = Exported::of(&run, &[])? else { return Ok(()) };
        let dispatch = "FROM counter JOIN track ON track.id = track_id
                        WHERE track.name GLOB 'dispatch *' OR track.name GLOB '*-overhead'";
        assert_eq!(off.number(&format!("SELECT count(*) {dispatch}"))?, 0);
        let Some(on) = Exported::of(&run, &["--overhead"])? else { return Ok(()) };
        on.assert_sound()?;
        let snapshot = on.snapshot(&["--overhead"])?;
        on.assert_power(&snapshot)?;
        let expected = snapshot.dispatch_overhead.context("work was handed over")?;
        let ended =
            Child::run(Profiler::new()?.args(["report", "--overhead", "--json"]).args([&run]).command())?;
        assert_eq!(serde_json::from_slice::<DispatchOverheadRow>(&ended.expect_code(0)?.stdout)?, expected);
        let (begin, end) = (expected.begin_ns, expected.end_ns);
        let rows = on.rows(&format!(
            "SELECT name, sum((min(next, {end}) - max(ts, {begin})) * (value > 0)) AS ns FROM (
               SELECT track.name AS name, ts, value,
                      coalesce(lead(ts) OVER (PARTITION BY track_id ORDER BY ts), {end}) AS next {dispatch})
             GROUP BY 1 ORDER BY 1"
        ))?;
        let found: BTreeMap<String, u64> =
            rows.iter().map(|row| (text(row, "name").to_owned(), number(row, "ns"))).collect();
        let mut times = BTreeMap::from([
            ("all-overhead".to_owned(), expected.all_overhead_ns),
            ("has-overhead".to_owned(), expected.has_overhead_ns),
        ]);
        for row in &expected.clusters {
            for (what, ns) in
                [("idle CPUs", row.idle_ns), ("ready work", row.ready_ns), ("overhead", row.overhead_ns)]
            {
                times.insert(format!("dispatch {} {what}", row.cluster), ns);
            }
        }
        assert_eq!(found, times);
        let same = on.number(&format!(
            "SELECT count(*) FROM (SELECT value, lag(value) OVER (PARTITION BY track_id ORDER BY ts) AS before {dispatch})
             WHERE value = before"
        ))?;
        assert_eq!(same, 0, "samples without a change");
    }
    Ok(())
}

#[test]
fn hand_overs_are_setup_bars_and_flows() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("calls.trace");
    fs::write(&trace, hand_overs_text())?;
    let Some(exported) = Exported::of(&trace, &[])? else { return Ok(()) };
    exported.assert_sound()?;
    // Each bar ends where the next section of its track begins, and is not among the sections.
    let bars = exported.rows(
        "SELECT bar.ts AS ts, bar.dur AS dur, (
           SELECT name FROM slice AS next WHERE next.track_id = bar.track_id AND next.ts = bar.ts + bar.dur
             AND next.category <> 'hand_over') AS before
         FROM slice AS bar WHERE bar.name = 'setup' ORDER BY ts",
    )?;
    let found: Vec<_> =
        bars.iter().map(|row| (number(row, "ts"), number(row, "dur"), text(row, "before"))).collect();
    assert_eq!(found, [(1_400, 300, "execute"), (6_100, 300, "work")], "{bars:?}");
    let flows = exported.rows(
        "SELECT sent.ts AS sent, sent.name AS 'from', taken.ts AS taken, taken.name AS 'to'
         FROM flow JOIN slice AS sent ON sent.id = slice_out JOIN slice AS taken ON taken.id = slice_in ORDER BY sent",
    )?;
    let found: Vec<_> = flows
        .iter()
        .map(|row| (number(row, "sent"), text(row, "from"), number(row, "taken"), text(row, "to")))
        .collect();
    let (method, execute) = ("HIDL::IPreparedModel::executeSynchronously", "HIDL::IPreparedModel::execute");
    let clients = [method, execute].map(|method| format!("{method}::client"));
    assert_eq!(
        found,
        [
            (1_000, clients[0].as_str(), 1_400, "setup"),
            (4_000, clients[1].as_str(), 4_200, "queue"),
            (5_000, "dispatch", 5_300, "receive"),
            (6_000, "nn.send", 6_100, "setup"),
            (7_000, "hb_violation", 7_300, "hb_violation"),
        ]
    );
    // What is in a bar is still in the section around it.
    let inside = exported.number(
        "SELECT count(*) FROM slice AS bar JOIN slice AS section ON section.parent_id = bar.id
         WHERE bar.name = 'setup' AND section.name = 'unpack'",
    )?;
    assert_eq!(inside, 1);
    Ok(())
}

#[test]
fn events_of_cpus_fill_the_tracks_of_perfetto() -> Result<()> {
    for (name, clusters) in [("three_cpus.txt", &[][..]), ("fastest_decides.txt", &["--cluster", "A=0,1"])] {
        let trace = fixture("power").join(name);
        let Some(exported) = Exported::of(&trace, clusters)? else { return Ok(()) };
        exported.assert_sound()?;
        assert!(exported.assert_power(&exported.snapshot(clusters)?)? > 30, "{name}");
    }
    Ok(())
}

#[test]
fn what_is_refused_leaves_nothing() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let trace = fixture("contract.txt");
    for (output, options, reason) in [
        ("a.pftrace", &["--board", "b1"][..], "--board"),
        ("a.pftrace", &[], "no trace event"),
        ("a.txt", &[], ".pftrace"),
    ] {
        let output = folder.path().join(output);
        let mut profiler =
            Profiler::new()?.args(["export", "-o"]).args([&output]).args([&trace]).args(options);
        let ended = Child::run(profiler.command())?;
        assert_ne!(ended.code(), Some(0));
        assert!(ended.stderr.contains(reason), "{}", ended.stderr);
    }
    assert_eq!(fs::read_dir(folder.path())?.count(), 0);
    Ok(())
}
