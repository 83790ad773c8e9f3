//! The headline of a run: its work, how long that took, what a user of a language model waited for, how busy devices were, and
//! the energy.

use std::cmp::Reverse;

use nntrace_common::layer::Tag;
use serde::Serialize;

use super::{
    incomplete_figures::Figures,
    number_format::{duration_ns, energy, known_energy, per_second, percent, plural},
    snapshot::{DeviceRow, FunctionRow, LanguageModelRow, ResultUnit, Snapshot},
};

/// Rings that have lines at most.
const MOST_DEVICES: usize = 4;

/// The headline of a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Headline {
    /// Length of the run, ns.
    window_ns: u64,
    /// The function that the run is about; `None` where no marked section ended.
    work: Option<Work>,
    /// Prompts and tokens by process.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    language_models: Vec<LanguageModelRow>,
    /// Rings of accelerators and GPUs, the busiest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    devices: Vec<DeviceRow>,
    /// `None` without an energy model.
    energy: Option<Energy>,
    /// Whether records were lost, so that figures are too small.
    is_incomplete: bool,
}

/// The function that the run is about.
#[derive(Clone, Debug, Serialize)]
struct Work {
    function: String,
    count: u64,
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
}

/// Energy of all CPUs and clusters, by the energy model.
#[derive(Clone, Copy, Debug, Serialize)]
struct Energy {
    unit: ResultUnit,
    total: f64,
    total_min: f64,
    total_max: f64,
    /// Energy of the run by the executions of [`Work`]; `None` where none ended.
    per_execution: Option<f64>,
}

/// Returns the function that takes most time; `None` where none has ended. Phases of the application, which are around all
/// else, come last.
#[must_use]
pub(crate) fn main_function(functions: &[FunctionRow]) -> Option<&FunctionRow> {
    let ended = functions.iter().filter(|row| row.count > 0);
    ended.max_by_key(|row| (!row.phase.is_application_phase(), row.total_ns))
}

impl Headline {
    /// Creates the headline of a run that is about this function.
    #[must_use]
    pub(crate) fn of(snapshot: &Snapshot, function: Option<&FunctionRow>) -> Self {
        let work = function.map(|row| Work {
            function: format!("{}:{}", Tag::new(row.layer, row.phase), row.name),
            count: row.count,
            p50_ns: row.p50_ns,
            p99_ns: row.p99_ns,
            max_ns: row.max_ns,
        });
        let energy = snapshot.energy.as_ref().map(|energy| Energy {
            unit: energy.unit,
            total: energy.total,
            total_min: energy.total_min,
            total_max: energy.total_max,
            per_execution: work.as_ref().map(|work| energy.total / work.count as f64),
        });
        let mut devices = snapshot.devices.clone();
        devices.sort_by_key(|row| Reverse(row.busy_ns));
        Self {
            window_ns: snapshot.window.length_ns(),
            work,
            language_models: snapshot.language_models.clone(),
            devices,
            energy,
            is_incomplete: snapshot.loss.makes_incomplete("functions"),
        }
    }

    /// Length of the run, ns.
    pub(crate) const fn window_ns(&self) -> u64 {
        self.window_ns
    }

    /// Whether any marked section ended.
    pub(crate) const fn has_work(&self) -> bool {
        self.work.is_some()
    }

    /// Figures as they are shown.
    pub(crate) const fn figures(&self) -> Figures {
        Figures::new(self.is_incomplete)
    }

    /// Returns the headline as lines for people.
    #[must_use]
    pub(crate) fn lines(&self) -> Vec<String> {
        let no_work = || "no marked section ended".to_owned();
        let mut lines = vec![self.work.as_ref().map_or_else(no_work, |work| self.work_line(work))];
        for row in &self.language_models {
            let process = match self.language_models.len() {
                1 => String::new(),
                _ => format!("{} ({}) ", row.comm, row.pid),
            };
            lines.extend(tokens(row, self.figures()).map(|line| process.clone() + &line));
        }
        lines.extend(self.devices.iter().take(MOST_DEVICES).map(|row| device_line(row, self.window_ns)));
        lines.extend(self.energy.as_ref().filter(|_| self.work.is_some()).map(energy_line));
        lines
    }

    fn work_line(&self, work: &Work) -> String {
        let Work { function, count: number, p50_ns, p99_ns, max_ns } = work;
        let rate = match self.window_ns {
            0 => String::new(),
            ns => format!(", {:.1} a second", *number as f64 * 1e9 / ns as f64),
        };
        let at_least = if self.is_incomplete { "at least " } else { "" };
        let [p50, p99, max] = [p50_ns, p99_ns, max_ns].map(|ns| duration_ns(*ns));
        let times = plural(*number, "time");
        format!("{function} ended {at_least}{times}{rate}: p50 {p50}, p99 {p99}, max {max}")
    }
}

