//! Two runs beside each other.
//!
//! Clusters are matched by name, CPUs by number, idle states by name and frequencies by kHz, never by where they stand.
//! Windows of different length compare by shares and by rates.

mod csv;
mod text;

pub use csv::csv;
pub use text::render;

use crate::report::{
    power::{Group, Measure, PowerTable, Row, What},
    snapshot::Snapshot,
    units::CpuOrCluster,
};

/// What became of the power states of one cluster or CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Whose.
    pub unit: CpuOrCluster,
    /// Name of the cluster, its own or the CPU's.
    pub(crate) cluster: String,
    /// Of what.
    pub(crate) measure: Measure,
    /// As a heading: `cluster big, CPUs 4-7`.
    pub(crate) title: String,
    /// Length of the baseline's window, ns; `None` when the unit is not in it.
    pub before_window_ns: Option<u64>,
    /// Length of the other window, ns; `None` when the unit is not in it.
    pub after_window_ns: Option<u64>,
    /// State by state.
    pub rows: Vec<RowChange>,
}

/// What became of one state.
#[derive(Clone, Debug, PartialEq)]
pub struct RowChange {
    /// Which.
    pub what: What,
    /// In the baseline; `None` when it is not there.
    pub before: Option<Amount>,
    /// In the other; `None` when it is not there.
    pub(crate) after: Option<Amount>,
}

/// How much there was of a state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount {
    /// Time, ns.
    pub(crate) ns: u64,
    /// Its share of the window in hundredths of a percent.
    pub(crate) share: u64,
    /// How often; `None` where that is not counted.
    pub(crate) hits: Option<u64>,
    /// The same for each second; `None` also for a window of no length.
    pub(crate) hits_per_second: Option<f64>,
}

/// What is different in `after` from what it was in `before`, in the order of `after`; what only `before` has comes
/// last.
#[must_use]
pub fn power(before: &Snapshot, after: &Snapshot, table: PowerTable) -> Vec<Change> {
    let (before, after) = (table.groups(before), table.groups(after));
    let key = |group: &Group| (group.unit.clone(), group.measure);
    let find =
        |groups: &'_ [Group], wanted: &Group| groups.iter().position(|group| key(group) == key(wanted));
    let mut changes: Vec<Change> = after
        .iter()
        .map(|group| change(find(&before, group).map(|place| &before[place]), Some(group), group))
        .collect();
    let gone = before.iter().filter(|group| find(&after, group).is_none());
    changes.extend(gone.map(|group| change(Some(group), None, group)));
    changes
}

fn change(before: Option<&Group>, after: Option<&Group>, named: &Group) -> Change {
    let mut rows: Vec<RowChange> = Vec::new();
    for (what, amount) in after.into_iter().flat_map(amounts) {
        rows.push(RowChange { what, before: None, after: Some(amount) });
    }
    for (what, amount) in before.into_iter().flat_map(amounts) {
        match rows.iter_mut().find(|row| row.before.is_none() && row.what.is_same(&what)) {
            Some(row) => row.before = Some(amount),
            None => rows.push(RowChange { what, before: Some(amount), after: None }),
        }
    }
    // As in the tables: frequencies from the fastest down, then idle states from the shallowest, then the rest.
    rows.sort_by_key(|row| rank(&row.what));
    Change {
        unit: named.unit.clone(),
        cluster: named.cluster.clone(),
        measure: named.measure,
        title: named.title(),
        before_window_ns: before.map(|group| group.window_ns),
        after_window_ns: after.map(|group| group.window_ns),
        rows,
    }
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
    /// Change of the share, hundredths of a percent. A state that one of them lacks took none of its window.
    #[must_use]
    pub fn share_change(&self) -> i64 {
        let share = |amount: Option<Amount>| amount.map_or(0, |amount| amount.share).cast_signed();
        share(self.after) - share(self.before)
    }

    /// Change of the rate; `None` where it is not counted.
    #[must_use]
    pub fn rate_change(&self) -> Option<f64> {
        let rate = |amount: Option<Amount>| match amount {
            None => Some(0.0),
            Some(amount) => amount.hits_per_second,
        };
        Some(rate(self.after)? - rate(self.before)?)
    }

    /// Whether there is anything of it in either.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        [self.before, self.after].into_iter().flatten().all(|amount| amount.ns == 0)
    }
}

impl Change {
    /// Whether both have the unit: where one lacks it, nothing changed, it is not there.
    #[must_use]
    pub const fn is_in_both(&self) -> bool {
        self.before_window_ns.is_some() && self.after_window_ns.is_some()
    }
}
