//! Files in which anything may have been changed.

use proptest::prelude::*;

use super::*;

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
}
