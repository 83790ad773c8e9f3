//! Batches of tokens that language models are run on: prompts, and tokens of the answer.
//!
//! A batch is an execution in the runtime whose name states a number of tokens ([`nntrace_common::tokens`]). As llama.cpp
//! counts them, one of a single token is a step of decoding, any other a part of a prompt: also several sequences that
//! are decoded together.
//!
//! A request is a prompt that a step of decoding follows on its thread. No event says where a long prompt was divided:
//! batches of one size, a multiple of [`DIVISOR`], and one that is not larger, with no step between them, are one prompt.

use std::collections::BTreeMap;

use nntrace_common::{
    layer::{Layer, Phase, Tag},
    record::SpanRecord,
};
use rustc_hash::FxHashMap;

use super::{
    histogram::{MANY_DIGITS, Times},
    limits::Limits,
};

/// Divisor of the sizes that engines divide long prompts into.
const DIVISOR: u32 = 32;
/// Layer and phase of batches.
const BATCH: Tag = Tag::new(Layer::Runtime, Phase::Execution);

/// The batches of all processes.
pub(crate) struct LanguageModels {
    processes: BTreeMap<u32, TokenTimes>,
    threads: FxHashMap<(u32, u32), Request>,
    most_processes: usize,
    most_threads: usize,
    /// Batches of processes beyond the limit, and requests that were forgotten before their first step of decoding, as
    /// too many threads have some.
    pub(crate) left_out: u64,
}

/// Times of the batches of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenTimes {
    /// Batches of prompts.
    pub(crate) prompt_batches: u64,
    /// Tokens in them.
    pub(crate) prompt_tokens: u64,
    /// Their durations together, ns.
    pub(crate) prompt_ns: u64,
    /// Steps of decoding.
    pub(crate) decode: Durations,
    /// From the begin of a request's prompt to its end, when the first token can be chosen.
    pub(crate) first_token: Durations,
    /// From the end of a batch to that of the step after it, with what the program did between them.
    pub(crate) between_tokens: Durations,
}

/// Durations and their sum.
#[derive(Clone, Debug)]
pub(crate) struct Durations {
    /// Their distribution.
    pub(crate) times: Times,
    /// Their sum, ns.
    pub(crate) total_ns: u64,
}

/// Request of a thread.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// When the last batch ended, ns.
    end: u64,
    /// Prompt so far; `None` once a step of decoding has come.
    prompt: Option<Prompt>,
    /// When the thread ended, ns: what begins later is another thread with its id.
    ended: Option<u64>,
}

/// Prompt that no step of decoding has followed yet.
#[derive(Clone, Copy, Debug)]
struct Prompt {
    /// Begin of its first batch, ns.
    begin: u64,
    /// Size that it is divided into; `None` once it cannot go on.
    size: Option<u32>,
}

impl Default for LanguageModels {
    fn default() -> Self {
        Self::new(&Limits::default())
    }
}

impl LanguageModels {
    /// Creates the table, with no batch yet.
    #[must_use]
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            processes: BTreeMap::new(),
            threads: FxHashMap::default(),
            most_processes: limits.processes,
            most_threads: limits.threads,
            left_out: 0,
        }
    }

    /// Whether a section may be a batch, and then counts in the order of its thread.
    #[must_use]
    #[inline]
    pub(crate) fn may_be_batch(span: &SpanRecord) -> bool {
        span.tag == BATCH.index() && span.adds.to_total()
    }

    /// Takes a section that [may be a batch](Self::may_be_batch), and the number of tokens that its name states. Sections of
    /// a thread come in the order in which they ended.
    pub(crate) fn batch(&mut self, span: &SpanRecord, tokens: u32) {
        let SpanRecord { tgid, tid, begin, end, .. } = *span;
        if !self.processes.contains_key(&tgid) && self.processes.len() >= self.most_processes {
            self.left_out += 1;
            return;
        }
        let duration = end.saturating_sub(begin);
        let last = self.threads.get(&(tgid, tid)).copied();
        if last.is_none() && self.threads.len() >= self.most_threads {
            self.forget_requests();
        }
        let times = self.processes.entry(tgid).or_default();
        let last = last.filter(|last| last.ended.is_none_or(|ended| begin < ended));
        let prompt = if tokens == 1 {
            if let Some(Request { end: before, prompt, .. }) = last {
                if let Some(prompt) = prompt {
                    times.first_token.record(before.saturating_sub(prompt.begin));
                }
                times.between_tokens.record(end.saturating_sub(before));
            }
            times.decode.record(duration);
            None
        } else {
            times.prompt_batches += 1;
            times.prompt_tokens = times.prompt_tokens.saturating_add(tokens.into());
            times.prompt_ns = times.prompt_ns.saturating_add(duration);
            Some(Prompt::after(last.and_then(|request| request.prompt), begin, tokens))
        };
        let ended = last.and_then(|last| last.ended);
        self.threads.insert((tgid, tid), Request { end, prompt, ended });
    }

    /// A thread ended at that time (ns), perhaps before batches of it have come.
    pub(crate) fn exit(&mut self, pid: u32, tid: u32, time: u64) {
        if let Some(request) = self.threads.get_mut(&(pid, tid)) {
            request.ended = Some(time);
        }
    }

    /// Makes room for requests: of threads that ended or, were that none, of all.
    #[cold]
    fn forget_requests(&mut self) {
        self.threads.retain(|_, request| request.ended.is_none());
        if self.threads.len() >= self.most_threads {
            self.left_out +=
                self.threads.drain().filter(|(_, request)| request.prompt.is_some()).count() as u64;
        }
    }

    /// Returns the times by process, in the order of their ids.
    pub(crate) fn by_process(&self) -> impl Iterator<Item = (u32, &TokenTimes)> {
        self.processes.iter().map(|(&pid, times)| (pid, times))
    }
}

impl Prompt {
    /// The prompt that a batch begins or, after the one before it, goes on with.
    fn after(before: Option<Self>, begin: u64, tokens: u32) -> Self {
        let divided = |tokens: u32| tokens.is_multiple_of(DIVISOR).then_some(tokens);
        match before {
            Some(Self { begin, size: Some(size) }) if tokens <= size => {
                Self { begin, size: divided(tokens).filter(|&tokens| tokens == size) }
            }
            _ => Self { begin, size: divided(tokens) },
        }
    }
}

impl Default for Durations {
    fn default() -> Self {
        Self { times: Times::new(MANY_DIGITS), total_ns: 0 }
    }
}

impl Durations {
    fn record(&mut self, ns: u64) {
        self.times.record(ns);
        self.total_ns = self.total_ns.saturating_add(ns);
    }
}

#[cfg(test)]
mod tests;
