//! Queries on snapshots, and properties of all of them.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use nntrace_common::{diagnostic::DiagnosticKind, layer::Tag};
use nntrace_user::report::snapshot::{
    ClusterRow, CpuRow, FrequencyRow, IdleRow, PhaseRow, SCHEMA, Snapshot, StackFrame, TableRow,
    TimesByLayer, VERSION,
};

/// Diagnostics of power events: the machine's doing, and no fault of the marks.
const POWER_KINDS: [DiagnosticKind; 3] =
    [DiagnosticKind::EnterWhileIdle, DiagnosticKind::ExitWhileRunning, DiagnosticKind::CpuOutOfRange];

/// Queries on a snapshot. Tags are written as in a path: `LR_PE`.
pub trait Results {
    /// Returns the row of a layer and phase.
    fn phase(&self, pid: u32, tag: &str) -> Option<&PhaseRow>;

    /// Returns the number of frames of a layer and phase; 0 without a row.
    fn count(&self, pid: u32, tag: &str) -> u64;

    /// Returns the number of frames per layer and phase of a process.
    fn counts(&self, pid: u32) -> BTreeMap<String, u64>;

    /// Returns the number of frames per stack of a process, tags joined by spaces.
    fn stack_counts(&self, pid: u32) -> BTreeMap<String, u64>;

    /// Returns the processes with any result of marks.
    fn pids(&self) -> Vec<u32>;

    /// Returns the count of each diagnostic of marks.
    fn odd_marks(&self) -> BTreeMap<&str, u64>;

    /// Checks the properties of every snapshot, whatever was measured.
    ///
    /// # Errors
    /// With the first violation.
    fn check(&self) -> Result<()>;
}

impl Results for Snapshot {
    fn phase(&self, pid: u32, tag: &str) -> Option<&PhaseRow> {
        self.phases.iter().find(|row| row.pid == pid && self::tag(row) == tag)
    }

    fn count(&self, pid: u32, tag: &str) -> u64 {
        self.phase(pid, tag).map_or(0, |row| row.count)
    }

    fn counts(&self, pid: u32) -> BTreeMap<String, u64> {
        self.phases.iter().filter(|row| row.pid == pid).map(|row| (tag(row), row.count)).collect()
    }

    fn stack_counts(&self, pid: u32) -> BTreeMap<String, u64> {
        let text = |path: &[StackFrame]| path.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        self.stacks.iter().filter(|row| row.pid == pid).map(|row| (text(&row.path), row.count)).collect()
    }

    fn pids(&self) -> Vec<u32> {
        let phases = self.phases.iter().map(|row| row.pid);
        let stacks = self.stacks.iter().map(|row| row.pid);
        let functions = self.functions.iter().map(|row| row.pid);
        let mut pids: Vec<u32> = phases.chain(stacks).chain(functions).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    fn odd_marks(&self) -> BTreeMap<&str, u64> {
        let of_marks = self.diagnostics.iter().filter(|row| !POWER_KINDS.contains(&row.kind));
        of_marks.map(|row| (row.kind.name(), row.count)).collect()
    }

    fn check(&self) -> Result<()> {
        ensure!(self.schema == SCHEMA && self.version == VERSION, "{} {}", self.schema, self.version);
        let window = self.window.length_ns();
        ensure!(window > 0, "the window is empty: {:?}", self.window);
        ensure!(!self.cpus.is_empty() && !self.clusters.is_empty(), "no CPU, or no cluster");
        for row in &self.cpus {
            check_cpu(row, window).with_context(|| format!("{row:?}"))?;
        }
        for row in &self.clusters {
            check_cluster(row, window).with_context(|| format!("{row:?}"))?;
        }
        for row in &self.phases {
            check_phase(row).with_context(|| format!("{row:?}"))?;
        }
        let loss = &self.loss;
        ensure!(
            loss.records_produced == loss.records_drained + loss.records_dropped,
            "produced are not drained and dropped: {loss:?}"
        );
        ensure!(loss.dropped_by_cpu.values().sum::<u64>() == loss.records_dropped, "by CPU: {loss:?}");
        Ok(())
    }
}

/// Formats a tag, as in `LR_PE`.
fn tag(row: &PhaseRow) -> String {
    Tag::new(row.layer, row.phase).to_string()
}

/// Cells of a contract's table by `<layer>_<phase>`, ns; the Total row is `LT`.
pub fn cells(times: &TimesByLayer) -> impl Iterator<Item = (String, i64)> {
    times.iter().map(|(row, phase, ns)| {
        let row = match row {
            TableRow::Layer(layer) => layer.code(),
            TableRow::Total => "LT",
        };
        (format!("{row}_{}", phase.code()), ns)
    })
}

fn check_cpu(row: &CpuRow, window: u64) -> Result<()> {
    let running = running(&row.running);
    let parts = idle(&row.idle)? + running + row.idle_unknown_ns + row.offline_ns + row.unknown_ns;
    ensure!(parts == window, "the parts of a CPU are {parts} ns, the window is {window} ns");
    let effective: u64 = row.effective.iter().map(|row| row.ns).sum();
    ensure!(
        effective <= running,
        "more at effective frequencies ({effective} ns) than running ({running} ns)"
    );
    Ok(())
}

fn check_cluster(row: &ClusterRow, window: u64) -> Result<()> {
    let active = running(&row.active);
    let parts = idle(&row.idle)? + active + row.idle_unknown_ns + row.offline_ns + row.unknown_ns;
    ensure!(parts == window, "the parts of a cluster are {parts} ns, the window is {window} ns");
    let concurrent: u64 = row.concurrency.iter().map(|row| row.ns).sum();
    ensure!(concurrent == window, "the concurrency is of {concurrent} ns, the window is {window} ns");
    let of = |is_asked: fn(Option<u32>) -> bool| -> u64 {
        row.concurrency.iter().filter(|row| is_asked(row.running_cpus)).map(|row| row.ns).sum()
    };
    let some = of(|running| running.is_some_and(|cpus| cpus > 0));
    let perhaps = some + of(|running| running.is_none());
    ensure!(
        (some..=perhaps).contains(&active),
        "CPUs run for {some} to {perhaps} ns, the cluster for {active} ns"
    );
    Ok(())
}

fn running(rows: &[FrequencyRow]) -> u64 {
    rows.iter().map(|row| row.ns).sum()
}

fn idle(rows: &[IdleRow]) -> Result<u64> {
    for row in rows {
        let (min, max) = (row.min_ns.unwrap_or(0), row.max_ns.unwrap_or(0));
        ensure!(
            row.hits > 0 && min <= max && min * row.hits <= row.ns && row.ns <= max * row.hits,
            "shortest, longest, hits and sum do not fit: {row:?}"
        );
    }
    Ok(rows.iter().map(|row| row.ns).sum())
}

fn check_phase(row: &PhaseRow) -> Result<()> {
    let quantiles = [row.min_ns, row.p50_ns, row.p90_ns, row.p99_ns, row.max_ns];
    ensure!(quantiles.is_sorted(), "the quantiles are out of order");
    let none = quantiles.iter().all(Option::is_none) && row.histogram.is_none();
    let all = quantiles.iter().all(Option::is_some) && row.histogram.is_some();
    ensure!(none || all, "only a part of the distribution is there");
    Ok(())
}
