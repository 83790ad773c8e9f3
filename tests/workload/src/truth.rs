//! Sections that are marked and, independently of any reader of the marks, counted and timed here.
//!
//! An ordinary program uses `nntrace_common::emit::Section` directly; [`Section`] is the same, with a stop watch. It
//! measures the results that a profiler has to find, so none of the project's accounting is used: the few rules that
//! the workload needs are implemented here a second time.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nntrace_common::emit::Payload;
use nntrace_common::layer::{Layer, Phase};
use serde::{Deserialize, Serialize};

const LAYERS: usize = Layer::ALL.len();
const PHASES: usize = Phase::ALL.len();

/// Counts and times of one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// `application` or `driver`.
    pub role: String,
    /// Number of marks written.
    pub marks: u64,
    /// Entries for each layer and phase that occurred, in the order of the contract.
    pub phases: Vec<PhaseTotal>,
}

/// Sections of one layer and phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseTotal {
    /// Letters of the layer, `LR`.
    pub layer: String,
    /// Letters of the phase, `PE`.
    pub phase: String,
    /// Number of sections.
    pub count: u64,
    /// Total time, summed over threads.
    pub total_ns: u64,
    /// Least time that a reader of the marks can have seen: see [`Stamp`].
    pub least_ns: u64,
    /// Most time that a reader of the marks can have seen.
    pub most_ns: u64,
}

/// All of the workload's truth, as written by `--truth`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Truth {
    /// The application and its driver.
    pub processes: Vec<Process>,
    /// Marks of all processes.
    pub marks: u64,
    /// Number of classified images.
    pub inferences: u64,
}

/// Running total. Separate counters need no lock, and are exact once the threads that write them are joined.
struct Counter {
    count: AtomicU64,
    total: AtomicU64,
    least: AtomicU64,
    most: AtomicU64,
}

impl Counter {
    const fn new() -> Self {
        Self {
            count: AtomicU64::new(0),
            total: AtomicU64::new(0),
            least: AtomicU64::new(0),
            most: AtomicU64::new(0),
        }
    }
}

/// Totals of this process, by layer and phase.
static COUNTERS: [[Counter; PHASES]; LAYERS] = [const { [const { Counter::new() }; PHASES] }; LAYERS];
/// Marks of this process.
static MARKS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Number of sections of phase PE open on this thread, by layer.
    static EXECUTIONS: [Cell<u32>; LAYERS] = const { [const { Cell::new(0) }; LAYERS] };
}

/// Times around one mark.
///
/// A reader's clock was read between the two, which bounds its measurement. The estimate takes `before`: a probe
/// reads its clock on the way in, before it does its work, and the kernel takes a thread off the CPU on the way out.
/// So it is the first interval that is short and equal for begins and ends.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    before: Instant,
    after: Instant,
}

/// Writes a mark that is already formatted: nothing is between the clock and the mark.
fn write(payload: &Payload) -> Stamp {
    let before = Instant::now();
    payload.write();
    let after = Instant::now();
    MARKS.fetch_add(1, Ordering::Relaxed);
    Stamp { before, after }
}

/// Marked section; the same as `nntrace_common::emit::Section`, and timed.
#[must_use = "a section that is dropped at once has no duration"]
#[derive(Debug)]
pub struct Section<'outer> {
    layer: Layer,
    phase: Phase,
    /// Time of its begin; `None` once it was switched away from, and its time is accounted.
    begun: Cell<Option<Stamp>>,
    /// Keeps it on its thread, and makes a section that was switched to not outlive the one it replaced.
    bound: PhantomData<(&'outer (), *const ())>,
}

impl Section<'static> {
    /// Begins a section.
    pub fn begin(layer: Layer, phase: Phase, name: &str) -> Self {
        Self::open(layer, phase, &Payload::begin(layer, phase, name))
    }

    /// Begins a section with a name as format arguments, for instance with attributes: `name#key=value`.
    pub fn begin_args(layer: Layer, phase: Phase, name: fmt::Arguments<'_>) -> Self {
        Self::open(layer, phase, &Payload::begin_args(layer, phase, name))
    }
}

