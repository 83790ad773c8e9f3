//! Energy by a model and of measured rails: changes by hand, thresholds, and what is refused.

use nntrace_common::layer::Tag;

use super::{Machine, OPTIONS, pool};
use crate::{
    analyze::diff::{
        Diff, Options, Per, Run, Threshold,
        comparison::{Comparison, Row, Verdict},
        metric::{Family, Unit},
    },
    report::snapshot::{
        ClusterEnergyRow, EnergyPartsRow, EnergyRow, EnergyShareRow, PhaseEnergyRow, RailKind, RailRow,
        RailSource, Rails, ResultUnit,
    },
};

/// Sums as they are: changes by hand need no divisor.
const WHOLE: Options = Options { confidence: 0.95, per: Some(Per::Run) };

/// Energy of a part: process, layer and phase, and J.
type Part = (Option<u32>, Option<&'static str>, f64);

/// Returns runs of the machine with nothing measured but what a test adds.
fn runs(count: usize) -> Vec<Run> {
    pool(&Machine::default(), count, 5)
}

/// Energy of so much, with half and twice of it as its range, all of it by one cluster.
fn modelled(total: f64, parts: &[Part]) -> EnergyRow {
    let (total_min, total_max) = (total / 2.0, total * 2.0);
    let share = |total| EnergyShareRow { total, total_min: total / 2.0, total_max: total * 2.0 };
    let phases = parts.iter().map(|&(pid, tag, total)| {
        let tag = tag.map(|tag| tag.parse::<Tag>().unwrap());
        let (layer, phase) = (tag.map(Tag::layer), tag.map(Tag::phase));
        PhaseEnergyRow { pid, layer, phase, energy: share(total) }
    });
    let parts = EnergyPartsRow::default();
    let cluster =
        ClusterEnergyRow { cluster: "all".into(), total, total_min, total_max, parts: parts.clone() };
    EnergyRow {
        unit: ResultUnit::Joule,
        total,
        total_min,
        total_max,
        parts,
        clusters: vec![cluster],
        phases: phases.collect(),
        unpriced: Vec::new(),
        model: "/boards/tc2.toml".into(),
        notes: Vec::new(),
    }
}

/// Runs with energies of so much, of which the phase has a tenth.
fn of_energies(totals: &[f64]) -> Vec<Run> {
    let mut runs = runs(totals.len());
    for (run, total) in runs.iter_mut().zip(totals) {
        run.snapshot.energy = Some(modelled(*total, &[(Some(7), Some("LR_PE"), total / 10.0)]));
    }
    runs
}

/// Rail of which this much was measured in 2 s.
fn rail(name: &str, energy_nj: i64) -> RailRow {
    RailRow {
        source: RailSource::Hwmon,
        chip: "ina226".into(),
        name: name.into(),
        kind: RailKind::Sampled,
        energy_nj,
        begin_ns: 1_000_000_000,
        end_ns: 3_000_000_000,
        readings: 21,
        wraps: 0,
        gaps: 0,
        gap_ns: 0,
        failed: 0,
        failure: None,
    }
}

/// Runs with these rails each.
fn of_rails(rails: &[&[RailRow]]) -> Vec<Run> {
    let mut runs = runs(rails.len());
    for (run, rails) in runs.iter_mut().zip(rails) {
        run.snapshot.rails = Some(Rails { rails: rails.to_vec(), ..Rails::default() });
    }
    runs
}

fn row<'a>(comparison: &'a Comparison, name: &str) -> &'a Row {
    comparison.metrics.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no {name}"))
}

/// Checks the medians of both sides, and the change.
#[track_caller]
fn assert_change(comparison: &Comparison, name: &str, [before, after, change]: [f64; 3]) {
    let row = row(comparison, name);
    let is_near = |value: Option<f64>, expected: f64| (value.unwrap() - expected).abs() < 1e-9;
    assert!(is_near(row.before.median, before) && is_near(row.after.median, after), "{row:?}");
    assert!(is_near(row.difference, after - before), "{row:?}");
    if change.is_nan() {
        assert_eq!(row.change, None, "{row:?}");
    } else {
        assert!(is_near(row.change, change), "{row:?}");
    }
}

