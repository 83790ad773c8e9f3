//! Counts of performance events, as rows.

use std::collections::BTreeMap;

use nntrace_common::perf_counters::Reading;

use crate::{
    model::{
        causality::Site,
        findings::Findings,
        perf_counts::{PerfEventFacts, scaled},
    },
    report::snapshot::{
        CountRow, CountsRow, FunctionCountsRow, PerfCounterTable, PerfEventRow, PhaseCountsRow,
    },
};

impl Findings<'_> {
    /// `None` where nothing was counted.
    pub(super) fn perf_counters(&self) -> Option<PerfCounterTable> {
        let counts = self.run.perf_counts.as_ref()?;
        let mut functions: BTreeMap<_, (u64, Vec<Reading>)> = BTreeMap::new();
        let mut phases = BTreeMap::new();
        for row in &counts.functions {
            // Threads that only took part later have rows of their own.
            add(functions.entry((row.pid, row.tag(), row.name)).or_default(), row.sections, &row.readings);
            add(phases.entry((row.pid, row.tag())).or_default(), row.sections, &row.readings);
        }
        let functions = functions.into_iter().map(|((pid, tag, name), sum)| FunctionCountsRow {
            site: self.site(Site { pid, tag, name }),
            counts: counts_row(&counts.events, sum),
        });
        let mut functions: Vec<_> = functions.collect();
        functions.sort_by(|a, b| {
            let key = |row: &FunctionCountsRow| (row.site.pid, row.site.layer, row.site.phase);
            key(a).cmp(&key(b)).then_with(|| a.site.name.cmp(&b.site.name))
        });
        let phases = phases.into_iter().map(|((pid, tag), sum)| PhaseCountsRow {
            pid,
            comm: self.run.processes.get(&pid).map(|process| process.comm.clone()).unwrap_or_default(),
            layer: tag.layer(),
            phase: tag.phase(),
            counts: counts_row(&counts.events, sum),
        });
        let events = counts
            .events
            .iter()
            .map(|event| PerfEventRow { event: event.name.clone(), count_per_read: event.counted_by_read });
        Some(PerfCounterTable {
            events: events.collect(),
            ns_per_read: counts.ns_per_read,
            uncounted_marks: counts.uncounted_marks,
            uncounted_sections: counts.uncounted_sections,
            phases: phases.collect(),
            functions,
        })
    }
}

/// Adds the counts of sections.
fn add((sections, sums): &mut (u64, Vec<Reading>), more: u64, readings: &[Reading]) {
    *sections += more;
    sums.resize(sums.len().max(readings.len()), Reading::default());
    for (sum, reading) in sums.iter_mut().zip(readings) {
        *sum = sum.plus(*reading);
    }
}

fn counts_row(events: &[PerfEventFacts], (sections, readings): (u64, Vec<Reading>)) -> CountsRow {
    let counts = events.iter().zip(readings).map(|(event, reading)| CountRow {
        event: event.name.clone(),
        count: scaled(&reading),
        is_scaled: reading.enabled != reading.running,
        read: reading.count,
        enabled_ns: reading.enabled,
        running_ns: reading.running,
    });
    let counts: Vec<CountRow> = counts.collect();
    CountsRow { sections, instructions_per_cycle: per_cycle(&counts), counts }
}

/// Instructions per cycle, of those that were counted in the same modes.
fn per_cycle(counts: &[CountRow]) -> Option<f64> {
    let of = |name: &str, modes: &str| {
        let is_it = |row: &&CountRow| row.event.strip_prefix(name) == Some(modes);
        counts.iter().find(is_it).and_then(|row| row.count)
    };
    ["", ":u", ":k"].into_iter().find_map(|modes| {
        let cycles = of("cycles", modes).or_else(|| of("cpu-cycles", modes)).filter(|&cycles| cycles > 0)?;
        Some(of("instructions", modes)? as f64 / cycles as f64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(event: &str, count: u64) -> CountRow {
        CountRow { event: event.into(), count: Some(count), ..CountRow::default() }
    }

    #[test]
    fn instructions_are_divided_by_the_cycles_of_the_same_modes() {
        assert_eq!(per_cycle(&[row("cycles", 200), row("instructions", 300)]), Some(1.5));
        assert_eq!(per_cycle(&[row("instructions:u", 300), row("cpu-cycles:u", 600)]), Some(0.5));
        assert_eq!(per_cycle(&[row("cycles", 200), row("instructions:u", 300)]), None);
        assert_eq!(per_cycle(&[row("cycles", 0), row("instructions", 3)]), None);
        assert_eq!(per_cycle(&[row("instructions", 3)]), None);
    }

    #[test]
    fn sums_of_turns_are_scaled_as_one() {
        let events = [PerfEventFacts { name: "cache-misses".into(), counted_by_read: None }];
        let mut sum = Default::default();
        add(&mut sum, 1, &[Reading { count: 10, enabled: 100, running: 0 }]);
        assert_eq!(counts_row(&events, sum.clone()).counts[0].count, None);
        add(&mut sum, 2, &[Reading { count: 40, enabled: 100, running: 100 }]);
        let row = counts_row(&events, sum);
        assert_eq!((row.sections, row.counts[0].count, row.counts[0].is_scaled), (3, Some(100), true));
        assert_eq!((row.counts[0].read, row.counts[0].enabled_ns, row.counts[0].running_ns), (50, 200, 100));
    }
}
