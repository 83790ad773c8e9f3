//! Views of single sections against a plain stack for each thread.

use std::{collections::HashMap, ops::Range};

use proptest::prelude::*;

use super::*;

/// A section as a plain stack has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Plain {
    tid: u32,
    name: String,
    begin: u64,
    end: Option<u64>,
    /// Number of the marked section around it.
    parent: Option<usize>,
}

/// Every marked section in the order they began.
fn plain(acts: &[(u64, u32, Act)]) -> Vec<Plain> {
    let mut sections: Vec<Plain> = Vec::new();
    let mut stacks: HashMap<u32, Vec<Option<usize>>> = HashMap::new();
    for (time, tid, act) in acts {
        let stack = stacks.entry(*tid).or_default();
        let Act::Mark(payload) = act else { continue };
        if let Some(text) = payload.strip_prefix("B|1|") {
            let marked = text.strip_prefix("[NN_LR_PE]").map(|name| {
                let parent = stack.iter().rev().find_map(|frame| *frame);
                let name = name.split('#').next().unwrap().to_owned();
                sections.push(Plain { tid: *tid, name, begin: *time, end: None, parent });
                sections.len() - 1
            });
            stack.push(marked);
        } else if payload.starts_with('E')
            && let Some(frame) = stack.pop()
            && let Some(number) = frame
        {
            sections[number].end = Some(*time);
        }
    }
    sections
}

fn of_graph(causality: &Causality, names: &Names) -> Vec<Plain> {
    let nodes = causality.graph.nodes().iter().map(|node| Plain {
        tid: node.tid,
        name: names.text(node.name),
        begin: node.begin.time,
        end: node.end,
        parent: node.parent.filter(|(_, edge)| *edge == Edge::Nested).map(|(parent, _)| parent as usize),
    });
    nodes.collect()
}

/// Begins of marked and foreign sections, and ends, of three threads, with such steps (ns) of time between.
fn streams(steps: Range<u64>) -> impl Strategy<Value = Vec<(u64, u32, Act)>> {
    let mark = prop_oneof![
        4 => (0..4_u8).prop_map(|name| format!("B|1|[NN_LR_PE]f{name}")),
        1 => Just("B|1|[NN_LR_PE]frame#iter=1".to_owned()),
        2 => Just("B|1|of somebody else".to_owned()),
        6 => Just("E|1".to_owned()),
    ];
    prop::collection::vec((1..4_u32, mark, steps), 1..150).prop_map(|marks| {
        let mut now = 0;
        let act = |(tid, mark, step)| {
            now += step;
            (now, tid, Act::Mark(mark))
        };
        marks.into_iter().map(act).collect()
    })
}

