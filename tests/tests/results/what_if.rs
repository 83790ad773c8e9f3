//! Predictions by the command: traces whose times can be computed by hand, and a recording of a real pipeline.

#![expect(clippy::float_cmp, reason = "times are whole ns, which a float has exactly")]

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};
use nntrace_tests::{
    child::{Child, Ended},
    live,
    power::Event,
    profiler::Profiler,
    recording::Recording,
    trace::{line, power_line},
};
use serde_json::Value;
use tempfile::TempDir;

/// First instant of the traces, ns.
const BEGIN: u64 = 1_000_000_000;

/// Files of a trace.
struct Traces {
    folder: TempDir,
    files: Vec<PathBuf>,
}

impl Traces {
    fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut files = Vec::new();
        for (number, text) in texts.into_iter().enumerate() {
            let file = folder.path().join(format!("{number}.txt"));
            fs::write(&file, text)?;
            files.push(file);
        }
        Ok(Self { folder, files })
    }

    /// Writes lines of text by their times.
    fn of(mut lines: Vec<(u64, String)>) -> Result<Self> {
        // Stable: what happens in one instant stays in its order.
        lines.sort_by_key(|(time, _)| *time);
        let text: String = lines.into_iter().map(|(_, line)| line + "\n").collect();
        Self::new([&*text])
    }

    fn run(&self, arguments: &[&str]) -> Result<Ended> {
        let mut profiler = Profiler::new()?.args(["what-if"]).args(&self.files).args(arguments);
        Child::run(profiler.command().current_dir(self.folder.path()))
    }

    fn text(&self, arguments: &[&str]) -> Result<String> {
        Ok(String::from_utf8(self.run(arguments)?.expect_code(0)?.stdout)?)
    }

    fn answer(&self, arguments: &[&str]) -> Result<Value> {
        json(self.run(&[arguments, &["--json"]].concat())?)
    }

    /// Returns recorded and predicted makespan, ns.
    fn makespans(&self, arguments: &[&str]) -> Result<(f64, f64)> {
        let answer = self.answer(arguments)?;
        Ok((number(&answer, "/makespan_ns/recorded")?, number(&answer, "/makespan_ns/predicted")?))
    }
}

fn json(ended: Ended) -> Result<Value> {
    Ok(serde_json::from_slice(&ended.expect_code(0)?.stdout)?)
}

fn number(answer: &Value, pointer: &str) -> Result<f64> {
    answer.pointer(pointer).and_then(Value::as_f64).with_context(|| format!("no {pointer} in {answer}"))
}

/// Returns how many edges of a kind there are, and the trust in them.
fn edges(answer: &Value, kind: &str) -> Vec<(String, u64)> {
    let all = answer["edges"].as_array().into_iter().flatten();
    let of_kind = all.filter(|edges| edges["kind"] == kind);
    of_kind
        .map(|edges| (edges["trust"].as_str().unwrap_or("").to_owned(), edges["count"].as_u64().unwrap_or(0)))
        .collect()
}

fn mark(lines: &mut Vec<(u64, String)>, time: u64, tid: u32, payload: &str) {
    let payload = match payload.split_once('|') {
        Some((kind, rest)) => format!("{kind}|7|{rest}"),
        None => format!("{payload}|7"),
    };
    lines.push((time, line(BEGIN + time, tid, 7, &payload)));
}

/// A pipeline of two threads (8 and 9) and a queue with room for two items, 20 items of 100 and 400 us, as early as can be. An
/// item is taken 1 us after it was given, and a sender goes on 2 us after there is room.
fn pipeline(attributes: &str, handles: bool) -> Vec<(u64, String)> {
    let (a, b, items) = (100_000, 400_000, 20_usize);
    let mut lines = Vec::new();
    let mut receipts: Vec<u64> = Vec::new();
    let (mut sender, mut receiver) = (0, 0);
    for item in 0..items {
        mark(&mut lines, sender, 8, &format!("B|[NN_LA_PE]load#iter={item}"));
        mark(&mut lines, sender + a, 8, "E");
        let room = item.checked_sub(2).map_or(0, |earlier| receipts[earlier] + 2_000);
        let sent = (sender + a).max(room);
        let waited = receiver < sent;
        let received = if waited { sent + 1_000 } else { receiver };
        if handles {
            mark(&mut lines, sent, 8, &format!("I|nn.send#h={item}{attributes}"));
            mark(&mut lines, received, 9, &format!("I|nn.recv#h={item}"));
        }
        mark(&mut lines, received, 9, &format!("B|[NN_LR_PE]infer#iter={item}"));
        mark(&mut lines, received + b, 9, "E");
        receipts.push(received);
        (sender, receiver) = (sent, received + b);
    }
    lines
}

