//! Streams of marks of several threads through the stacks into the model, by hand and at random against an oracle.

use std::collections::{BTreeMap, HashMap};

use super::*;
use crate::model::{Model, function_names::Names};
use nntrace_common::{
    layer::{self, Phase, Tag},
    mark::{self, Begin, Kind},
    record::{Record, SpanRecord},
    stack::{Closed, Stack},
};

mod hand_overs;
mod plain_stack;
mod random_threads;

/// Action of a thread.
#[derive(Clone, Debug)]
enum Act {
    Mark(String),
    Fork(u32),
    Exit,
}

/// Replays acts of threads of process 1, in order of time.
fn replay(questions: Questions, acts: &[(u64, u32, Act)]) -> (Causality, Names) {
    let (mut causality, mut names) = (Causality::new(questions, &Limits::default()), Names::default());
    let mut stacks: HashMap<u32, Box<Stack>> = HashMap::new();
    for (time, tid, act) in acts {
        let (time, tid) = (*time, *tid);
        let payload = match act {
            Act::Mark(payload) => payload.as_bytes(),
            Act::Fork(child) => {
                causality.create(time.into(), tid, *child);
                continue;
            }
            Act::Exit => {
                causality.exit(time.into(), tid);
                stacks.remove(&tid);
                continue;
            }
        };
        let stack = stacks.entry(tid).or_insert_with(|| Box::new(Stack::EMPTY));
        let mut spans = Vec::new();
        match mark::kind(payload) {
            Some(Kind::Begin) => {
                let Begin { name_at, prefix, label } = mark::begin(payload);
                let name = mark::hashed_name(payload, name_at);
                names.insert(name.hash, mark::name(payload, name_at));
                if label.is_tagged()
                    && (name.has_attributes || causality.questions().need_all_begins())
                    && let Some(depth) = stack.depth_of_next(prefix)
                {
                    causality.begins(Origin { pid: 1, tid, depth, sequence: 0 }, time, payload, name_at);
                }
                stack.begin(time, prefix, label, name.hash, |_, closed| {
                    spans.push(SpanRecord::new(1, tid, true, closed));
                });
            }
            Some(Kind::End) => {
                stack.end(time, |_, closed| spans.push(SpanRecord::new(1, tid, true, closed)));
            }
            _ => causality.instant(Origin { pid: 1, tid, depth: stack.depth(), sequence: 0 }, time, payload),
        }
        for span in &spans {
            causality.span(span, None);
        }
    }
    causality.advance(u64::MAX);
    (causality, names)
}

/// Lines `TIME THREAD PAYLOAD`, where `fork N` and `exit` are acts too. `<f` begins f, `>` ends.
fn acts(text: &str) -> Vec<(u64, u32, Act)> {
    let line = |line: &str| {
        let mut words = line.trim().splitn(3, ' ');
        let mut word = || words.next().unwrap().trim();
        let (time, tid, rest) = (word().parse().unwrap(), word().parse().unwrap(), word());
        let act = if rest == "exit" {
            Act::Exit
        } else if let Some(child) = rest.strip_prefix("fork ") {
            Act::Fork(child.parse().unwrap())
        } else if let Some(name) = rest.strip_prefix('<') {
            Act::Mark(format!("B|1|[NN_LR_PE]{name}"))
        } else if rest == ">" {
            Act::Mark("E|1".into())
        } else {
            Act::Mark(format!("I|1|{rest}"))
        };
        (time, tid, act)
    };
    text.lines().filter(|text| !text.trim().is_empty()).map(line).collect()
}

/// Exclusive ns by account and by how it is known.
fn charges(causality: &Causality) -> BTreeMap<(String, &'static str), u64> {
    let mut charges = BTreeMap::new();
    for ((is_nobodys, name), sites) in causality.accounts.by_name() {
        for sum in sites.values() {
            for (edge, ns) in Edge::ALL.iter().zip(sum.exclusive) {
                let key = if is_nobodys { ("-".into(), "-") } else { (name.to_owned(), edge.name()) };
                if ns > 0 {
                    *charges.entry(key).or_default() += ns;
                }
            }
        }
    }
    charges
}

