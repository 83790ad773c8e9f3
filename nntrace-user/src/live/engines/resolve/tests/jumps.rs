//! Functions that end by jumps to others.

use super::*;

/// Functions that end by jumps to others, which the linker leaves in the file.
const JUMPS: &str = r#"
    extern "C" {
        int other(int);
        __attribute__((noipa)) static int worker(int n) { return n > 3 ? other(n) + 1 : other(n) + 2; }
        __attribute__((noipa)) static int to_worker(int n) { return worker(other(n)); }
        __attribute__((noipa)) static int helper(int n) { return other(n) * 2; }
        __attribute__((noipa)) static int to_other(int n) { return other(n + 1); }
        int engine_run(int n) { return worker(other(n)); }
        int engine_plain(int n) { return other(n) + 5; }
        int engine_to_plain(int n) { return engine_plain(other(n)); }
        int engine_far(int n) { return to_worker(other(n)); }
        int engine_some(int n) { return n > 7 ? other(n) * 3 : worker(other(n)); }
        int engine_exported(int n) { return engine_run(other(n)); }
        int engine_helped(int n) { return helper(other(n)); }
        int engine_other(int n) { return to_other(other(n)); }
        int engine_again(int n) { return n > 0 && other(n) ? engine_again(n - 1) : 3; }
        #define EIGHT(n) helper(n) + helper(n + 1) + helper(n + 2) + helper(n + 3) + helper(n + 4) + helper(n + 5) + helper(n + 6) + helper(n + 7)
        int engine_calls(int n) {
            n += EIGHT(n); n += EIGHT(n); n += EIGHT(n); n += EIGHT(n);
            n += EIGHT(n); n += EIGHT(n); n += EIGHT(n); n += EIGHT(n);
            return n + 1;
        }
    }
"#;

#[test]
fn calls_end_where_the_functions_return_that_they_jump_to() {
    let file = library("cc", JUMPS, &["-O2", "-s"]);
    let ends = |function: &str, level: &str| {
        let map = format!(
            "[[engine]]\nname = \"example\"\nmatch = {{ export = \"engine_run\" }}\n[[engine.probe]]\nat = {{ export = \
             \"{function}\" }}\nmark = \"LR_PE\"\nlevel = \"{level}\""
        );
        let mut engine = resolved_in(&file, "libengine.so", &map, Level::Op).remove(0);
        let notes: Vec<String> = engine.notes.iter().map(|note| note.text.clone()).collect();
        (engine.probes.remove(0).end, notes)
    };
    let places = |function: &str| match ends(function, "run") {
        (End::SomeReturns(places), notes) if notes.is_empty() => places,
        other => panic!("{function}: {other:?}"),
    };
    let worker = places("engine_run");
    assert!((1..=2).contains(&worker.len()), "{worker:?}");
    assert_eq!(places("engine_far"), worker);
    assert_eq!(places("engine_exported"), worker);
    let some = places("engine_some");
    assert!(some.len() > worker.len() && worker.iter().all(|place| some.contains(place)), "{some:?}");
    let (helped, notes) = ends("engine_helped", "run");
    assert!(matches!(&helped, End::SomeReturns(places) if places.len() == 1), "{helped:?}");
    assert_eq!(
        notes,
        [
            "ends by a jump to a function that is called in many places, whose time is not counted: engine_helped"
        ]
    );
    // Neither what another file does is known, nor is there a probe more for operators.
    assert_eq!(ends("engine_other", "run").0, End::StackPointer);
    assert_eq!(ends("engine_run", "op").0, End::StackPointer);
    // It may be a loop, or a call.
    assert!(matches!(ends("engine_again", "run").0, End::Returns(_) | End::SomeReturns(_)));
}

#[test]
fn returns_of_a_probed_function_are_its_own_alone() {
    let file = library("cc", JUMPS, &["-O2", "-s"]);
    let end = |functions: &str, wanted: &str| {
        let map = format!(
            "[[engine]]\nname = \"example\"\nmatch = {{ export = \"engine_run\" }}\n[[engine.probe]]\nat = {{ export = \
             [{functions}] }}\nmark = \"LR_PE\""
        );
        let engine = resolved_in(&file, "libengine.so", &map, Level::Run).remove(0);
        let mut probes = engine.probes.into_iter();
        probes.find(|probe| probe.function == wanted).unwrap().end
    };
    let alone = end("\"engine_to_plain\"", "engine_to_plain");
    let plain = end("\"engine_plain\"", "engine_plain");
    let End::Returns(places) = &plain else { panic!("{plain:?}") };
    assert_eq!(alone, End::SomeReturns(places.clone()));
    let both = "\"engine_to_plain\", \"engine_plain\"";
    assert_eq!(end(both, "engine_to_plain"), End::StackPointer);
    assert_eq!(end(both, "engine_plain"), plain);
}
