use std::collections::BTreeMap;

use super::*;
use crate::mark;

/// Totals (own time) and exclusive time, by tag; execution includes its parts where they add to it.
#[derive(Debug, Default, PartialEq)]
struct Sums {
    total: BTreeMap<String, u64>,
    exclusive: BTreeMap<String, u64>,
    count: BTreeMap<String, u64>,
}

impl Sums {
    fn add(&mut self, tag: Tag, adds: Adds, own: u64, exclusive: u64) {
        *self.exclusive.entry(tag.to_string()).or_default() += exclusive;
        let execution = Tag::new(tag.layer(), Phase::Execution);
        for (tag, adds) in [(tag, adds.to_total()), (execution, adds.to_execution())] {
            if adds {
                *self.total.entry(tag.to_string()).or_default() += own;
                *self.count.entry(tag.to_string()).or_default() += 1;
            }
        }
    }
}

/// Runs payloads (time, text) through a stack.
fn run(events: &[(u64, String)]) -> (Sums, Vec<DiagnosticKind>, Stack) {
    let mut stack = Stack::EMPTY;
    let mut sums = Sums::default();
    let mut odd = Vec::new();
    for (now, text) in events {
        let sink = |_: &Stack, closed: &Closed| {
            sums.add(closed.tag, closed.adds, closed.own, closed.exclusive);
        };
        let bytes = text.as_bytes();
        let diagnostics = if mark::kind(bytes) == Some(mark::Kind::Begin) {
            let begin = mark::begin(bytes);
            stack.begin(*now, begin.prefix, begin.label, mark::name_hash(bytes, begin.name_at), sink)
        } else {
            stack.end(*now, sink)
        };
        odd.extend(diagnostics.iter());
    }
    (sums, odd, stack)
}

/// One row of the contract: `begins and ends` at 10^0, 10^1, ..; an end is `-`.
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
        assert_eq!(sums.total.get(tag).copied().unwrap_or(0), ns, "{tag} of {events:?}");
    }
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

fn events(texts: &[&str]) -> Vec<(u64, String)> {
    texts.iter().enumerate().map(|(at, text)| (at as u64 * 10, (*text).to_owned())).collect()
}

#[test]
fn oddities_are_told_and_survived() {
    use DiagnosticKind::{BadNesting, DepthOverflow, TimeBackwards, UnknownTag, UnmatchedEnd};
    assert_eq!(run(&events(&["E"])).1, [UnmatchedEnd]);
    assert_eq!(run(&events(&["B|1|[NN_LX_PE]x", "E"])).1, [UnknownTag]);
    assert_eq!(run(&events(&["B|1|[NN_LR_PE]x", "B|1|[NN_LA_PE]y"])).1, [BadNesting]);
    assert_eq!(run(&events(&["B|1|[NN_LR_PU]x"])).1, [BadNesting]);
    assert_eq!(run(&events(&["B|1|[SW][NN_LR_PE]x", "E", "E"])).1, [BadNesting]);
    let (sums, odd, _) = run(&[(20, "B|1|[NN_LR_PE]x".into()), (10, "E".into())]);
    assert_eq!((odd, sums.total["LR_PE"]), (vec![TimeBackwards], 0));

    let mut deep = vec!["B|1|[NN_LR_PE]outer"];
    deep.extend(["B|1|x"; MAX_DEPTH + 3]);
    deep.extend(["E"; MAX_DEPTH + 4]);
    let (sums, odd, stack) = run(&events(&deep));
    assert_eq!(odd, [DepthOverflow; 4]);
    assert_eq!(sums.total["LR_PE"], (deep.len() as u64 - 1) * 10);
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
    stack.end(3, |stack, closed| stack.steps(closed, |path, step| steps.push((path, step))));
    let [(inner, first), (outer, second)] = steps[..] else { panic!("{steps:?}") };
    assert_eq!((first.parent, second.parent), (outer, ROOT_PATH));
    assert_ne!(inner, outer);
    assert_eq!(Tag::from_index(first.tag), Some(Tag::new(Layer::CpuFallback, Phase::Computation)));
}

/// The contract once more, slowly: a tree of everything, walked after the fact.
mod oracle {
    use super::*;

    struct Node {
        begin: u64,
        end: Option<u64>,
        around: Option<usize>,
        tag: Option<(bool, Tag)>,
    }