fn expected(rows: &[(&str, &'static str, u64)]) -> BTreeMap<(String, &'static str), u64> {
    rows.iter().map(|&(account, edge, ns)| ((account.to_owned(), edge), ns)).collect()
}

#[test]
fn a_queue_charges_those_who_handed_work_over() {
    let (causality, _) = replay(
        Questions { by: Some("img".into()), ..Questions::default() },
        &acts(
            "0 1 <submit#acct=foo
             5 1 nn.send#h=1
             10 1 >
             11 1 <submit#acct=bar
             12 1 nn.send#h=2
             20 1 >
             21 9 <loop
             22 9 <convert#h=1#img=a.jpg
             30 9 <resize
             40 9 >
             52 9 >
             53 9 <convert#h=2#img=b.jpg
             63 9 >
             64 9 >",
        ),
    );
    let charged = [
        ("-", "-", 3),
        ("foo", "explicit", 10),
        ("foo", "handed_over", 30),
        ("bar", "explicit", 9),
        ("bar", "handed_over", 10),
    ];
    assert_eq!(charges(&causality), expected(&charged));
    assert_eq!(causality.handles, HandleCounts { sent: 2, received: 2, unmatched: 0, forgotten: 0 });
    let groups = causality.groups.by_value();
    let of = |value: &str| -> u64 {
        groups.iter().filter(|((v, _), _)| *v == value).map(|(_, sum)| sum.total.exclusive).sum()
    };
    assert_eq!((of("a.jpg"), of("b.jpg")), (30, 10));
}

#[test]
fn work_taken_over_within_a_section_is_charged_from_then_on() {
    let (causality, _) = replay(
        Questions::default(),
        &acts(
            "0 1 <submit#acct=foo
             1 1 nn.send#h=1
             2 1 nn.send#h=g.1
             3 1 >
             10 9 <loop
             15 9 nn.recv#h=1
             20 9 <step
             26 9 >
             30 9 nn.recv#h=7
             31 9 >
             40 9 <loop
             45 9 >",
        ),
    );
    // 10..15 is nobody's, 15..31 is foo's with the step in it, and the next loop is nobody's again.
    assert_eq!(
        charges(&causality),
        expected(&[("-", "-", 10), ("foo", "explicit", 3), ("foo", "handed_over", 16)])
    );
    assert_eq!(causality.handles.unmatched, 1);
}

#[test]
fn a_thread_inherits_where_it_was_created_and_its_id_may_come_again() {
    let (causality, _) = replay(
        Questions::default(),
        &acts(
            "0 1 <load#acct=foo
             1 1 <inner
             2 1 fork 5
             4 1 >
             10 1 >
             11 5 <work
             14 5 <more#acct=bar
             15 5 >
             20 5 >
             21 5 exit
             22 1 fork 5
             23 5 <work
             29 5 >",
        ),
    );
    let charged = [
        ("-", "-", 6),
        ("foo", "explicit", 7),
        ("foo", "nested", 3),
        ("foo", "created", 8),
        ("bar", "explicit", 1),
    ];
    assert_eq!(charges(&causality), expected(&charged));
}

/// Rings of other CPUs are read first, and lanes last.
#[test]
fn lives_of_threads_that_come_before_the_first_attribute_count() {
    let stream = "2 1 fork 5
         3 1 fork 6
         9 6 exit
         10 7 fork 6
         0 1 <load#acct=foo
         11 5 <work
         14 5 >
         15 6 <other
         17 6 >
         20 1 >";
    let (causality, _) = replay(Questions::default(), &acts(stream));
    assert_eq!(
        charges(&causality),
        expected(&[("-", "-", 2), ("foo", "explicit", 20), ("foo", "created", 3)])
    );
    let mut causality = Causality::default();
    causality.ended_before(THREAD, 5);
    causality.begins(THREAD, 1, b"B|1|[NN_LR_PE]load#acct=foo", 14);
    causality.create(6.into(), 1, 2);
    causality.advance(10);
    assert_eq!(causality.threads.last_context(2).charge, None);
}

#[test]
fn iterations_keep_their_parent_and_what_is_missing() {
    let (causality, names) = replay(
        Questions::default(),
        &acts(
            "0 1 <batch#iter=7
             10 1 <frame#iter=1
             20 1 <f
             30 1 nn.send#h=3
             40 1 >
             45 9 <g#h=3
             55 9 >
             60 1 <f
             65 1 >
             70 1 >
             80 1 <frame#iter=2
             90 1 >
             100 1 >",
        ),
    );
    let text = |hash: u64| names.text(hash);
    let rows: Vec<_> = causality
        .iterations
        .kept()
        .into_iter()
        .map(|row| {
            let parent = row.parent.map(|parent| parent.iter);
            (text(row.key.1), row.key.2, parent, row.total.own, row.total.exclusive, row.missing)
        })
        .collect();
    // In frame 1, two times f cover 25 of 60, and g, on another thread, 10 more.
    assert_eq!(
        rows,
        [
            ("batch".into(), 7, None, 100, 30, 30),
            ("frame".into(), 1, Some(7), 60, 35, 25),
            ("frame".into(), 2, Some(7), 10, 10, 10)
        ]
    );
    let first = causality.iterations.kept()[1];
    let f = first.functions.iter().find(|(site, _)| text(site.name) == "f").unwrap().1;
    assert_eq!((f.total.count, f.total.own, f.wall), (2, 25, (20, 65)));
    let roots: BTreeMap<_, _> =
        causality.roots.all().map(|(site, sum)| (text(site.name), (sum.total, sum.missing.time))).collect();
    assert_eq!(roots, BTreeMap::from([("batch".into(), (100, 30)), ("frame".into(), (70, 35))]));
}

#[test]
fn a_root_that_is_asked_for_is_numbered() {
    let questions = Questions { iteration_root: Some("frame".into()), ..Questions::default() };
    let (causality, _) =
        replay(questions, &acts("0 1 <frame\n5 1 >\n6 1 <other\n7 1 >\n8 1 <frame\n9 1 <f\n10 1 >\n11 1 >"));
    let rows: Vec<_> =
        causality.iterations.kept().iter().map(|row| (row.key.2, row.total.own, row.missing)).collect();
    assert_eq!(rows, [(0, 5, 5), (1, 3, 2)]);
}

/// A thread with nothing open.
const THREAD: Origin = Origin { pid: 1, tid: 1, depth: 0, sequence: 0 };

#[test]
fn nothing_waits_for_a_section_that_never_ends() {
    let mut causality = Causality::default();
    for time in 0..100_u64 {
        causality.instant(THREAD, time, format!("I|1|nn.send#h={time}").as_bytes());
        causality.create(time.into(), 1, 2);
    }
    causality.advance(97);
    assert_eq!((causality.handles.sent, causality.pending.len()), (98, 4));
}

#[test]
fn a_switch_ends_what_was_said_before() {
    let mut stream = acts("0 1 <a#acct=foo\n10 1 x\n20 1 >\n25 1 >\n26 1 <c\n30 1 >");
    stream[1].2 = Act::Mark("B|1|[SW][NN_LC_PE]b#acct=bar".into());
    let (causality, _) = replay(Questions::default(), &stream);
    assert_eq!(
        charges(&causality),
        expected(&[("-", "-", 4), ("foo", "explicit", 10), ("bar", "explicit", 10)])
    );
}

#[test]
fn variance_goes_to_how_often_or_to_how_long() {
    let run = |often: bool| {
        let (mut stream, mut now) = (Vec::new(), 0);
        for round in 0..200_u64 {
            let mut mark = |step: u64, text: String| {
                now += step;
                stream.push((now, 1, Act::Mark(text)));
            };
            mark(1, "B|1|[NN_LR_PE]f".into());
            let calls = if often { 1 + round * 7 % 10 } else { 5 };
            for call in 0..calls {
                mark(1, "B|1|[NN_LC_PE]g".into());
                mark(if often { 100 } else { 50 + (round * 31 + call * 17) % 100 }, "E|1".into());
            }
            mark(1, "E|1".into());
        }
        let questions = Questions { explain: Some("f".into()), ..Questions::default() };
        let explanation = replay(questions, &stream).0.explanation.unwrap();
        assert_eq!(explanation.count(), 200);
        let shares = explanation.shares();
        assert_eq!(shares.len(), 1);
        (shares[0].how_often, shares[0].how_long)
    };
    let (often, long) = run(true);
    assert!(often > 0.95 && long < 0.01, "{often} {long}");
    let (often, long) = run(false);
    assert!(often < 0.01 && long > 0.5, "{often} {long}");
}

#[test]
fn a_graph_is_acyclic_and_knows_every_cause() {
    let questions = Questions { graph: true, ..Questions::default() };
    let (causality, names) = replay(
        questions,
        &acts(
            "0 1 <main
             1 1 <job
             2 1 nn.send#h=1
             3 1 fork 5
             4 1 >
             5 9 <loop
             6 9 <run#h=1
             7 9 >
             8 9 >
             9 5 <child
             10 5 >
             11 1 >",
        ),
    );
    let graph = &causality.graph;
    let text = |number: u32| names.text(graph.nodes()[number as usize].name);
    let edges: Vec<_> =
        graph.edges().iter().map(|&(from, to, edge)| (text(from), text(to), edge.name())).collect();
    let edge = |from: &str, to: &str, edge| (from.to_owned(), to.to_owned(), edge);
    assert_eq!(
        edges,
        [
            edge("main", "job", "nested"),
            edge("loop", "run", "nested"),
            edge("job", "run", "handed_over"),
            edge("job", "child", "created")
        ]
    );
    assert!(graph.edges().iter().all(|(from, to, _)| from < to));
    assert!(graph.nodes().iter().all(|node| node.end.is_some_and(|end| end >= node.begin.time)));
}

#[test]
fn sections_from_before_the_first_attribute_are_on_no_account() {
    let mut model = Model::new(&Limits::default(), Questions::default(), None);
    let tag = Tag::new(layer::Layer::Runtime, Phase::Execution);
    let span = |begin, end| {
        let closed = Closed::alone(tag, mark::name_hash(b"f".as_slice(), 0), begin, end, 0);
        Record::Span(SpanRecord::new(1, 2, true, &closed))
    };
    model.record(&span(10, 20));
    model.annotated_begin(
        Origin { pid: 1, tid: 2, depth: 0, sequence: 0 },
        30,
        b"B|1|[NN_LR_PE]f#acct=a",
        14,
    );
    model.record(&span(30, 45));
    let accounts = model.marks.causality.accounts.by_name();
    let sums: Vec<_> = accounts
        .iter()
        .map(|((_, name), sites)| (*name, sites.values().map(|sum| (sum.count, sum.exclusive())).collect()))
        .collect();
    let one = |count, ns| vec![(count, ns)];
    assert_eq!(sums, [("a", one(1, 15)), ("", one(1, 10))]);
}