#[test]
fn changes_of_modelled_energy_are_those_by_hand() {
    let (mut before, mut after) = (of_energies(&[2.0, 4.0, 3.0]), of_energies(&[3.3, 3.0, 9.0]));
    // Two processes of one phase count together; one phase goes, another comes.
    let parts: [Part; 5] = [
        (Some(7), Some("LR_PE"), 0.5),
        (Some(8), Some("LR_PE"), 0.25),
        (Some(7), Some("LD_PE"), 1.0),
        (Some(7), None, 0.125),
        (None, None, 1.125),
    ];
    before[2].snapshot.energy = Some(modelled(3.0, &parts));
    let parts: [Part; 3] = [(Some(9), Some("LR_PE"), 0.9), (Some(9), Some("LC_PE"), 0.3), (None, None, 2.1)];
    after[0].snapshot.energy = Some(modelled(3.3, &parts));

    let all = Comparison::new(&before, &after, &WHOLE);
    for name in ["energy", "cluster.all.energy"] {
        assert_change(&all, name, [3.0, 3.3, 0.1]);
        assert_change(&all, &format!("{name}.min"), [1.5, 1.65, 0.1]);
        assert_change(&all, &format!("{name}.max"), [6.0, 6.6, 0.1]);
    }
    let one = Comparison::new(&before[2..], &after[..1], &WHOLE);
    assert_change(&one, "LR_PE.energy", [0.75, 0.9, 0.2]);
    assert_change(&one, "LR_PE.energy.min", [0.375, 0.45, 0.2]);
    assert_change(&one, "LR_PE.energy.max", [1.5, 1.8, 0.2]);
    assert_change(&one, "LD_PE.energy", [1.0, 0.0, -1.0]);
    assert_change(&one, "LC_PE.energy", [0.0, 0.3, f64::NAN]);
    assert_change(&one, "unmarked.energy", [0.125, 0.0, -1.0]);
    assert_change(&one, "rest.energy", [1.125, 2.1, 2.1 / 1.125 - 1.0]);
    assert_eq!(row(&one, "LR_PE.energy").unit, Unit::Joule);
    // Ranges, and what other processes take, are no ground for a verdict.
    for name in ["energy.min", "LR_PE.energy.max", "rest.energy", "unmarked.energy"] {
        assert_eq!(row(&one, name).family, Family::None, "{name}");
    }

    // Each run made 20 executions.
    let per_execution = Comparison::new(&before[2..], &after[..1], &OPTIONS);
    assert_change(&per_execution, "energy", [0.15, 0.165, 0.1]);
    assert_change(&per_execution, "LR_PE.energy", [0.0375, 0.045, 0.2]);
}

