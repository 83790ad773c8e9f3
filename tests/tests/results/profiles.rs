//! Outputs of whole runs for other programs: folded stacks, profiles for pprof, metrics for Prometheus. Every sum is that of
//! the snapshot, to the nanosecond, and readers that share no code with the project accept them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result, ensure};
use nntrace_tests::{
    binaries,
    child::Child,
    live,
    pprof::{self, Profile},
    profiler::Profiler,
    wheels,
};
use nntrace_user::report::snapshot::{PhaseRow, Snapshot, StackFrame};
use tempfile::TempDir;

/// Recording with accounts, iterations, hand-overs and context switches.
const RECORDING: &str = "recording-v1";
/// Trace of a driver and an application.
const TRACE: &str = "nnapi/omr1.trace.txt.zst";
/// Outputs of each run.
const OUTPUTS: [&str; 3] = ["out.folded", "out.pb.gz", "out.prom"];

/// Outputs of a run.
struct Outputs {
    folder: TempDir,
    snapshot: Snapshot,
}

impl Outputs {
    /// Replays a fixture.
    fn of(fixture: &str, options: &[&str]) -> Result<Self> {
        let run = fixtures().join(fixture);
        Self::run(&[&["replay", run.to_str().context("a path that is text")?], options].concat(), &[])
    }

    /// Runs the profiler, with a command if it is given.
    fn run(arguments: &[&str], command: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut profiler = Profiler::new()?;
        let invocation = profiler.command().current_dir(folder.path()).args(arguments).arg("--json=out.json");
        for output in OUTPUTS {
            invocation.args(["-o", output]);
        }
        Child::run(invocation.args(command))?.expect_code(0)?;
        let snapshot = nntrace_tests::snapshot::read(&fs::read(folder.path().join("out.json"))?)?;
        Ok(Self { folder, snapshot })
    }

    fn path(&self, output: &str) -> PathBuf {
        self.folder.path().join(output)
    }

    fn text(&self, output: &str) -> Result<String> {
        Ok(fs::read_to_string(self.path(output))?)
    }

    /// Returns exclusive times by stack, from the process in.
    fn folded(&self) -> Result<BTreeMap<Vec<String>, u64>> {
        let mut stacks = BTreeMap::new();
        for line in self.text("out.folded")?.lines() {
            let (stack, ns) = line.rsplit_once(' ').with_context(|| line.to_owned())?;
            let stack = stack.split(';').map(str::to_owned).collect();
            ensure!(stacks.insert(stack, ns.parse()?).is_none(), "twice: {line}");
        }
        Ok(stacks)
    }

    /// Returns the profile; `None`, with a message, where there is nothing to decode it.
    fn profile(&self) -> Result<Option<Profile>> {
        pprof::decoded(&self.path("out.pb.gz"))
    }