#[test]
fn a_bounded_queue_has_the_period_of_its_slowest_stage() -> Result<()> {
    for (attributes, trust, confidence) in [("#cap=2", "explicit", "explicit"), ("", "inferred", "mixed")] {
        let traces = Traces::of(pipeline(attributes, true))?;
        let at = |speeds: &[&str]| {
            let arguments: Vec<&str> = speeds.iter().flat_map(|speed| ["--speed", speed]).collect();
            traces.makespans(&arguments)
        };
        // One load, a hand-over, and all of the second stage.
        let recorded = 100_000.0 + 1_000.0 + 20.0 * 400_000.0;
        assert_eq!(at(&["infer=1x"])?, (recorded, recorded));
        assert_eq!(at(&["infer=2x"])?.1, 101_000.0 + 20.0 * 200_000.0);
        // Off the path, but for the first item.
        assert_eq!(at(&["load=2x"])?.1, recorded - 50_000.0);
        assert_eq!(at(&["LA=inf"])?.1, recorded - 100_000.0);
        // The first stage becomes the slowest.
        assert_eq!(at(&["infer=8x"])?.1, 20.0 * 100_000.0 + 1_000.0 + 50_000.0);
        assert_eq!(at(&["LR_PE=0.5x"])?.1, recorded + 20.0 * 400_000.0);
        let answer = traces.answer(&["--speed", "infer=2x"])?;
        assert_eq!(edges(&answer, "hand-over"), [("explicit".into(), 20)]);
        assert_eq!(edges(&answer, "back-pressure"), [(trust.into(), 18)], "{answer}");
        assert_eq!(answer["confidence"], confidence);
        assert_eq!(number(&answer, "/makespan_ns/modelled")?, recorded);
        // Full: a load, its wait, two in the queue, and the one that is worked on.
        assert_eq!(number(&answer, "/iterations/count")?, 20.0);
        assert_eq!(number(&answer, "/iterations/per_second/recorded")?, 20e9 / recorded);
        assert!(answer["cpus"].is_null());
        assert_eq!((&answer["recorded_violations"], &answer["predicted_violations"]), (&0.into(), &0.into()));
    }
    Ok(())
}

#[test]
fn the_order_of_files_changes_nothing() -> Result<()> {
    let (first, second): (Vec<_>, Vec<_>) =
        pipeline("#cap=2", true).into_iter().partition(|(_, line)| line.contains("worker-8 "));
    let text = |lines: Vec<(u64, String)>| lines.into_iter().map(|(_, line)| line + "\n").collect::<String>();
    let (first, second) = (text(first), text(second));
    let arguments = ["--speed", "infer=3x", "--rank"];
    let one = Traces::new([&*first, &*second])?.answer(&arguments)?;
    let other = Traces::new([&*second, &*first])?.answer(&arguments)?;
    assert_eq!(one, other);
    assert_eq!(one, Traces::of(pipeline("#cap=2", true))?.answer(&arguments)?);
    Ok(())
}

#[test]
fn a_ranking_begins_with_the_bottleneck() -> Result<()> {
    let traces = Traces::of(pipeline("#cap=2", true))?;
    let answer = traces.answer(&["--rank"])?;
    let names: Vec<&str> =
        answer["ranking"].as_array().into_iter().flatten().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, ["LR_PE:infer", "LA_PE:load"]);
    // After a second stage that takes no time, the first one is next.
    let answer = traces.answer(&["--rank", "--speed", "infer=inf"])?;
    assert_eq!(answer["ranking"][0]["name"], "LA_PE:load");
    let text = traces.text(&["--rank"])?;
    assert!(text.contains("first: LR_PE:infer: twice as fast, the makespan changes by -49"), "{text}");
    Ok(())
}

