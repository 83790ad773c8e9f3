//! `explain`: a run on one page, of a command, of a process, of files.

use std::{fmt::Write as _, fs, path::Path, process::Command};

use anyhow::{Context as _, Result};
use nntrace_tests::{
    binaries,
    child::{Child, Ended},
    live,
    profiler::Profiler,
};
use serde_json::Value;

fn explain(words: &[&str]) -> Result<Ended> {
    Child::run(Profiler::new()?.args(["explain"]).args(words).command())
}

fn json(ended: &Ended) -> Result<Value> {
    // The output of a command comes before.
    let text = ended.text();
    serde_json::from_str(text.lines().last().context("no line")?).with_context(|| text.clone())
}

/// Writes a trace of a driver that is slow once, on two CPUs.
fn trace(folder: &Path) -> Result<String> {
    let mut text = String::from("# tracer: nop\n");
    let mut line = |us: u64, task: &str, cpu: u32, event: &str| {
        let (seconds, us) = (us / 1_000_000, us % 1_000_000);
        let _ = writeln!(text, "{task} [{cpu:03}] d..1. {seconds}.{us:06}: {event}");
    };
    let (app, idle) = ("app-20 (20)", "<idle>-0 (-----)");
    line(1_000_000, idle, 0, "cpu_frequency: state=1200000 cpu_id=0");
    line(1_000_000, idle, 1, "cpu_idle: state=1 cpu_id=1");
    for run in 0..10 {
        let begin = 1_001_000 + run * 20_000;
        let slow = if run == 6 { 8_000 } else { 1_000 };
        line(begin, idle, 0, "cpu_idle: state=4294967295 cpu_id=0");
        line(
            begin,
            idle,
            0,
            "sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=app next_pid=20 next_prio=120",
        );
        line(begin, app, 0, "tracing_mark_write: B|20|[NN_LR_PE]infer");
        line(begin + 500, app, 0, "tracing_mark_write: B|20|[NN_LD_PE]conv");
        line(begin + 500 + slow, app, 0, "tracing_mark_write: E|20");
        line(begin + 1_000 + slow, app, 0, "tracing_mark_write: E|20");
        line(
            begin + 1_000 + slow,
            app,
            0,
            "sched_switch: prev_comm=app prev_pid=20 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120",
        );
        line(begin + 1_000 + slow, idle, 0, "cpu_idle: state=1 cpu_id=0");
    }
    let path = folder.join("trace.txt");
    fs::write(&path, text)?;
    Ok(path.display().to_string())
}

const PAGE: &str = "\
trace.txt: 183 ms
LR_PE:infer ended 10 times, 54.6 a second: p50 2.01 ms, p99 9.00 ms, max 9.00 ms

where the time went
   share exclusive    count      p50      p99      max  function
   63.0%   17.0 ms       10  1.00 ms  8.00 ms  8.00 ms  LD_PE conv
   37.0%   10.0 ms       10  2.01 ms  9.00 ms  9.00 ms  LR_PE infer

why LR_PE:infer, which takes most time: 10 executions
  slow           1   9.00 ms on average, 9.00 ms to 9.00 ms
  typical        3   2.00 ms on average, 2.00 ms to 2.00 ms
   longer by   share  certainty because of
     7.00 ms    100%  measured  more cycles in each call of LD_PE:conv
     7.00 ms    100%  in all
note: one slow execution only: it may be chance

where operators ran
  a driver ran 1.0 parts a run: 100% of operators' time
   share      time     a run  operators  parts     calls  processor  provider
    100%   17.0 ms   1.70 ms          0      1        10  -          (a driver)
  outside of operators: 1.00 ms a run, 37.0% of the runs

where it ran
  1 thread: on CPU 27.0 ms, waiting for a CPU 0 ns, asleep 155 ms, not known 1.00 ms
  cluster little, 2 CPUs: active 14.8% (requested: 1.20 GHz on average), idle 85.2%

next
  nntrace-bpf why trace.txt                        every cause, and those of another function with --of
  nntrace-bpf export trace.txt -o run.html         every section, in a browser
  nntrace-bpf what-if trace.txt --speed driver=2x  the run with faster parts
  nntrace-bpf replay trace.txt                     all tables: layers and phases, CPUs, clusters
  --energy-model FILE                              energy; `nntrace-bpf energy-model init` writes a model
note: context switches, but no sched_waking and no sched_wakeup in the trace: waiting for a CPU after a sleep counts as sleeping
";

#[test]
fn a_trace_on_one_page() -> Result<()> {
    let folder = tempfile::tempdir()?;
    trace(folder.path())?;
    let mut profiler = Profiler::new()?.args(["explain", "trace.txt", "--cluster", "little=0-1"]);
    let page = Child::run(profiler.command().current_dir(folder.path()))?.expect_code(0)?.text();
    assert_eq!(page, PAGE, "{page}");
    Ok(())
}

#[test]
fn a_trace_without_marks_has_the_cpus_alone() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("power.txt");
    let idle = |us: u32, state: u32| {
        format!("<idle>-0 (-----) [000] d..1. 1.{us:06}: cpu_idle: state={state} cpu_id=0\n")
    };
    fs::write(&file, idle(0, 1) + &idle(4_000, u32::MAX) + &idle(8_000, 1))?;
    let file = file.display().to_string();
    let page = explain(&[&file])?.expect_code(0)?.text();
    assert!(page.contains("\nno marked section ended\n") && page.contains("active 50.0%"), "{page}");
    assert!(!page.contains("why"), "{page}");
    let page = json(&explain(&[&file, "--json"])?.expect_code(0)?)?;
    assert_eq!((&page["work"], &page["why"], &page["energy"]), (&Value::Null, &Value::Null, &Value::Null));
    Ok(())
}

