use super::{
    oracle::{Event, Sums},
    *,
};
use crate::mark;

/// Returns the event of a payload.
fn event(text: &str) -> Event {
    let bytes = text.as_bytes();
    if mark::kind(bytes) == Some(mark::Kind::Begin) {
        let begin = mark::begin(bytes);
        Event::Begin(begin.prefix, begin.label)
    } else {
        Event::End
    }
}

/// Runs payloads (time, text) through a stack.
fn run(events: &[(u64, String)]) -> (Sums, Vec<DiagnosticKind>, Stack) {
    let mut stack = Stack::EMPTY;
    let mut sums = Sums::default();
    let mut odd = Vec::new();
    for (now, text) in events {
        let sink = |_: &Stack, closed: &Closed| sums.add(closed);
        let diagnostics = match event(text) {
            Event::Begin(prefix, label) => stack.begin(*now, prefix, label, 0, sink),
            Event::End => stack.end(*now, sink),
        };
        odd.extend(diagnostics.iter());
    }
    sums.open = stack.open_sections();
    (sums, odd, stack)
}

fn total(sums: &Sums, tag: &str) -> u64 {
    sums.total.iter().find(|(known, _)| known.to_string() == tag).map_or(0, |(_, ns)| *ns)
}

/// Checks one row of the contract: `begins and ends` at 10^0, 10^1, ..; an end is `-`.
fn row(events: &[&str], expected: &[(&str, u64)]) {
    let timed: Vec<(u64, String)> = events
        .iter()
        .enumerate()
        .map(|(number, &text)| {
            let text = if text == "-" { "E|1".to_owned() } else { format!("B|1|{text}") };
            (10_u64.pow(number as u32), text)
        })
        .collect();
    let (sums, odd, stack) = run(&timed);
    assert_eq!(odd, [], "{events:?}");
    assert_eq!(stack.open_sections(), 0, "{events:?}");
    for &(tag, ns) in expected {
        assert_eq!(total(&sums, tag), ns, "{tag} of {events:?}");
    }
}

#[test]
fn operators_compute_constants_where_a_runtime_prepares_and_nowhere_else() {
    let label = |tag: &str| mark::begin(format!("B|1|[NN_{tag}]f").as_bytes()).label;
    for (around, operator, expected) in [
        ("LR_PC", "LC_PE", true),
        ("LR_PP", "LC_PE", true),
        ("LR_PP", "LD_PE", true),
        ("LR_PE", "LC_PE", false),
        ("LR_PE", "LD_PE", false),
        ("LR_PC", "LR_PE", false),
        ("LR_PC", "LC_PC", false),
        ("LA_PP", "LC_PE", false),
    ] {
        let (_, odd, stack) = run(&[(1, format!("B|1|[NN_{around}]g"))]);
        assert_eq!(odd, []);
        assert_eq!(stack.computes_constants(label(operator)), expected, "{operator} in {around}");
    }
    assert!(!Stack::EMPTY.computes_constants(label("LC_PE")));
}

#[test]
fn an_engine_in_the_driver_layer_is_a_part_of_it() {
    let label = |tag: &str| mark::begin(format!("B|1|[NN_{tag}]f").as_bytes()).label;
    for (around, function, expected) in [
        ("LR_PE", "LR_PE", "LR_PE"),
        ("LD_PE", "LR_PE", "LD_PE"),
        ("LD_PE", "LR_PC", "LD_PC"),
        ("LC_PE", "LR_PE", "LR_PE"),
        ("LD_PE", "LC_PE", "LC_PE"),
        ("LA_PO", "LR_PE", "LR_PE"),
    ] {
        let (_, _, stack) = run(&[(1, format!("B|1|[NN_{around}]g"))]);
        assert_eq!(stack.label_of_engine(label(function)), label(expected), "{function} in {around}");
    }
    assert_eq!(Stack::EMPTY.label_of_engine(label("LR_PE")), label("LR_PE"));
}

