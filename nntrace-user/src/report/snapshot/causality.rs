//! Causes of work: accounts, time that no section covers.

use nntrace_common::layer::{Layer, Phase};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A marked function of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SiteRow {
    /// Process id.
    pub pid: u32,
    /// Layer.
    pub layer: Layer,
    /// Phase.
    pub phase: Phase,
    /// Name of the function.
    pub name: String,
}

/// Time that is charged to one account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccountRow {
    /// Name of the account; null for the time that nobody is charged with.
    pub account: Option<String>,
    /// Sections.
    pub count: u64,
    /// Their exclusive time, ns: the sum of the four that follow, or, without an account, of all sections.
    pub exclusive_ns: u64,
    /// Exclusive time of sections whose mark names the account, ns.
    pub explicit_ns: u64,
    /// Exclusive time of sections nested in such, ns.
    pub nested_ns: u64,
    /// Exclusive time of sections that run work handed over from such, and of those nested in them, ns.
    pub handed_over_ns: u64,
    /// Exclusive time of sections of threads that were created in such, ns.
    pub created_ns: u64,
    /// Sections and exclusive time by function.
    pub functions: Vec<AccountFunctionRow>,
}

/// Time of one function that is charged to one account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccountFunctionRow {
    /// The function.
    #[serde(flatten)]
    pub site: SiteRow,
    /// Sections.
    pub count: u64,
    /// Exclusive time, ns.
    pub exclusive_ns: u64,
}

/// The sections under one value of the attribute that was asked for, by function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupRow {
    /// Attribute that was asked for.
    pub key: String,
    /// Value of the attribute.
    pub value: String,
    /// The function.
    #[serde(flatten)]
    pub site: SiteRow,
    /// Sections.
    pub count: u64,
    /// Sum of their durations, ns.
    pub total_ns: u64,
    /// Exclusive time, ns.
    pub exclusive_ns: u64,
    /// Longest section, ns.
    pub max_ns: u64,
}

/// Time that no section covers in the roots of one function. Roots are iterations, or, where there are none, outermost
/// sections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissingRow {
    /// The function.
    #[serde(flatten)]
    pub site: SiteRow,
    /// Roots.
    pub count: u64,
    /// Sum of their durations, ns.
    pub total_ns: u64,
    /// Time in them that no section covers, on any thread, ns.
    pub missing_ns: u64,
    /// Most of it in one root, ns.
    pub max_missing_ns: u64,
    /// States of the roots' threads meanwhile; null where scheduling was not traced (`--level sched`).
    #[serde(default)]
    pub states: Option<StatesRow>,
}

/// Time of threads by state; the five add up to the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatesRow {
    /// Running, ns.
    pub on_cpu_ns: u64,
    /// Waiting for a CPU, ns.
    pub runnable_ns: u64,
    /// Asleep, ns.
    pub sleeping_ns: u64,
    /// Asleep so that no signal wakes them, ns.
    pub uninterruptible_ns: u64,
    /// Not known, ns.
    pub unknown_ns: u64,
}

/// Causes of the variance of a function's duration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplanationRow {
    /// Name of the function.
    pub function: String,
    /// Times that it ran.
    pub count: u64,
    /// Mean duration, ns.
    pub mean_ns: f64,
    /// Variance of the duration, ns squared.
    pub variance: f64,
    /// Shares of its callees, the largest first.
    pub callees: Vec<CalleeRow>,
}

/// Share of one callee in the variance of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalleeRow {
    /// Name of the callee.
    pub name: String,
    /// Calls.
    pub calls: u64,
    /// Mean number of calls each time that the function runs.
    pub mean_calls: f64,
    /// Mean duration of a call, ns.
    pub mean_ns: f64,
    /// Share of the variance that is due to how often it is called; of 1.
    pub how_often: f64,
    /// Share of the variance that is due to how long a call takes; of 1.
    pub how_long: f64,
}

/// Counts of work that was handed over between sections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandOverCounts {
    /// Hand-overs.
    pub sent: u64,
    /// Takes of handed-over work.
    pub received: u64,
    /// Takes of work that nobody had handed over.
    pub unmatched: u64,
}
