//! Tables, CSV, comparisons and timelines of power states: as reviewed, and adding up to the measurement.

use std::{collections::BTreeMap, fs, path::PathBuf};

use anyhow::{Context as _, Result};
use nntrace_common::power::IDLE_EXIT;

use super::{
    cpu_or_cluster::{self, CpuOrCluster, CpuOrClusterRow},
    power::{self, PowerTable},
    snapshot::Snapshot,
    terminal_text::clean,
    timeline,
};
use crate::{
    analyze::diff::power as power_diff,
    model::{
        Topology,
        timeline::{CpuState, Timelines},
        topology::{ClusterDescription, Domain},
    },
    replay::{self, Options},
};

/// A line of ftrace text about a CPU's idle state, at `ns`.
fn idle(ns: u64, cpu: u32, state: u32) -> String {
    line(ns, cpu, &format!("cpu_idle: state={state} cpu_id={cpu}"))
}

/// A line of ftrace text about a CPU's frequency, at `ns`.
fn frequency(ns: u64, cpu: u32, khz: u32) -> String {
    line(ns, cpu, &format!("cpu_frequency: state={khz} cpu_id={cpu}"))
}

fn line(ns: u64, cpu: u32, what: &str) -> String {
    let (seconds, fraction) = (ns / 1_000_000_000, ns % 1_000_000_000);
    format!("          <idle>-0     [{cpu:03}] d..1. {seconds}.{fraction:09}: {what}")
}

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(name)
}

fn topology(name: &str) -> Result<Option<Topology>> {
    let path = fixture("topology").join(name);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(Some(Topology::from_toml(name, &text)?))
}

fn cluster(name: &str, cpus: &[u32]) -> ClusterDescription {
    ClusterDescription { name: name.into(), cpus: cpus.to_vec(), domain: Domain::Both }
}

/// Replays a file with its timelines; its name is left out.
fn replay(path: PathBuf, options: Options) -> Result<(Snapshot, Timelines)> {
    let replayed = replay::replay(&Options { files: vec![path], with_steps: true, ..options })?;
    let mut snapshot = Snapshot::of(&replayed.findings());
    snapshot.source.files.clear();
    Ok((snapshot, replayed.timelines().cloned().context("no power event")?))
}

fn replay_text(text: &str, options: Options) -> Result<(Snapshot, Timelines)> {
    let file = tempfile::NamedTempFile::new()?;
    fs::write(file.path(), text)?;
    replay(file.path().to_owned(), options)
}

fn juno() -> Result<(Snapshot, Timelines)> {
    let options = Options { topology: topology("juno.toml")?, ..Options::default() };
    replay(fixture("power/juno.txt.zst"), options)
}

fn fastest_decides() -> Result<(Snapshot, Timelines)> {
    replay(fixture("power/fastest_decides.txt"), Options::default())
}

/// Replays eight CPUs of three clocks in one idle domain, one of them silent.
fn dynamiq() -> Result<(Snapshot, Timelines)> {
    let mut lines: Vec<String> = (0..7).map(|cpu| idle(0, cpu, 2)).collect();
    lines.push(idle(100_000, 1, IDLE_EXIT));
    lines.push(frequency(200_000, 4, 1_804_800));
    lines.push(idle(300_000, 4, IDLE_EXIT));
    lines.push(idle(400_000, 1, 1));
    lines.push(idle(500_000, 4, 0));
    replay_text(&lines.join("\n"), Options { topology: topology("dynamiq.toml")?, ..Options::default() })
}

/// Replays thousands of changes on three CPUs, in a sequence that only looks random.
fn busy() -> Result<(Snapshot, Timelines)> {
    let mut seed = 7_u64;
    let mut below = |end: u64| {
        // The constants of MMIX; the upper bits are the good ones.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % end
    };
    let mut lines = Vec::new();
    for step in 0..9_000 {
        let (at, cpu) = (step * 1_000 + below(900), below(3) as u32);
        lines.push(match below(4) {
            0 => frequency(at, cpu, [600_000, 1_200_000, 1_800_000][below(3) as usize]),
            1 => idle(at, cpu, below(3) as u32),
            _ => idle(at, cpu, IDLE_EXIT),
        });
    }
    let clusters = vec![cluster("pair", &[0, 2])];
    replay_text(&lines.join("\n"), Options { clusters, ..Options::default() })
}

