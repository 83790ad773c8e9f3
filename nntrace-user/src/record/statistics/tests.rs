//! Statistics against plain sums over all sections.

use std::collections::BTreeMap;

use nntrace_common::record::SpanRecord;
use proptest::prelude::*;

use super::*;
use crate::{
    model::{
        limits::Limits,
        section_filter::SectionFilter,
        section_statistics::{Property, SectionSums},
    },
    record::made_up::{recorded, spans},
};

fn summed(spans: &[SpanRecord], by: &[Property], filter: SectionFilter) -> RecordedStatistics {
    let folder = recorded(spans, &[]);
    let sums = SectionStatistics::new(by.to_vec(), filter, &Limits::default());
    statistics(&folder.path().join("run"), sums).unwrap()
}

fn assert_sums(row: &SectionSums, spans: &[&SpanRecord]) {
    let mut times: Vec<u64> = spans.iter().map(|span| span.own).collect();
    times.sort_unstable();
    let total: u128 = times.iter().map(|&ns| u128::from(ns)).sum();
    let exclusive: u128 = spans.iter().map(|span| u128::from(span.exclusive)).sum();
    assert_eq!((row.count, row.total_ns, row.exclusive_ns), (times.len() as u64, total, exclusive));
    assert_eq!((row.min_ns, row.max_ns), (times[0], times[times.len() - 1]));
    for (percent, found) in [(50, row.p50_ns), (95, row.p95_ns), (99, row.p99_ns)] {
        let place = (percent * times.len()).div_ceil(100);
        let exact = times[place.max(1) - 1];
        // Of two digits: as exact as 1 %. A histogram has no zero.
        assert!(found >= exact && found as f64 <= (exact as f64 * 1.01).max(1.0), "{found} for {exact}");
    }
    let mean = total as f64 / times.len() as f64;
    let squares: f64 = times.iter().map(|&ns| (ns as f64 - mean).powi(2)).sum();
    let deviation = (squares / times.len() as f64).sqrt();
    assert!((row.deviation_ns - deviation).abs() <= 1e-6 * deviation.max(1.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn rows_are_plain_sums(spans in spans(), least_ns in 0..60_u64) {
        let by = [Property::Thread, Property::Function];
        let filter = SectionFilter { least_ns, ..SectionFilter::default() };
        let found = summed(&spans, &by, filter.clone());
        let mut expected: BTreeMap<(u32, String), Vec<&SpanRecord>> = BTreeMap::new();
        let mut hidden = (0, 0);
        for span in &spans {
            if filter.shows_times(span.begin, span.end) {
                expected.entry((span.tid, format!("f{}", span.name))).or_default().push(span);
            } else {
                hidden = (hidden.0 + 1, hidden.1 + u128::from(span.end - span.begin));
            }
        }
        let rows: Vec<SectionSums> =
            found.statistics.rows().into_iter().filter(|row| row.count > 0).collect();
        prop_assert_eq!(rows.len(), expected.len());
        for (row, ((tid, name), spans)) in rows.iter().zip(&expected) {
            prop_assert_eq!((row.thread.map(|thread| thread.1), row.name.as_ref()), (Some(*tid), Some(name)));
            assert_sums(row, spans);
        }
        let counted = found.statistics.hidden();
        prop_assert_eq!((counted.sections, counted.ns), hidden);
        prop_assert_eq!((found.missing, found.damage.len()), (0, 0));
    }
}

#[test]
fn what_there_is_no_room_for_is_summed_as_others() {
    let spans: Vec<SpanRecord> =
        (0..5_000).map(|number| crate::record::made_up::span(11, number, number, 0, number + 1)).collect();
    let folder = recorded(&spans, &[]);
    let limits = Limits::of_memory(Limits::SMALLEST);
    let sums = SectionStatistics::new(vec![Property::Function], SectionFilter::default(), &limits);
    let found = statistics(&folder.path().join("run"), sums).unwrap();
    let rows = found.statistics.rows();
    assert!(rows.len() < 500 && found.statistics.summed() > 4_000, "{} rows", rows.len());
    assert!(rows.iter().any(|row| row.name.as_deref() == Some("(others)")));
    assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), 5_000);
    let total: u128 = spans.iter().map(|span| u128::from(span.own)).sum();
    assert_eq!(rows.iter().map(|row| row.total_ns).sum::<u128>(), total);
}
