//! Dispatch overhead: idle CPUs while work waits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Idle CPUs while work that was handed over waited for its start, from the first start of work to its last end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DispatchOverheadRow {
    /// First start of work, ns.
    pub begin_ns: u64,
    /// Last end of work, ns.
    pub end_ns: u64,
    /// Hand-overs whose wait is known.
    pub hand_overs: u64,
    /// Hand-overs of which no start was seen, or neither dispatch nor receipt.
    pub not_counted: u64,
    /// Hand-overs whose clusters are inferred: those that the thread which took the work ran on. Others wait for every cluster.
    pub placed: u64,
    /// Longest piece of which the order of states is not known, ns: in one, a CPU counts as in the state that lasts longest; null
    /// where every state is kept.
    pub resolution_ns: Option<u64>,
    /// Times that the state of a cluster changed.
    pub changes: u64,
    /// Clusters of CPUs that share a clock.
    pub clusters: Vec<ClusterOverheadRow>,
    /// Every cluster had an idle CPU and ready work, ns.
    pub all_overhead_ns: u64,
    /// Work was ready, and each cluster that it was ready for had an idle CPU, ns.
    pub has_overhead_ns: u64,
}

/// One cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterOverheadRow {
    /// Name of the cluster.
    pub cluster: String,
    /// Its CPUs.
    pub cpus: Vec<u32>,
    /// A CPU was idle, ns.
    pub idle_ns: u64,
    /// Work was ready, ns.
    pub ready_ns: u64,
    /// A CPU was idle, and work was ready, ns.
    pub overhead_ns: u64,
    /// The state of a CPU was not known, ns.
    pub unknown_ns: u64,
}
