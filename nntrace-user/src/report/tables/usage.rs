//! Resources that layers and phases used, as a table.

use std::collections::BTreeMap;

use crate::report::{
    incomplete_figures::Figures,
    number_format,
    snapshot::{EnergyShareRow, ResultUnit, UsageRow, UsageTable, WakeRow},
    terminal_text::{Text, line},
};

/// Lines for each process; nothing where there are no context switches.
pub(super) fn table(text: &mut Text, usage: Option<&UsageTable>, unit: Option<ResultUnit>, figures: Figures) {
    let Some(usage) = usage else { return };
    let mut pid = None;
    for row in &usage.phases {
        if pid != Some(row.pid) {
            pid = Some(row.pid);
            line!(text, "CPU time of {} ({}), in sections by themselves", row.comm, row.pid);
            let energy =
                unit.map_or_else(String::new, |_| format!("{:>10}{:>10}{:>10}", "energy", "from", "to"));
            line!(
                text,
                "  {:<12}{:<15}{:>9}{:>10}{:>9}{:>9}{:>9}{energy}",
                "layer",
                "phase",
                "on CPU",
                "runnable",
                "blocked",
                "unknown",
                "clock"
            );
        }
        let (layer, phase) =
            (row.layer.map_or("other", |layer| layer.name()), row.phase.map_or("", |phase| phase.name()));
        line!(text, "  {layer:<12}{phase:<15}{}", columns(&row.usage, unit, figures));
    }
    if let (Some(rest), Some(unit)) = (&usage.rest, unit) {
        line!(text, "  {:<73}{}", "all else", energy(Some(*rest), unit, figures));
    }
    wakes(text, usage, figures);
}

fn columns(usage: &UsageRow, unit: Option<ResultUnit>, figures: Figures) -> String {
    let blocked = usage.sleeping_ns + usage.uninterruptible_ns;
    let [on_cpu, runnable, blocked, unknown] =
        [usage.on_cpu_ns, usage.runnable_ns, blocked, usage.unknown_ns].map(|ns| figures.time(ns));
    let clock = usage.mean_khz().map_or_else(|| "-".into(), |khz| figures.text(&number_format::khz(khz)));
    let energy = unit.map_or_else(String::new, |unit| energy(usage.energy, unit, figures));
    format!("{on_cpu:>9}{runnable:>10}{blocked:>9}{unknown:>9}{clock:>9}{energy}")
}

fn energy(share: Option<EnergyShareRow>, unit: ResultUnit, figures: Figures) -> String {
    let share = share.unwrap_or_default();
    let amounts = [share.total, share.total_min, share.total_max];
    let [total, from, to] = amounts.map(|value| figures.text(&number_format::energy(value, unit)));
    format!("{total:>10}{from:>10}{to:>10}")
}

/// Wake-ups of all sections and threads together.
fn wakes(text: &mut Text, usage: &UsageTable, figures: Figures) {
    let mut sums: BTreeMap<(&Option<String>, &Option<String>), WakeRow> = BTreeMap::new();
    for row in usage.phases.iter().flat_map(|row| &row.usage.wakes) {
        let sum = sums.entry((&row.cluster, &row.state)).or_default();
        sum.count += row.count;
        sum.measured += row.measured;
        sum.latency_ns += row.latency_ns;
        sum.max_latency_ns = sum.max_latency_ns.max(row.max_latency_ns);
        sum.exit_latency_ns = row.exit_latency_ns;
    }
    for ((cluster, state), sum) in sums {
        let place = cluster.as_ref().map_or_else(String::new, |cluster| format!(" of cluster {cluster}"));
        let latency = match sum.latency_ns.checked_div(sum.measured) {
            Some(mean) => format!(
                "; {} of them took {} to the end of that state, {} at most",
                figures.count(sum.measured),
                figures.time(mean),
                figures.time(sum.max_latency_ns)
            ),
            None => String::new(),
        };
        let known = sum.exit_latency_ns.map_or_else(String::new, |ns| {
            format!(" (exit latency by the kernel's table {})", number_format::duration_ns(ns))
        });
        let state = state.as_deref().unwrap_or("idle, depth not known");
        let wake_ups = figures.plural(sum.count, "wake-up");
        line!(text, "  {wake_ups} from {state}{place}{known}{latency}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::snapshot::{PhaseUsageRow, UsageFrequencyRow};

    #[test]
    fn columns_stand_under_their_names() {
        let usage = UsageRow {
            on_cpu_ns: 300_000_000,
            runnable_ns: 1_200_000,
            sleeping_ns: 698_000_000,
            uninterruptible_ns: 700_000,
            unknown_ns: 100_000,
            cycles: 540_000_000,
            frequencies: vec![UsageFrequencyRow {
                cluster: Some("big".into()),
                khz: Some(1_800_000),
                ns: 300_000_000,
            }],
            wakes: vec![WakeRow {
                cluster: Some("big".into()),
                state: Some("cpu-sleep".into()),
                count: 12,
                measured: 8,
                latency_ns: 320_000,
                max_latency_ns: 61_000,
                exit_latency_ns: Some(40_000),
            }],
            energy: Some(EnergyShareRow { total: 0.0123, total_min: 0.0123, total_max: 0.0131 }),
        };
        let phases = vec![
            PhaseUsageRow {
                pid: 4_711,
                comm: "bench".into(),
                layer: Some(nntrace_common::layer::Layer::Runtime),
                phase: Some(nntrace_common::layer::Phase::Execution),
                usage,
            },
            PhaseUsageRow { pid: 4_711, comm: "bench".into(), ..PhaseUsageRow::default() },
        ];
        let rest = Some(EnergyShareRow { total: 1.5, total_min: 1.5, total_max: 1.75 });
        let mut text = Text::new();
        let exact = Figures::default();
        let with_energy = UsageTable { phases, rest, ..UsageTable::default() };
        table(&mut text, Some(&with_energy), Some(ResultUnit::Joule), exact);
        table(&mut text, Some(&UsageTable { rest: None, ..with_energy }), None, exact);
        table(&mut text, None, None, exact);
        insta::assert_snapshot!(text);
    }
}
