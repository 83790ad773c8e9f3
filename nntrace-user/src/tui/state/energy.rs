//! The energy view: layers and phases by their energy.

use nntrace_common::layer::{Layer, Phase};

use super::Sample;
use super::table::{Column, Table};
use crate::report::snapshot::{PhaseEnergyRow, Snapshot};

/// Identity of a row from one snapshot to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EnergyKey {
    /// Process; `None` for all that no thread of a traced process ran.
    pub pid: Option<u32>,
    /// Layer and phase; `None` outside of sections.
    pub tag: Option<(Layer, Phase)>,
}

/// The columns that rows can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnergySort {
    /// Energy.
    Energy,
    /// The order of the snapshot: process, layer, phase.
    Name,
}

impl Column for EnergySort {
    const ALL: &'static [Self] = &[Self::Energy, Self::Name];

    fn value(self, sample: &Sample, row: usize) -> Option<u64> {
        match self {
            // The bits of numbers that are not negative have their order.
            Self::Energy => Some((rows(&sample.snapshot)[row].energy.total + 0.0).max(0.0).to_bits()),
            Self::Name => None,
        }
    }
}

/// Rows of the energy by layer and phase.
pub(crate) fn rows(snapshot: &Snapshot) -> &[PhaseEnergyRow] {
    snapshot.energy.as_ref().map_or(&[], |energy| &energy.phases)
}

/// The state of the energy view.
pub(crate) type Energy = Table<EnergyKey, EnergySort>;

impl Energy {
    /// Takes over a new snapshot, or a new order.
    pub(super) fn refresh(&mut self, sample: &Sample) {
        let rows = rows(&sample.snapshot);
        self.arrange(sample, 0..rows.len());
        self.identify(|row| {
            let PhaseEnergyRow { pid, layer, phase, .. } = rows[row];
            EnergyKey { pid, tag: layer.zip(phase) }
        });
    }
}
