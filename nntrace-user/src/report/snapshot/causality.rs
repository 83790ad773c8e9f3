//! Why work was done: iterations, accounts, what is missing.

use serde::{Deserialize, Serialize};

/// A marked function of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteRow {
    /// Process.
    pub pid: u32,
    /// Layer.
    pub layer: String,
    /// Phase.
    pub phase: String,
    /// Name of the function.
    pub name: String,
}

/// One occurrence of a function that carries a number, or is numbered because it was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IterationRow {
    /// Process.
    pub pid: u32,
    /// Name of the function.
    pub name: String,
    /// Its number.
    pub iter: u64,
    /// The iteration that this one is part of.
    pub parent: Option<IterationKey>,
    /// Sections that are this iteration, of those that ended.
    pub count: u64,
    /// Sections that are this iteration and have not ended: while there are any, it is in no mean and no extreme.
    #[serde(default)]
    pub open: u64,
    /// Durations of those that ended, ns.
    pub total_ns: u64,
    /// That without the marked sections in them, on the same thread, ns.
    pub exclusive_ns: u64,
    /// From the first begin to the last end of what was done in it, on any thread, ns.
    pub wall_ns: u64,
    /// What no section covers, on any thread, ns.
    pub missing_ns: u64,
    /// What was done in it.
    pub functions: Vec<IterationFunctionRow>,
}

/// What tells an iteration from others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IterationKey {
    /// Name of the function.
    pub name: String,
    /// Its number.
    pub iter: u64,
}

/// What the sections of a function add up to in one iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IterationFunctionRow {
    /// The function.
    #[serde(flatten)]
    pub site: SiteRow,
    /// Sections.
    pub count: u64,
    /// Their durations, ns.
    pub total_ns: u64,
    /// That without the marked sections in them, ns.
    pub exclusive_ns: u64,
    /// From the first begin to the last end, ns.
    pub wall_ns: u64,
}

/// What is charged to one account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccountRow {
    /// Its name; null for what nobody is charged with.
    pub account: Option<String>,
    /// Sections.
    pub count: u64,
    /// Their exclusive time, ns: the sum of the four that follow, or, without an account, of all sections.
    pub exclusive_ns: u64,
    /// Of sections whose mark names the account, ns.
    pub explicit_ns: u64,
    /// Of sections nested in such, ns.
    pub nested_ns: u64,
    /// Of sections that run what was handed over from such, and what is nested in them, ns.
    pub handed_over_ns: u64,
    /// Of sections of threads that were created in such, ns.
    pub created_ns: u64,
    /// By function.
    pub functions: Vec<AccountFunctionRow>,
}

/// What is charged to one account for one function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupRow {
    /// The attribute.
    pub key: String,
    /// Its value.
    pub value: String,
    /// The function.
    #[serde(flatten)]
    pub site: SiteRow,
    /// Sections.
    pub count: u64,
    /// Their durations, ns.
    pub total_ns: u64,
    /// Exclusive time, ns.
    pub exclusive_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
}

/// What no section covers of the roots of one function: of iterations, or, where there are none, of outermost sections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissingRow {
    /// The function.
    #[serde(flatten)]
    pub site: SiteRow,
    /// Roots.
    pub count: u64,
    /// Their durations, ns.
    pub total_ns: u64,
    /// What nothing covers, on any thread, ns.
    pub missing_ns: u64,
    /// The most of it in one root, ns.
    pub max_missing_ns: u64,
    /// What the roots' threads did meanwhile; null where nobody looked (`--level sched`).
    #[serde(default)]
    pub states: Option<StatesRow>,
}

/// What threads did in a time; the five add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatesRow {
    /// They ran, ns.
    pub on_cpu_ns: u64,
    /// They waited for a CPU, ns.
    pub runnable_ns: u64,
    /// They slept, ns.
    pub sleeping_ns: u64,
    /// They slept, and no signal would have woken them, ns.
    pub uninterruptible_ns: u64,
    /// Not known, ns.
    pub unknown_ns: u64,
}

/// Why a function takes now more, now less time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplanationRow {
    /// The function.
    pub function: String,
    /// How often it ran.
    pub count: u64,
    /// Its duration on average, ns.
    pub mean_ns: f64,
    /// The variance of its duration, ns squared.
    pub variance: f64,
    /// What callees have to do with it; the largest shares first.
    pub callees: Vec<CalleeRow>,
}

/// What one callee has to do with the variance of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalleeRow {
    /// Name of the callee.
    pub name: String,
    /// Calls.
    pub calls: u64,
    /// Calls in one function, on average.
    pub mean_calls: f64,
    /// Duration of one call on average, ns.
    pub mean_ns: f64,
    /// Share of the variance, of 1, as it runs now more, now less often.
    pub how_often: f64,
    /// Share of the variance, of 1, as each call takes now more, now less time.
    pub how_long: f64,
}

/// How much work was handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOverCounts {
    /// Hand-overs.
    pub sent: u64,
    /// Times that it was taken.
    pub received: u64,
    /// Times that something was taken which nobody had handed over.
    pub unmatched: u64,
}