#[test]
fn the_rows_of_the_contract() {
    row(&["[NN_LR_PP]funcP", "-"], &[("LR_PP", 9)]);
    row(&["[NN_LA_PE]a", "[NN_LR_PE]c", "-", "-"], &[("LA_PE", 999), ("LR_PE", 90)]);
    row(&["[NN_LC_PTR]c", "[SW][NN_LC_PCO]c", "-", "-"], &[("LC_PTR", 9), ("LC_PCO", 90), ("LC_PE", 99)]);
    row(&["[NN_LR_PE]r", "[NN_LC_PCO]c", "-", "-"], &[("LC_PCO", 90), ("LC_PE", 90), ("LR_PE", 999)]);
    row(
        &["[NN_LR_PE]r", "[NN_LC_PCO]c", "[NN_LC_PCO]d", "-", "-", "-"],
        &[("LC_PCO", 9_990), ("LC_PE", 9_990), ("LR_PE", 99_999)],
    );
    row(&["[NN_LA_PE]e", "[NN_LA_PR]r", "-", "-"], &[("LA_PE", 999), ("LA_PR", 90)]);
    row(&["[NN_LR_PE]r", "[NN_LR_PE]s", "-", "-"], &[("LR_PE", 999)]);
    row(&["[NN_LR_PC]r", "[NN_LI_PI]c", "-", "-"], &[("LR_PC", 909), ("LI_PI", 90)]);
    row(&["[NN_LI_PC]p", "[SUB][NN_LR_PC]v", "-", "-"], &[("LI_PC", 909), ("LR_PC", 90)]);
    row(
        &["[NN_LI_PC]p", "[NN_LI_PC]f", "[SUB][NN_LR_PC]v", "-", "-", "-"],
        &[("LI_PC", 99_099), ("LR_PC", 900)],
    );
    row(&["[NN_LR_PP]r", "[NN_LR_PI]i", "-", "-"], &[("LR_PI", 90), ("LR_PP", 909)]);
    row(&["[NN_LR_PP]r", "[NN_LU_PU]u", "-", "-"], &[("LR_PP", 999), ("LU_PP", 0)]);
    row(
        &["[NN_LA_PO]o", "[NN_LA_PP]p", "[SW][NN_LA_PC]c", "-", "-", "-"],
        &[("LA_PO", 99_999), ("LA_PP", 90), ("LA_PC", 900)],
    );
    row(
        &["[NN_LA_PC]p", "[NN_LR_PC]p", "-", "[NN_LR_PT]t", "-", "-"],
        &[("LA_PC", 90_999), ("LR_PC", 90), ("LR_PT", 9_000)],
    );
}

#[test]
fn a_subtraction_from_its_own_layer_and_phase_changes_nothing() {
    row(&["[NN_LR_PC]p", "[SUB][NN_LR_PC]v", "-", "-"], &[("LR_PC", 999)]);
    row(
        &["[NN_LR_PC]p", "[NN_LI_PC]i", "[SUB][NN_LR_PC]v", "-", "-", "-"],
        &[("LR_PC", 99_999), ("LI_PC", 9_090)],
    );
}

#[test]
fn a_subtraction_inside_one_of_its_layer_and_phase_counts_once() {
    row(&["[NN_LR_PE]e", "[SUB][NN_LR_PC]o", "[SUB][NN_LR_PC]i", "-", "-", "-"], &[("LR_PC", 9_990)]);
    row(
        &["[NN_LR_PE]e", "[SUB][NN_LR_PC]o", "[NN_LI_PC]s", "[SUB][NN_LR_PC]i", "-", "-", "-", "-"],
        &[("LR_PC", 999_990), ("LI_PC", 90_900)],
    );
}

fn events(texts: &[&str]) -> Vec<(u64, String)> {
    texts.iter().enumerate().map(|(at, text)| (at as u64 * 10, (*text).to_owned())).collect()
}

#[test]
fn diagnostics_are_counted_and_survived() {
    use DiagnosticKind::{BadNesting, DepthOverflow, TimeBackwards, UnknownTag, UnmatchedEnd};
    assert_eq!(run(&events(&["E"])).1, [UnmatchedEnd]);
    assert_eq!(run(&events(&["B|1|[NN_LX_PE]x", "E"])).1, [UnknownTag]);
    assert_eq!(run(&events(&["B|1|[NN_LR_PE]x", "B|1|[NN_LA_PE]y"])).1, [BadNesting]);
    assert_eq!(run(&events(&["B|1|[NN_LR_PU]x"])).1, [BadNesting]);
    assert_eq!(run(&events(&["B|1|[SW][NN_LR_PE]x", "E", "E"])).1, [BadNesting]);
    let (sums, odd, _) = run(&[(20, "B|1|[NN_LR_PE]x".into()), (10, "E".into())]);
    assert_eq!((odd, total(&sums, "LR_PE")), (vec![TimeBackwards], 0));

    let mut deep = vec!["B|1|[NN_LR_PE]outer"];
    deep.extend(["B|1|x"; MAX_DEPTH + 3]);
    deep.extend(["E"; MAX_DEPTH + 4]);
    let (sums, odd, stack) = run(&events(&deep));
    assert_eq!(odd, [DepthOverflow; 4]);
    assert_eq!(total(&sums, "LR_PE"), (deep.len() as u64 - 1) * 10);
    assert_eq!((stack.depth, stack.beyond), (0, 0));
}

