//! Notes on tables that were full.

use std::collections::BTreeMap;

use crate::model::{findings::Findings, plurals::one_or_many};

impl Findings<'_> {
    /// Rows that were summed as `(others)`, or forgotten, by table.
    pub(super) fn summed(&self) -> BTreeMap<String, u64> {
        let marks = self.marks;
        let [functions, phases, sites] = marks.sites.summed();
        let causality = &marks.causality;
        let all = [
            ("functions", functions),
            ("phases", phases),
            ("sites", sites),
            ("tracks", marks.tracks.summed()),
            ("open_slices", marks.tracks.forgotten),
            ("open_executions", marks.executions.forgotten),
            ("hand_overs", causality.handles.forgotten),
            ("causes", causality.summed()),
            ("values", causality.accounts.names.beyond + causality.groups.values.beyond),
            ("language_models", marks.language_models.left_out),
            ("devices", self.devices.left_out()),
            ("device_clocks", self.device_clocks.left_out),
            ("iterations", causality.iterations.left_out),
            ("sections", causality.graph.left_out),
            ("hand_over_list", causality.hand_overs.as_ref().map_or(0, |hand_overs| hand_overs.left_out())),
        ];
        let met = all.into_iter().filter(|(_, count)| *count > 0);
        met.map(|(table, count)| (table.to_owned(), count)).chain(self.run.loss.summed.clone()).collect()
    }

    /// Returns these counts in words.
    pub(super) fn notes_on_room(&self) -> Vec<String> {
        let words = |table: &str| match table {
            "functions" => [
                "function with the least time is summed as (others)",
                "functions with the least time are summed as (others)",
            ],
            "phases" => [
                "process's layer and phase has no percentiles of its own: it is summed as (others)",
                "processes' layers and phases have no percentiles of their own: they are summed as (others)",
            ],
            "tracks" => [
                "counter, instant or slice of the fewest marks is summed as (others)",
                "counters, instants and slices of the fewest marks are summed as (others)",
            ],
            "open_slices" => [
                "asynchronous slice was forgotten before it ended",
                "asynchronous slices were forgotten before they ended",
            ],
            "open_executions" => [
                "execution was forgotten before it was waited for",
                "executions were forgotten before they were waited for",
            ],
            "hand_overs" => {
                ["hand-over was forgotten, the oldest", "hand-overs were forgotten, the oldest first"]
            }
            "causes" => [
                "function with the least time of an account, value or root is summed as (others)",
                "functions with the least time of an account, value or root are summed as (others)",
            ],
            "language_models" => [
                "batch of tokens of a further process, or request of a further thread, was left out",
                "batches of tokens of further processes, and requests of further threads, were left out",
            ],
            "device_clocks" => [
                "frequency of a device was dropped, as there are too many",
                "frequencies of devices were dropped, as there are too many",
            ],
            "devices" => [
                "device job or its event was dropped, or has no row of its process or section",
                "device jobs or their events were dropped, or have no row of their process or section",
            ],
            "values" => [
                "time an account or value came for which there was no room: it is (others)",
                "times an account or value came for which there was no room: it is (others)",
            ],
            _ => [""; 2],
        };
        let notes = self.summed().into_iter().map(|(table, count)| {
            let [one, many] = words(&table);
            (one_or_many(count, one, many), count)
        });
        let notes = notes.filter(|(words, _)| !words.is_empty());
        // The tables of devices do not grow.
        let more = |words: &str| {
            if words.contains("device") { "" } else { "; more are kept with a larger --memory" }
        };
        notes.map(|(words, count)| format!("{count} {words}{}", more(words))).collect()
    }
}
