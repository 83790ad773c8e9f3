//! Power states as rows: what the tables show, and what two runs are compared by.
//!
//! The times of every group add up to the window, whatever the table leaves together: what is not told apart in one
//! (all of running in the table of idle states) is one row of it.

mod csv;
mod text;

use std::cmp::Reverse;

pub use csv::csv;
pub(crate) use csv::{CsvError, cell, to_csv};
pub(crate) use text::fit;
pub use text::render;

use super::{
    cpu_or_cluster::{self, CpuOrCluster, CpuOrClusterRow},
    number_format,
    snapshot::{ClusterRow, ConcurrencyRow, IdleRow, Snapshot},
};

/// A table of power states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerTable {
    /// Idle states, and how long single stays were.
    Idle,
    /// Frequencies, requested and effective.
    Frequency,
    /// States that the CPUs of a cluster make together.
    Cluster,
}

/// Measure of a CPU or cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Measure {
    /// Its state.
    State,
    /// Its state, with the frequencies that were requested for it.
    Requested,
    /// Its state, with the frequencies that its cluster had.
    Effective,
    /// How many of its CPUs ran at once.
    Concurrency,
}

/// Kind of time in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Running, at whatever frequency.
    Running,
    /// Running at this many kHz; `None` where that is not known.
    At(Option<u32>),
    /// Idle, however deep.
    Idle,
    /// Idle in this state: its number (of a cluster: its level) and its name.
    IdleState(u32, String),
    /// Idle, no one knows how deep.
    IdleUnknown,
    /// Offline.
    Offline,
    /// Nothing known.
    Unknown,
    /// This many CPUs ran at once; `None` while one was unknown or offline.
    AtOnce(Option<u32>),
}

/// Time of a cluster or CPU in one state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// Kind of the time.
    pub(crate) what: What,
    /// How long, ns.
    pub ns: u64,
    /// How often; `None` where that is not counted.
    pub(crate) hits: Option<u64>,
    /// The idle state, for single stays.
    pub(crate) idle: Option<IdleRow>,
}

/// The rows of one cluster or CPU: together the window.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    /// CPU or cluster that the rows are of.
    pub unit: CpuOrCluster,
    /// Name of the cluster, its own or the CPU's.
    pub(crate) cluster: String,
    /// The CPUs of a cluster; none of a CPU.
    pub(crate) cpus: Vec<u32>,
    /// Measure.
    pub(crate) measure: Measure,
    /// Length of the window, ns.
    pub(crate) window_ns: u64,
    /// Times in its states.
    pub rows: Vec<Row>,
}

impl PowerTable {
    /// All tables.
    pub const ALL: [Self; 3] = [Self::Idle, Self::Frequency, Self::Cluster];

    /// `idle`, `freq` or `cluster`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Frequency => "freq",
            Self::Cluster => "cluster",
        }
    }

    /// Its rows, in the order of the topology: each cluster, followed by its CPUs.
    #[must_use]
    pub(crate) fn groups(self, snapshot: &Snapshot) -> Vec<Group> {
        let window_ns = snapshot.window.length_ns();
        let mut groups = Vec::new();
        for unit in cpu_or_cluster::all(snapshot) {
            let Some(row) = cpu_or_cluster::find(snapshot, &unit) else { continue };
            let mut add = |measure, rows| {
                let cpus = row.group.map(|group| group.cpus.clone()).unwrap_or_default();
                let (unit, cluster) = (unit.clone(), row.cluster.to_owned());
                groups.push(Group { unit, cluster, cpus, measure, window_ns, rows });
            };
            match (self, row.group) {
                (Self::Idle, _) => add(Measure::State, [idle(&row), running(&row), rest(&row)].concat()),
                (Self::Frequency, None) => {
                    add(Measure::Requested, [requested(&row), asleep(&row)].concat());
                    add(Measure::Effective, [effective(&row), asleep(&row)].concat());
                }
                // What a cluster runs at is what it has, whatever any of its CPUs asked for.
                (Self::Frequency, Some(cluster)) => {
                    if cluster.has_clock() {
                        add(Measure::Effective, [requested(&row), asleep(&row)].concat());
                    }
                }
                (Self::Cluster, None) => {}
                (Self::Cluster, Some(cluster)) => {
                    let mut active = requested(&row);
                    if !cluster.has_clock() {
                        for row in &mut active {
                            row.what = What::Running;
                        }
                    }
                    add(Measure::State, [active, idle(&row), rest(&row)].concat());
                    let at_once =
                        |row: &ConcurrencyRow| Row::new(What::AtOnce(row.running_cpus), row.ns, None);
                    add(Measure::Concurrency, cluster.concurrency.iter().map(at_once).collect());
                }
            }
        }
        groups
    }
}

impl ClusterRow {
    /// Whether its CPUs share a clock, and it has a frequency.
    fn has_clock(&self) -> bool {
        self.domain.shares_clock()
    }
}

impl Measure {
    /// Its name in CSV.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Requested => "requested",
            Self::Effective => "effective",
            Self::Concurrency => "concurrency",
        }
    }
}

