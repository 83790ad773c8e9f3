use std::collections::BTreeMap;

use nntrace_common::{
    layer::{Layer, Phase, Tag},
    stack::ON_NO_STACK,
    stamp::Stamp,
};
use proptest::prelude::*;

use super::{
    account::{Account, Calls, accounts},
    collect::{Function, Kind, Piece, Pieces},
    *,
};

const PID: u32 = 42;
const RUN: (Layer, &str) = (Layer::Runtime, "model.onnx");
const OPENVINO: (Layer, &str) = (Layer::Driver, "OpenVINOExecutionProvider_OpenVINO-EP-subgraph_1_0");
const DRIVER_PART: (Layer, &str) = (Layer::Driver, "execute");
const CONV: (Layer, &str) = (Layer::CpuFallback, "conv1");
const RESIZE: (Layer, &str) = (Layer::CpuFallback, "resize");
const CALL: (Layer, &str) = (Layer::Driver, "rknpu 0x00000005");

/// Section with the sections in it, and the time before each and after the last.
#[derive(Clone, Debug)]
struct Node {
    of: (Layer, &'static str),
    inside: Vec<Node>,
    gap: u64,
}

fn node(of: (Layer, &'static str), gap: u64, inside: Vec<Node>) -> Node {
    Node { of, inside, gap }
}

impl Node {
    fn ns(&self) -> u64 {
        self.inside.iter().map(|node| node.ns() + self.gap).sum::<u64>() + self.gap
    }

    fn is_part(&self) -> bool {
        self.of == OPENVINO || self.of == DRIVER_PART
    }

    fn is_operator(&self) -> bool {
        self.of == CONV || self.of == RESIZE
    }

    /// Adds the section and those in it, in the order of their ends; returns when it ends.
    fn collect(&self, pieces: &mut Pieces, tid: u32, begin: u64, depth: u8) -> u64 {
        let mut at = begin + self.gap;
        for node in &self.inside {
            at = node.collect(pieces, tid, at, depth + 1) + self.gap;
        }
        let function = function(self.of);
        let known = pieces.functions.iter().position(|known| *known == function);
        let number = known.unwrap_or_else(|| {
            pieces.functions.push(function);
            pieces.functions.len() - 1
        });
        let (begin, end) = (Stamp::new(begin, 0), Stamp::new(at, 0));
        pieces.all.push(Piece { tid, begin, end, depth, function: number as u32, is_call_of_run: false });
        at
    }
}

fn function((layer, name): (Layer, &'static str)) -> Function {
    let kind = match (layer, name) {
        RUN => Kind::Run,
        CONV | RESIZE => Kind::Operator,
        CALL => Kind::DriverCall,
        _ => Kind::Part,
    };
    Function { pid: PID, tag: Tag::new(layer, Phase::Execution), name: name.to_owned(), kind }
}

fn pieces(threads: &[Vec<Node>]) -> Pieces {
    let mut pieces = Pieces::default();
    for (tid, nodes) in (1..).zip(threads) {
        let mut at = 1_000;
        for node in nodes {
            at = node.collect(&mut pieces, tid, at, 0) + 7;
        }
    }
    pieces
}

fn account(threads: &[Vec<Node>]) -> Account {
    accounts(&mut pieces(threads)).remove(&PID).unwrap_or_default()
}

#[test]
fn an_asynchronous_run_counts_once_and_has_what_its_calls_do() {
    // Started at 0, awaited from 60 to 100 on the same thread; an operator in each of the calls.
    let sections = [
        (0, 20, 1, RUN, true),
        (5, 15, 2, CONV, false),
        (0, 100, ON_NO_STACK, RUN, false),
        (60, 100, 1, RUN, true),
        (70, 90, 2, RESIZE, false),
    ];
    let mut pieces = Pieces::default();
    pieces.functions = [RUN, CONV, RESIZE].map(function).to_vec();
    pieces.all = sections
        .iter()
        .map(|&(begin, end, depth, of, is_call_of_run)| Piece {
            tid: 1,
            begin: Stamp::new(begin, 0),
            end: Stamp::new(end, 0),
            depth,
            function: [RUN, CONV, RESIZE].iter().position(|known| *known == of).unwrap() as u32,
            is_call_of_run,
        })
        .collect();
    let account = accounts(&mut pieces).remove(&PID).unwrap();
    assert_eq!((account.runs.count, account.runs.ns), (1, 100));
    assert_eq!((account.outside_runs.count, account.crossings.count), (0, 0));
}

/// The same sums from the tree, without times of begins and ends.
#[derive(Debug, Default, PartialEq, Eq)]
struct Expected {
    runs: Calls,
    in_runs_ns: u64,
    outside_runs: Calls,
    crossings: u64,
    /// By the function, and whether a driver runs it.
    calls: BTreeMap<(&'static str, bool), Calls>,
    around: BTreeMap<(&'static str, bool), Calls>,
    inside: BTreeMap<&'static str, Calls>,
    /// By the function around them; by an empty name where there is none.
    driver_calls: BTreeMap<&'static str, Calls>,
}

/// Sections around one in the tree.
#[derive(Clone, Copy, Default)]
struct Around {
    any: bool,
    run: bool,
    part: Option<&'static str>,
    operator: Option<&'static str>,
}

impl Expected {
    fn of(threads: &[Vec<Node>]) -> Self {
        let mut expected = Self::default();
        for thread in threads {
            let mut last = None;
            for node in thread {
                expected.walk(node, Around::default(), &mut last);
            }
        }
        expected
    }

    /// Time of the operators and parts that are directly in a section.
    fn operators_in(node: &Node) -> Vec<u64> {
        let inside = node.inside.iter().filter(|inner| inner.of != CALL).flat_map(|inner| {
            if inner.is_part() || inner.is_operator() { vec![inner.ns()] } else { Self::operators_in(inner) }
        });
        inside.collect()
    }

    /// Time of the calls to drivers in a section that are in no operator in it.
    fn driver_ns(node: &Node) -> u64 {
        let inside = node.inside.iter().filter(|inner| !inner.is_part() && !inner.is_operator());
        inside.map(|inner| if inner.of == CALL { inner.ns() } else { Self::driver_ns(inner) }).sum()
    }

    fn walk(&mut self, node: &Node, around: Around, last: &mut Option<&'static str>) {
        let name = node.of.1;
        let mut inner = Around { any: true, ..around };
        let in_operators = Self::operators_in(node);
        let mut own = None;
        if node.of == CALL {
            let of = around.part.or(around.operator).unwrap_or_default();
            self.driver_calls.entry(of).or_default().add(node.ns());
            return;
        }
        if node.of == RUN {
            if !around.any {
                self.runs.add(node.ns());
                inner.run = true;
                *last = None;
            }
        } else if let Some(part) = around.part {
            if node.is_operator() && in_operators.is_empty() && Self::driver_ns(node) == 0 {
                self.inside.entry(part).or_default().add(node.ns());
            }
        } else if node.is_operator() && !in_operators.is_empty() {
            let ns = node.ns() - in_operators.iter().sum::<u64>();
            let is_driven = Self::driver_ns(node) > ns / 2;
            self.around.entry((name, is_driven)).or_default().add(ns);
            *(if around.run { &mut self.in_runs_ns } else { &mut self.outside_runs.ns }) += ns;
            inner.operator = Some(name);
        } else {
            own = Some(node.ns());
            if node.is_part() {
                inner.part = Some(name);
            } else {
                inner.operator = Some(name);
            }
        }
        if let Some(ns) = own {
            let is_driven = node.is_operator() && Self::driver_ns(node) > ns / 2;
            self.calls.entry((name, is_driven)).or_default().add(ns);
            if around.run {
                self.in_runs_ns += ns;
                let place = match node.of {
                    OPENVINO => "OpenVINO",
                    DRIVER_PART => "driver",
                    _ if is_driven => "driver",
                    _ => "CPU",
                };
                self.crossings += u64::from(last.is_some_and(|last| last != place));
                *last = Some(place);
            } else {
                self.outside_runs.add(ns);
            }
        }
        for child in &node.inside {
            self.walk(child, inner, last);
        }
        if node.of == RUN && inner.run && !around.run {
            *last = None;
        }
    }
}

/// Returns the parts of an account that are expected.
fn found(account: &Account) -> Expected {
    let mut found = Expected {
        runs: account.runs,
        in_runs_ns: account.functions.iter().map(|sum| sum.in_runs.ns).sum(),
        outside_runs: account.outside_runs,
        crossings: account.crossings.count,
        ..Expected::default()
    };
    let functions = account.functions.iter().map(|sum| (Some(sum), &sum.driver_calls));
    for (sum, driver_calls) in functions.chain([(None, &account.driver_calls)]) {
        let names = [OPENVINO, DRIVER_PART, CONV, RESIZE].map(|(_, name)| name);
        let name = names.into_iter().find(|name| sum.is_some_and(|sum| sum.function.name == *name));
        let name = name.unwrap_or_default();
        for calls in driver_calls.values() {
            found.driver_calls.entry(name).or_default().add_all(*calls);
        }
        let Some(sum) = sum else { continue };
        let is_driven = sum.function.kind == Kind::Operator && account.places[sum.place].is_handed_over;
        for (calls, to) in [(sum.calls, &mut found.calls), (sum.around, &mut found.around)] {
            if calls.count > 0 {
                to.insert((name, is_driven), calls);
            }
        }
        if sum.all_on_cpu_inside().count > 0 {
            found.inside.insert(name, sum.all_on_cpu_inside());
        }
    }
    found
}

fn trees() -> impl Strategy<Value = Node> {
    let of = || prop::sample::select(vec![RUN, OPENVINO, DRIVER_PART, CONV, RESIZE, CALL]);
    let leaf = (of(), 1..9_u64).prop_map(|(of, gap)| node(of, gap, Vec::new()));
    leaf.prop_recursive(5, 40, 5, move |inner| {
        (of(), 0..9_u64, prop::collection::vec(inner, 0..5))
            .prop_map(|(of, gap, inside)| node(of, gap.max(1), inside))
    })
}

proptest! {
    #[test]
    fn sums_are_those_of_the_tree(
        threads in prop::collection::vec(prop::collection::vec(trees(), 0..4), 0..4),
    ) {
        let account = account(&threads);
        prop_assert_eq!(found(&account), Expected::of(&threads));
        let all: u64 = account.functions.iter().map(|sum| sum.calls.ns + sum.around.ns).sum();
        let in_runs: u64 = account.functions.iter().map(|sum| sum.in_runs.ns).sum();
        prop_assert_eq!(all, in_runs + account.outside_runs.ns);
    }

    #[test]
    fn times_add_up_to_the_runs(inside in prop::collection::vec(trees(), 0..6)) {
        let run = node(RUN, 3, inside);
        let account = account(&[vec![run.clone()]]);
        prop_assert_eq!(account.runs, Calls { count: 1, ns: run.ns() });
        let in_runs: u64 = account.functions.iter().map(|sum| sum.in_runs.ns).sum();
        let operators: u64 = account.functions.iter().map(|sum| sum.calls.ns + sum.around.ns).sum();
        prop_assert_eq!(operators, in_runs);
        prop_assert!(in_runs <= account.runs.ns);
        // Sections around operators may be between those of different places.
        let around = account.functions.iter().any(|sum| sum.around.count > 0);
        prop_assert!(around || in_runs + account.crossings.ns <= account.runs.ns);
    }

    #[test]
    fn sections_in_any_order_and_shape_do_no_harm(
        sections in prop::collection::vec((1..3_u32, 0..50_u64, 0..50_u64, 0..4_u8, 0..6_usize), 0..40),
    ) {
        let names = [RUN, OPENVINO, DRIVER_PART, CONV, RESIZE, CALL];
        let mut pieces = Pieces::default();
        pieces.functions = names.map(function).to_vec();
        pieces.all = sections.iter().map(|&(tid, begin, end, depth, of)| Piece {
            tid,
            begin: Stamp::new(begin, 0),
            end: Stamp::new(end, 0),
            depth,
            function: of as u32,
            is_call_of_run: false,
        }).collect();
        let account = accounts(&mut pieces).remove(&PID).unwrap_or_default();
        let runs = sections.iter().filter(|(.., of)| *of == 0).count() as u64;
        prop_assert!(account.runs.count <= runs);
    }
}

/// Page of one process with these threads.
fn page(threads: &[Vec<Node>]) -> String {
    let mut pieces = pieces(threads);
    let account = accounts(&mut pieces).remove(&PID).unwrap_or_default();
    let process = Process::new(PID, Some("python3".to_owned()), &account, &pieces.functions);
    let placement = Placement { processes: vec![process], ..Placement::default() };
    let page = Page {
        schema: "nntrace-where",
        schema_version: SCHEMA_VERSION,
        run: "python3 detect.py".to_owned(),
        placement,
        notes: Vec::new(),
    };
    page.text().to_string()
}

#[test]
fn a_page_has_the_verdict_the_places_and_the_operators() {
    let on_cpu =
        vec![node(RUN, 100_000, vec![node(CONV, 900_000, Vec::new()), node(RESIZE, 300_000, Vec::new())])];
    let part = |of, inside| node(of, 200_000, inside);
    let conv = || node(CONV, 2_000_000, Vec::new());
    let call = || node(CALL, 1_500_000, Vec::new());
    let mixed = vec![
        node(
            RUN,
            50_000,
            vec![
                part(OPENVINO, vec![conv(), conv()]),
                node(RESIZE, 900_000, Vec::new()),
                part(OPENVINO, vec![conv()]),
                part(DRIVER_PART, vec![call(), call()]),
            ],
        );
        2
    ];
    let around = vec![node(CONV, 2_000_000, vec![part(DRIVER_PART, Vec::new())])];
    let calls = vec![node(RUN, 10_000, vec![call()])];
    let driven =
        vec![node(RUN, 10_000, vec![node(CONV, 10_000, vec![call()]), node(CONV, 10_000, Vec::new())])];
    let pages = [
        vec![on_cpu],
        vec![around],
        vec![mixed],
        vec![vec![node(RUN, 5, Vec::new())]],
        vec![calls],
        vec![driven],
    ];
    insta::assert_snapshot!(pages.map(|threads| page(&threads)).join("\n---\n"));
}
