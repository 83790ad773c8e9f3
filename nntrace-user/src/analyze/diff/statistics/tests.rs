//! Statistics against values of others and against slow, obvious ways.

use proptest::prelude::*;

use super::{bootstrap::least_runs, *};

/// The p-value by dealing the values in every possible way.
fn by_every_deal(before: &[f64], after: &[f64]) -> f64 {
    let all: Vec<f64> = before.iter().chain(after).copied().collect();
    // Pairs won, and half of those that are even.
    let won = |group: u32| {
        let is_in = |place: usize| group & 1 << place != 0;
        let mut twice = 0_i64;
        for (i, a) in all.iter().enumerate().filter(|(place, _)| is_in(*place)) {
            for (j, b) in all.iter().enumerate().filter(|(place, _)| !is_in(*place)) {
                assert_ne!(i, j);
                twice += 1 + a.total_cmp(b) as i64;
            }
        }
        twice
    };
    let found = won((1 << before.len()) - 1);
    let deals = (0..1_u32 << all.len()).filter(|group| group.count_ones() as usize == before.len());
    let (mut lower, mut upper, mut count) = (0, 0, 0);
    for group in deals {
        lower += i32::from(won(group) <= found);
        upper += i32::from(won(group) >= found);
        count += 1;
    }
    (2.0 * f64::from(lower.min(upper)) / f64::from(count)).min(1.0)
}

fn change(before: f64, after: f64) -> f64 {
    after / before - 1.0
}

fn interval(before: &[f64], after: &[f64]) -> Option<Interval> {
    Bootstrap::new(0.95).interval(before, after, change)
}

fn group() -> impl Strategy<Value = Vec<f64>> {
    // Few different values: ties are the rule.
    prop::collection::vec((0..12_u32).prop_map(f64::from), 1..7)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn p_values_are_those_of_every_deal(before in group(), after in group()) {
        let p = mann_whitney(&before, &after);
        prop_assert!((p - by_every_deal(&before, &after)).abs() < 1e-12);
        prop_assert!(p >= least_p_value(before.len(), after.len()) - 1e-12);
    }

    #[test]
    fn sides_can_be_exchanged(before in group(), after in group()) {
        prop_assert!((mann_whitney(&before, &after) - mann_whitney(&after, &before)).abs() < 1e-12);
        let (delta, back) = (cliffs_delta(&before, &after).unwrap(), cliffs_delta(&after, &before).unwrap());
        prop_assert!((delta + back).abs() < 1e-12 && delta.abs() <= 1.0);
    }

    #[test]
    fn an_interval_holds_possible_changes_only(
        before in prop::collection::vec(1.0..1e9_f64, 6..15),
        after in prop::collection::vec(1.0..1e9_f64, 6..15),
    ) {
        let Interval { low, high } = interval(&before, &after).unwrap();
        let ends = |values: &[f64]| values.iter().fold((f64::MAX, 0.0_f64), |(low, high), &value| {
            (low.min(value), high.max(value))
        });
        let ((least, most), (least_after, most_after)) = (ends(&before), ends(&after));
        prop_assert!(low <= high && low >= change(most, least_after) && high <= change(least, most_after));
    }

    #[test]
    fn corrected_p_values_keep_their_order(p in prop::collection::vec(0.0..1.0_f64, 0..20)) {
        let adjusted = holm(&p);
        for (i, own) in p.iter().enumerate() {
            // As it is defined: the largest of those that are smaller, each times the number of those left.
            let smaller = p.iter().filter(|other| *other <= own);
            let expected = smaller.map(|other| {
                other * p.iter().filter(|left| *left >= other).count() as f64
            }).fold(0.0, f64::max).min(1.0);
            prop_assert!((adjusted[i] - expected).abs() < 1e-12);
        }
    }
}

#[test]
fn p_values_are_those_of_scipy() {
    // scipy.stats.mannwhitneyu(.., method="exact") without ties, method="asymptotic" for the long ones.
    let numbers = |range: std::ops::Range<u32>| range.map(f64::from).collect::<Vec<_>>();
    let close = |p: f64, expected: f64| assert!((p / expected - 1.0).abs() < 1e-6, "{p} {expected}");
    close(mann_whitney(&numbers(0..10), &numbers(10..20)), 1.082_508_822_446_903e-5);
    close(least_p_value(10, 10), 1.082_508_822_446_903e-5);
    close(mann_whitney(&numbers(0..3), &numbers(3..6)), 0.1);
    close(mann_whitney(&[19.0, 22.0, 16.0, 29.0, 24.0], &[20.0, 11.0, 17.0, 12.0]), 0.111_111_111_111_111_1);
    let shifted: Vec<f64> = (0..30).map(|n| f64::from(n) + 5.5).collect();
    close(mann_whitney(&numbers(0..30), &shifted), 0.027_086_318_388_295_935);
    let tied: Vec<f64> = (0..30).map(|n| f64::from(n / 3) + 2.0).collect();
    let even: Vec<f64> = (0..30).map(|n| f64::from(n / 3)).collect();
    close(mann_whitney(&even, &tied), 0.016_504_477_012_993_075);
}

#[test]
fn nothing_is_found_in_nothing() {
    assert_eq!((mann_whitney(&[], &[1.0]), mann_whitney(&[1.0], &[])), (1.0, 1.0));
    assert_eq!((median(&[]), cliffs_delta(&[], &[1.0])), (None, None));
    let same = vec![5.0; 30];
    assert_eq!((mann_whitney(&same, &same), least_p_value(0, 5)), (1.0, 1.0));
    assert!(holm(&[]).is_empty());
}

#[test]
fn medians_and_deltas_are_as_by_hand() {
    assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 3.0, 2.0])), (Some(2.0), Some(2.5)));
    assert_eq!(cliffs_delta(&[1.0, 2.0], &[3.0, 4.0]), Some(1.0));
    assert_eq!(cliffs_delta(&[1.0, 3.0], &[2.0, 3.0]), Some(0.25));
}

#[test]
fn an_interval_needs_enough_runs_and_is_the_same_again() {
    assert_eq!([0.9, 0.95, 0.99].map(least_runs), [5, 6, 8]);
    let before: Vec<f64> = (0..10).map(|n| 100.0 + f64::from(n)).collect();
    let after: Vec<f64> = before.iter().map(|value| value * 1.05).collect();
    assert_eq!(interval(&before[..5], &after), None);
    let found = interval(&before, &after).unwrap();
    assert_eq!(Some(found), interval(&before, &after));
    assert!(found.low < 0.05 && found.low > -0.03 && found.high > 0.05 && found.high < 0.13, "{found:?}");
    assert_eq!(interval(&[0.0; 10], &after), None);
}

#[test]
fn an_interval_covers_the_change_about_as_often_as_it_says() {
    // Medians of 10 and 11 in uniform noise of a tenth, from the constants of MMIX.
    let mut seed = 11_u64;
    let mut noise = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 40) as f64 / f64::from(1 << 24) - 0.5
    };
    let (mut covered, mut bootstrap) = (0, Bootstrap::new(0.95));
    for _ in 0..300 {
        let before: Vec<f64> = (0..10).map(|_| 10.0 + noise()).collect();
        let after: Vec<f64> = (0..10).map(|_| 11.0 + noise()).collect();
        let Interval { low, high } = bootstrap.interval(&before, &after, change).unwrap();
        covered += i32::from(low <= 0.1 && 0.1 <= high);
    }
    assert!((276..=300).contains(&covered), "{covered} of 300");
}
