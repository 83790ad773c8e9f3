//! Dispatch overhead as a row.

use crate::{
    model::{findings::Findings, timeline::Timelines},
    report::snapshot::{ClusterOverheadRow, DispatchOverheadRow, Snapshot},
};

impl Snapshot {
    /// Adds the dispatch overhead, as far as hand-overs and the states of CPUs over time are known.
    #[must_use]
    pub fn with_dispatch_overhead(self, findings: &Findings<'_>, timelines: Option<&Timelines>) -> Self {
        let dispatch_overhead = timelines.and_then(|timelines| row(findings, timelines));
        let missing = dispatch_overhead.is_none().then(|| NOTHING.to_owned());
        Self { dispatch_overhead, notes: self.notes.into_iter().chain(missing).collect(), ..self }
    }
}

/// Note where there is no dispatch overhead.
const NOTHING: &str = "no dispatch overhead (--overhead): it takes work that was handed over, whose start is known, and idle \
                       events of CPUs";

fn row(findings: &Findings<'_>, timelines: &Timelines) -> Option<DispatchOverheadRow> {
    let found = findings.dispatch_overhead(timelines)?;
    let sums = found.sums();
    let clusters = found.clusters.iter().zip(&sums.clusters).map(|(cluster, sums)| ClusterOverheadRow {
        cluster: cluster.name.clone(),
        cpus: cluster.cpus.clone(),
        idle_ns: sums.idle,
        ready_ns: sums.ready,
        overhead_ns: sums.overhead,
        unknown_ns: sums.unknown,
    });
    Some(DispatchOverheadRow {
        begin_ns: found.begin,
        end_ns: found.end,
        hand_overs: found.hand_overs,
        not_counted: found.not_counted,
        placed: found.placed,
        resolution_ns: found.resolution,
        changes: sums.changes,
        clusters: clusters.collect(),
        all_overhead_ns: sums.all,
        has_overhead_ns: sums.has,
    })
}
