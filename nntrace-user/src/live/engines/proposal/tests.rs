use super::*;
use crate::live::engines::{
    engine_map::{FunctionPlace, parse},
    test_files::library,
};

/// Library of an engine: a run that calls operators, a loader, and functions that are neither.
const SOURCE: &str = r#"
    struct Layer { virtual ~Layer() {} virtual int name() { return 0; } virtual int forward(int n) = 0; };
    #define LAYER(CLASS, N) struct CLASS : Layer { \
        int name() override { return N; } \
        int forward(int n) override { int s = 0; for (int i = 0; i < n + N; ++i) s = s * 31 + (i ^ N); return s; } };
    LAYER(Conv, 1) LAYER(Pool, 2) LAYER(Relu, 3) LAYER(Add, 4)
    static Conv conv; static Pool pool; static Relu relu; static Add add;
    Layer *const layers[] = {&conv, &pool, &relu, &add};
    extern "C" int net_load(int n) { int s = 1; while (n-- > 0) s = s * 7 + n; return s; }
    extern "C" int net_size() { return 4; }
    extern "C" int net_infer(int n) { int s = 0; for (Layer *each : layers) s += each->forward(n); return s; }
"#;

fn proposal() -> Proposal {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libnet-2.so.1");
    std::fs::write(&path, library("cc", SOURCE, &["-O1"])).unwrap();
    Proposal::of(&path).unwrap()
}

/// Places of the probes of a map, with their labels.
fn places(text: &str) -> Vec<(String, Option<String>)> {
    let (engines, errors) = parse("proposed", text);
    assert!(errors.is_empty(), "{errors:?}:\n{text}");
    let place = |place: &FunctionPlace| match place {
        FunctionPlace::Export(pattern) => pattern.to_string(),
        FunctionPlace::Rtti { class, slot, .. } => format!("{class} {slot}"),
        other => panic!("{other:?}"),
    };
    engines[0].probes.iter().map(|probe| (place(&probe.places[0]), probe.label.clone())).collect()
}

#[test]
fn without_a_command_names_and_sizes_decide() {
    let proposal = proposal();
    assert_eq!(proposal.engine(), "net");
    let text = proposal.map();
    assert_eq!(places(&text), [("net_infer".to_owned(), None), ("Layer 3".to_owned(), None)], "{text}");
    assert!(text.contains("proposed by names and sizes alone"), "{text}");
    assert!(!text.contains("net_size"), "it is too short: {text}");
}

#[test]
fn what_a_command_calls_decides() {
    let mut proposal = proposal();
    let trial = places(&proposal.trial_map());
    let label = |place: &str| {
        let found = trial.iter().find(|(name, _)| name == place);
        found.and_then(|(_, label)| label.clone()).unwrap_or_else(|| panic!("{place}: {trial:?}"))
    };
    // Loading takes longest, but only once; the function that is named like a run was not called.
    proposal.take_calls([(label("net_load").as_str(), 1, 9_000_000)]);
    let text = proposal.map();
    assert!(!text.contains("[[engine]]"), "without runs nothing is in their rhythm: {text}");
    assert!(proposal.take_calls([(label("Layer 2").as_str(), 50, 5_000_000)]));
    proposal.take_calls([(label("Layer 3").as_str(), 200, 4_000_000)]);
    let text = proposal.map();
    assert_eq!(places(&text), [("Layer 2".to_owned(), None), ("Layer 3".to_owned(), None)], "{text}");
    assert!(text.contains("4 functions of 4 classes (50 calls, 5000 us in all)"), "{text}");
}

#[test]
fn functions_that_are_called_too_often_are_left_out() {
    let mut proposal = proposal();
    let count = places(&proposal.trial_map()).len();
    proposal.take_calls([("export 1", MOST_CALLS, 1)]);
    proposal.take_calls([("slot 1", MOST_OF_SLOT + 1, MOST_OF_SLOT * LEAST_NS * 2)]);
    assert_eq!(proposal.leave_out_frequent(), 0, "an operator takes its time");
    assert!(proposal.map().contains("by what the command called"), "nothing is forgotten");
    proposal.take_calls([("slot 0", MOST_OF_SLOT + 1, 1)]);
    assert_eq!(proposal.leave_out_frequent(), 1);
    assert_eq!(places(&proposal.trial_map()).len(), count - 1);
    assert!(proposal.map().contains("by names and sizes alone"), "what was seen has other labels");
}

#[test]
fn other_proposals_are_comments_that_become_entries() {
    let text = proposal().map();
    let all: String = text
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(entry) if !entry.starts_with(' ') => format!("{entry}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let mut all: Vec<String> = places(&all).into_iter().map(|(place, _)| place).collect();
    assert_eq!((all[0].as_str(), all[2].as_str()), ("net_infer", "Layer 3"));
    all.sort();
    // Slot 1 frees an object.
    assert_eq!(all, ["Layer 1", "Layer 2", "Layer 3", "net_infer", "net_load"]);
}

#[test]
fn a_command_that_calls_nothing_leaves_nothing_to_propose() {
    let mut proposal = proposal();
    assert!(!proposal.take_calls([("another", 1, 1)]));
    let text = proposal.map();
    assert!(text.lines().all(|line| line.is_empty() || line.starts_with('#')), "{text}");
    assert_eq!(text.matches("the command called no candidate").count(), 2, "{text}");
}

#[test]
fn files_without_functions_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libempty.so");
    std::fs::write(&path, library("c", "int number = 1;", &[])).unwrap();
    let error = Proposal::of(&path).unwrap_err();
    assert!(error.contains("there is nothing to propose"), "{error}");
    std::fs::write(&path, "text").unwrap();
    assert!(Proposal::of(&path).is_err());
}

#[test]
fn engines_are_named_after_their_files() {
    for (file, name) in [
        ("libfoo-1a2b3c.so.4.5", "foo"),
        ("libctranslate2.so.4", "ctranslate2"),
        ("_ext.cpython-311-x86_64-linux-gnu.so", "ext"),
        ("lib_lightgbm.so", "lightgbm"),
        ("lib.so", "engine"),
        ("libopenvino.so.2641", "openvino_proposed"),
        ("libnone.so", "none_proposed"),
        ("é\u{7}a.so", "__a"),
    ] {
        assert_eq!(engine_name(file), name, "{file}");
    }
}
