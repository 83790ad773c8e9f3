//! Residency of several runs side by side, and the tables of two of them.
//!
//! Clusters are matched by name, CPUs by number, idle states by name and frequencies by kHz, never by position.
//! Windows of different length compare by shares and by rates.

mod csv;
mod text;

pub use csv::csv;
pub use text::render;

use crate::report::{
    cpu_or_cluster::CpuOrCluster,
    power::{Group, Measure, PowerTable, Row, What},
    snapshot::Snapshot,
};

/// Change of the power states of one cluster or CPU.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    /// The cluster or CPU.
    pub unit: CpuOrCluster,
    /// Name of the cluster, its own or the CPU's.
    pub(crate) cluster: String,
    /// Kind of states.
    pub(crate) measure: Measure,
    /// Title for a heading: `cluster big, CPUs 4-7`.
    pub(crate) title: String,
    /// Length of the baseline's window, ns; `None` when the unit is not in it.
    pub before_window_ns: Option<u64>,
    /// Length of the other window, ns; `None` when the unit is not in it.
    pub after_window_ns: Option<u64>,
    /// Changes of its states.
    pub rows: Vec<RowChange>,
}

/// Change of one state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowChange {
    /// The state.
    pub what: What,
    /// Amount in the baseline; `None` when it is not there.
    pub before: Option<Amount>,
    /// Amount in the other run; `None` when it is not there.
    pub(crate) after: Option<Amount>,
}

/// Amount of a state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Amount {
    /// Time, ns.
    pub(crate) ns: u64,
    /// Share of the window in hundredths of a percent.
    pub(crate) share: u64,
    /// Number of times; `None` where that is not counted.
    pub(crate) hits: Option<u64>,
    /// Number of times per second; `None` also for a window without length.
    pub(crate) hits_per_second: Option<f64>,
}

/// One cluster or CPU with the amounts of its states in several runs.
pub(super) struct Aligned {
    /// Group of the first run that has it.
    pub(super) group: Group,
    /// Length of the window of each run, ns; `None` of one that does not have the unit.
    pub(super) windows_ns: Vec<Option<u64>>,
    /// States, each with its amount in each run.
    pub(super) rows: Vec<(What, Vec<Option<Amount>>)>,
}

/// Returns the units of all runs: those of the first one in its order, then those that only later ones have.
pub(super) fn align(runs: &[&Snapshot], table: PowerTable) -> Vec<Aligned> {
    let mut units: Vec<Aligned> = Vec::new();
    for (run, snapshot) in runs.iter().enumerate() {
        for group in table.groups(snapshot) {
            let is_same =
                |known: &Aligned| known.group.unit == group.unit && known.group.measure == group.measure;
            let place = units.iter().position(is_same).unwrap_or_else(|| {
                let (group, windows_ns) = (group.clone(), vec![None; runs.len()]);
                units.push(Aligned { group, windows_ns, rows: Vec::new() });
                units.len() - 1
            });
            units[place].add(run, &group);
        }
    }
    // As in the tables: frequencies from the fastest down, then idle states from the shallowest, then the rest.
    for unit in &mut units {
        unit.rows.sort_by_key(|(what, _)| rank(what));
    }
    units
}

impl Aligned {
    fn add(&mut self, run: usize, group: &Group) {
        self.windows_ns[run] = Some(group.window_ns);
        let runs = self.windows_ns.len();
        for (what, amount) in amounts(group) {
            let is_same = |(known, amounts): &(What, Vec<Option<Amount>>)| {
                amounts[run].is_none() && known.is_same(&what)
            };
            let place = self.rows.iter().position(is_same).unwrap_or_else(|| {
                self.rows.push((what, vec![None; runs]));
                self.rows.len() - 1
            });
            self.rows[place].1[run] = Some(amount);
        }
    }
}

/// Returns the changes from `before` to `after`, in the order of `after`, followed by the units that only `before`
/// has.
#[must_use]
pub(crate) fn changes(before: &Snapshot, after: &Snapshot, table: PowerTable) -> Vec<Change> {
    let change = |unit: Aligned| {
        let row = |(what, amounts): (What, Vec<Option<Amount>>)| RowChange {
            what,
            before: amounts[1],
            after: amounts[0],
        };
        Change {
            title: unit.group.title(),
            unit: unit.group.unit,
            cluster: unit.group.cluster,
            measure: unit.group.measure,
            before_window_ns: unit.windows_ns[1],
            after_window_ns: unit.windows_ns[0],
            rows: unit.rows.into_iter().map(row).collect(),
        }
    };
    align(&[after, before], table).into_iter().map(change).collect()
}

fn amounts(group: &Group) -> impl Iterator<Item = (What, Amount)> {
    let seconds = group.window_ns as f64 / 1e9;
    group.rows.iter().zip(group.shares()).map(move |(row, share): (&Row, u64)| {
        let hits_per_second = row.hits.filter(|_| seconds > 0.0).map(|hits| hits as f64 / seconds);
        (row.what.clone(), Amount { ns: row.ns, share, hits: row.hits, hits_per_second })
    })
}

fn rank(what: &What) -> (u32, std::cmp::Reverse<Option<u32>>, u32) {
    let (kind, khz, number) = match *what {
        What::At(khz) => (0, khz, 0),
        What::IdleState(state, _) => (1, None, state),
        What::Running => (2, None, 0),
        What::Idle => (3, None, 0),
        What::IdleUnknown => (4, None, 0),
        What::Offline => (5, None, 0),
        What::Unknown => (6, None, 0),
        What::AtOnce(Some(cpus)) => (7, None, cpus),
        What::AtOnce(None) => (8, None, 0),
    };
    (kind, std::cmp::Reverse(khz), number)
}

impl RowChange {
    /// Returns the change of the share, hundredths of a percent. A state that is missing in one run has the share 0
    /// there.
    #[must_use]
    pub(crate) fn share_change(&self) -> i64 {
        let share = |amount: Option<Amount>| amount.map_or(0, |amount| amount.share).cast_signed();
        share(self.after) - share(self.before)
    }

    /// Returns the change of the rate; `None` where it is not counted.
    #[must_use]
    pub(crate) fn rate_change(&self) -> Option<f64> {
        let rate = |amount: Option<Amount>| match amount {
            None => Some(0.0),
            Some(amount) => amount.hits_per_second,
        };
        Some(rate(self.after)? - rate(self.before)?)
    }

    /// Whether neither run has any time in the state.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        [self.before, self.after].into_iter().flatten().all(|amount| amount.ns == 0)
    }
}

impl Change {
    /// Whether both runs have the unit: a unit that one lacks has not changed, it is not there.
    #[must_use]
    pub(crate) const fn is_in_both(&self) -> bool {
        self.before_window_ns.is_some() && self.after_window_ns.is_some()
    }
}
