//! Batches of tokens that language models are run on: prompts, and tokens of the answer.
//!
//! A batch is an execution in the runtime whose name states a number of tokens ([`nntrace_common::tokens`]). As in
//! llama.cpp, one of a single token is a step of decoding, any other is a part of a prompt, even one that decodes several
//! sequences together.
//!
//! A request is a prompt that a step of decoding follows on its thread. No event says where a long prompt was divided:
//! batches are one prompt if nothing but a [short](MOST_PAUSE) pause is between them. A step after a [long](LONG_PAUSE)
//! pause is of another request, whose prompt was known already.

use std::collections::BTreeMap;

use nntrace_common::{
    layer::{Layer, Phase, Tag},
    record::SpanRecord,
};
use rustc_hash::FxHashMap;

use super::{histogram::Durations, limits::Limits};

/// Longest pause inside of a prompt, as a part of the batch before it.
const MOST_PAUSE: u64 = 10;
/// Pause that no program makes between two tokens of an answer, ns.
const LONG_PAUSE: u64 = 1_000_000_000;
/// Layer and phase of batches.
const BATCH: Tag = Tag::new(Layer::Runtime, Phase::Execution);

/// The batches of all processes.
pub(crate) struct LanguageModels {
    processes: BTreeMap<u32, TokenTimes>,
    threads: FxHashMap<(u32, u32), Request>,
    /// Start of the window, ns: of a batch that was open then, only a part is known.
    since: u64,
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
    /// Times from the start of a request's prompt to its end, when the first token can be chosen.
    pub(crate) first_token: Durations,
    /// Times from the end of a batch to that of the step after it, with what the program did between them.
    pub(crate) between_tokens: Durations,
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
    /// Start of its first batch, ns.
    begin: u64,
    /// Duration of its last batch, ns.
    last_ns: u64,
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
            since: 0,
            // Each has three distributions, a layer and phase has one.
            most_processes: (limits.phases / 3).max(1),
            most_threads: limits.threads,
            left_out: 0,
        }
    }

    /// Returns the table for a window that starts at `since` (ns).
    #[must_use]
    pub(crate) fn since(self, since: u64) -> Self {
        Self { since, ..self }
    }

    /// Whether a section may be a batch; if so, its place in the order of its thread matters.
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
        let last = last.filter(|last| last.ended.is_none_or(|ended| begin < ended));
        let ended = last.and_then(|last| last.ended);
        if begin <= self.since && self.since > 0 {
            self.threads.insert((tgid, tid), Request { end, prompt: None, ended });
            return;
        }
        let times = self.processes.entry(tgid).or_default();
        let prompt = if tokens == 1 {
            let answered = last.filter(|last| begin.saturating_sub(last.end) < LONG_PAUSE);
            if let Some(Request { end: before, prompt, .. }) = answered {
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
            Some(Prompt { begin: last.map_or(begin, |last| last.start_of_prompt(begin)), last_ns: duration })
        };
        self.threads.insert((tgid, tid), Request { end, prompt, ended });
    }

    /// Notes that a thread ended at that time (ns); batches of it may still come.
    pub(crate) fn exit(&mut self, pid: u32, tid: u32, time: u64) {
        if let Some(request) = self.threads.get_mut(&(pid, tid)) {
            request.ended = Some(time);
        }
    }

    /// Makes room for requests: forgets those of threads that ended, or all if none has.
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

impl Request {
    /// Returns the start (ns) of the prompt that a batch at `begin` (ns) is a part of.
    fn start_of_prompt(&self, begin: u64) -> u64 {
        let pause = begin.saturating_sub(self.end);
        let goes_on = self.prompt.filter(|prompt| pause <= prompt.last_ns / MOST_PAUSE);
        goes_on.map_or(begin, |prompt| prompt.begin)
    }
}

#[cfg(test)]
mod tests;