    /// Returns the values of all series by their names and labels; seconds as ns.
    fn metrics(&self) -> Result<BTreeMap<String, u64>> {
        let text = self.text("out.prom")?;
        let mut series = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').with_context(|| line.to_owned())?;
            let family = name.split('{').next().unwrap_or_default();
            let is_time =
                ["_seconds", "_seconds_total", "_seconds_sum"].iter().any(|end| family.ends_with(end));
            let value = if is_time { nanoseconds(value)? } else { value.parse()? };
            ensure!(series.insert(name.to_owned(), value).is_none(), "twice: {line}");
        }
        Ok(series)
    }

    /// Returns the name of a process.
    fn process(&self, pid: u32) -> &str {
        let row = self.snapshot.phases.iter().find(|row| row.pid == pid);
        row.map(|row| row.comm.as_str()).unwrap_or_default()
    }

    /// Checks that the folded stacks have the sums of the snapshot.
    fn check_folded(&self) -> Result<()> {
        let stacks = self.folded()?;
        let sum: u64 = self.snapshot.stacks.iter().map(|row| row.exclusive_ns).sum();
        assert_eq!(stacks.values().sum::<u64>(), sum);
        let found = summed(stacks.iter().map(|(stack, ns)| (stack[..stack.len() - 1].join(";"), *ns)));
        let expected = summed(self.snapshot.stacks.iter().map(|row| {
            let frames = row.path.iter().map(|frame| format!(";{frame}"));
            (format!("{}{}", self.process(row.pid), frames.collect::<String>()), row.exclusive_ns)
        }));
        assert_eq!(found, expected);
        let found = summed(stacks.iter().map(|(stack, ns)| {
            // Whatever part of the frame around it: a function's layer and phase.
            let tag = stack[stack.len() - 2].trim_end_matches(['!', '+']);
            (format!("{};{tag};{}", stack[0], stack[stack.len() - 1]), *ns)
        }));
        let expected = summed(self.snapshot.functions.iter().map(|row| {
            let (layer, phase) = (row.layer.code(), row.phase.code());
            (format!("{};{layer}_{phase};{}", self.process(row.pid), row.name), row.exclusive_ns)
        }));
        assert_eq!(found, expected);
        Ok(())
    }

    /// Checks that the profile has the sums of the snapshot, and the stacks of the folded ones.
    fn check_profile(&self, profile: &Profile) -> Result<()> {
        let rows = &self.snapshot.stacks;
        let sum = |place: usize| {
            profile.samples.iter().map(|sample| sample.values.get(place).copied().unwrap_or(0)).sum::<u64>()
        };
        assert_eq!(sum(0), rows.iter().map(|row| row.count).sum::<u64>());
        assert_eq!(sum(1), rows.iter().map(|row| row.exclusive_ns).sum::<u64>());
        assert_eq!(sum(2), self.snapshot.threads.iter().map(|row| row.on_cpu_ns).sum::<u64>());
        let stacks = summed(profile.samples.iter().map(|sample| (sample.stack.join(";"), sample.values[1])));
        let folded = summed(self.folded()?.into_iter().map(|(stack, ns)| (stack.join(";"), ns)));
        assert_eq!(stacks, folded);
        let types = [["sections", "count"], ["wall", "nanoseconds"], ["on_cpu", "nanoseconds"]];
        let count = if self.snapshot.threads.is_empty() { 2 } else { 3 };
        assert_eq!(profile.types, types[..count]);
        assert!(profile.samples.iter().all(|sample| sample.values.len() == count));
        assert_eq!((profile.modified, profile.shown_first.as_str()), (0, "wall"));
        assert_eq!(profile.duration, self.snapshot.window.length_ns());
        for sample in &profile.samples {
            assert_eq!(sample.labels.get("process"), sample.stack.first(), "{sample:?}");
            assert!(sample.labels.contains_key("pid"), "{sample:?}");
        }
        Ok(())
    }

    /// Checks that the metrics have the sums of the snapshot.
    fn check_metrics(&self) -> Result<()> {
        let metrics = self.metrics()?;
        let family = |name: &str| {
            summed(metrics.iter().filter_map(|(series, value)| {
                Some((series.strip_prefix(name)?.strip_prefix('{')?.strip_suffix('}')?.to_owned(), *value))
            }))
        };
        let phase = |row: &PhaseRow| {
            format!("process=\"{}\",layer=\"{}\",phase=\"{}\"", row.comm, row.layer.code(), row.phase.code())
        };
        let phases = |value: fn(&PhaseRow) -> u64| {
            summed(self.snapshot.phases.iter().map(|row| (phase(row), value(row))))
        };
        assert_eq!(family("nntrace_phase_duration_seconds_sum"), phases(|row| row.total_ns));
        assert_eq!(family("nntrace_phase_duration_seconds_count"), phases(|row| row.count));
        assert_eq!(family("nntrace_phase_exclusive_seconds_total"), phases(|row| row.exclusive_ns));
        let sum = |name: &str| family(name).values().sum::<u64>();
        let functions = &self.snapshot.functions;
        let total: u64 = functions.iter().map(|row| row.total_ns).sum();
        assert_eq!(sum("nntrace_function_duration_seconds_sum"), total);
        let exclusive: u64 = functions.iter().map(|row| row.exclusive_ns).sum();
        assert_eq!(sum("nntrace_function_exclusive_seconds_total"), exclusive);
        let length = self.snapshot.window.length_ns();
        let states = |of: &str, names: &[&str]| {
            names.iter().map(|name| sum(&format!("nntrace_{of}_{name}_seconds_total"))).sum::<u64>()
        };
        let of_cpus = states("cpu", &["idle", "running", "offline", "unknown"]);
        assert_eq!(of_cpus, length * self.snapshot.cpus.len() as u64);
        let of_clusters = states("cluster", &["idle", "active", "offline", "unknown"]);
        assert_eq!(of_clusters, length * self.snapshot.clusters.len() as u64);
        assert_eq!(states("cluster", &["running_cpus"]), of_clusters);
        assert_eq!(metrics["nntrace_run_duration_seconds"], length);
        Ok(())
    }

    fn check(&self) -> Result<()> {
        assert_eq!(self.snapshot.loss.records_dropped, 0);
        self.check_folded()?;
        self.check_metrics()?;
        self.profile()?.map_or(Ok(()), |profile| self.check_profile(&profile))
    }
}

