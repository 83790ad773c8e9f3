//! The states of every CPU and cluster in their order, where a timeline is asked for.
//!
//! Source: the power contract, sections 1 and 2.

use std::collections::BTreeMap;

use super::timeline::Timeline;

/// Stretches that are kept one by one, over all timelines: about 16 MB.
pub(crate) const MAX_STEPS: usize = 1 << 20;

/// The timelines of all clusters and CPUs in one window.
#[derive(Clone, Debug, Default)]
pub struct Timelines {
    /// By name, in the order of the topology.
    pub clusters: Vec<(String, Timeline)>,
    /// By CPU.
    pub cpus: BTreeMap<u32, Timeline>,
}
