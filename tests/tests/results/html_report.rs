//! Reports in HTML, opened and used in headless Chromium: figures are those of the snapshot, and no name does anything.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use nntrace_tests::{
    browser::Browser, child::Child, fixtures::fixture, live, profiler::Profiler, recording::Recording,
    snapshot, trace,
};
use nntrace_user::report::{number_format::duration_ns, snapshot::Snapshot};
use serde::Deserialize;
use tempfile::TempDir;

/// Report, as a person sees it.
#[derive(Debug, Deserialize)]
struct Seen {
    page: Page,
    views: Vec<View>,
    /// The swimlane after each thing that was done with it; at each width.
    used: Vec<BTreeMap<String, State>>,
}

/// Texts of a page.
#[derive(Debug, Deserialize)]
struct Page {
    title: String,
    heading: String,
    alerts: String,
    /// Rows of tables by the part of the page that they are in.
    tables: BTreeMap<String, Vec<Vec<Vec<String>>>>,
    /// How many sections it says that it shows.
    shown: String,
    /// Sections of the swimlane.
    sections: u64,
    /// Sections of the run.
    all: u64,
    hidden: u64,
    scripts: u64,
    /// Elements that no report has.
    foreign: u64,
    /// Whether a script of a name has run.
    ran: bool,
}

/// One of the widths and colour schemes.
#[derive(Debug, Deserialize)]
struct View {
    width: u32,
    scheme: String,
    overflow: i64,
    paper: String,
    complaints: Vec<String>,
    requests: Vec<String>,
}

/// State of the swimlane.
#[derive(Debug, Deserialize)]
struct State {
    begin: f64,
    end: f64,
    selected: Option<u64>,
    found: String,
    details: String,
}

impl State {
    fn length(&self) -> f64 {
        self.end - self.begin
    }
}

/// Report of a run, and the snapshot that was written with it.
struct Reported {
    folder: TempDir,
    snapshot: Snapshot,
}

impl Reported {
    /// Replays a run with these options.
    fn of(run: &Path, options: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let (page, json) = (folder.path().join("run.html"), folder.path().join("run.json"));
        let mut profiler = Profiler::new()?.args(["replay", "-o"]).args([&page]).args(["-o"]).args([&json]);
        profiler = profiler.args(options).args([run]);
        Child::run(profiler.command())?.expect_code(0)?;
        let snapshot = snapshot::read(&fs::read(json)?)?;
        Ok(Self { folder, snapshot })
    }

    fn page(&self) -> PathBuf {
        self.folder.path().join("run.html")
    }
}

impl Seen {
    /// Checks that nothing is amiss at any width and in any scheme.
    fn assert_sound(&self) {
        let views: Vec<(u32, &str)> =
            self.views.iter().map(|view| (view.width, view.scheme.as_str())).collect();
        assert_eq!(views, [(1400, "light"), (400, "light"), (1400, "dark"), (400, "dark")]);
        for view in &self.views {
            assert!(view.complaints.is_empty() && view.requests.is_empty(), "{view:?}");
            assert_eq!(view.overflow, 0, "{view:?}");
        }
        assert_ne!(self.views[0].paper, self.views[2].paper);
        let Page { scripts, foreign, ran, .. } = self.page;
        assert_eq!((scripts, foreign, ran), (2, 0, false));
    }

