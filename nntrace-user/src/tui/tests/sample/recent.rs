//! What happened lately, for the timeline.

use nntrace_common::layer::{Layer, Phase, Tag};

use super::WINDOW;
use crate::model::scheduling::Activity;
use crate::report::snapshot::{RecentActivity, RecentSectionRow, RecentState, RecentThread, Snapshot};

/// Names of the sections.
const NAMES: [&str; 6] =
    ["run", "model", "Conv2D block1/conv1", "MatMul head/fc", "Softmax head/probabilities", "driver_execute"];
const MS: u64 = 1_000_000;
/// End of the window.
const END: u64 = 1_000 + WINDOW;

/// The snapshot with the sections of its last 1.5 s, and states if they are wanted.
pub(crate) fn with_recent(mut snapshot: Snapshot, with_states: bool) -> Snapshot {
    let begin = END - 1_500 * MS;
    let mut app = thread(1234, 1234);
    let mut driver = thread(871, 871);
    for run in 0..15 {
        let at = begin + run * 100 * MS;
        let tag = |layer, phase| Tag::new(layer, phase);
        let add = |thread: &mut RecentThread, from: u64, to: u64, depth, name, tag| {
            let exclusive_ns = Some((to - from) * MS / 2);
            let (begin_ns, end_ns) = (at + from * MS, at + to * MS);
            thread.sections.push(RecentSectionRow { begin_ns, end_ns, exclusive_ns, name, depth, tag });
        };
        let slow = if run == 7 { 20 } else { 0 };
        add(&mut app, 5, 75 + slow, 0, 0, tag(Layer::Application, Phase::Benchmark));
        add(&mut app, 10, 70 + slow, 1, 1, tag(Layer::Runtime, Phase::Execution));
        add(&mut app, 12, 30 + slow, 2, 2, tag(Layer::CpuFallback, Phase::Computation));
        add(&mut app, 30 + slow, 45 + slow, 2, 3, tag(Layer::CpuFallback, Phase::Computation));
        add(&mut app, 45 + slow, 46 + slow, 2, 4, tag(Layer::CpuFallback, Phase::Computation));
        add(&mut driver, 50 + slow, 65 + slow, 0, 5, tag(Layer::Driver, Phase::Execution));
    }
    app.sections.push(RecentSectionRow {
        begin_ns: END - 20 * MS,
        end_ns: END,
        exclusive_ns: None,
        name: 0,
        depth: 0,
        tag: Tag::new(Layer::Application, Phase::Benchmark),
    });
    let mut threads = vec![driver, app];
    if with_states {
        let mut worker = thread(1234, 1240);
        for thread in threads.iter_mut().chain([&mut worker]) {
            thread.states = states(thread, begin);
        }
        threads.push(worker);
    }
    let names = NAMES.map(str::to_owned).to_vec();
    snapshot.recent = Some(Box::new(RecentActivity { since_ns: begin, until_ns: END, threads, names }));
    snapshot
}

fn thread(pid: u32, tid: u32) -> RecentThread {
    RecentThread { pid, tid, ..RecentThread::default() }
}

/// On a CPU in its outermost sections, with some waiting before each; a thread without any runs for 30 ms of each 100.
fn states(thread: &RecentThread, begin: u64) -> Vec<RecentState> {
    let cpu = thread.tid % 4;
    let outermost = thread.sections.iter().filter(|section| section.depth == 0);
    let mut runs: Vec<(u64, u64)> = outermost.map(|section| (section.begin_ns, section.end_ns)).collect();
    if runs.is_empty() {
        runs = (0..15).map(|run| (begin + run * 100 * MS, begin + (run * 100 + 30) * MS)).collect();
    }
    let (mut states, mut now) = (Vec::new(), begin);
    let mut until = |end: u64, activity: Activity| {
        if now < end {
            states.push(RecentState { begin_ns: now, end_ns: end, activity });
            now = end;
        }
    };
    for (from, to) in runs {
        until(from.saturating_sub(3 * MS), Activity::Asleep);
        until(from, Activity::Runnable);
        until(to, Activity::OnCpu(cpu));
    }
    until(END, Activity::Unknown);
    states
}
