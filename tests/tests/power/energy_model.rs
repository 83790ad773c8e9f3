//! Energy models on the command line: written, checked, applied.

use std::{
    path::Path,
    process::{Command, Output},
};

use anyhow::{Context as _, Result};
use nntrace_tests::{binaries, snapshot, surroundings};
use nntrace_user::report::snapshot::{PhaseEnergyRow, ResultUnit, UsageRow, WakeRow};

fn run(arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new(binaries::profiler()?);
    surroundings::set(command.args(arguments)).output().context("nntrace-bpf does not start")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Trace in which CPU 0 runs for 4 ms at 1 GHz and is idle twice for 3 ms.
const TRACE: &str = "\
  <idle>-0 [000] d..1 1.000000: cpu_frequency: state=1000000 cpu_id=0
  <idle>-0 [000] d..1 1.000000: cpu_idle: state=4294967295 cpu_id=0
  <idle>-0 [000] d..1 1.002000: cpu_idle: state=1 cpu_id=0
  <idle>-0 [000] d..1 1.005000: cpu_idle: state=4294967295 cpu_id=0
  <idle>-0 [000] d..1 1.007000: cpu_idle: state=1 cpu_id=0
  <idle>-0 [000] d..1 1.010000: cpu_idle: state=4294967295 cpu_id=0
";

const MODEL: &str = r#"
unit = "mW"
energy_unit = "uJ"
[[cluster]]
name = "only"
opps = [{ mhz = 1000, cluster = 100, core = 250 }]
idle = [{ name = "WFI", cluster = 60, core = 30 }, { name = "sleep", cluster = 10, core = 1 }]
wakeup = { cluster = 7 }
"#;

#[test]
fn a_replay_costs_what_the_model_says() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (trace, model) = (folder.path().join("trace.txt"), folder.path().join("model.toml"));
    std::fs::write(&trace, TRACE)?;
    std::fs::write(&model, MODEL)?;
    let (trace, model) = (trace.display().to_string(), model.display().to_string());
    let replay = |more: &[&str]| run(&[&["replay", trace.as_str(), "--cluster", "only=0"], more].concat());

    assert_eq!(snapshot::read(&replay(&["--json"])?.stdout)?.energy, None);

    let output = replay(&["--json", "--energy-model", &model])?;
    assert_eq!(text(&output.stderr), "");
    let energy = snapshot::read(&output.stdout)?.energy.context("no energy")?;
    assert_eq!(energy.unit, ResultUnit::Joule);
    assert_eq!(energy.clusters[0].cluster, "only");
    let parts = &energy.parts;
    for (found, microjoules) in [
        (parts.cluster_idle, 6.0 * 10.0),
        (parts.cluster_active, 4.0 * 100.0),
        (parts.cpu_idle, 6.0 * 1.0),
        (parts.cpu_active, 4.0 * 250.0),
        (parts.wakeups, 2.0 * 7.0),
    ] {
        assert!((found - microjoules * 1e-6).abs() < 1e-15, "{parts:?}");
    }
    let table = text(&replay(&["--table", "summary", "--energy-model", &model])?.stdout);
    assert!(table.contains("model.toml: 1.48 mJ, 1.48 mJ to 1.48 mJ with what is unknown"), "{table}");
    Ok(())
}

#[test]
fn a_bad_model_is_told_before_anything_is_measured() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let model = folder.path().join("model.txt");
    std::fs::write(&model, "clusters 1\nclusterA: 1 cap states 0 C states\nP-states:\n1000 5\n")?;
    let model = model.display().to_string();
    let missing = folder.path().join("none.txt").display().to_string();
    let expected = format!(
        "{model}:4: `1000 5`: expected a P-state: a frequency in MHz, power of the cluster, power of a core"
    );
    for arguments in [
        &["--energy-model", &model, "--", "true"][..],
        &["replay", "-", "--energy-model", &model],
        &["energy-model", "check", &model],
    ] {
        let output = run(arguments)?;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(&expected), "{}", text(&output.stderr));
    }
    let output = run(&["replay", "-", "--energy-model", &missing])?;
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("cannot read it: No such file"), "{}", text(&output.stderr));
    Ok(())
}

#[test]
fn a_template_of_this_machine_is_written_once_and_can_be_read() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let model = folder.path().join("machine.toml").display().to_string();
    let output = run(&["energy-model", "init", &model])?;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let written = std::fs::read(&model)?;
    assert_eq!(text(&run(&["energy-model", "init"])?.stdout), text(&written));

    let again = run(&["energy-model", "init", &model])?;
    assert_eq!(again.status.code(), Some(1));
    assert_eq!(text(&again.stderr), format!("nntrace-bpf: {model} exists already; --force replaces it\n"));
    assert!(run(&["energy-model", "init", &model, "--force"])?.status.success());
    assert_eq!(std::fs::read(&model)?, written);

    let check = run(&["energy-model", "check", &model])?;
    assert!(check.status.success(), "{}", text(&check.stderr));
    assert!(text(&check.stdout).contains("cluster 0, CPUs 0"), "{}", text(&check.stdout));

    let other = folder.path().join("machine.txt").display().to_string();
    assert_eq!(run(&["energy-model", "init", &other])?.status.code(), Some(1));
    assert!(!Path::new(&other).exists());
    Ok(())
}