    /// Checks that times and counts of layers and phases are those of a snapshot.
    fn assert_phases(&self, snapshot: &Snapshot) {
        let time = |ns: Option<u64>| {
            ns.map_or_else(|| "\u{2013}".into(), |ns| duration_ns(ns).replace("us", "\u{b5}s"))
        };
        let expected: Vec<Vec<String>> = snapshot
            .phases
            .iter()
            .map(|row| {
                vec![
                    row.layer.name().into(),
                    row.phase.name().into(),
                    time(Some(row.exclusive_ns)),
                    time(Some(row.total_ns)),
                    row.count.to_string(),
                    time(row.p50_ns),
                    time(row.p99_ns),
                    time(row.max_ns),
                ]
            })
            .collect();
        let found = self.page.tables["phases"][0].iter();
        let found =
            found.map(|cells| [1, 2, 3, 5, 6, 7, 9, 10].map(|place| cells[place].replace(',', "")).to_vec());
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    /// Checks that the swimlane did what it was asked for; this many sections have what was searched.
    fn assert_used(&self, matches: usize) {
        for used in &self.used {
            let state = |name: &str| used.get(name).unwrap_or_else(|| panic!("no {name} in {used:?}"));
            let whole = state("whole").length();
            let opened = state("opened");
            assert!(opened.selected.is_some() && opened.length() <= whole, "{used:?}");
            assert!(state("whole").selected.is_none(), "{used:?}");
            let same = |one: f64, other: f64| (one - other).abs() < 2.0;
            assert!(same(state("wheeled_unfocused").length(), whole), "the page scrolls: {used:?}");
            assert!(state("wheeled").length() < 0.8 * whole, "{used:?}");
            assert!(same(state("zoomed").length(), 0.7 * state("wheeled").length()), "{used:?}");
            assert!(same(state("dragged").length(), state("zoomed").length()), "{used:?}");
            assert!(state("dragged").begin > state("zoomed").begin, "{used:?}");
            assert!(same(state("reset").length(), whole) && same(state("reset").begin, state("whole").begin));
            let plural = if matches == 1 { "" } else { "es" };
            assert_eq!(state("searched").found.replace(',', ""), format!("{matches} match{plural}"));
            assert_eq!(state("jumped").found.replace(',', ""), format!("1 of {matches} match{plural}"));
            assert!(state("jumped").selected.is_some() && state("left").selected.is_none(), "{used:?}");
            assert!(state("clicked").selected.is_some(), "{used:?}");
            assert!(state("slowest").selected.is_some(), "{used:?}");
            assert!(state("clicked").details.contains("Self"), "{used:?}");
        }
    }
}

/// Returns how many sections of a run have ended, and how many of them have this name.
fn ended_sections(run: &Path, name: &str) -> Result<(u64, usize)> {
    #[derive(Deserialize)]
    struct Section {
        duration_ns: Option<u64>,
        name: String,
    }
    let mut profiler = Profiler::new()?.args(["print", "--json-lines"]).args([run]);
    let text = Child::run(profiler.command())?.expect_code(0)?.text();
    let sections: Vec<Section> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let ended = || sections.iter().filter(|section| section.duration_ns.is_some());
    Ok((ended().count() as u64, ended().filter(|section| section.name.contains(name)).count()))
}

#[test]
fn a_recording_is_shown_and_its_swimlane_can_be_used() -> Result<()> {
    let Some(browser) = Browser::find()? else { return Ok(()) };
    let run = fixture("recording-v1");
    let (count, named) = ended_sections(&run, "convert_image")?;
    let reported = Reported::of(&run, &[])?;
    let seen: Seen = browser.use_report(&reported.page(), "recording", "convert_image")?;
    seen.assert_sound();
    seen.assert_phases(&reported.snapshot);
    seen.assert_used(named);
    assert_eq!((seen.page.all, seen.page.sections, seen.page.hidden), (count, count, 0));
    assert_eq!(seen.page.shown, format!("All {count} sections of the run."));

    // The same by `export`, but for what measuring cost.
    let exported = reported.folder.path().join("exported.html");
    let mut profiler = Profiler::new()?.args(["export", "-o"]).args([&exported]).args([&run]);
    Child::run(profiler.command())?.expect_code(0)?;
    let without_cost = |path: &Path| -> Result<String> {
        let page = fs::read_to_string(path)?;
        let (before, rest) = page.split_once("\"collector_cpu_ns\":").context("its cost")?;
        Ok(format!("{before}{}", rest.trim_start_matches(|digit: char| digit.is_ascii_digit())))
    };
    assert!(without_cost(&exported)? == without_cost(&reported.page())?);
    Ok(())
}

#[test]
fn a_trace_of_power_states_is_shown_with_its_energy() -> Result<()> {
    let Some(browser) = Browser::find()? else { return Ok(()) };
    let trace = fixture("power/juno.txt.zst");
    let (topology, model) = (fixture("topology/juno.toml"), fixture("energy/tc2.txt"));
    let options = [
        "--topology",
        topology.to_str().context("UTF-8")?,
        "--energy-model",
        model.to_str().context("UTF-8")?,
    ];
    let Reported { snapshot, folder } = Reported::of(&trace, &options)?;
    // There is no section to be found.
    let seen: Seen = browser.use_report(&folder.path().join("run.html"), "power", "")?;
    seen.assert_sound();
    assert_eq!(seen.page.title, "juno.txt.zst \u{b7} nntrace-bpf");
    let tables = &seen.page.tables["power"];
    assert_eq!(tables.len(), snapshot.clusters.len() + 3);
    let stays: Vec<&str> = tables[snapshot.clusters.len()].iter().map(|cells| cells[3].as_str()).collect();
    let clusters = snapshot.clusters.iter().flat_map(|row| &row.idle);
    let expected = clusters.chain(snapshot.cpus.iter().flat_map(|row| &row.idle)).filter(|row| row.ns > 0);
    assert_eq!(stays, expected.map(|row| row.hits.to_string()).collect::<Vec<_>>());
    let energy = &seen.page.tables["energy"][0];
    assert_eq!(energy.len(), snapshot.energy.context("energy")?.clusters.len() + 1);
    Ok(())
}

#[test]
fn prompts_and_tokens_have_a_table() -> Result<()> {
    let Some(browser) = Browser::find()? else { return Ok(()) };
    let batches = [(0, 400, "512 tokens"), (410, 420, "1 token"), (440, 470, "1 token")];
    let lines = batches.map(|(begin, end, name)| {
        let line = |us: u64, text: &str| trace::line(5_000_000_000 + us * 1_000, 7, 7, text);
        format!("{}\n{}\n", line(begin, &format!("B|7|[NN_LR_PE]{name}")), line(end, "E|7"))
    });
    let file = tempfile::NamedTempFile::with_suffix(".txt")?;
    fs::write(&file, lines.concat())?;
    let reported = Reported::of(file.path(), &[])?;
    let seen: Seen = browser.use_report(&reported.page(), "tokens", "token")?;
    seen.assert_sound();
    let rows: Vec<&[String]> = seen.page.tables["tokens"][0].iter().map(|cells| &cells[1..]).collect();
    let none = "\u{2013}";
    let expected = [
        ["Prompts, in batches", "1", "512", "400 \u{b5}s", "1,280,000", none, none, none, none],
        [
            "Decoding",
            "2",
            "2",
            "40.0 \u{b5}s",
            "50,000",
            "10.0 \u{b5}s",
            "30.0 \u{b5}s",
            "30.0 \u{b5}s",
            "30.0 \u{b5}s",
        ],
        [
            "Time to first token",
            "1",
            none,
            none,
            none,
            "400 \u{b5}s",
            "400 \u{b5}s",
            "400 \u{b5}s",
            "400 \u{b5}s",
        ],
        [
            "Between tokens",
            "2",
            none,
            none,
            none,
            "20.0 \u{b5}s",
            "50.0 \u{b5}s",
            "50.0 \u{b5}s",
            "50.0 \u{b5}s",
        ],
    ];
    assert_eq!(rows, expected);
    Ok(())
}

#[test]
fn names_are_texts_whatever_is_in_them() -> Result<()> {
    let Some(browser) = Browser::find()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("<img src=x onerror=ran=1>\u{202e}.txt");
    fs::write(&trace, trace::hostile())?;
    let reported = Reported::of(&trace, &[])?;
    let page = fs::read(reported.page())?;
    let acts = |byte: &u8| byte.is_ascii_control() && *byte != b'\n';
    assert!(!page.iter().any(acts) && String::from_utf8(page).is_ok_and(|text| !text.contains('\u{202e}')));

    let seen: Seen = browser.use_report(&reported.page(), "hostile", "onerror=ran")?;
    seen.assert_sound();
    seen.assert_used(1);
    assert_eq!(seen.page.heading, r"<img src=x onerror=ran=1>\u{202e}.txt");
    assert_eq!(seen.page.sections, 7);
    let names: Vec<&str> = seen.page.tables["functions"][0].iter().map(|cells| cells[0].as_str()).collect();
    for name in [
        "</script><script>ran = 1</script>",
        "<img src=x onerror=ran=1><!-- --><b>&lt;\"'`${ran = 1}",
        "\\x1b]52;c;ZXZpbA\\x07\\u{202e}\\u{2028}\\x7f\u{fffd}\u{fffd}",
        "__proto__",
        "{script}{data}{style}",
    ] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    assert!(
        seen.used[0]["jumped"].details.contains("<img src=x onerror=ran=1>"),
        "{:?}",
        seen.used[0]["jumped"]
    );
    Ok(())
}

#[test]
fn losses_are_at_the_top() -> Result<()> {
    let Some(browser) = Browser::find()? else { return Ok(()) };
    let reported = Reported::of(&fixture("tracedat/lost.txt.zst"), &[])?;
    let dropped = reported.snapshot.loss.records_dropped;
    assert!(dropped > 0, "{:?}", reported.snapshot.loss);
    let seen: Seen = browser.use_report(&reported.page(), "lost", "")?;
    seen.assert_sound();
    assert!(seen.page.alerts.replace(',', "").contains(&format!("{dropped} record")), "{}", seen.page.alerts);
    Ok(())
}

#[test]
fn a_live_run_shows_all_its_sections() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let Some(browser) = Browser::find()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let page = folder.path().join("live.html");
    let program = nntrace_tests::binaries::profile_dir()?.join("job-queue");
    let recording = Recording::of(&["-o", page.to_str().context("UTF-8")?], [&program])?;
    let (count, _) = ended_sections(&recording.path(), "")?;
    let seen: Seen = browser.use_report(&page, "live", "#")?;
    seen.assert_sound();
    seen.assert_phases(&recording.run.snapshot);
    assert!(count > 10);
    assert_eq!((seen.page.all, seen.page.sections), (count, count));
    assert!(seen.page.title.ends_with("job-queue \u{b7} nntrace-bpf"), "{}", seen.page.title);
    Ok(())
}