#[test]
fn without_hand_overs_nothing_is_claimed_for_certain() -> Result<()> {
    let traces = Traces::of(pipeline("", false))?;
    let answer = traces.answer(&["--speed", "infer=8x"])?;
    assert_eq!(answer["confidence"], "inferred");
    let text = traces.text(&["--speed", "infer=8x"])?;
    assert!(text.contains("no edge between 2 threads is known"), "{text}");
    assert!(text.contains("confidence: inferred"), "{text}");
    Ok(())
}

#[test]
fn calls_of_interfaces_are_inferred_and_wait_for_their_replies() -> Result<()> {
    let mut lines = Vec::new();
    for call in 0..10 {
        let begin = call * 1_000_000;
        let name = "HIDL::IPreparedModel::executeSynchronously";
        mark(&mut lines, begin, 8, "B|[NN_LR_PE]run");
        mark(&mut lines, begin + 200_000, 8, &format!("B|{name}::client"));
        lines.push((begin + 250_000, line(BEGIN + begin + 250_000, 90, 90, &format!("B|90|{name}::server"))));
        lines.push((begin + 250_000, line(BEGIN + begin + 250_000, 90, 90, "B|90|[NN_LD_PE]execute")));
        lines.push((begin + 850_000, line(BEGIN + begin + 850_000, 90, 90, "E|90")));
        lines.push((begin + 850_000, line(BEGIN + begin + 850_000, 90, 90, "E|90")));
        mark(&mut lines, begin + 900_000, 8, "E");
        mark(&mut lines, begin + 1_000_000, 8, "E");
    }
    let traces = Traces::of(lines)?;
    let answer = traces.answer(&["--speed", "driver=2x", "--iteration-root", "run"])?;
    assert_eq!(answer["confidence"], "inferred");
    assert_eq!(edges(&answer, "hand-over"), [("inferred".into(), 10)]);
    assert_eq!(edges(&answer, "reply"), [("inferred".into(), 10)]);
    assert_eq!(number(&answer, "/makespan_ns/recorded")?, 1e7);
    assert_eq!(number(&answer, "/makespan_ns/predicted")?, 1e7 - 10.0 * 300_000.0);
    assert_eq!(number(&answer, "/iterations/p50_ns/predicted")?, 700_000.0);
    assert_eq!(number(&answer, "/iterations/p95_ns/recorded")?, 1_000_000.0);
    // Both latencies of a call stay.
    assert_eq!(traces.makespans(&["--speed", "LD=inf", "--speed", "LR=inf"])?.1, 10.0 * 100_000.0 - 0.0);
    Ok(())
}

#[test]
fn locks_that_marks_name_are_held_by_one_at_a_time() -> Result<()> {
    let mut lines = Vec::new();
    // Two threads, each 50 us outside and 100 us inside, in turn.
    let (mut free, mut ends) = (0, [0, 0]);
    for round in 0..10 {
        let thread = round % 2;
        let tid = 8 + thread as u32;
        let begin: u64 = ends[thread];
        mark(&mut lines, begin, tid, "B|[NN_LA_PE]outside");
        mark(&mut lines, begin + 50_000, tid, "E");
        let held = free.max(begin + 50_000);
        mark(&mut lines, held, tid, "B|[NN_LU_PE]inside#lock=table");
        mark(&mut lines, held + 100_000, tid, "E");
        free = held + 100_000;
        ends[thread] = free;
    }
    let traces = Traces::of(lines)?;
    let answer = traces.answer(&["--speed", "inside=2x"])?;
    assert_eq!(
        (edges(&answer, "lock"), &answer["confidence"]),
        (vec![("explicit".into(), 9)], &"explicit".into())
    );
    assert_eq!(traces.makespans(&["--speed", "outside=inf"])?, (1_050_000.0, 1_000_000.0));
    assert_eq!(traces.makespans(&["--speed", "inside=2x"])?.1, 550_000.0);
    assert_eq!(traces.makespans(&["--speed", "inside=10x"])?.1, 5.0 * 60_000.0 + 10_000.0);
    Ok(())
}