fn fixtures() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
}

fn summed(values: impl IntoIterator<Item = (String, u64)>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    values.into_iter().for_each(|(key, value)| *sums.entry(key).or_default() += value);
    sums.retain(|_, sum| *sum > 0);
    sums
}

/// Reads decimal seconds.
fn nanoseconds(text: &str) -> Result<u64> {
    let (seconds, rest) = text.split_once('.').unwrap_or((text, "0"));
    ensure!(rest.len() <= 9, "{text} is not in whole ns");
    Ok(seconds.parse::<u64>()? * 1_000_000_000 + format!("{rest:0<9}").parse::<u64>()?)
}

#[test]
fn sums_are_those_of_the_snapshot() -> Result<()> {
    for fixture in [RECORDING, TRACE] {
        let outputs = Outputs::of(fixture, &[])?;
        assert!(outputs.snapshot.stacks.len() > 5 && outputs.snapshot.functions.len() > 10);
        outputs.check().with_context(|| fixture.to_owned())?;
    }
    Ok(())
}

#[test]
fn power_states_are_those_of_the_snapshot() -> Result<()> {
    let topology = fixtures().join("topology/juno.toml").display().to_string();
    let outputs = Outputs::of("power/juno.txt.zst", &["--topology", &topology])?;
    outputs.check_metrics()?;
    assert!(outputs.snapshot.clusters.len() == 2 && outputs.folded()?.is_empty());
    let metrics = outputs.metrics()?;
    for cpu in &outputs.snapshot.cpus {
        let labels = format!("{{cluster=\"{}\",cpu=\"{}\"", cpu.cluster, cpu.cpu);
        for row in &cpu.idle {
            let labels = format!("{labels},state=\"{}\",name=\"{}\"}}", row.state, row.name);
            assert_eq!(metrics[&format!("nntrace_cpu_idle_seconds_total{labels}")], row.ns);
            assert_eq!(metrics[&format!("nntrace_cpu_idle_entries_total{labels}")], row.hits);
        }
        for row in &cpu.running {
            let hertz = row.khz.map_or("unknown".into(), |khz| (u64::from(khz) * 1_000).to_string());
            let labels = format!("{labels},frequency_hertz=\"{hertz}\"}}");
            assert_eq!(metrics[&format!("nntrace_cpu_running_seconds_total{labels}")], row.ns);
        }
    }
    Ok(())
}

#[test]
fn a_percentile_of_the_buckets_is_that_of_the_snapshot() -> Result<()> {
    let outputs = Outputs::of(RECORDING, &[])?;
    let text = outputs.text("out.prom")?;
    for row in &outputs.snapshot.phases {
        let (layer, phase) = (row.layer.code(), row.phase.code());
        let series = format!(
            "nntrace_phase_duration_seconds_bucket{{process=\"{}\",layer=\"{layer}\",phase=\"{phase}\",le=\"",
            row.comm
        );
        let rank = (row.count * 99).div_ceil(100);
        let mut below = 0;
        let buckets = text.lines().filter_map(|line| line.strip_prefix(&series)?.split_once("\"} "));
        let mut bounds = buckets
            .filter(|(bound, _)| *bound != "+Inf")
            .map(|(bound, count)| anyhow::Ok((nanoseconds(bound)?, count.parse::<u64>()?)));
        let bound = loop {
            let (bound, count) = bounds.next().context("no section is longer than the last bound")??;
            if count >= rank {
                break bound;
            }
            below = bound;
        };
        let p99 = row.p99_ns.context("a percentile")?;
        // Times are known to three digits.
        assert!(p99 + p99 / 1_000 >= below && p99 <= bound + bound / 1_000, "{below} {p99} {bound}");
    }
    Ok(())
}

