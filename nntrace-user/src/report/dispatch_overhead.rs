//! Dispatch overhead as a table, CSV and JSON.

use serde::Serialize;

use super::{
    number_format,
    power::{CsvError, to_csv},
    snapshot::DispatchOverheadRow,
    terminal_text::{Text, clean, line},
};

/// Row of the CSV: a cluster, or `all` or `has` of them together.
#[derive(Clone, Debug, Serialize)]
struct CsvRow {
    cluster: String,
    cpus: Option<usize>,
    window_ns: u64,
    idle_ns: Option<u64>,
    ready_ns: Option<u64>,
    overhead_ns: u64,
    unknown_ns: Option<u64>,
}

impl DispatchOverheadRow {
    /// Returns the length of the time looked at, ns.
    #[must_use]
    pub fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }

    /// Returns the table, for people; shares are of the time from the first start of work to the last end.
    #[must_use]
    pub fn text(&self) -> Text {
        let (mut text, window) = (Text::new(), self.length_ns());
        let time =
            |ns| format!("{} {:>6}", number_format::duration_ns(ns), number_format::percent(ns, window));
        line!(
            text,
            "idle CPUs while work waits, in {} from the first start of work to its last end",
            number_format::duration_ns(window),
        );
        line!(
            text,
            "  {:<12}{:>5}{:>17}{:>17}{:>17}",
            "cluster",
            "CPUs",
            "a CPU idle",
            "work ready",
            "overhead"
        );
        for cluster in &self.clusters {
            line!(
                text,
                "  {:<12}{:>5}{:>17}{:>17}{:>17}",
                cluster.cluster,
                cluster.cpus.len(),
                time(cluster.idle_ns),
                time(cluster.ready_ns),
                time(cluster.overhead_ns),
            );
        }
        for (name, ns) in [("all", self.all_overhead_ns), ("has", self.has_overhead_ns)] {
            line!(text, "  {name:<12}{:>5}{:>17}{:>17}{:>17}", "", "", "", time(ns));
        }
        line!(
            text,
            "  {}, {} of them placed by where their thread ran",
            number_format::plural(self.hand_overs, "hand-over"),
            number_format::count(self.placed),
        );
        let unknown = self.clusters.iter().filter(|cluster| cluster.unknown_ns > 0);
        for cluster in unknown {
            let ns = number_format::duration_ns(cluster.unknown_ns);
            line!(text, "  cluster {}: the state of a CPU is not known for {ns}", cluster.cluster);
        }
        if self.not_counted > 0 {
            let not_counted = number_format::plural(self.not_counted, "hand-over");
            line!(
                text,
                "  not counted, as it is not known when the work could begin, or when it did: {not_counted}"
            );
        }
        if let Some(ns) = self.resolution_ns {
            let ns = number_format::duration_ns(ns);
            line!(text, "  states of CPUs are known to {ns} only: --memory with more room keeps all of them");
        }
        text
    }

    /// Returns the rows as CSV.
    ///
    /// # Errors
    /// When a row cannot be written.
    pub fn csv(&self) -> Result<String, CsvError> {
        let window_ns = self.length_ns();
        let clusters = self.clusters.iter().map(|cluster| CsvRow {
            // A row is a line, and no character in it acts.
            cluster: clean(&cluster.cluster).into_owned(),
            cpus: Some(cluster.cpus.len()),
            window_ns,
            idle_ns: Some(cluster.idle_ns),
            ready_ns: Some(cluster.ready_ns),
            overhead_ns: cluster.overhead_ns,
            unknown_ns: Some(cluster.unknown_ns),
        });
        let together = [("all-overhead", self.all_overhead_ns), ("has-overhead", self.has_overhead_ns)];
        let together = together.map(|(name, overhead_ns)| CsvRow {
            cluster: name.into(),
            cpus: None,
            window_ns,
            idle_ns: None,
            ready_ns: None,
            overhead_ns,
            unknown_ns: None,
        });
        to_csv(clusters.chain(together))
    }
}
