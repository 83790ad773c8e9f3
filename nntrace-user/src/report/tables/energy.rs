//! Table of the energy of CPUs and clusters.

use crate::report::{
    incomplete_figures::Figures,
    number_format,
    snapshot::{EnergyPartsRow, EnergyRow, ResultUnit},
    terminal_text::{Text, line},
};

/// The table; nothing without a model.
pub(super) fn table(text: &mut Text, energy: Option<&EnergyRow>, figures: Figures) {
    let Some(energy) = energy else { return };
    let amount = |value: f64| figures.text(&number_format::energy(value, energy.unit));
    let unit = match energy.unit {
        ResultUnit::Joule => "",
        ResultUnit::Relative => " (relative: the model states no unit)",
    };
    line!(
        text,
        "energy by {}{unit}: {}, {} to {} with what is unknown",
        energy.model,
        amount(energy.total),
        amount(energy.total_min),
        amount(energy.total_max),
    );
    line!(
        text,
        "  {:<10}{:>13}{:>15}{:>10}{:>12}{:>10}{:>9}{:>9}{:>9}",
        "cluster",
        "cluster idle",
        "cluster active",
        "CPU idle",
        "CPU active",
        "wake-ups",
        "total",
        "from",
        "to"
    );
    let mut row = |name: &str, parts: &EnergyPartsRow, totals: [f64; 3]| {
        let [total, from, to] = totals.map(amount);
        line!(
            text,
            "  {name:<10}{:>13}{:>15}{:>10}{:>12}{:>10}{total:>9}{from:>9}{to:>9}",
            amount(parts.cluster_idle),
            amount(parts.cluster_active),
            amount(parts.cpu_idle),
            amount(parts.cpu_active),
            amount(parts.wakeups),
        );
    };
    for cluster in &energy.clusters {
        row(&cluster.cluster, &cluster.parts, [cluster.total, cluster.total_min, cluster.total_max]);
    }
    if energy.clusters.len() > 1 {
        row("all", &energy.parts, [energy.total, energy.total_min, energy.total_max]);
    }
    for time in &energy.unpriced {
        let cpu = time.cpu.map_or_else(String::new, |cpu| format!(" cpu{cpu}"));
        let ns = number_format::duration_ns(time.ns);
        line!(text, "  without a price: cluster {}{cpu}: {} for {ns}", time.cluster, time.what);
    }
    for note in &energy.notes {
        line!(text, "  note: {note}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::snapshot::{ClusterEnergyRow, UnpricedRow};

    fn row(cluster: &str, parts: [f64; 5], vague: [f64; 2]) -> ClusterEnergyRow {
        let [cluster_idle, cluster_active, cpu_idle, cpu_active, wakeups] = parts;
        let total = parts.iter().sum();
        ClusterEnergyRow {
            cluster: cluster.into(),
            total,
            total_min: total + vague[0],
            total_max: total + vague[1],
            parts: EnergyPartsRow { cluster_idle, cluster_active, cpu_idle, cpu_active, wakeups },
        }
    }

    #[test]
    fn parts_totals_and_what_has_no_price() {
        let all = row("", [24.5e-3, 3.96, 0.0, 1.2126, 35e-6], [0.005, 0.845]);
        let mut energy = EnergyRow {
            unit: ResultUnit::Joule,
            total: all.total,
            total_min: all.total_min,
            total_max: all.total_max,
            parts: all.parts,
            clusters: vec![
                row("A", [23.5e-3, 3.96, 0.0, 1.2126, 35e-6], [0.0, 0.0]),
                row("B", [1e-3, 0.0, 0.0, 0.0, 0.0], [0.005, 0.845]),
            ],
            phases: Vec::new(),
            unpriced: vec![
                UnpricedRow {
                    cluster: "B".into(),
                    cpu: None,
                    what: "idle cluster-sleep-c".into(),
                    ns: 1_500,
                },
                UnpricedRow {
                    cluster: "B".into(),
                    cpu: Some(4),
                    what: "active 850000 kHz".into(),
                    ns: 12_000_000,
                },
            ],
            model: "tc2.toml".into(),
            notes: vec!["the model's cluster A is taken for cluster 0".into()],
        };
        let mut text = Text::new();
        table(&mut text, Some(&energy), Figures::default());
        energy.unit = ResultUnit::Relative;
        energy.clusters.truncate(1);
        energy.unpriced.clear();
        energy.notes.clear();
        table(&mut text, Some(&energy), Figures::default());
        table(&mut text, None, Figures::default());
        insta::assert_snapshot!(text);
    }
}
