//! The contract's table of one report: totals by layer and phase, and what follows from them.
//!
//! The rules are those of the mark contract, section 3.

use std::collections::BTreeMap;

use nntrace_common::layer::{Layer, Phase, Tag};

/// The layers of the table, lowest first: the order in which self times are taken. `LU` and `LO` are in no
/// table.
const LAYERS: [Layer; 5] =
    [Layer::CpuFallback, Layer::Driver, Layer::Ipc, Layer::Runtime, Layer::Application];

/// The phases that make up a program.
const MAIN_PHASES: [Phase; 5] =
    [Phase::Initialization, Phase::Preparation, Phase::Compilation, Phase::Execution, Phase::Termination];

/// The phases of the table. Warm-up and benchmark are tables of their own.
const PHASES: [Phase; 10] = [
    Phase::Overall,
    Phase::Initialization,
    Phase::Preparation,
    Phase::Compilation,
    Phase::Execution,
    Phase::Termination,
    Phase::InputsOutputs,
    Phase::Transformation,
    Phase::Computation,
    Phase::Results,
];

/// A row of the contract's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableRow {
    /// A layer.
    Layer(Layer),
    /// Largest total of all layers, in each phase.
    Total,
}

/// Time by row and phase of the contract's table, ns; what is 0 is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimesByLayer(BTreeMap<(TableRow, Phase), i64>);

impl TimesByLayer {
    /// No time.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Time of a row in a phase, ns.
    #[must_use]
    pub fn get(&self, row: TableRow, phase: Phase) -> i64 {
        self.0.get(&(row, phase)).copied().unwrap_or(0)
    }

    /// Every time that is not 0, ns.
    pub fn iter(&self) -> impl Iterator<Item = (TableRow, Phase, i64)> {
        self.0.iter().map(|(&(row, phase), &ns)| (row, phase, ns))
    }
}

impl FromIterator<(TableRow, Phase, i64)> for TimesByLayer {
    fn from_iter<I: IntoIterator<Item = (TableRow, Phase, i64)>>(times: I) -> Self {
        let times = times.into_iter().filter(|(.., ns)| *ns != 0);
        Self(times.map(|(row, phase, ns)| ((row, phase), ns)).collect())
    }
}

/// Time by layer and phase, ns: what the sections of one report, or of one application phase of it, add up
/// to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    /// By [`Tag::index`].
    cells: [i64; Tag::COUNT],
}

impl Default for Times {
    fn default() -> Self {
        Self { cells: [0; Tag::COUNT] }
    }
}

impl Times {
    /// Time of a layer in a phase, ns.
    #[must_use]
    pub(crate) fn get(&self, tag: Tag) -> i64 {
        self.cells[usize::from(tag.index())]
    }

    /// Adds time, ns; at most to what the sum can hold.
    pub(crate) fn add(&mut self, tag: Tag, ns: i64) {
        let cell = &mut self.cells[usize::from(tag.index())];
        *cell = cell.saturating_add(ns);
    }

    /// Returns the table with the phase `PO` of a whole report filled in: only applications mark it, so that each layer
    /// below without one of its own gets the sum of its main phases.
    #[must_use]
    pub(crate) fn filled(&self) -> Self {
        let mut filled = self.clone();
        for layer in LAYERS {
            let overall = Tag::new(layer, Phase::Overall);
            if layer != Layer::Application && self.get(overall) == 0 {
                for phase in MAIN_PHASES {
                    filled.add(overall, self.get(Tag::new(layer, phase)));
                }
            }
        }
        filled
    }

    /// Totals of a whole report, ns, with the Total row.
    #[must_use]
    pub(crate) fn total(&self) -> TimesByLayer {
        self.filled().app_phase_total()
    }

    /// Self times of a whole report, ns, with the Total row of the totals.
    #[must_use]
    pub(crate) fn self_times(&self) -> TimesByLayer {
        self.filled().app_phase_self_times()
    }

    /// Totals of an application phase, ns, with the Total row. An application phase is no program: its `PO`
    /// is not filled.
    #[must_use]
    pub(crate) fn app_phase_total(&self) -> TimesByLayer {
        self.table(|phase| LAYERS.map(|layer| self.get(Tag::new(layer, phase))))
    }

    /// Self times of an application phase, ns, with the Total row of the totals.
    #[must_use]
    pub(crate) fn app_phase_self_times(&self) -> TimesByLayer {
        self.table(|phase| self.self_column(phase))
    }

    /// A table of the columns that `column` makes, and of the Total row.
    fn table(&self, column: impl Fn(Phase) -> [i64; 5]) -> TimesByLayer {
        let cells = PHASES.into_iter().flat_map(|phase| {
            let layers = LAYERS.map(TableRow::Layer).into_iter().zip(column(phase));
            let rows = layers.chain([(TableRow::Total, self.largest(phase))]);
            rows.map(move |(row, ns)| (row, phase, ns))
        });
        cells.collect()
    }

    /// The largest total of all layers in a phase, ns.
    fn largest(&self, phase: Phase) -> i64 {
        LAYERS.iter().map(|layer| self.get(Tag::new(*layer, phase))).max().unwrap_or(0)
    }

    /// Self times in one phase by [`LAYERS`], ns: each layer's total less that of the next lower layer that
    /// has any. Nothing shows which of its sections stand in which of the lower layer's, so that one may be
    /// negative.
    fn self_column(&self, phase: Phase) -> [i64; 5] {
        let total = |layer| self.get(Tag::new(layer, phase));
        // A driver that never executes was asked only what it can do, or to compile. What then executes lies
        // beside it, on the CPU: driver and IPC stand for themselves, and the runtime is reduced by the CPU's
        // time alone.
        let driver_aside =
            phase == Phase::Overall && self.get(Tag::new(Layer::Driver, Phase::Execution)) == 0;
        let mut below = 0;
        LAYERS.map(|layer| match (layer, total(layer)) {
            (_, 0) => 0,
            (Layer::Driver, own) if driver_aside => own,
            (Layer::Ipc, own) if driver_aside => own - total(Layer::Driver),
            (_, own) => own - std::mem::replace(&mut below, own),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