#[test]
fn a_path_is_told_from_the_inside_out() {
    let mut stack = Stack::EMPTY;
    let tag = |layer, phase| Label::tagged(Tag::new(layer, phase));
    let ignore = |_: &Stack, _: &Closed| {};
    stack.begin(0, Prefix::None, tag(Layer::Runtime, Phase::Execution), 1, ignore);
    stack.begin(1, Prefix::None, Label::FOREIGN, 2, ignore);
    stack.begin(2, Prefix::None, tag(Layer::CpuFallback, Phase::Computation), 3, ignore);
    let mut steps = Vec::new();
    stack.end(3, |stack, closed| stack.steps(closed.depth, |path, step| steps.push((path, step))));
    let [(inner, first), (outer, second)] = steps[..] else { panic!("{steps:?}") };
    assert_eq!((first.parent, second.parent), (outer, ROOT_PATH));
    assert_ne!(inner, outer);
    assert_eq!(Tag::from_index(first.tag), Some(Tag::new(Layer::CpuFallback, Phase::Computation)));
}

mod property {
    use proptest::prelude::*;

    use super::*;

    /// Generates any begin, tagged or not, with any prefix, and more ends than a balanced stream has.
    fn payload() -> impl Strategy<Value = String> {
        let tag = (0..Layer::ALL.len(), 0..Phase::ALL.len());
        let prefix = prop_oneof![4 => Just(""), 1 => Just("[SW]"), 1 => Just("[SUB]")];
        prop_oneof![
            5 => (prefix, tag).prop_map(|(prefix, (layer, phase))| {
                format!("B|1|{prefix}[NN_{}_{}]f", Layer::ALL[layer].code(), Phase::ALL[phase].code())
            }),
            1 => Just("B|1|somebody else".to_owned()),
            1 => Just("B|1|[NN_XX_YY]unknown".to_owned()),
            5 => Just("E|1".to_owned()),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]
        #[test]
        fn streaming_equals_the_tree(steps in proptest::collection::vec((0_u64..5, payload()), 0..50)) {
            let mut now = 0;
            let events: Vec<(u64, String)> = steps.into_iter().map(|(gap, text)| {
                now += gap;
                (now, text)
            }).collect();
            let (sums, ..) = run(&events);
            let events: Vec<_> = events.iter().map(|(now, text)| (*now, event(text))).collect();
            prop_assert_eq!(sums, oracle::sums(&events));
        }

        /// A section is in itself when one of its tag and name is open around it; some of the names share a bit.
        #[test]
        fn a_function_in_itself_is_found(
            steps in proptest::collection::vec(proptest::option::of((0_usize..3, 0_u64..5)), 0..100)
        ) {
            let tags = ["B|1|[NN_LC_PCO]", "B|1|[NN_LC_PE]", "B|1|"];
            let mut stack = Stack::EMPTY;
            let mut open: Vec<(usize, u64, bool)> = Vec::new();
            for step in steps {
                if let Some((tag, name)) = step {
                    let name = name * 32;
                    let is_inside = open.iter().any(|&(t, n, _)| (t, n) == (tag, name));
                    open.push((tag, name, is_inside));
                    let Event::Begin(prefix, label) = event(tags[tag]) else { unreachable!() };
                    stack.begin(1, prefix, label, name, |_, _| {});
                } else if let Some((tag, _, is_inside)) = open.pop() {
                    let mut found = None;
                    stack.end(1, |_, closed| found = Some(closed.adds.is_in_itself()));
                    prop_assert_eq!(found, (tag < 2).then_some(is_inside));
                }
            }
        }
    }
}