#[test]
fn input_that_comes_by_the_clock_keeps_its_times() -> Result<()> {
    let mut lines = Vec::new();
    // A camera every ms, and 300 us of work for each picture.
    for picture in 0..10_u64 {
        let begin = picture * 1_000_000;
        mark(&mut lines, begin, 8, "B|[NN_LA_PE]camera");
        mark(&mut lines, begin + 10_000, 8, &format!("I|nn.send#h={picture}"));
        mark(&mut lines, begin + 10_000, 8, "E");
        mark(&mut lines, begin + 10_000, 9, &format!("I|nn.recv#h={picture}"));
        mark(&mut lines, begin + 10_000, 9, &format!("B|[NN_LR_PE]infer#iter={picture}"));
        mark(&mut lines, begin + 310_000, 9, "E");
    }
    let traces = Traces::of(lines)?;
    let answer = traces.answer(&["--speed", "infer=2x"])?;
    assert_eq!(answer["arrivals"], "open");
    assert_eq!(number(&answer, "/makespan_ns/predicted")?, 9_160_000.0);
    assert_eq!(number(&answer, "/iterations/p50_ns/predicted")?, 150_000.0);
    // A slower one falls behind, and pictures wait.
    assert_eq!(traces.makespans(&["--speed", "infer=0.25x"])?.1, 10_000.0 + 10.0 * 1_200_000.0);
    // A camera that takes no time still has its pace, unless pictures come when it is ready.
    assert_eq!(traces.makespans(&["--speed", "camera=inf"])?.1, 9_300_000.0);
    let closed = ["--speed", "camera=inf", "--speed", "unmarked=inf", "--arrivals", "closed"];
    assert_eq!(traces.makespans(&closed)?.1, 10.0 * 300_000.0);
    Ok(())
}

/// Adds the events of a switch from one thread to another on a CPU; 0 is the idle one.
fn switch(lines: &mut Vec<(u64, String)>, time: u64, cpu: u32, prev: (u32, &str), next: u32) {
    let at = BEGIN + time;
    let (seconds, fraction) = (at / 1_000_000_000, at % 1_000_000_000);
    let (tid, state) = prev;
    let text = format!(
        "     worker-{tid} (    7) [{cpu:03}] d..2. {seconds}.{fraction:09}: sched_switch: prev_comm=worker prev_pid={tid} \
         prev_prio=120 prev_state={state} ==> next_comm=worker next_pid={next} next_prio=120"
    );
    lines.push((time, text));
}

fn wake(lines: &mut Vec<(u64, String)>, time: u64, cpu: u32, by: u32, tid: u32) {
    let at = BEGIN + time;
    let (seconds, fraction) = (at / 1_000_000_000, at % 1_000_000_000);
    let text = format!(
        "     worker-{by} (    7) [{cpu:03}] d..4. {seconds}.{fraction:09}: sched_wakeup: comm=worker pid={tid} prio=120 \
         target_cpu=001"
    );
    lines.push((time, text));
}

/// Thread 8 works on CPU 0 for 400 us, 200 of them before it wakes thread 9, which works on CPU 1 for another 300, in a cluster
/// of its own.
fn woken() -> Vec<(u64, String)> {
    let mut lines = Vec::new();
    for cpu in [0, 1] {
        lines.push((0, power_line(BEGIN, cpu, Event::Idle(0))));
        lines.push((0, power_line(BEGIN, cpu, Event::Idle(u32::MAX))));
    }
    lines.push((0, power_line(BEGIN, 0, Event::Frequency(1_000_000))));
    lines.push((0, power_line(BEGIN, 1, Event::Frequency(2_000_000))));
    switch(&mut lines, 0, 1, (0, "R"), 9);
    switch(&mut lines, 0, 0, (0, "R"), 8);
    mark(&mut lines, 0, 8, "B|[NN_LA_PE]first");
    switch(&mut lines, 1_000, 1, (9, "S"), 0);
    mark(&mut lines, 200_000, 8, "E");
    mark(&mut lines, 200_000, 8, "B|[NN_LA_PE]second");
    wake(&mut lines, 300_000, 0, 8, 9);
    switch(&mut lines, 310_000, 1, (0, "R"), 9);
    mark(&mut lines, 310_000, 9, "B|[NN_LR_PE]third");
    mark(&mut lines, 400_000, 8, "E");
    switch(&mut lines, 400_000, 0, (8, "S"), 0);
    mark(&mut lines, 610_000, 9, "E");
    switch(&mut lines, 610_000, 1, (9, "S"), 0);
    lines
}

