//! Rows of language models.

use crate::{
    model::{findings::Findings, histogram::Durations},
    report::snapshot::{DurationsRow, LanguageModelRow},
};

impl Findings<'_> {
    pub(super) fn language_models(&self) -> Vec<LanguageModelRow> {
        let rows = self.marks.language_models.by_process().map(|(pid, times)| LanguageModelRow {
            pid,
            comm: self.run.processes.get(&pid).map(|process| process.comm.clone()).unwrap_or_default(),
            prompt_batches: times.prompt_batches,
            prompt_tokens: times.prompt_tokens,
            prompt_ns: times.prompt_ns,
            decode: row(&times.decode),
            first_token: row(&times.first_token),
            between_tokens: row(&times.between_tokens),
        });
        rows.collect()
    }
}

/// Returns the row of durations.
pub(super) fn row(durations: &Durations) -> DurationsRow {
    let (times, extremes) = (durations.times.histogram(), durations.times.extremes());
    // A bucket of the histogram may reach beyond what was measured.
    let quantile = |q| extremes.map(|(least, most)| times.value_at_quantile(q).clamp(least, most));
    DurationsRow {
        count: durations.times.count(),
        total_ns: durations.total_ns,
        p50_ns: quantile(0.5),
        p95_ns: quantile(0.95),
        p99_ns: quantile(0.99),
        max_ns: extremes.map(|(_, most)| most),
    }
}
