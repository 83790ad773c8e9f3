//! Hand-overs, put together and split.

use nntrace_common::layer::{Layer, Phase};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hand-overs of work with their anchors: dispatch, receipt, start, end and finish.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HandOverSplit {
    /// Hand-overs.
    pub count: u64,
    /// Hand-overs that were taken before they were given: clocks or marks are wrong. They have no propagation and no head.
    pub hb_violations: u64,
    /// Hand-overs whose setup is shorter than a unit of the clock: pictures have no bar of it.
    pub setup_suppressed: u64,
    /// Calls of an interface of which no server was seen.
    pub unserved: u64,
    /// Calls of an interface that were served of which no client was seen.
    pub uncalled: u64,
    /// Sums by evidence, layers, phase and function.
    pub pairs: Vec<HandOverPair>,
}

/// Hand-overs between two layers, in one phase, to one function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HandOverPair {
    /// Layer that hands the work over; null where no section around the dispatch was seen.
    pub from: Option<Layer>,
    /// Layer that does the work; null where no section that does it was seen.
    pub to: Option<Layer>,
    /// Phase.
    pub phase: Option<Phase>,
    /// Function that does the work, or method of an interface.
    pub name: Option<String>,
    /// Evidence.
    pub evidence: HandOverEvidence,
    /// Hand-overs.
    pub count: u64,
    /// Hand-overs that were taken before they were given.
    pub hb_violations: u64,
    /// Hand-overs that waited at a gate after their first receipt: propagation is up to when that opened.
    pub gated: u64,
    /// Time from the dispatch to the receipt, which is the kernel's way.
    pub propagation: Option<HandOverPart>,
    /// Time from the receipt to the start of the work.
    pub setup: Option<HandOverPart>,
    /// Time from the dispatch to the start: propagation and setup.
    pub head: Option<HandOverPart>,
    /// Time from the start to the end of the work.
    pub execution: Option<HandOverPart>,
    /// Time from the end of the work to the result at the one who handed it over.
    pub tail: Option<HandOverPart>,
    /// Time from the dispatch to the result.
    pub latency: Option<HandOverPart>,
}

/// Lengths of a part of hand-overs. Percentiles have two significant digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandOverPart {
    /// Hand-overs of which both ends are known.
    pub count: u64,
    /// Sum, ns.
    #[schemars(with = "u64")]
    pub sum_ns: u128,
    /// Shortest, ns.
    pub min_ns: u64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 95th percentile, ns.
    pub p95_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
    /// Length in the first hand-over, which finds caches cold and code not loaded, ns.
    pub first_ns: Option<u64>,
    /// Median of the others, ns.
    pub rest_p50_ns: Option<u64>,
    /// Longest of the others, ns.
    pub rest_max_ns: Option<u64>,
}

/// Evidence for hand-overs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HandOverEvidence {
    /// Marks with one handle.
    Handle,
    /// Transactions of the binder driver.
    Binder,
    /// Marks of both sides of an interface call, put together first in, first out.
    Interface,
    /// Begin and end of an asynchronous call.
    Asynchronous,
    /// Wake-ups: inferred.
    WakeUp,
}
