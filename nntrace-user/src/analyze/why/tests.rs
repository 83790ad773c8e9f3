//! Traces by hand and at random, and why executions in them were slow.

mod causes;
mod random;
mod recorded;

use std::fs;

use tempfile::NamedTempFile;

use super::{Answer, Options};
use crate::{
    analyze::run_graph::{Collector, Refusal},
    model::{
        causality::Questions,
        topology::{ClusterDescription, Domain},
    },
    replay,
};

/// Text of a trace in the order of time; times are in ns.
#[derive(Default)]
struct Trace(Vec<(u64, String)>);

/// Thread 8 of process 7, whose executions are looked at.
const APP: u32 = 8;

impl Trace {
    fn event(&mut self, time: u64, tid: u32, cpu: u32, text: &str) {
        let (seconds, fraction) = (1 + time / 1_000_000_000, time % 1_000_000_000);
        let pid = process(tid);
        let line =
            format!("  {}-{tid} ({pid:>5}) [{cpu:03}] d..2. {seconds}.{fraction:09}: {text}\n", name(tid));
        self.0.push((time, line));
    }

    fn mark(&mut self, time: u64, tid: u32, text: &str) {
        self.event(time, tid, 0, &format!("tracing_mark_write: {text}"));
    }

    fn begin(&mut self, time: u64, tid: u32, text: &str) {
        self.mark(time, tid, &format!("B|{}|{text}", process(tid)));
    }

    fn end(&mut self, time: u64, tid: u32) {
        self.mark(time, tid, &format!("E|{}", process(tid)));
    }

    /// A switch from one thread, in a state, to another one.
    fn switch(&mut self, time: u64, cpu: u32, (prev, state): (u32, &str), next: u32) {
        let text = format!(
            "sched_switch: prev_comm={} prev_pid={prev} prev_prio=120 prev_state={state} ==> next_comm={} next_pid={next} \
             next_prio=120",
            name(prev),
            name(next)
        );
        self.event(time, prev, cpu, &text);
    }

    fn wake(&mut self, time: u64, cpu: u32, by: u32, tid: u32) {
        self.wake_up(time, cpu, by, ("sched_wakeup", tid));
    }

    fn wake_up(&mut self, time: u64, cpu: u32, by: u32, (event, tid): (&str, u32)) {
        let text = format!("{event}: comm={} pid={tid} prio=120 target_cpu=000", name(tid));
        self.event(time, by, cpu, &text);
    }

    fn idle(&mut self, time: u64, cpu: u32, state: u32) {
        self.event(time, 0, cpu, &format!("cpu_idle: state={state} cpu_id={cpu}"));
    }

    fn frequency(&mut self, time: u64, cpu: u32, khz: u32) {
        self.event(time, 0, cpu, &format!("cpu_frequency: state={khz} cpu_id={cpu}"));
    }

    /// Makes CPUs known: they run, at these frequencies.
    fn runs_at(&mut self, khz: &[u32]) {
        for (cpu, khz) in (0..).zip(khz) {
            self.idle(0, cpu, 0);
            self.idle(0, cpu, u32::MAX);
            self.frequency(0, cpu, *khz);
        }
    }

    /// Writes the trace to a file, and returns the options of replaying it; CPU 0 is the cluster big, CPU 1 the cluster little.
    fn written(mut self) -> (NamedTempFile, replay::Options) {
        // Stable: what happens in one instant stays in its order.
        self.0.sort_by_key(|(time, _)| *time);
        let text: String = self.0.into_iter().map(|(_, line)| line).collect();
        let file = NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        let cluster =
            |name: &str, cpu| ClusterDescription { name: name.into(), cpus: vec![cpu], domain: Domain::Both };
        let replayed = replay::Options {
            files: vec![file.path().to_owned()],
            clusters: vec![cluster("big", 0), cluster("little", 1)],
            questions: Questions { hand_overs: true, ..Questions::default() },
            with_steps: true,
            ..replay::Options::default()
        };
        (file, replayed)
    }

    fn why(self, options: &Options) -> Result<Answer, Refusal> {
        let (_file, replayed) = self.written();
        let collector = Collector::new(1 << 24);
        let run = replay::replay_with_observer(&replayed, &mut || collector.observer()).unwrap();
        Answer::new(&collector, &run.findings(), run.timelines(), options)
    }

    /// Returns the answer as JSON.
    fn answer(self) -> serde_json::Value {
        let answer = self.why(&Options::default()).unwrap();
        let answer = serde_json::to_value(&answer).unwrap();
        assert_sums(&answer);
        answer
    }
}

/// Checks that parts add up to the difference, and that to the means.
fn assert_sums(answer: &serde_json::Value) {
    let number = |value: &serde_json::Value| value.as_i64().unwrap();
    let parts: i64 = answer["parts"].as_array().unwrap().iter().map(|part| number(&part["ns"])).sum();
    let means = number(&answer["slow"]["mean_ns"]) - number(&answer["typical"]["mean_ns"]);
    assert_eq!((parts, number(&answer["difference_ns"])), (means, means), "{answer}");
}

/// Returns the parts of an answer: cause, ns, certainty.
fn parts(answer: &serde_json::Value) -> Vec<(&str, i64, &str)> {
    let rows = answer["parts"].as_array().unwrap().iter();
    rows.map(|row| {
        (row["cause"].as_str().unwrap(), row["ns"].as_i64().unwrap(), row["certainty"].as_str().unwrap())
    })
    .collect()
}

fn name(tid: u32) -> &'static str {
    match tid {
        0 => "idle",
        8 => "app",
        9 => "worker",
        20 => "rival",
        30 => "driver",
        _ => "other",
    }
}

fn process(tid: u32) -> u32 {
    if tid < 10 { 7 } else { tid }
}