impl What {
    /// Kind of time, in CSV.
    #[must_use]
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Running | Self::At(_) => "running",
            Self::Idle | Self::IdleState(..) => "idle",
            Self::IdleUnknown => "idle_unknown",
            Self::Offline => "offline",
            Self::Unknown => "unknown",
            Self::AtOnce(_) => "at_once",
        }
    }

    /// Whether it is the same in another run. Idle states are known by their names: another kernel may number them
    /// otherwise.
    #[must_use]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::IdleState(_, name), Self::IdleState(_, other)) => name == other,
            _ => self == other,
        }
    }

    /// As people read it, in a group of a cluster or of a CPU.
    #[must_use]
    pub(crate) fn label(&self, is_cluster: bool) -> String {
        match self {
            Self::Running if is_cluster => "active".into(),
            Self::Running => "running".into(),
            Self::At(Some(khz)) => number_format::khz_exact(*khz),
            Self::At(None) => "frequency unknown".into(),
            Self::Idle => "idle".into(),
            Self::IdleState(state, name) if name.is_empty() => format!("state{state}"),
            Self::IdleState(_, name) => name.clone(),
            Self::IdleUnknown => "idle, depth unknown".into(),
            Self::Offline => "offline".into(),
            Self::Unknown => "unknown".into(),
            Self::AtOnce(None) => "CPU offline/unknown".into(),
            Self::AtOnce(Some(1)) => "1 CPU runs".into(),
            Self::AtOnce(Some(cpus)) => format!("{cpus} CPUs run"),
        }
    }
}

impl Row {
    fn new(what: What, ns: u64, hits: Option<u64>) -> Self {
        Self { what, ns, hits, idle: None }
    }
}

impl Group {
    /// The share of each row in hundredths of a percent: together 100.00.
    #[must_use]
    pub(crate) fn shares(&self) -> Vec<u64> {
        cpu_or_cluster::shares(&self.rows.iter().map(|row| row.ns).collect::<Vec<_>>(), 10_000)
    }

    /// `cluster big, CPUs 4-7` or `cpu4`.
    #[must_use]
    pub(crate) fn title(&self) -> String {
        match &self.unit {
            CpuOrCluster::Cluster(name) => {
                format!("cluster {name}, CPUs {}", crate::model::cpu_list::format(&self.cpus))
            }
            CpuOrCluster::Cpu(cpu) => format!("cpu{cpu}"),
        }
    }

    /// Whether it is of a cluster.
    #[must_use]
    pub(crate) const fn is_cluster(&self) -> bool {
        matches!(self.unit, CpuOrCluster::Cluster(_))
    }
}

/// Idle, by state.
fn idle(row: &CpuOrClusterRow<'_>) -> Vec<Row> {
    let state = |idle: &IdleRow| Row {
        idle: Some(idle.clone()),
        ..Row::new(What::IdleState(idle.state, idle.name.clone()), idle.ns, Some(idle.hits))
    };
    row.idle.iter().map(state).collect()
}

/// Running, as one.
fn running(row: &CpuOrClusterRow<'_>) -> Vec<Row> {
    let ns = row.running.iter().map(|row| row.ns).sum();
    // Its stretches are counted by frequency: how many there are of all is not known.
    vec![Row::new(What::Running, ns, None)]
}

/// Rows of time that is neither running nor idle in a known state.
fn rest(row: &CpuOrClusterRow<'_>) -> Vec<Row> {
    vec![
        Row::new(What::IdleUnknown, row.idle_unknown_ns, None),
        Row::new(What::Offline, row.offline_ns, None),
        Row::new(What::Unknown, row.unknown_ns, None),
    ]
}

/// Running, by the frequency that was requested, from the fastest down.
fn requested(row: &CpuOrClusterRow<'_>) -> Vec<Row> {
    let rows = row.running.iter().map(|row| Row::new(What::At(row.khz), row.ns, Some(row.hits)));
    fastest_first(rows.collect())
}

/// Running, by the frequency that the cluster had, from the fastest down.
fn effective(row: &CpuOrClusterRow<'_>) -> Vec<Row> {
    let known = row.cpu.map(|cpu| &cpu.effective[..]).unwrap_or_default();
    let mut rows: Vec<Row> = known.iter().map(|row| Row::new(What::At(row.khz), row.ns, None)).collect();
    let running: u64 = row.running.iter().map(|row| row.ns).sum();
    let missing = running.saturating_sub(rows.iter().map(|row| row.ns).sum());
    if missing > 0 {
        match rows.iter_mut().find(|row| row.what == What::At(None)) {
            Some(unknown) => unknown.ns += missing,
            None => rows.push(Row::new(What::At(None), missing, None)),
        }
    }
    fastest_first(rows)
}

fn fastest_first(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by_key(|row| match row.what {
        What::At(khz) => Reverse(khz),
        _ => Reverse(None),
    });
    rows
}

/// Rows of time that is not running, as far as a table of frequencies separates it.
fn asleep(row: &CpuOrClusterRow<'_>) -> Vec<Row> {
    let idle = row.idle.iter().map(|row| row.ns).sum::<u64>() + row.idle_unknown_ns;
    vec![
        Row::new(What::Idle, idle, None),
        Row::new(What::Offline, row.offline_ns, None),
        Row::new(What::Unknown, row.unknown_ns, None),
    ]
}