#[test]
fn tables_of_the_scenario_are_as_reviewed() -> Result<()> {
    let (snapshot, _) = fastest_decides()?;
    for table in PowerTable::ALL {
        insta::assert_snapshot!(format!("scenario_{}", table.name()), power::render(&snapshot, table));
    }
    Ok(())
}

#[test]
fn tables_of_a_board_are_as_reviewed() -> Result<()> {
    let (snapshot, _) = juno()?;
    for table in PowerTable::ALL {
        insta::assert_snapshot!(format!("board_{}", table.name()), power::render(&snapshot, table));
    }
    Ok(())
}

#[test]
fn tables_of_one_idle_domain_of_three_clocks_are_as_reviewed() -> Result<()> {
    let (snapshot, _) = dynamiq()?;
    for table in PowerTable::ALL {
        insta::assert_snapshot!(format!("domains_{}", table.name()), power::render(&snapshot, table));
    }
    Ok(())
}

#[test]
fn what_is_shown_adds_up_and_fits() -> Result<()> {
    let (before, _) = fastest_decides()?;
    for (snapshot, _) in [fastest_decides()?, juno()?, dynamiq()?, busy()?] {
        for table in PowerTable::ALL {
            let groups = table.groups(&snapshot);
            for group in &groups {
                let sum: u64 = group.rows.iter().map(|row| row.ns).sum();
                assert_eq!(sum, snapshot.window.length_ns(), "{group:?}");
                assert_eq!(group.shares().iter().sum::<u64>(), 10_000, "{group:?}");
            }
            let text = power::render(&snapshot, table) + &power_diff::render(&before, &snapshot, table);
            let lines = text.lines().filter(|line| !line.starts_with("note: "));
            lines.for_each(|line| assert!(line.chars().count() <= 80, "{line}"));
        }
        // Every CPU has its row, even without any events.
        let idle = PowerTable::Idle.groups(&snapshot);
        for row in &snapshot.cpus {
            assert!(idle.iter().any(|group| group.unit == CpuOrCluster::Cpu(row.cpu)), "cpu{}", row.cpu);
        }
    }
    Ok(())
}

#[test]
fn csv_reads_back_to_the_same_sums() -> Result<()> {
    let clusters = vec![cluster("big, \"fast\"\n", &[1, 2])];
    let (quoted, _) = replay(fixture("power/juno.txt.zst"), Options { clusters, ..Options::default() })?;
    for snapshot in [quoted, juno()?.0, dynamiq()?.0] {
        let text = power::csv(&snapshot, &PowerTable::ALL)?;
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        let mut sums: BTreeMap<[String; 4], u64> = BTreeMap::new();
        let mut idle: BTreeMap<(String, u32), (u64, u64)> = BTreeMap::new();
        for line in reader.deserialize() {
            let line: BTreeMap<String, String> = line?;
            assert_eq!(line["window_ns"], snapshot.window.length_ns().to_string());
            let key = ["table", "scope", "name", "measure"].map(|field| line[field].clone());
            *sums.entry(key).or_default() += line["ns"].parse::<u64>()?;
            if line["table"] == "idle" && line["scope"] == "cpu" && !line["state"].is_empty() {
                let key = (line["name"].clone(), line["state"].parse()?);
                idle.insert(key, (line["ns"].parse()?, line["hits"].parse()?));
            }
        }
        // Three tables of each cluster and two of each CPU; frequencies have two kinds, plus concurrency.
        for cluster in &snapshot.clusters {
            let is_of = |key: &[String; 4]| key[1] == "cluster" && key[2] == clean(&cluster.cluster);
            let expected = if cluster.domain == Domain::Idle { 3 } else { 4 };
            assert_eq!(sums.keys().filter(|key| is_of(key)).count(), expected, "{}", cluster.cluster);
        }
        for (key, ns) in &sums {
            assert_eq!(*ns, snapshot.window.length_ns(), "{key:?}");
        }
        let rows = snapshot.cpus.iter().flat_map(|cpu| {
            cpu.idle.iter().map(|row| ((cpu.cpu.to_string(), row.state), (row.ns, row.hits)))
        });
        assert_eq!(idle, rows.collect());
    }
    Ok(())
}

/// Returns a trace of two CPUs that take turns, `rounds` times 400 us; `first` and `second` are their numbers.
fn turns(rounds: u64, first: u32, second: u32) -> String {
    let mut lines = vec![frequency(0, first, 600_000), frequency(0, second, 1_200_000)];
    for round in 0..rounds {
        let at = round * 400_000;
        lines.push(idle(at, first, 0));
        lines.push(idle(at, second, IDLE_EXIT));
        lines.push(idle(at + 100_000, second, 1));
        lines.push(idle(at + 100_000, first, IDLE_EXIT));
    }
    lines.push(idle(rounds * 400_000, first, 0));
    lines.join("\n")
}

