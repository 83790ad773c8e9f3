//! Sections that are marked and, independently of any reader of the marks, counted and timed here.
//!
//! An ordinary program uses `nntrace_common::emit::Section` directly; [`Section`] is the same, with a stop
//! watch. What it measures is what a profiler has to find, so none of the project's accounting is used: the
//! few rules that the workload needs are written down here a second time.

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

/// What one process has to show for itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Process {
    /// Its process id.
    pub pid: u32,
    /// `application` or `driver`.
    pub role: String,
    /// How many marks it wrote.
    pub marks: u64,
    /// One entry for each layer and phase that occurred, in the order of the contract.
    pub phases: Vec<PhaseTotal>,
}

/// The sections of one layer and phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseTotal {
    /// The letters of the layer, `LR`.
    pub layer: String,
    /// The letters of the phase, `PE`.
    pub phase: String,
    /// How many sections there were.
    pub count: u64,
    /// Their time, summed over threads.
    pub total_ns: u64,
    /// A reader of the marks cannot have seen less than this,
    pub least_ns: u64,
    /// nor more than this: see [`Stamp`].
    pub most_ns: u64,
}

/// All of the workload's truth, as `--truth` writes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Truth {
    /// The application and its driver.
    pub processes: Vec<Process>,
    /// Marks of all processes.
    pub marks: u64,
    /// How many images were classified.
    pub inferences: u64,
}

/// A running total. Counters of their own need no lock, and are exact once the threads that write them are
/// joined.
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
    /// How many sections of phase PE are open on this thread, by layer.
    static EXECUTIONS: [Cell<u32>; LAYERS] = const { [const { Cell::new(0) }; LAYERS] };
}

/// The time around one mark.
///
/// A reader's clock was read somewhere between the two, which bounds what it can have measured. The estimate
/// takes `before`: a probe reads its clock on the way in, before it does its work, and the kernel takes a
/// thread off the CPU on the way out. So it is the first stretch that is short and equal for begins and ends.
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

/// A marked section; the same as `nntrace_common::emit::Section`, and timed.
#[must_use = "a section that is dropped at once has no duration"]
#[derive(Debug)]
pub struct Section<'outer> {
    layer: Layer,
    phase: Phase,
    /// When it began; `None` once it was switched away from, and its time is accounted.
    begun: Cell<Option<Stamp>>,
    /// It stays on its thread, and a section that was switched to does not outlive the one it replaced.
    bound: PhantomData<(&'outer (), *const ())>,
}

impl Section<'static> {
    /// Begins a section.
    pub fn begin(layer: Layer, phase: Phase, name: &str) -> Self {
        Self::open(layer, phase, &Payload::begin(layer, phase, name))
    }

    /// Begins a section whose name is to be formatted, for instance with attributes: `name#key=value`.
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

/// Parts of execution count as execution where they do not stand in one.
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
    /// What this process did until now. Exact when the threads with sections in them have been joined.
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
            // A part without an execution around it counts as one, too.
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
        // The switch loses and doubles nothing: its two sections together are no longer than what is around
        // them.
        let parts = entry(Phase::Transformation).total_ns + entry(Phase::Computation).total_ns;
        assert!(parts + entry(Phase::InputsOutputs).total_ns < entry(Phase::Execution).total_ns);
        // Begin and end of each of the three, and the switch with its end.
        assert!(process.marks >= 8);
    }
}
