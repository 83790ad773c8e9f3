//! Rates of events, and of the collector's own work, between two updates.

use std::time::Duration;

use nntrace_user::report::snapshot::Snapshot;

/// Events per second between two updates.
#[derive(Default)]
pub(super) struct Rates {
    elapsed: Duration,
    seen: (u64, u64, u64),
    /// Marks per second.
    pub(super) marks: f64,
    /// Power events per second.
    pub(super) power_events: f64,
    /// CPU time of the collector, as a share of one CPU.
    pub(super) collector_cpu: f64,
}

impl Rates {
    /// Takes the counts of a snapshot, after this time of the run.
    pub(super) fn update(&mut self, elapsed: Duration, snapshot: &Snapshot) {
        let seconds = elapsed.saturating_sub(self.elapsed).as_secs_f64();
        let overhead = &snapshot.overhead;
        let now = (overhead.marks, overhead.power_events, overhead.collector_cpu_ns);
        if seconds > 0.0 {
            let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
            self.marks = rate(now.0, self.seen.0);
            self.power_events = rate(now.1, self.seen.1);
            self.collector_cpu = rate(now.2, self.seen.2) / 1e9;
        }
        (self.elapsed, self.seen) = (elapsed, now);
    }
}