#[test]
fn runs_compare_by_name_and_by_rate_whatever_the_order_and_the_length() -> Result<()> {
    let options =
        |clusters: &[ClusterDescription]| Options { clusters: clusters.to_vec(), ..Options::default() };
    let (before, _) =
        replay_text(&turns(10, 1, 2), options(&[cluster("old", &[0]), cluster("both", &[1, 2])]))?;
    let (after, _) =
        replay_text(&turns(20, 1, 2), options(&[cluster("both", &[1, 2]), cluster("new", &[5])]))?;
    assert_eq!(after.window.length_ns(), 2 * before.window.length_ns());
    for table in PowerTable::ALL {
        let changes = power_diff::changes(&before, &after, table);
        for change in &changes {
            // The new unit has no baseline, the old one no current values; the others did the same for twice as long.
            let known = match &change.unit {
                CpuOrCluster::Cpu(5) => (false, true),
                CpuOrCluster::Cpu(0) => (true, false),
                CpuOrCluster::Cluster(name) => (name != "new", name != "old"),
                CpuOrCluster::Cpu(_) => (true, true),
            };
            let windows = (change.before_window_ns.is_some(), change.after_window_ns.is_some());
            assert_eq!(windows, known, "{change:?}");
            if change.is_in_both() {
                for row in &change.rows {
                    assert!(row.share_change().abs() <= 1, "{row:?}");
                    if let Some(rate) = row.rate_change().filter(|_| row.before.is_some()) {
                        // One stay more or less at the ends of the window.
                        assert!(rate.abs() <= 260.0, "{row:?}");
                    }
                }
            }
        }
        let of = |unit: CpuOrCluster| changes.iter().filter(|change| change.unit == unit).count();
        if table != PowerTable::Cluster {
            assert!(of(CpuOrCluster::Cpu(0)) > 0 && of(CpuOrCluster::Cpu(5)) > 0);
        }
    }

    // The CPUs swap their parts: cpu1's are cpu2's now.
    let (swapped, _) = replay_text(&turns(10, 2, 1), options(&[cluster("both", &[1, 2])]))?;
    let changes = power_diff::changes(&before, &swapped, PowerTable::Frequency);
    let cpu1: Vec<_> = changes.iter().filter(|change| change.unit == CpuOrCluster::Cpu(1)).collect();
    let change_of = |khz| {
        let rows = cpu1[0].rows.iter();
        rows.filter(|row| row.what == power::What::At(Some(khz)))
            .map(power_diff::RowChange::share_change)
            .sum::<i64>()
    };
    assert_eq!((change_of(600_000), change_of(1_200_000)), (-7_500, 2_500));
    insta::assert_snapshot!("comparison_idle", power_diff::render(&before, &swapped, PowerTable::Idle));
    insta::assert_snapshot!("comparison_freq", power_diff::render(&before, &swapped, PowerTable::Frequency));
    insta::assert_snapshot!("comparison_cluster", power_diff::render(&before, &swapped, PowerTable::Cluster));

    let text = power_diff::csv(&before, &swapped, &[PowerTable::Idle])?;
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for line in reader.deserialize() {
        let line: BTreeMap<String, String> = line?;
        let sum = sums.entry(line["scope"].clone() + &line["name"]).or_default();
        sum.0 += line["before_ns"].parse::<u64>().unwrap_or(0);
        sum.1 += line["after_ns"].parse::<u64>().unwrap_or(0);
    }
    let window = before.window.length_ns();
    let expected = [
        ("clusterboth", (window, window)),
        ("clusterold", (window, 0)),
        ("cpu0", (window, 0)),
        ("cpu1", (window, window)),
        ("cpu2", (window, window)),
    ];
    assert_eq!(sums, expected.map(|(name, sums)| (name.to_owned(), sums)).into());
    Ok(())
}

