//! Sections in order against a plain sort.

use proptest::prelude::*;

use super::*;
use crate::record::made_up::{PID, recorded, span, spans};

/// Section by what it is sorted by: begin, thread, depth, and its place among the inputs; and its end.
type Row = (u64, u32, u8, u64);

fn rows(sections: &OrderedSections, by_thread: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut take = |section: &Section<'_>, thread: Option<u32>| {
        assert_eq!(section.name, format!("f{}", section.end_ns % 5 + 1));
        rows.push((section.begin_ns, thread.unwrap(), section.depth, section.end_ns));
        ControlFlow::Continue(())
    };
    let _ = if by_thread { sections.visit_by_thread(&mut take) } else { sections.visit(&mut take) };
    rows
}

fn expected(sections: &OrderedSections, spans: &[SpanRecord], by_thread: bool) -> Vec<Row> {
    let row = |span: &SpanRecord| {
        (span.begin, sections.threads().place(PID, span.tid, span.begin).unwrap(), span.depth, span.end)
    };
    let mut rows: Vec<Row> = spans.iter().map(row).collect();
    // What is equal stays in the order of the inputs.
    rows.sort_by_key(|(begin, thread, depth, _)| (*begin, *thread, *depth));
    if by_thread {
        rows.sort_by_key(|(_, thread, ..)| *thread);
    }
    rows
}

fn named(mut spans: Vec<SpanRecord>) -> Vec<SpanRecord> {
    for span in &mut spans {
        span.name = span.end % 5 + 1;
    }
    spans
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn sections_are_in_the_order_of_a_plain_sort(
        spans in spans(), longest in 1..40_usize, stretch in 0..6_u32, together in 1..200_u64,
    ) {
        let spans = named(spans);
        let folder = recorded(&spans, &[(5, PID, PID + 2), (7, PID, PID + 1)]);
        let path = folder.path().join("run");
        let few = OrderedSections::with_sizes(&path, Sizes { longest, stretch, together }).unwrap();
        let all = OrderedSections::open(&path).unwrap();
        for by_thread in [false, true] {
            let expected = expected(&few, &spans, by_thread);
            prop_assert_eq!(&rows(&few, by_thread), &expected);
            prop_assert_eq!(&rows(&all, by_thread), &expected);
        }
    }
}

#[test]
fn threads_with_streams_of_their_own_are_read_from_these() {
    let all = (0..9_000_u64).map(|number| span(PID + (number % 2) as u32, 10 * number, 25, 0, 1));
    let spans = named(all.collect());
    let folder = recorded(&spans, &[(1, PID, PID + 1)]);
    let sizes = Sizes { longest: 4, stretch: 6, together: 1 };
    let sections = OrderedSections::with_sizes(&folder.path().join("run"), sizes).unwrap();
    assert_eq!(
        sections.threads().all().iter().map(|thread| &thread.name).collect::<Vec<_>>(),
        ["main", "main_0"]
    );
    assert_eq!(sections.files.size().0, 4);
    for by_thread in [false, true] {
        assert_eq!(rows(&sections, by_thread), expected(&sections, &spans, by_thread));
    }
}

#[test]
fn sections_of_threads_that_take_no_part_are_left_out() {
    let provisional = |tid, begin| SpanRecord {
        kind: nntrace_common::record::RecordKind::ProvisionalSpan as u32,
        ..span(tid, begin, 5, 0, 1)
    };
    let spans = named(vec![provisional(PID, 1), provisional(PID + 1, 2), span(PID, 3, 5, 0, 1)]);
    let folder = recorded(&spans, &[]);
    let sections = OrderedSections::open(&folder.path().join("run")).unwrap();
    assert_eq!(rows(&sections, false).iter().map(|row| row.0).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn an_id_that_comes_again_is_another_thread() {
    let spans = named(vec![span(PID + 1, 10, 5, 0, 1), span(PID + 1, 100, 5, 0, 1)]);
    let folder = recorded(&spans, &[(5, PID, PID + 1), (50, PID, PID + 1)]);
    let sections = OrderedSections::open(&folder.path().join("run")).unwrap();
    let names: Vec<&str> =
        rows(&sections, false).iter().map(|row| sections.threads().name(Some(row.1))).collect();
    assert_eq!(names, ["main_0", "main_1"]);
}

#[test]
fn a_consumer_that_has_enough_gets_no_more() {
    let spans = named((0..100).map(|number| span(PID, number, 5, 0, 1)).collect());
    let folder = recorded(&spans, &[]);
    let sizes = Sizes { longest: 4, stretch: 2, together: 1 };
    let sections = OrderedSections::with_sizes(&folder.path().join("run"), sizes).unwrap();
    let mut count = 0;
    let flow = sections.visit(|_, _| {
        count += 1;
        if count == 7 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!((count, flow), (7, ControlFlow::Break(())));
}