#[test]
fn thresholds_name_energies_of_every_kind() {
    let (mut before, mut after) = (of_energies(&[3.0]), of_energies(&[3.3]));
    for (runs, energy_nj) in [(&mut before, 2_000_000_000), (&mut after, 2_600_000_000)] {
        let rails = vec![rail("VDD_CPU", energy_nj)];
        runs[0].snapshot.rails = Some(Rails { rails, ..Rails::default() });
    }
    for (condition, expected) in [
        ("LR_PE.energy > +5%", Ok(true)),
        ("LR_PE.energy > +11%", Ok(false)),
        ("LR_PE.energy >= +29mJ", Ok(true)),
        ("energy > 3.2J", Ok(true)),
        ("cluster.all.energy.max <= 6.6J", Ok(true)),
        ("cluster.*.energy > +12%", Ok(false)),
        ("rail.*.energy > +29%", Ok(true)),
        ("rail.hwmon/ina226/VDD_CPU.energy > 2.7J", Ok(false)),
        ("rail.hwmon/ina226/VDD_CPU.power > 1290mW", Ok(true)),
        ("rail.hwmon/ina226/VDD_CPU.power > +400mW", Ok(false)),
        ("LR_PE.energy > 3ms", Err("LR_PE.energy is an energy in J, and the threshold has another unit")),
        ("rail.*.power > 3J", Err("VDD_CPU.power is a power in W, and the threshold has another unit")),
        ("LD_PE.energy > +5%", Err("no run has a figure LD_PE.energy")),
    ] {
        let threshold: Threshold = condition.parse().unwrap();
        match (Diff::new(&before, &after, &WHOLE, &[threshold]), expected) {
            (Ok(diff), Ok(is_tripped)) => assert_eq!(diff.is_tripped(), is_tripped, "{condition}"),
            (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
            (diff, expected) => {
                panic!("{condition}: {:?} is not {expected:?}", diff.map(|diff| diff.text(true)))
            }
        }
    }
}

#[test]
fn energy_is_compared_by_one_model_on_one_machine_only() {
    type Change = fn(&mut Run);
    let before = of_energies(&[3.0]);
    let other_cpus: Change = |run| drop(run.snapshot.cpus.pop());
    let other_model: Change = |run| run.snapshot.energy.as_mut().unwrap().model = "juno.toml".into();
    let other_unit: Change = |run| run.snapshot.energy.as_mut().unwrap().unit = ResultUnit::Relative;
    let no_model: Change = |run| run.snapshot.energy = None;
    let no_switches: Change = |run| run.snapshot.energy.as_mut().unwrap().phases.clear();
    let elsewhere: Change = |run| run.snapshot.energy.as_mut().unwrap().model = "/tmp/tc2.toml".into();
    for (change, note, has_energy, has_phases) in [
        (other_cpus, "energy is not compared: the CPUs differ", false, false),
        (other_model, "energy is not compared: the energy models differ: tc2.toml in", false, false),
        (other_unit, "energy is not compared: their models have different units", false, false),
        (no_model, "energy is not compared: the energy models differ: tc2.toml in", false, false),
        (no_switches, "energy of phases is not compared: there are no context switches in", true, false),
        (elsewhere, "", true, true),
    ] {
        let mut after = of_energies(&[3.3]);
        change(&mut after[0]);
        let comparison = Comparison::new(&before, &after, &WHOLE);
        let has = |name: &str| comparison.metrics.iter().any(|row| row.name == name);
        assert_eq!((has("energy"), has("LR_PE.energy")), (has_energy, has_phases), "{note}");
        assert!(
            note.is_empty() || comparison.notes.iter().any(|line| line.starts_with(note)),
            "{comparison:?}"
        );
        assert!(has("LR_PE.mean"), "phases are compared all the same");
    }
    // A model that happens to be named as the lack of one.
    let (mut named, mut without) = (of_energies(&[3.0]), of_energies(&[3.0]));
    named[0].snapshot.energy.as_mut().unwrap().model = "none".into();
    without[0].snapshot.energy = None;
    let comparison = Comparison::new(&named, &without, &WHOLE);
    assert!(
        comparison.notes.iter().any(|note| note.ends_with("a run has no energy model")),
        "{comparison:?}"
    );
}

#[test]
fn more_energy_of_a_phase_is_worse_by_the_verdict() {
    let spread = |middle: f64| -> Vec<f64> { (0..10).map(|run| middle + f64::from(run) * 0.01).collect() };
    let (before, after) = (of_energies(&spread(3.0)), of_energies(&spread(3.3)));
    let diff = Diff::new(&before, &after, &OPTIONS, &["worse".parse().unwrap()]).unwrap();
    let text = diff.text(false);
    assert!(diff.is_tripped(), "{text}");
    assert!(text.contains("worse: LR_PE.energy +9.9%"), "{text}");
    assert!(text.contains("worse: energy +9.9%"), "{text}");
    let section = text.split("\nenergy ").nth(1).unwrap();
    assert!(section.contains("\n  LR_PE.energy ") && !section.contains(".min"), "{text}");
}

#[test]
fn rails_have_rows_of_their_own_beside_the_model() {
    let before = of_rails(&[&[rail("VDD_CPU", 3_000_000_000), rail("VBAT", -500_000_000)]]);
    let after = of_rails(&[&[rail("VDD_CPU", 3_600_000_000), rail("VBAT", -400_000_000)]]);
    let comparison = Comparison::new(&before, &after, &WHOLE);
    assert_change(&comparison, "rail.hwmon/ina226/VDD_CPU.energy", [3.0, 3.6, 0.2]);
    assert_change(&comparison, "rail.hwmon/ina226/VDD_CPU.power", [1.5, 1.8, 0.2]);
    // Less flows back: that is more of it.
    assert_change(&comparison, "rail.hwmon/ina226/VBAT.energy", [-0.5, -0.4, 0.2]);
    let names: Vec<&str> = comparison.metrics.iter().map(|row| row.name.as_str()).collect();
    assert!(!names.iter().any(|name| name.contains("energy") && !name.starts_with("rail.")), "{names:?}");
    let text = Diff::new(&before, &after, &WHOLE, &[]).unwrap().text(true);
    assert!(text.contains("\nmeasured rails "), "{text}");
    let line = text.lines().find(|line| line.contains("VBAT.energy")).unwrap();
    assert!(line.contains("-500 mJ   -400 mJ   +20.0%"), "{line}");

    // With a model, what it says is as it is without rails.
    let with_model = |mut runs: Vec<Run>| {
        runs[0].snapshot.energy = Some(modelled(3.0, &[]));
        runs
    };
    let comparison = Comparison::new(&with_model(before), &with_model(after), &WHOLE);
    assert_change(&comparison, "energy", [3.0, 3.0, 0.0]);
    assert_change(&comparison, "rail.hwmon/ina226/VDD_CPU.energy", [3.0, 3.6, 0.2]);
}

#[test]
fn rails_that_lack_readings_have_no_verdict() {
    let gap = RailRow { gaps: 1, gap_ns: 1_000_000_000, ..rail("VDD_CPU", 1_500_000_000) };
    let once = RailRow { end_ns: 1_000_000_000, readings: 1, ..rail("VDD_GPU", 0) };
    let whole = [rail("VDD_CPU", 3_000_000_000), rail("VDD_GPU", 1_000_000_000)];
    let before = of_rails(&[&whole, &whole, &whole]);
    let after = of_rails(&[&whole, &[gap, once], &whole[1..]]);
    let comparison = Comparison::new(&before, &after, &WHOLE);
    let name = "rail.hwmon/ina226/VDD_CPU";
    let energy = row(&comparison, &format!("{name}.energy"));
    assert_eq!((energy.is_incomplete, energy.verdict), (true, Verdict::Incomplete));
    assert_eq!(energy.after.runs, [Some(3.0), Some(1.5), None]);
    // The mean power is that of the time that is known.
    let power = row(&comparison, &format!("{name}.power"));
    assert_eq!((power.is_incomplete, &power.after.runs[..]), (false, &[Some(1.5), Some(1.5), None][..]));
    let gpu = row(&comparison, "rail.hwmon/ina226/VDD_GPU.energy");
    assert_eq!((gpu.is_incomplete, &gpu.after.runs[..]), (false, &[Some(1.0), None, Some(1.0)][..]));
    let notes = comparison.notes.join("\n");
    assert!(
        notes.contains(
            "rails are not measured in every run: hwmon/ina226/VDD_CPU in run2.json and 1 other rail"
        ),
        "{notes}"
    );
    assert!(notes.contains("lack them: hwmon/ina226/VDD_CPU in run1.json"), "{notes}");

    // A side without any has no change.
    let comparison = Comparison::new(&before, &runs(3), &WHOLE);
    let energy = row(&comparison, &format!("{name}.energy"));
    assert_eq!((energy.after.median, energy.difference), (None, None));
}