#[test]
fn wake_ups_are_inferred_and_never_certain() -> Result<()> {
    let traces = Traces::of(woken())?;
    let clusters = ["--cluster", "little=0", "--cluster", "big=1"];
    let answer = traces.answer(&[&["--speed", "first=2x"][..], &clusters].concat())?;
    assert_eq!(edges(&answer, "wake-up"), [("inferred".into(), 1)], "{answer}");
    assert_eq!((&answer["confidence"], &answer["cpus"]), (&"inferred".into(), &2.into()));
    // The 10 us for which the woken thread waited for its CPU were not for a thread of ours.
    assert_eq!(number(&answer, "/makespan_ns/recorded")?, 610_000.0);
    assert_eq!(number(&answer, "/makespan_ns/modelled")?, 610_000.0);
    assert_eq!(number(&answer, "/makespan_ns/predicted")?, 510_000.0);
    let unlimited = traces.makespans(&["--cpus", "unlimited", "--speed", "third=3x"])?;
    assert_eq!(unlimited, (610_000.0, 410_000.0));
    // On one CPU, all comes one after the other: also the microsecond that the other thread had before it slept,
    // and the time that it waited to wake up.
    assert_eq!(traces.makespans(&["--cpus", "1"])?.1, 711_000.0);
    let text = traces.text(&["--speed", "first=2x"])?;
    assert!(text.contains("inferred, not known: wake-ups (1)"), "{text}");
    Ok(())
}

#[test]
fn frequencies_scale_what_ran_on_the_cluster() -> Result<()> {
    let traces = Traces::of(woken())?;
    let at = |frequencies: &[&str]| {
        let clusters = ["--cluster", "little=0", "--cluster", "big=1", "--cpus", "unlimited"];
        traces.makespans(&[&clusters, frequencies].concat())
    };
    assert_eq!(at(&["--freq", "little=1000000"])?, (610_000.0, 610_000.0));
    assert_eq!(at(&["--freq", "little=2000000"])?.1, 460_000.0);
    assert_eq!(at(&["--freq", "big=1000000"])?.1, 910_000.0);
    assert_eq!(
        at(&["--freq", "little=2000000", "--freq", "big=1000000", "--speed", "third=2x"])?.1,
        460_000.0
    );
    let refused = traces.run(&["--freq", "huge=1000000"])?.expect_code(2)?.stderr;
    assert!(refused.contains("no cluster huge"), "{refused}");
    let marks = Traces::of(pipeline("", true))?;
    let refused = marks.run(&["--freq", "big=1000000"])?.expect_code(2)?.stderr;
    assert!(refused.contains("--freq needs"), "{refused}");
    Ok(())
}

#[test]
fn names_of_nothing_and_of_several_things_are_refused() -> Result<()> {
    let traces = Traces::of(pipeline("", true))?;
    for (arguments, expected) in [
        (&["--speed", "infr=2x"][..], "close to it: infer"),
        (&["--speed", "LD=2x"], "nothing in the run is named LD"),
        (&["--speed", "infer=0x"], "such as driver=2x"),
        (&["--freq", "big"], "such as big=1800000"),
        (&["--cpus", "0"], "from 1 to 4096"),
        (&[], "name it with --speed"),
    ] {
        let refused = traces.run(arguments)?.expect_code(2)?.stderr;
        assert!(refused.contains(expected), "{arguments:?}: {refused}");
    }
    let mut lines = pipeline("", true);
    mark(&mut lines, 9_000_000, 9, "B|[NN_LD_PE]infer");
    mark(&mut lines, 9_000_001, 9, "E");
    let refused = Traces::of(lines)?.run(&["--speed", "infer=2x"])?.expect_code(2)?.stderr;
    assert!(refused.contains("LR_PE:infer, LD_PE:infer"), "{refused}");
    Ok(())
}

