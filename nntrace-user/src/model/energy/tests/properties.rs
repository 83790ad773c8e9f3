//! Files in which anything may have been changed.

use proptest::prelude::*;

use super::*;
use crate::model::energy::model::{ClusterModel, Cost, PState};

/// A change: where, how much of what stands there goes, what comes instead.
type Change = (prop::sample::Index, usize, Vec<u8>);

fn changed(text: &str, changes: &[Change]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for (at, length, new) in changes {
        let at = at.index(bytes.len() + 1);
        let end = (at + length).min(bytes.len());
        bytes.splice(at..end, new.iter().copied());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let word = prop::sample::select(vec![
        "\n",
        " ",
        "#",
        "-",
        ".",
        "9",
        "clusters",
        "clusterA:",
        "P-states:",
        "C-states:",
        "wakeup",
        "[",
        "]",
        "{",
        "}",
        "=",
        "\"",
        "[[cluster]]",
        "nan",
        "99999999999999999999",
        "\u{fe}",
    ]);
    let new = prop_oneof![
        3 => word.prop_map(|word: &str| word.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec((any::<prop::sample::Index>(), 0..40_usize, new), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn a_damaged_file_is_a_model_or_an_error_of_a_line_that_there_is(toml: bool, changes in changes()) {
        let (file, text) = if toml { ("m.toml", DYNAMIQ) } else { ("m", TC2) };
        let text = changed(text, &changes);
        match parse(file, &text) {
            Ok(model) => prop_assert!(!model.clusters.is_empty()),
            Err(error) => {
                prop_assert!(error.line >= 1 && error.line <= text.lines().count() + 1, "{}", error);
                let line = text.lines().nth(error.line - 1).unwrap_or_default();
                prop_assert_eq!(error.text, line.trim().trim_start_matches('\u{feff}'));
                prop_assert!(!error.what.contains('\n'));
            }
        }
    }

    #[test]
    fn rows_are_found_as_by_looking_at_each(rows in prop::collection::btree_map(0..40_000_u32, any::<bool>(), 0..40), khz in 0..40_000_u32) {
        let row = |(&khz, &in_mhz): (&u32, &bool)| PState { khz, in_mhz, power: Cost::default() };
        let cluster = ClusterModel { p_states: rows.iter().map(row).collect(), ..ClusterModel::default() };
        let all = || cluster.p_states.iter();
        let exact = all().find(|state| state.khz == khz);
        let expected = exact.or_else(|| all().find(|state| state.in_mhz && state.khz / 1_000 == khz / 1_000));
        prop_assert_eq!(cluster.p_state(khz), expected);
    }
}

#[test]
fn many_rows_are_read_in_a_moment() {
    let begun = std::time::Instant::now();
    let rows = 50_000;
    let opps: Vec<String> = (1..=rows).map(|khz| format!("{{khz={khz}}}")).collect();
    let toml = |opps: &str| format!("[[cluster]]\nname = \"a\"\ncpus = \"0\"\nopps = [{opps}]\n");
    let model = parse("m.toml", &toml(&opps.join(","))).unwrap();
    assert_eq!(model.clusters[0].p_states.len(), rows);
    assert!(parse("m.toml", &toml(&format!("{},{{khz=1}}", opps.join(",")))).is_err());
    let lines = (1..=rows).map(|mhz| format!("{mhz} 1 1\n")).collect::<Vec<_>>().concat();
    let names = (1..=rows).map(|number| format!("C{number} 1 1\n")).collect::<Vec<_>>().concat();
    let text = format!(
        "clusters 1\nclusterA: {rows} cap states {rows} C states\nP-states:\n{lines}C-states:\n{names}"
    );
    assert_eq!(parse("m", &text).unwrap().clusters[0].idle.len(), rows);
    // Looking through all rows for each takes minutes.
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn lists_of_cpus_are_not_written_out_before_they_are_counted() {
    let list =
        |number: usize| format!("[[cluster]]\nname = \"{number}\"\ncpus = \"0-8191,{}\"\n", number % 8_192);
    let text: String = (0..20_000).map(list).collect();
    assert!(parse("m.toml", &text).unwrap_err().what.contains("1024 clusters at most"));
}
