//! Comparisons of made-up runs: false alarms, and what is found.

mod energy;
mod forms;
mod runs;

use runs::{Machine, pool};

use super::{
    comparison::{Comparison, Verdict},
    *,
};

const OPTIONS: Options = Options { confidence: 0.95, per: None };

/// Deals runs of a pool to two sides, by chance.
fn deal(pool: &[Run], runs: usize, random: &mut runs::Random) -> (Vec<Run>, Vec<Run>) {
    let mut all: Vec<&Run> = pool.iter().collect();
    let mut draw = || (0..runs).map(|_| all.swap_remove(random.below(all.len()))).cloned().collect();
    (draw(), draw())
}

#[test]
fn runs_of_the_same_program_give_no_more_false_alarms_than_stated() {
    let pool = pool(&Machine::default(), 40, 1);
    let mut random = runs::Random::new(99);
    let mut alarms = 0;
    for _ in 0..200 {
        let (before, after) = deal(&pool, 10, &mut random);
        let comparison = Comparison::new(&before, &after, &OPTIONS);
        assert!(comparison.can_judge);
        let found = |row: &comparison::Row| !matches!(row.verdict, Verdict::NoneFound | Verdict::NotJudged);
        alarms += i32::from(comparison.metrics.iter().any(found));
    }
    // One in twenty is allowed; 22 and more of 200 come with a probability of 0.0005 then.
    assert!(alarms < 22, "{alarms} of 200");
}

#[test]
fn a_phase_that_is_five_percent_slower_is_found_and_named() {
    let slower = Machine { slow_down: Some(("LD_PE", 1.05)), ..Machine::default() };
    let mut found = 0;
    for seed in 0..20 {
        let (before, after) = (pool(&Machine::default(), 10, 2 * seed), pool(&slower, 10, 2 * seed + 1));
        let comparison = Comparison::new(&before, &after, &OPTIONS);
        let worse: Vec<_> = comparison.worse().map(|row| row.name.as_str()).collect();
        found += i32::from(worse.contains(&"LD_PE.mean"));
        // What it is nested in is slower, too, but not in its own time.
        for row in comparison.worse().filter(|row| row.name == "LR_PE.mean") {
            assert!(comparison.is_by_nested(row));
        }
        assert!(!worse.contains(&"LR_PC.mean") && !worse.contains(&"LR_PE.exclusive_mean"), "{worse:?}");
    }
    assert!(found >= 18, "{found} of 20");
}
