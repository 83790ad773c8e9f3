//! Prompts and tokens of language models.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Work of the language models of a process: executions in the runtime that state a number of tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LanguageModelRow {
    /// Process id.
    pub pid: u32,
    /// Name of the process.
    pub comm: String,
    /// Batches of two tokens or more: parts of prompts.
    pub prompt_batches: u64,
    /// Tokens in them.
    pub prompt_tokens: u64,
    /// Their time, ns.
    pub prompt_ns: u64,
    /// Batches of one token: steps of decoding.
    pub decode: DurationsRow,
    /// Time from the start of a prompt's first batch to the end of its last, by request: a prompt that a step of
    /// decoding follows. Inferred where a prompt was divided into batches.
    pub first_token: DurationsRow,
    /// Time from the end of a batch to the end of the step of decoding that follows on its thread.
    pub between_tokens: DurationsRow,
}

/// Durations of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DurationsRow {
    /// Number of them.
    pub count: u64,
    /// Their sum, ns.
    pub total_ns: u64,
    /// Median, ns; null where there is none.
    pub p50_ns: Option<u64>,
    /// 95th percentile, ns; null where there is none.
    pub p95_ns: Option<u64>,
    /// 99th percentile, ns; null where there is none.
    pub p99_ns: Option<u64>,
    /// Longest, ns; null where there is none.
    pub max_ns: Option<u64>,
}

#[cfg(test)]
impl LanguageModelRow {
    /// Three prompts in three batches, and 127 steps of decoding.
    pub(crate) fn sample() -> Self {
        let durations = |count: u64, ns: u64| DurationsRow {
            count,
            total_ns: count * ns,
            p50_ns: Some(ns),
            p95_ns: Some(ns + ns / 10),
            p99_ns: Some(ns + ns / 5),
            max_ns: Some(2 * ns),
        };
        Self {
            pid: 4242,
            comm: "llama-server".into(),
            prompt_batches: 3,
            prompt_tokens: 1_536,
            prompt_ns: 1_200_000_000,
            decode: durations(127, 12_100_000),
            first_token: durations(3, 400_000_000),
            between_tokens: durations(127, 12_600_000),
        }
    }
}