#[test]
fn jobs_of_devices_have_a_table_and_a_lane() -> Result<()> {
    let Some(browser) = Browser::find()? else { return Ok(()) };
    let job = "dev=npu0, fence=21:7, ring=rq0, job count:0, hw job count:0, client_id:4";
    let lines = [
        "camera-7 (    7) [000] d..1. 5.000000: tracing_mark_write: B|7|[NN_LD_PE]submit".to_owned(),
        format!("camera-7 (    7) [000] d..1. 5.000010: drm_sched_job_queue: {job}"),
        format!("kworker-9 (    9) [000] d..1. 5.000030: drm_sched_job_run: {job}"),
        "<idle>-0 (-----) [000] d..1. 5.000100: drm_sched_job_done: fence=21:7 signaled".to_owned(),
        "camera-7 (    7) [000] d..1. 5.000200: tracing_mark_write: E|7\n".to_owned(),
    ];
    let file = tempfile::NamedTempFile::with_suffix(".txt")?;
    fs::write(&file, lines.join("\n"))?;
    let reported = Reported::of(file.path(), &[])?;
    let seen: Seen = browser.use_report(&reported.page(), "devices", "submit")?;
    seen.assert_sound();
    let none = "\u{2013}";
    let expected = [
        [
            "npu0 rq0",
            "camera 7",
            "",
            "1",
            "70.0 \u{b5}s",
            "35.0%",
            "20.0 \u{b5}s",
            "0 ns",
            "0 ns",
            "90.0 \u{b5}s",
        ],
        [
            "npu0 rq0",
            "camera 7",
            "LD_PE: submit",
            "1",
            "70.0 \u{b5}s",
            "35.0%",
            "20.0 \u{b5}s",
            none,
            none,
            none,
        ],
    ];
    let rows: Vec<&[String]> = seen.page.tables["devices"][0].iter().map(|cells| &cells[..10]).collect();
    assert_eq!(rows, expected);
    Ok(())
}