#[test]
fn marks_that_a_program_writes_itself_are_explained() -> Result<()> {
    let Some(_live) = live::enter_shared()? else { return Ok(()) };
    let script = "exec 3> /sys/kernel/tracing/trace_marker
        for run in 1 2 3 4 5 6; do printf 'B|%d|[NN_LR_PE]infer' $$ >&3; printf 'E|%d' $$ >&3; done";
    let page = explain(&["--marks", "syscall", "--", "sh", "-c", script])?.expect_code(0)?.text();
    assert!(page.contains("\nLR_PE:infer ended 6 times"), "{page}");
    assert!(page.contains("why LR_PE:infer, which takes most time: 6 executions"), "{page}");
    Ok(())
}

const PLACES: &str = "\
trace.txt

app (20): 10 runs of models, 2.70 ms on average
  a driver ran 1.0 parts a run: 100% of operators' time

   share      time     a run  operators  parts     calls  processor  provider
    100%   17.0 ms   1.70 ms          0      1        10  -          (a driver)
  outside of operators: 1.00 ms a run, 37.0% of the runs

   share      time     calls      mean       max  processor  operator
    100%   17.0 ms        10   1.70 ms   8.00 ms  -          conv
";

#[test]
fn where_has_the_operators_of_a_trace() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = trace(folder.path())?;
    let places = |words: &[&str]| Child::run(Profiler::new()?.args(["where", &file]).args(words).command());
    let text = places(&[])?.expect_code(0)?.text();
    assert!(text.starts_with(PLACES), "{text}");
    let page = json(&places(&["--json"])?.expect_code(0)?)?;
    assert_eq!((&page["schema"], &page["schema_version"]), (&"nntrace-where".into(), &1.into()));
    let process = &page["processes"][0];
    assert_eq!((&process["runs"], &process["runs_ns"]), (&10.into(), &27_000_000.into()));
    assert_eq!(process["outside_operators_ns"], 10_000_000);
    assert_eq!(process["operators"][0]["processor"], Value::Null);
    // `explain` has the same.
    assert_eq!(json(&explain(&[&file, "--json"])?.expect_code(0)?)?["placement"]["processes"][0], *process);
    Ok(())
}

#[test]
fn command_lines_without_a_run_are_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = trace(folder.path())?;
    for (words, reason) in [
        (&[][..], "required"),
        (&[&*file, "--pid", "1"], "cannot be used with"),
        (&[&*file, "-o", "x"], "cannot be used with"),
        (&[&*file, "--of", "infre"], "close to it: infer"),
    ] {
        let ended = explain(words)?.expect_code(2)?;
        assert!(ended.stderr.contains(reason), "{words:?}: {}", ended.stderr);
    }
    Ok(())
}

#[test]
fn a_command_is_recorded_and_its_slow_run_has_a_cause() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (program, kept) = (binaries::helper("slow-runs")?, folder.path().join("kept"));
    let (program, kept) = (program.display().to_string(), kept.display().to_string());
    let ended = explain(&["--json", "-o", &kept, "--", &program, "rival"])?.expect_code(0)?;
    let page = json(&ended)?;
    assert_eq!(page["run"], format!("{program} rival"), "{page}");
    assert_eq!((&page["work"]["function"], &page["work"]["count"]), (&"LR_PE:infer".into(), &10.into()));
    let cause = &page["why"]["parts"][0];
    assert_eq!(cause["cause"], "wait-for-cpu", "{page}");
    let text = cause["text"].as_str().context("a cause has a text")?;
    assert!(text.contains("that slow-runs ("), "{text}");
    assert!(page["threads"]["runnable_ns"].as_u64() >= Some(100_000_000), "{page}");
    // The recording says the same.
    let again = json(&explain(&["--json", &kept])?.expect_code(0)?)?;
    for key in ["run", "window_ns", "work", "functions", "threads", "clusters", "why"] {
        assert_eq!(again[key], page[key], "{key}");
    }
    assert!(ended.stderr.is_empty(), "{}", ended.stderr);
    Ok(())
}

#[test]
fn without_a_folder_nothing_is_left_and_the_status_is_the_command_s() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let words = |more: &[&str]| -> Result<Profiler> {
        let profiler = Profiler::new()?.args(["explain"]).args(more);
        Ok(profiler.env("TMPDIR", &folder.path().display().to_string()))
    };
    let ended = Child::run(words(&["--", "sh", "-c", "exit 7"])?.command())?.expect_code(7)?;
    assert!(ended.text().contains("no marked section ended"), "{}", ended.text());
    let sleep = Child::start(Command::new("sleep").arg("100"))?;
    let pid = sleep.pid().to_string();
    let ended = Child::run(words(&["--pid", &pid, "-d", "200ms"])?.command())?.expect_code(0)?;
    assert!(ended.text().starts_with(&format!("process {pid}: 2")), "{}", ended.text());
    drop(sleep);
    // A signal ends the run, and the page is there.
    let runs = ["--", "sh", "-c", "echo it runs >&2; exec sleep 100"];
    let profiler = Child::start(words(&runs)?.command())?;
    profiler.error_text("it runs")?;
    profiler.signal(nix::sys::signal::Signal::SIGINT)?;
    let ended = profiler.wait()?;
    assert!(ended.text().contains("where it ran"), "{} {}", ended.text(), ended.stderr);
    assert_eq!(fs::read_dir(folder.path())?.count(), 0, "something is left");
    Ok(())
}