proptest! {
    #[test]
    fn the_graph_has_what_plain_stacks_have(acts in streams(0..3)) {
        let (causality, names) = replay(Questions { graph: true, ..Questions::default() }, &acts);
        prop_assert_eq!(of_graph(&causality, &names), plain(&acts));
    }

    #[test]
    fn outermost_sections_miss_what_no_section_in_them_covers(acts in streams(0..3)) {
        let acts: Vec<_> = acts.into_iter().filter(|(_, _, act)| {
            !matches!(act, Act::Mark(mark) if mark.contains("#iter"))
        }).collect();
        let (causality, names) = replay(Questions { missing: true, ..Questions::default() }, &acts);
        let sections = plain(&acts);
        let mut expected: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
        for (number, section) in sections.iter().enumerate() {
            let (Some(end), None) = (section.end, section.parent) else { continue };
            let inside = sections.iter().filter(|inner| inner.parent == Some(number));
            let covered: u64 = inside.map(|inner| inner.end.unwrap() - inner.begin).sum();
            let sum = expected.entry(section.name.clone()).or_default();
            let time = end - section.begin;
            *sum = (sum.0 + 1, sum.1 + time, sum.2 + time - covered);
        }
        let found: BTreeMap<_, _> = causality.roots.all()
            .map(|(site, sum)| (names.text(site.name), (sum.count, sum.total, sum.missing.time)))
            .collect();
        prop_assert_eq!(found, expected);
    }

    // Sections of no length look the same inside of one another and one after the other: time goes on at every mark.
    #[test]
    fn an_explanation_counts_the_calls_of_plain_stacks(acts in streams(1..4)) {
        let (causality, names) = replay(Questions { explain: Some("f0".into()), ..Questions::default() }, &acts);
        let sections = plain(&acts);
        let explanation = causality.explanation.unwrap();
        let is_in = |mut number: usize, outer: usize| loop {
            match sections[number].parent {
                Some(parent) if parent == outer => return true,
                Some(parent) => number = parent,
                None => return false,
            }
        };
        let (mut count, mut calls) = (0, BTreeMap::<String, u64>::new());
        for (outer, section) in sections.iter().enumerate() {
            if section.name == "f0" && section.end.is_some() {
                count += 1;
                for (number, inner) in sections.iter().enumerate() {
                    if is_in(number, outer) {
                        *calls.entry(inner.name.clone()).or_default() += 1;
                    }
                }
            }
        }
        let shares: BTreeMap<_, _> =
            explanation.shares().into_iter().map(|share| (names.text(share.name), share.calls)).collect();
        prop_assert_eq!((explanation.count(), shares), (count, calls));
    }

    /// An iteration adds up the sections that ended; the others are open.
    #[test]
    fn iterations_that_have_not_ended_are_open(acts in streams(0..3)) {
        let (causality, _) = replay(Questions::default(), &acts);
        let sections: Vec<_> = plain(&acts).into_iter().filter(|section| section.name == "frame").collect();
        let ended: Vec<u64> =
            sections.iter().filter_map(|section| Some(section.end? - section.begin)).collect();
        let expected = (ended.len() as u64, (sections.len() - ended.len()) as u64, ended.iter().sum::<u64>());
        let found = causality.iterations.kept().first()
            .map_or((0, 0, 0), |row| (row.total.count, row.open, row.total.own));
        prop_assert_eq!(found, expected);
    }
}

/// The ends of two of three sections never come, as when their records are lost.
#[test]
fn what_follows_a_lost_end_is_in_no_section_that_ended() {
    let mut causality = Causality::new(Questions { graph: true, ..Questions::default() }, &Limits::default());
    let begin = |causality: &mut Causality, time: u64| {
        let payload = format!("B|1|[NN_LR_PE]f#acct=a{time}");
        causality.begins(THREAD, time, payload.as_bytes(), 14);
    };
    for time in 0..10_000 {
        begin(&mut causality, time);
    }
    causality.advance(u64::MAX);
    assert!(causality.graph.nodes().iter().all(|node| node.parent.is_none()));
    // The last, and the one before it, whose end might have been of the same instant.
    assert_eq!(causality.threads.kept(), 2);
}

#[test]
fn memory_does_not_grow_with_begins_takes_and_forks_without_an_end() {
    let mut causality = Causality::default();
    for time in 0..50_000_u64 {
        let at = |depth| Origin { pid: 1, tid: 1, depth, sequence: 0 };
        // A thread that only begins: the stack of the kernel programs has 64 places, and beyond there are no records.
        if time < 64 {
            causality.begins(at(time as u8), time, b"B|1|[NN_LR_PE]f#acct=a", 14);
        }
        causality.instant(at(64), time, b"I|1|nn.send#h=1");
        causality.instant(at(64), time, b"I|1|nn.recv#h=1");
        causality.instant(Origin { tid: 2, ..at(0) }, time, b"I|1|nn.recv#h=1");
        causality.create(time.into(), 1, 3);
        causality.advance(time.saturating_sub(1));
        assert!(causality.pending.len() <= 8, "{} wait", causality.pending.len());
        assert!(causality.threads.kept() <= 1_200, "{} are kept", causality.threads.kept());
    }
    assert!(causality.forgotten() > 0);
}