#[test]
fn timelines_look_as_the_scenario_was_drawn() -> Result<()> {
    let (snapshot, timelines) = fastest_decides()?;
    // Ten columns per 100 us.
    insta::assert_snapshot!("timeline_scenario", timeline::render(&snapshot, &timelines, 102));
    let (snapshot, timelines) = juno()?;
    insta::assert_snapshot!("timeline_board", timeline::render(&snapshot, &timelines, 80));
    let (snapshot, timelines) = dynamiq()?;
    insta::assert_snapshot!("timeline_domains", timeline::render(&snapshot, &timelines, 80));
    for columns in [0, 30, 80, 200] {
        let text = timeline::render(&snapshot, &timelines, columns);
        let lines = text.lines().skip(1).filter(|_| columns >= 80);
        lines.for_each(|line| assert!(line.chars().count() <= columns, "{line}"));
    }
    Ok(())
}

/// Returns times by state, as in the snapshot.
fn parts(row: &CpuOrClusterRow<'_>) -> BTreeMap<CpuState, u64> {
    row.parts().into_iter().filter(|(_, ns)| *ns > 0).collect()
}

#[test]
fn lanes_come_to_what_the_tables_tell() -> Result<()> {
    for (snapshot, timelines) in [fastest_decides()?, juno()?, dynamiq()?, busy()?] {
        for unit in cpu_or_cluster::all(&snapshot) {
            let row = cpu_or_cluster::find(&snapshot, &unit).context("a row")?;
            let lane = match &unit {
                CpuOrCluster::Cpu(cpu) => &timelines.cpus[cpu],
                CpuOrCluster::Cluster(name) => {
                    &timelines.clusters.iter().find(|(other, _)| other == name).context("a lane")?.1
                }
            };
            assert_eq!(lane.totals().into_iter().collect::<BTreeMap<_, _>>(), parts(&row), "{unit:?}");
        }
    }
    Ok(())
}

#[test]
fn the_area_of_the_picture_is_what_the_tables_tell() -> Result<()> {
    for (snapshot, timelines) in [fastest_decides()?, juno()?, dynamiq()?, busy()?] {
        let text = timeline::svg(&snapshot, &timelines);
        let document = roxmltree::Document::parse(&text)?;
        let length = snapshot.window.length_ns() as f64;
        let mut seen = 0;
        for group in document.descendants().filter(|node| node.has_attribute("data-scope")) {
            let name = group.attribute("data-name").context("a name")?;
            let unit = match group.attribute("data-scope") {
                Some("cpu") => CpuOrCluster::Cpu(name.parse()?),
                _ => CpuOrCluster::Cluster(name.into()),
            };
            let mut times: BTreeMap<CpuState, u64> = BTreeMap::new();
            let mut right = 190.0;
            let mut rectangles = 0;
            for node in group.children().filter(|node| node.has_tag_name("rect")) {
                let number = |name: &str| node.attribute(name).and_then(|text| text.parse::<u32>().ok());
                let doing = match node.attribute("class") {
                    Some("running") => CpuState::Running(number("data-khz")),
                    Some("running-unknown") => CpuState::Running(None),
                    Some("idle") => CpuState::Idle(number("data-state").context("a state")?),
                    Some("idle_unknown") => CpuState::IdleUnknown,
                    Some("offline") => CpuState::Offline,
                    _ => CpuState::Unknown,
                };
                let size =
                    |name: &str| -> Result<f64> { Ok(node.attribute(name).context("a size")?.parse()?) };
                let ns: u64 = node.attribute("data-ns").context("a time")?.parse()?;
                *times.entry(doing).or_default() += ns;
                // The width is proportional to the time, and there is no gap to the one before.
                assert!((size("width")? - ns as f64 / length * 1_000.0).abs() < 0.001);
                assert!((size("x")? - right).abs() < 0.001);
                right = size("x")? + size("width")?;
                rectangles += 1;
            }
            assert!(rectangles < 1_001 * 7);
            let row = cpu_or_cluster::find(&snapshot, &unit).context("a row")?;
            assert_eq!(times, parts(&row), "{unit:?}");
            seen += 1;
        }
        assert_eq!(seen, snapshot.cpus.len() + snapshot.clusters.len());
    }
    Ok(())
}

#[test]
fn names_do_not_break_the_picture() -> Result<()> {
    let clusters = vec![cluster("<\"&\u{1}>", &[1, 2])];
    let (snapshot, timelines) =
        replay(fixture("power/juno.txt.zst"), Options { clusters, ..Options::default() })?;
    let text = timeline::svg(&snapshot, &timelines);
    let document = roxmltree::Document::parse(&text)?;
    let names: Vec<_> = document.descendants().filter_map(|node| node.attribute("data-name")).collect();
    assert!(names.contains(&r#"<"&\x01>"#), "{names:?}");
    Ok(())
}