#[test]
fn the_use_of_devices_has_a_table() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let Some(browser) = Browser::find()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let sysfs = folder.path().join("sysfs");
    fs::create_dir_all(sysfs.join("kernel/debug/rknpu"))?;
    fs::write(sysfs.join("kernel/debug/rknpu/load"), "NPU load:  Core0: 100%, Core1:  0%,\n")?;
    let page = folder.path().join("run.html");
    let mut profiler = Profiler::new()?.args(["--duration", "200ms", "--marks", "none", "--rails-from"]);
    profiler = profiler.args([&sysfs]).args(["-o"]).args([&page]);
    Child::run(profiler.command())?.expect_code(0)?;
    let seen: Seen = browser.use_report(&page, "usage", "#")?;
    seen.assert_sound();
    let rows: Vec<_> = seen.page.tables["device-usage"][0]
        .iter()
        .map(|cells| [&*cells[1], &*cells[3], &*cells[5]])
        .collect();
    assert_eq!(rows, [["core 0", "sampled", "100%"], ["core 1", "sampled", "0%"]]);
    Ok(())
}

#[test]
fn a_preempted_section_is_seen_to_wait() -> Result<()> {
    let Some(browser) = Browser::find()? else { return Ok(()) };
    let mark = |us: u64, text: &str| trace::line(5_000_000_000 + us * 1_000, 7, 7, text);
    let switch = |us: u64, from: &str, to: &str| {
        format!("  <...>-1 (    1) [000] d..2. 5.{us:06}: sched_switch: {from} ==> {to} next_prio=120")
    };
    let lines = [
        switch(0, "prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R", "next_comm=worker next_pid=7"),
        mark(0, "B|7|[NN_LR_PE]conv"),
        switch(300, "prev_comm=worker prev_pid=7 prev_prio=120 prev_state=R", "next_comm=hog next_pid=9"),
        switch(700, "prev_comm=hog prev_pid=9 prev_prio=120 prev_state=S", "next_comm=worker next_pid=7"),
        mark(1_000, "E|7"),
    ];
    let file = tempfile::NamedTempFile::with_suffix(".txt")?;
    fs::write(&file, lines.map(|line| line + "\n").concat())?;
    let reported = Reported::of(file.path(), &[])?;
    let seen: Seen = browser.use_report(&reported.page(), "preempted", "conv")?;
    seen.assert_sound();
    for used in &seen.used {
        for state in ["jumped", "slowest"] {
            let details = used[state].details.split_whitespace().collect::<Vec<_>>().join(" ");
            let expected = "On a CPU 600 \u{b5}s Waited for a CPU 400 \u{b5}s Asleep 0 ns";
            assert!(details.contains(expected), "{state}: {details}");
        }
    }
    Ok(())
}

/// At each zoom, states begin right before the end of what is shown, and go on after it.
#[test]
fn many_states_of_cpus_can_be_zoomed() -> Result<()> {
    let Some(browser) = Browser::find()? else { return Ok(()) };
    let states = (0..1_400_u64).map(|number| {
        let state = if number.is_multiple_of(2) { 1 } else { u32::MAX };
        trace::power_line(5_000_000_000 + number * 100_000, 0, nntrace_tests::power::Event::Idle(state))
            + "\n"
    });
    let file = tempfile::NamedTempFile::with_suffix(".txt")?;
    fs::write(&file, states.collect::<String>())?;
    let reported = Reported::of(file.path(), &[])?;
    let seen: Seen = browser.use_report(&reported.page(), "states", "#")?;
    seen.assert_sound();
    Ok(())
}