#[test]
fn too_many_events_are_refused_with_the_room_that_they_need() -> Result<()> {
    let mut lines = Vec::new();
    for section in 0..20_000 {
        mark(&mut lines, section * 100, 8, "B|[NN_LA_PE]short");
        mark(&mut lines, section * 100 + 50, 8, "E");
    }
    let traces = Traces::of(lines)?;
    let refused = traces.run(&["--speed", "short=2x", "--memory", "8M"])?.expect_code(1)?.stderr;
    assert!(refused.contains("give 13M with --memory"), "{refused}");
    assert_eq!(traces.makespans(&["--speed", "short=2x", "--memory", "13M"])?, (1_999_950.0, 1_499_950.0));
    let empty = Traces::new([&*line(BEGIN, 8, 7, "B|7|nothing of ours")])?;
    let refused = empty.run(&["--rank"])?.expect_code(1)?.stderr;
    assert!(refused.contains("no section with a layer and a phase ended"), "{refused}");
    Ok(())
}

/// A hand-over that was taken before it was given is left out, and counted, in the prediction too.
#[test]
fn a_hand_over_back_in_time_is_a_violation() -> Result<()> {
    let mut lines = pipeline("#cap=2", true);
    mark(&mut lines, 9_000_000, 9, "I|nn.recv#h=77");
    mark(&mut lines, 9_001_000, 8, "I|nn.send#h=77");
    let traces = Traces::of(lines)?;
    let answer = traces.answer(&["--speed", "load=1x"])?;
    assert_eq!((&answer["recorded_violations"], &answer["predicted_violations"]), (&1.into(), &1.into()));
    let text = traces.text(&["--speed", "load=1x"])?;
    assert!(text.contains("edges that lead backwards in recorded time are left out (1)"), "{text}");
    Ok(())
}

#[test]
fn a_recorded_pipeline_is_predicted() -> Result<()> {
    let Some(_live) = live::enter()? else { return Ok(()) };
    let program = env!("CARGO_BIN_EXE_pipeline");
    let items = 60;
    for (level, options) in [("marks", &[][..]), ("sched", &[]), ("sched", &["--no-room"])] {
        let command = [&[program, "--items", "60", "--work", "20000,60000"], options].concat();
        let recording = Recording::of(&["--level", level], command)?;
        let answer = |arguments: &[&str]| {
            let mut profiler =
                Profiler::new()?.args(["what-if", "--json"]).args([recording.path()]).args(arguments);
            json(Child::run(profiler.command())?)
        };
        let same = answer(&["--speed", "LR_PE=1x", "--cpus", "unlimited"])?;
        assert_eq!(same["makespan_ns"]["predicted"], same["makespan_ns"]["recorded"], "{level}: {same}");
        assert_eq!(edges(&same, "hand-over"), [("explicit".into(), items)], "{level}");
        assert_eq!(
            (&same["recorded_violations"], number(&same, "/iterations/count")?),
            (&0.into(), items as f64)
        );
        if options.is_empty() {
            assert_eq!(edges(&same, "back-pressure"), [("explicit".into(), items - 4)], "{level}");
        }
        // Faster is never longer, and half the speed adds the work of the stage.
        let faster = answer(&["--speed", "stage_b=2x", "--cpus", "unlimited"])?;
        assert!(number(&faster, "/makespan_ns/change")? < 0.0, "{level}: {faster}");
        let curve = faster["curve"].as_array().context("no curve")?;
        let makespans: Vec<u64> = curve.iter().filter_map(|point| point["makespan_ns"].as_u64()).collect();
        assert!(makespans.len() == 7 && makespans.is_sorted_by(|a, b| a >= b), "{level}: {makespans:?}");
        let slower = answer(&["--speed", "stage_b=0.5x", "--cpus", "unlimited"])?;
        assert!(number(&slower, "/makespan_ns/change")? > 0.0, "{level}: {slower}");
        let on_cpus = answer(&["--rank", "--cpus", "2"])?;
        assert_eq!((&on_cpus["cpus"], on_cpus["ranking"].as_array().map(Vec::len)), (&2.into(), Some(2)));
        if level == "sched" {
            // The main thread waits for the others, which only wake-ups show.
            assert_ne!(same["confidence"], "inferred", "{same}");
        }
    }
    Ok(())
}
