//! Energy models on the command line: written, checked, applied.

use std::{
    path::Path,
    process::{Command, Output},
};

use anyhow::{Context as _, Result};
use nntrace_tests::{binaries, snapshot};
use nntrace_user::report::snapshot::ResultUnit;

fn run(arguments: &[&str]) -> Result<Output> {
    Command::new(binaries::profiler()?).args(arguments).output().context("nntrace-bpf does not start")
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