#[test]
fn labels_tell_accounts_and_iterations() -> Result<()> {
    let outputs = Outputs::of(RECORDING, &["--slowest", "10000"])?;
    let Some(profile) = outputs.profile()? else { return Ok(()) };
    let by_label = |label: &str, value: usize| {
        summed(
            profile
                .samples
                .iter()
                .filter_map(|sample| Some((sample.labels.get(label)?.clone(), sample.values[value]))),
        )
    };
    let accounts = || outputs.snapshot.accounts.iter().filter_map(|row| Some((row.account.clone()?, row)));
    assert_eq!(accounts().count(), 2);
    assert_eq!(by_label("account", 0), summed(accounts().map(|(account, row)| (account, row.count))));
    assert_eq!(by_label("account", 1), summed(accounts().map(|(account, row)| (account, row.exclusive_ns))));
    // The iterations of a function whose time is on no account: each has a sample of its own.
    let name = "classify";
    let found = summed(profile.samples.iter().filter_map(|sample| {
        let is_own = sample.stack.last().is_some_and(|frame| frame == name);
        Some((sample.labels.get("iteration").filter(|_| is_own)?.clone(), sample.values[1]))
    }));
    let iterations = outputs.snapshot.iterations.iter().flat_map(|root| &root.slowest);
    let expected = summed(iterations.flat_map(|row| {
        let functions = row.functions.iter().filter(|function| function.site.name == name);
        functions.map(|function| (row.iter.to_string(), function.exclusive_ns))
    }));
    assert_eq!(found, expected);
    assert!(expected.len() > 10);
    assert!(profile.time > 1_700_000_000_000_000_000, "{}", profile.time);
    Ok(())
}

#[test]
fn a_run_gives_the_same_bytes_again() -> Result<()> {
    for fixture in [RECORDING, TRACE] {
        let (one, two) = (Outputs::of(fixture, &[])?, Outputs::of(fixture, &[])?);
        for output in OUTPUTS {
            let bytes = |outputs: &Outputs| fs::read(outputs.path(output));
            assert!(bytes(&one)? == bytes(&two)? && !bytes(&one)?.is_empty(), "{fixture} {output}");
        }
    }
    Ok(())
}

/// Checks metrics by Prometheus's own checker.
fn promtool(program: &Path, metrics: &Path) -> Result<Output> {
    let mut command = Command::new(program);
    command.args(["check", "metrics"]).stdin(Stdio::from(fs::File::open(metrics)?));
    Ok(command.output()?)
}

#[test]
fn promtool_accepts_the_metrics() -> Result<()> {
    let Some(program) = wheels::promtool()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let model = folder.path().join("model.toml");
    fs::write(
        &model,
        "unit = \"mW\"\nenergy_unit = \"uJ\"\n[[cluster]]\nname = \"all\"\nopps = [{ mhz = 1000, core = 5 }]\n\
         idle = [{ name = \"WFI\", core = 1 }]\n",
    )?;
    let model = model.display().to_string();
    for (fixture, options) in [
        (RECORDING, &[][..]),
        (TRACE, &[]),
        ("power/one_frequency.txt", &["--cluster", "all=0-7", "--energy-model", &model]),
    ] {
        let outputs = Outputs::of(fixture, options)?;
        let checked = promtool(&program, &outputs.path("out.prom"))?;
        let found = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(checked.status.success() && found.is_empty(), "{fixture}: {found}");
        if !options.is_empty() {
            let text = outputs.text("out.prom")?;
            assert!(
                text.contains("\nnntrace_energy_joules_total{cluster=\"all\",part=\"cpu_idle\"} "),
                "{text}"
            );
        }
    }
    // It does find what is wrong.
    let bad = folder.path().join("bad.prom");
    fs::write(&bad, "# TYPE nntrace_marks counter\nnntrace_marks 1\n")?;
    assert!(!promtool(&program, &bad)?.status.success());
    Ok(())
}

#[test]
fn a_live_run_writes_them() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let workload = binaries::workload()?.display().to_string();
    let since_1970 = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let before = since_1970();
    let outputs = Outputs::run(&["--level", "sched"], &["--", &workload, "--quiet", "--inferences", "30"])?;
    let after = since_1970();
    assert!(!outputs.snapshot.threads.is_empty());
    outputs.check()?;
    if let Some(profile) = outputs.profile()? {
        let began = Duration::from_nanos(profile.time);
        assert!(before <= began && began <= after, "{before:?} {began:?} {after:?}");
    }
    Ok(())
}

#[test]
fn what_was_lost_is_in_stacks_without_a_function() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let flood = env!("CARGO_BIN_EXE_mark-flood");
    let outputs = Outputs::run(&["--ring-size", "4"], &["--", flood, "--marks", "400000"])?;
    assert!(outputs.snapshot.loss.records_dropped > 0);
    let stacks = outputs.folded()?;
    let sum: u64 = outputs.snapshot.stacks.iter().map(|row| row.exclusive_ns).sum();
    assert_eq!(stacks.values().sum::<u64>(), sum);
    let is_bare = |stack: &Vec<String>| stack.last().is_some_and(|frame| frame.parse::<StackFrame>().is_ok());
    assert!(stacks.keys().any(is_bare), "{stacks:?}");
    outputs.check_metrics()?;
    outputs.profile()?.map_or(Ok(()), |profile| outputs.check_profile(&profile))
}