    fn grow(events: &[(u64, String)]) -> Vec<Node> {
        let mut nodes: Vec<Node> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        for (now, text) in events {
            let bytes = text.as_bytes();
            if mark::kind(bytes) != Some(mark::Kind::Begin) {
                if let Some(closed) = open.pop() {
                    nodes[closed].end = Some(*now);
                }
                continue;
            }
            let begin = mark::begin(bytes);
            if begin.prefix == Prefix::Switch {
                if let Some(closed) = open.pop() {
                    nodes[closed].end = Some(*now);
                }
                nodes.push(Node { begin: *now, end: None, around: open.last().copied(), tag: None });
                open.push(nodes.len() - 1);
            }
            let tag = begin.label.tag().map(|tag| (begin.prefix == Prefix::Subtract, tag));
            nodes.push(Node { begin: *now, end: None, around: open.last().copied(), tag });
            open.push(nodes.len() - 1);
        }
        nodes
    }

    struct Tree {
        nodes: Vec<Node>,
    }

    impl Tree {
        fn parent(&self, node: usize) -> Option<usize> {
            let mut around = self.nodes[node].around;
            while let Some(number) = around {
                if self.nodes[number].tag.is_some() {
                    break;
                }
                around = self.nodes[number].around;
            }
            around
        }

        fn tag(&self, node: usize) -> Tag {
            let (_, tag) = self.nodes[node].tag.unwrap();
            match self.parent(node) {
                Some(parent) if tag.phase() == Phase::Unspecified => {
                    Tag::new(tag.layer(), self.tag(parent).phase())
                }
                _ => tag,
            }
        }

        fn class(&self, node: usize) -> Class {
            let (subtract, _) = self.nodes[node].tag.unwrap();
            let (layer, phase) = (self.tag(node).layer(), self.tag(node).phase());
            if subtract {
                return Class::Subtract;
            }
            let Some(parent) = self.parent(node) else {
                return if layer == Layer::Utility { Class::Detail } else { Class::Section };
            };
            let (above, around) = (self.tag(parent).layer(), self.tag(parent).phase());
            let called = matches!(layer, Layer::Runtime | Layer::Ipc);
            if (phase == Phase::Initialization && around != Phase::Initialization)
                || (called
                    && above == Layer::Application
                    && around != phase
                    && !around.is_application_phase()
                    && !phase.is_execution())
            {
                Class::Subtract
            } else if layer == Layer::Utility || (layer == above && !around.has_subphase(phase)) {
                Class::Detail
            } else {
                Class::Section
            }
        }

        fn above(&self, node: usize) -> impl Iterator<Item = usize> {
            std::iter::successors(self.parent(node), |&number| self.parent(number))
        }

        fn duration(&self, node: usize) -> u64 {
            self.nodes[node].end.unwrap() - self.nodes[node].begin
        }

        fn children(&self, node: usize) -> Vec<usize> {
            let all = 0..self.nodes.len();
            all.filter(|&child| self.nodes[child].tag.is_some() && self.parent(child) == Some(node)).collect()
        }

        /// What the marked frames in this one take from it.
        fn subtracted(&self, node: usize) -> u64 {
            let taken = self.children(node).into_iter().filter(|&child| self.nodes[child].end.is_some());
            taken
                .map(|child| match self.class(child) {
                    Class::Subtract => {
                        let reached = std::iter::once(node)
                            .chain(self.above(node))
                            .find(|&number| self.class(number) != Class::Detail);
                        let same = reached.is_some_and(|number| self.tag(number) == self.tag(child));
                        if same { 0 } else { self.duration(child) }
                    }
                    Class::Detail => self.subtracted(child),
                    _ => 0,
                })
                .sum()
        }
    }

    pub fn sums(events: &[(u64, String)]) -> Sums {
        let tree = Tree { nodes: grow(events) };
        let mut sums = Sums::default();
        for node in 0..tree.nodes.len() {
            if tree.nodes[node].tag.is_none() || tree.nodes[node].end.is_none() {
                continue;
            }
            let tag = tree.tag(node);
            let own = tree.duration(node).saturating_sub(tree.subtracted(node));
            let nested: u64 = tree
                .children(node)
                .into_iter()
                .filter(|&child| tree.nodes[child].end.is_some())
                .map(|child| tree.duration(child))
                .sum();
            let counted = tree.above(node).any(|up| tree.class(up) == Class::Section && tree.tag(up) == tag);
            let executes = tree.above(node).any(|up| tree.tag(up) == Tag::new(tag.layer(), Phase::Execution));
            let adds = match tree.class(node) {
                Class::Section => 1 | u8::from(tag.phase().is_execution_part() && !executes) << 1,
                Class::Subtract => u8::from(!counted),
                _ => 0,
            };
            sums.add(tag, Adds::from_bits(adds), own, tree.duration(node) - nested);
        }
        sums
    }
}

mod property {
    use proptest::prelude::*;

    use super::*;

    /// Any begin, tagged or not, with any prefix; more ends than a balanced stream has.
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
            prop_assert_eq!(sums, oracle::sums(&events));
        }
    }
}
