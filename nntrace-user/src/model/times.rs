//! The contract's table of one report: totals by layer and phase, and what follows from them.
//!
//! The rules are those of the mark contract, section 3.

use std::collections::BTreeMap;

use nntrace_common::layer::{Layer, Phase, Tag};

/// Code of the Total row: in each phase the largest total of all layers.
pub(crate) const TOTAL_CODE: &str = "LT";

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

/// Time by layer code, then by phase code, ns; what is 0 is left out.
pub(crate) type ByLayer = BTreeMap<String, BTreeMap<String, i64>>;

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

    /// The same with the phase `PO` of a whole report: only applications mark it, so that each layer below
    /// that has none of its own gets the sum of its main phases.
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
    pub(crate) fn total(&self) -> ByLayer {
        self.filled().app_phase_total()
    }

    /// Self times of a whole report, ns, with the Total row of the totals.
    #[must_use]
    pub(crate) fn self_times(&self) -> ByLayer {
        self.filled().app_phase_self_times()
    }

    /// Totals of an application phase, ns, with the Total row. An application phase is no program: its `PO`
    /// is not filled.
    #[must_use]
    pub(crate) fn app_phase_total(&self) -> ByLayer {
        self.table(|phase| LAYERS.map(|layer| self.get(Tag::new(layer, phase))))
    }

    /// Self times of an application phase, ns, with the Total row of the totals.
    #[must_use]
    pub(crate) fn app_phase_self_times(&self) -> ByLayer {
        self.table(|phase| self.self_column(phase))
    }

    /// A table of the columns that `column` makes, and of the Total row.
    fn table(&self, column: impl Fn(Phase) -> [i64; 5]) -> ByLayer {
        let mut table = ByLayer::new();
        for phase in PHASES {
            let cells = LAYERS.iter().map(|layer| layer.code()).zip(column(phase));
            for (layer, ns) in cells.chain([(TOTAL_CODE, self.largest(phase))]) {
                if ns != 0 {
                    table.entry(layer.to_owned()).or_default().insert(phase.code().to_owned(), ns);
                }
            }
        }
        table
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
