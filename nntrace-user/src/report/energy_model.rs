//! Summary of an energy model file, for people.

use super::terminal_text::{Text, line};
use crate::model::{
    cpu_list,
    energy::{Cost, EnergyModel, EnergyUnit, PowerUnit},
};

/// The model as tables.
#[must_use]
pub fn describe(model: &EnergyModel) -> Text {
    let mut text = Text::new();
    let mut line = |line: String| line!(text, "{line}");
    line(match model.unit {
        Some(unit) => format!("{}: powers in {}, results in J", model.file, unit.symbol()),
        None => format!("{}: powers without a unit, results are relative", model.file),
    });
    let unit = model.unit.map_or("", PowerUnit::symbol);
    let energy_unit = model.energy_unit.map_or("units for 1 us", EnergyUnit::symbol);
    for cluster in &model.clusters {
        let cpus = cluster.cpus.as_deref().map(|cpus| format!(", CPUs {}", cpu_list::format(cpus)));
        line(format!("cluster {}{}", cluster.name, cpus.unwrap_or_default()));
        let row = |name: &str, power: &Cost| {
            format!("  {name:<18}{:>12}{:>12}", power.cluster, power.core).trim_end().to_owned()
        };
        line(format!(
            "  {:<18}{:>12}{:>12}",
            "",
            format!("cluster {unit}").trim_end(),
            format!("core {unit}").trim_end()
        ));
        for state in &cluster.p_states {
            line(row(&frequency(state.khz), &state.power));
        }
        for state in &cluster.idle {
            let entry = (state.entry != Cost::default())
                .then(|| format!("   a stay: {}, {} {energy_unit}", state.entry.cluster, state.entry.core));
            line(row(&state.name, &state.power) + &entry.unwrap_or_default());
        }
        if cluster.wakeup != Cost::default() {
            line(format!("  a wake-up: {}, {} {energy_unit}", cluster.wakeup.cluster, cluster.wakeup.core));
        }
    }
    for note in &model.notes {
        line(format!("note: {note}"));
    }
    text
}

/// To the last digit: what is shown is what will be looked for.
fn frequency(khz: u32) -> String {
    if khz.is_multiple_of(1_000) { format!("{} MHz", khz / 1_000) } else { format!("{khz} kHz") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::energy;

    #[test]
    fn all_that_a_file_says_is_shown() {
        let dynamiq = include_str!("../../../tests/fixtures/energy/dynamiq.toml");
        let tc2 = include_str!("../../../tests/fixtures/energy/tc2.txt");
        let texts = [("dynamiq.toml", dynamiq), ("tc2.txt", tc2)]
            .map(|(file, text)| describe(&energy::parse(file, text).unwrap()).to_string());
        insta::assert_snapshot!(texts.join("\n"));
    }
}