/// ```text
/// us     0    1000   2000   4000   6000   8000   9000  10000  11200  12000  12300  13000  14000
/// cpu0   app runs, 1 GHz requested all the time............................................| idle 0
/// app           [infer  [conv                ]                             ]
/// cpu1   idle 1............|runs, 1 GHz, |2 GHz...............|idle 0|runs................| idle 1
/// worker asleep, woken at 3500, runs from 4100     [post      sleeps, woken at 11000, runs from 11300 ]
/// little at 1 GHz .......................|2 GHz...............|1 GHz |2 GHz...............| idle 0
/// cpu2   idle 0.................................................................................
/// ```
///
/// Powers in mW: little 200 and 100 a CPU at 1 GHz, 600 and 500 at 2 GHz; with two CPUs running, each has half of the cluster's.
/// In uJ, the phases used
///
/// - `LR_PE`: infer 1000 us and 1200 us alone at 1 GHz, 2000 us and 800 us with cpu1 at 2 GHz; post 2000 us so:
///   2.2 x (100 + 200) + 4.8 x (500 + 300) = 4500
/// - `LC_PCO`: 2.0 x (100 + 200) + 2.0 x (100 + 100) + 2.0 x (500 + 300) = 2600
/// - other: app 1.0 x 300 + 1.0 x 800, worker 1.9 x 200 + 3.0 x 800 + 0.7 x 800 = 4440
/// - all else: cpu1 before worker ran, 0.1 x 200 + 0.1 x 800; idle: little 1.0 x 50, cpu0 1.0 x 20, cpu1 (4.0 + 1.0) x 10 + 1.2 x 20,
///   big 14.0 x 70, cpu2 14.0 x 40: 1784
#[test]
#[expect(clippy::float_cmp, reason = "parts add up to the last digit")]
fn phases_cost_what_they_used() -> Result<()> {
    const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
    let (trace, model) =
        (format!("{FIXTURES}/power/sections.txt"), format!("{FIXTURES}/energy/sections.toml"));
    let clusters = ["--cluster", "little=0,1", "--cluster", "big=2"];
    let arguments = [&["replay", &trace, "--energy-model", &model], &clusters[..]].concat();
    let found = snapshot::read(&run(&[&arguments[..], &["--json"]].concat())?.stdout)?;
    let usage = found.usage.context("no usage")?;
    let energy = found.energy.context("no energy")?;

    let rows: Vec<_> = (usage.phases.iter())
        .map(|row| {
            let phase =
                row.layer.zip(row.phase).map(|(layer, phase)| format!("{}_{}", layer.code(), phase.code()));
            let UsageRow {
                on_cpu_ns, runnable_ns, sleeping_ns, uninterruptible_ns, unknown_ns, cycles, ..
            } = row.usage;
            let us =
                [on_cpu_ns, runnable_ns, sleeping_ns, uninterruptible_ns + unknown_ns].map(|ns| ns / 1_000);
            (row.pid, phase, us, cycles)
        })
        .collect();
    let expected = [
        (100, Some("LR_PE".into()), [7_000, 300, 1_000, 0], 2_200_000 + 9_600_000),
        (100, Some("LC_PCO".into()), [6_000, 0, 0, 0], 4_000_000 + 4_000_000),
        (100, None, [7_600, 600, 5_500, 0], 2_900_000 + 2 * 4_700_000),
    ];
    assert_eq!(rows, expected);

    let microjoules = |row: &PhaseEnergyRow| (row.energy.total * 1e9).round() / 1e3;
    assert_eq!(
        energy.phases.iter().map(microjoules).collect::<Vec<_>>(),
        [4_500.0, 2_600.0, 4_440.0, 1_784.0]
    );
    // To the last digit, in any order.
    let totals = || energy.phases.iter().map(|row| row.energy.total);
    assert_eq!((totals().sum::<f64>(), totals().rev().sum::<f64>()), (energy.total, energy.total));
    assert_eq!(energy.phases.iter().map(|row| row.energy.total_max).sum::<f64>(), energy.total_max);

    // worker was woken at 11000 while cpu1 was idle, which it left 200 us later.
    let functions = ["infer", "conv", "post"].map(|name| {
        let row = usage.functions.iter().find(|row| row.site.name == name);
        row.map(|row| (row.usage.on_cpu_ns / 1_000, row.usage.wakes.clone()))
    });
    let wake = WakeRow {
        cluster: Some("little".into()),
        state: Some("state0".into()),
        count: 1,
        measured: 1,
        latency_ns: 200_000,
        max_latency_ns: 200_000,
        exit_latency_ns: None,
    };
    assert_eq!(functions, [Some((5_000, vec![])), Some((6_000, vec![])), Some((2_000, vec![wake]))]);

    // infer and conv are of an iteration and an account, post of none.
    let [iteration] = &usage.iterations[..] else { anyhow::bail!("{:?}", usage.iterations) };
    assert_eq!((iteration.name.as_str(), iteration.usage.on_cpu_ns), ("infer", 11_000_000));
    let accounts: Vec<_> =
        usage.accounts.iter().map(|row| (row.account.as_deref(), row.usage.on_cpu_ns)).collect();
    assert_eq!(accounts, [(Some("camera"), 11_000_000), (None, 2_000_000)]);

    let table = text(&run(&[&arguments[..], &["--table", "summary"]].concat())?.stdout);
    assert!(table.contains("7.00 ms    300 us  1.00 ms"), "{table}");
    Ok(())
}