fn energy_line(all: &Energy) -> String {
    let known = |value: f64, most: f64| known_energy(value, most, all.unit);
    let each = all
        .per_execution
        .map_or_else(String::new, |each| format!(", {} for each execution", known(each, all.total_max)));
    format!(
        "energy of all CPUs and clusters {}{each} ({} to {} with what is unknown)",
        known(all.total, all.total_max),
        energy(all.total_min, all.unit),
        energy(all.total_max, all.unit)
    )
}

/// Returns how busy a ring was, and with jobs of whom.
fn device_line(row: &DeviceRow, window_ns: u64) -> String {
    let busy = percent(row.busy_ns, window_ns);
    let jobs = plural(row.jobs(), "job");
    let known = row.processes.iter().filter_map(|process| Some((process.pid?, process)));
    let mut by: Vec<String> = known
        .take(3)
        .map(|(pid, process)| {
            let comm = if process.comm.is_empty() { "unknown" } else { &process.comm };
            format!("{} by {comm} ({pid})", percent(process.running_ns, row.busy_ns))
        })
        .collect();
    if let Some(first) = by.first_mut() {
        *first = first.replacen(" by ", " of that by ", 1);
    }
    if row.processes.len() > by.len() && !by.is_empty() {
        by.push("the rest by others".into());
    }
    let by = if by.is_empty() { String::new() } else { format!(": {}", by.join(", ")) };
    format!("{} was busy {busy} of the time ({jobs}){by}", row.name())
}

/// Returns what a user of a language model waits for: a line for prompts, a line for decoding.
fn tokens(row: &LanguageModelRow, figures: Figures) -> impl Iterator<Item = String> {
    let time = |ns| figures.known(ns, duration_ns);
    let rate = |tokens, ns| figures.text(&per_second(tokens, ns));
    let prompts = (row.prompt_batches > 0).then(|| {
        let first = &row.first_token;
        let waits = match first.count {
            0 => String::new(),
            requests => format!(
                "; time to first token p50 {}, max {} ({})",
                time(first.p50_ns),
                time(first.max_ns),
                figures.plural(requests, "request")
            ),
        };
        let tokens = figures.plural(row.prompt_tokens, "token");
        let rate = rate(row.prompt_tokens, row.prompt_ns);
        format!("prompts: {tokens}, {rate} a second{waits}")
    });
    let decoding = (row.decode.count > 0).then(|| {
        let between = &row.between_tokens;
        let waits = match between.count {
            0 => String::new(),
            _ => format!(
                "; between tokens p50 {}, p99 {}, max {}",
                time(between.p50_ns),
                time(between.p99_ns),
                time(between.max_ns)
            ),
        };
        let tokens = figures.plural(row.decode.count, "token");
        let rate = rate(row.decode.count, row.decode.total_ns);
        format!("decoding: {tokens}, {rate} a second{waits}")
    });
    prompts.into_iter().chain(decoding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::snapshot::DurationsRow;

    #[test]
    fn devices_name_the_processes_that_kept_them_busy() {
        let lines = DeviceRow::samples().iter().map(|row| device_line(row, 100_000_000)).collect::<Vec<_>>();
        assert_eq!(
            lines,
            [
                "fdab0000.npu rknn was busy 33.0% of the time (81 jobs): 90.9% of that by camera (812), the rest by others",
                "pp was busy 30.0% of the time (80 jobs): 100% of that by camera (812)",
            ]
        );
    }

    #[test]
    fn what_is_not_known_of_tokens_is_left_out() {
        let waits = |count: u64| DurationsRow {
            count,
            total_ns: count * 20_000_000,
            p50_ns: (count > 0).then_some(20_000_000),
            p95_ns: (count > 0).then_some(22_000_000),
            p99_ns: (count > 0).then_some(24_000_000),
            max_ns: (count > 0).then_some(30_000_000),
        };
        let row = |prompt_batches, decoded, requests, between| LanguageModelRow {
            pid: 7,
            comm: "chat".into(),
            prompt_batches,
            prompt_tokens: 512 * prompt_batches,
            prompt_ns: 400_000_000 * prompt_batches,
            decode: waits(decoded),
            first_token: waits(requests),
            between_tokens: waits(between),
        };
        let rows = [row(1, 100, 1, 100), row(2, 0, 0, 0), row(0, 1, 0, 0)];
        let lines: Vec<String> = rows.iter().flat_map(|row| tokens(row, Figures::new(false))).collect();
        assert_eq!(
            lines,
            [
                "prompts: 512 tokens, 1,280 a second; time to first token p50 20.0 ms, max 30.0 ms (1 request)",
                "decoding: 100 tokens, 50.0 a second; between tokens p50 20.0 ms, p99 24.0 ms, max 30.0 ms",
                "prompts: 1,024 tokens, 1,280 a second",
                "decoding: 1 token, 50.0 a second",
            ]
        );
    }
}