impl Section<'_> {
    /// Ends this section and begins another in its place, at one point in time.
    pub fn switch(&self, layer: Layer, phase: Phase, name: &str) -> Section<'_> {
        let stamp = write(&Payload::switch(layer, phase, name));
        self.close(stamp);
        Section::opened(layer, phase, stamp)
    }

    fn open(layer: Layer, phase: Phase, payload: &Payload) -> Self {
        Self::opened(layer, phase, write(payload))
    }

    fn opened(layer: Layer, phase: Phase, begun: Stamp) -> Self {
        if phase == Phase::Execution {
            EXECUTIONS.with(|open| open[layer as usize].update(|count| count + 1));
        }
        Self { layer, phase, begun: Cell::new(Some(begun)), bound: PhantomData }
    }

    /// Accounts the section's time, once.
    fn close(&self, ended: Stamp) {
        let Some(begun) = self.begun.take() else { return };
        if self.phase == Phase::Execution {
            EXECUTIONS.with(|open| open[self.layer as usize].update(|count| count - 1));
        }
        account(self.layer, self.phase, begun, ended);
        let in_execution = EXECUTIONS.with(|open| open[self.layer as usize].get() > 0);
        if is_part_of_execution(self.phase) && !in_execution {
            account(self.layer, Phase::Execution, begun, ended);
        }
    }
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        self.close(write(&Payload::end()));
    }
}

/// Writes a mark of an instant.
pub fn event(payload: &Payload) {
    write(payload);
}

/// Whether a phase is a part of execution, which counts as execution outside of one.
fn is_part_of_execution(phase: Phase) -> bool {
    matches!(phase, Phase::InputsOutputs | Phase::Transformation | Phase::Computation | Phase::Results)
}

fn account(layer: Layer, phase: Phase, begun: Stamp, ended: Stamp) {
    let counter = &COUNTERS[layer as usize][phase as usize];
    let add = |to: &AtomicU64, from: Instant, until: Instant| {
        to.fetch_add(nanoseconds(until.saturating_duration_since(from)), Ordering::Relaxed);
    };
    counter.count.fetch_add(1, Ordering::Relaxed);
    add(&counter.total, begun.before, ended.before);
    add(&counter.least, begun.after, ended.before);
    add(&counter.most, begun.before, ended.after);
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Process {
    /// Returns the counts of this process so far. Exact when the threads with sections in them have been joined.
    pub fn current(role: &str) -> Self {
        let phases = Layer::ALL.into_iter().zip(&COUNTERS).flat_map(|(layer, counters)| {
            Phase::ALL.into_iter().zip(counters).filter_map(move |(phase, counter)| {
                let count = counter.count.load(Ordering::Relaxed);
                (count > 0).then(|| PhaseTotal {
                    layer: layer.code().to_owned(),
                    phase: phase.code().to_owned(),
                    count,
                    total_ns: counter.total.load(Ordering::Relaxed),
                    least_ns: counter.least.load(Ordering::Relaxed),
                    most_ns: counter.most.load(Ordering::Relaxed),
                })
            })
        });
        Self {
            pid: std::process::id(),
            role: role.to_owned(),
            marks: MARKS.load(Ordering::Relaxed),
            phases: phases.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The totals are the process's, so this test has layer LO to itself.
    #[test]
    fn sections_are_accounted_by_the_rules() {
        let nap = || std::thread::sleep(Duration::from_millis(2));
        {
            // A part without an execution around it also counts as one.
            let _part = Section::begin(Layer::Other, Phase::InputsOutputs, "alone");
            nap();
        }
        {
            let _execution = Section::begin(Layer::Other, Phase::Execution, "execute");
            nap();
            let transformation = Section::begin(Layer::Other, Phase::Transformation, "layout");
            nap();
            let _computation = transformation.switch(Layer::Other, Phase::Computation, "conv2d");
            nap();
        }
        let process = Process::current("test");
        let entry = |phase: Phase| {
            let of = |entry: &&PhaseTotal| entry.layer == "LO" && entry.phase == phase.code();
            process.phases.iter().find(of).unwrap().clone()
        };
        let ms = |count: u64| count * 2_000_000;
        for (phase, count, least) in [
            (Phase::InputsOutputs, 1, ms(1)),
            (Phase::Transformation, 1, ms(1)),
            (Phase::Computation, 1, ms(1)),
            (Phase::Execution, 2, ms(4)),
        ] {
            let entry = entry(phase);
            assert_eq!(entry.count, count, "{phase:?}");
            assert!(entry.total_ns >= least, "{entry:?}");
            assert!(entry.least_ns <= entry.total_ns && entry.total_ns <= entry.most_ns, "{entry:?}");
        }
        // The switch loses and duplicates nothing: its two sections together are no longer than the section around
        // them.
        let parts = entry(Phase::Transformation).total_ns + entry(Phase::Computation).total_ns;
        assert!(parts + entry(Phase::InputsOutputs).total_ns < entry(Phase::Execution).total_ns);
        // Begin and end of each of the three, and the switch with its end.
        assert!(process.marks >= 8);
    }
}
