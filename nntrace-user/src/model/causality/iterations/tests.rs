use nntrace_common::{
    layer::{Layer, Phase, Tag},
    stack::Closed,
};
use proptest::prelude::*;

use super::*;

fn site(name: u64) -> Site {
    Site { pid: 1, tag: Tag::new(Layer::Runtime, Phase::Execution), name }
}

fn span(begin: u64, end: u64) -> SpanRecord {
    let tag = Tag::new(Layer::Runtime, Phase::Execution);
    let closed = Closed { exclusive: (end - begin) / 2, ..Closed::alone(tag, 7, begin, end, 0) };
    SpanRecord::new(1, 1, true, &closed)
}

/// Event in the life of iterations.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The next iteration of one of two functions begins.
    Begin(bool),
    /// A section of one that has begun and can still be told apart begins.
    Again(usize),
    /// A section that is one ends.
    End(usize),
    /// A section of some function in one ends.
    Inside { place: usize, function: u64, ns: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => any::<bool>().prop_map(Step::Begin),
        1 => (0..100_usize).prop_map(Step::Again),
        5 => (0..100_usize).prop_map(Step::End),
        3 => (0..100_usize, 0..3_u64, 1..50_u64).prop_map(|(place, function, ns)| Step::Inside { place, function, ns }),
    ];
    prop::collection::vec(step, 0..200)
}

/// Bounded iterations and such as keep all, which take the same steps.
fn run(steps: &[Step], recent: usize) -> (Iterations, Iterations) {
    let limits = Limits::default();
    let mut bounded = Iterations { recent, ..Iterations::new(&limits, false, 3) };
    let mut all = Iterations::new(&limits, true, 3);
    let mut ids: Vec<(IterationId, IterationId)> = Vec::new();
    let mut open: Vec<(usize, u64)> = Vec::new();
    for (step, now) in steps.iter().zip(1_u64..) {
        let now = now * 100;
        match *step {
            Step::Begin(of_first) => {
                let key = (1, u64::from(of_first), ids.len() as u64);
                ids.push((bounded.begin(key, None).unwrap(), all.begin(key, None).unwrap()));
                open.push((ids.len() - 1, now));
            }
            Step::Again(place) if !ids.is_empty() => {
                let place = place % ids.len();
                let key = all.key(ids[place].1).unwrap();
                if bounded.numbers.contains_key(&key) {
                    assert_eq!(
                        (bounded.begin(key, None), all.begin(key, None)),
                        (Some(ids[place].0), Some(ids[place].1))
                    );
                    open.push((place, now));
                }
            }
            Step::End(place) if !open.is_empty() => {
                let (iteration, begin) = open.swap_remove(place % open.len());
                for (iterations, id) in [(&mut bounded, ids[iteration].0), (&mut all, ids[iteration].1)] {
                    let span = span(begin, now);
                    iterations.charge(id, site(9), span.exclusive);
                    iterations.count(id, site(9), &span, true);
                    iterations.miss(id, begin % 7);
                }
            }
            Step::Inside { place, function, ns } if !ids.is_empty() => {
                let place = place % ids.len();
                for (iterations, id) in [(&mut bounded, ids[place].0), (&mut all, ids[place].1)] {
                    iterations.charge(id, site(function), ns / 2);
                    iterations.count(id, site(function), &span(now - ns, now), false);
                }
            }
            _ => {}
        }
    }
    (bounded, all)
}

/// Sums of the iterations of a function that have ended, one by one; how many are open; the slowest by wall time.
fn plain(all: &Iterations, name: u64) -> (IterationSums, u64, Vec<u64>, Vec<u64>) {
    let rows: Vec<_> = all.kept().into_iter().filter(|row| row.key.1 == name).collect();
    let (ended, open): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.open == 0);
    let mut sums = IterationSums::default();
    for row in &ended {
        sums.count += 1;
        sums.total.add(&row.total);
        sums.wall += row.wall.map_or(0, |(begin, end)| end - begin);
        sums.missing += row.missing;
    }
    let mut times: Vec<u64> = ended.iter().map(|row| row.total.own).collect();
    times.sort_unstable();
    let mut slowest = ended;
    slowest.sort_by_key(|row| (std::cmp::Reverse(row.wall_ns()), row.key.2));
    (sums, open.len() as u64, times, slowest.iter().take(3).map(|row| row.key.2).collect())
}

proptest! {
    /// Whatever is settled, sums, percentiles and extremes are those of all iterations; wall times and the slowest are, too,
    /// unless sections came late, which is counted.
    #[test]
    fn bounded_iterations_add_up_to_all_of_them(steps in steps(), recent in 0..6_usize) {
        let (mut bounded, all) = run(&steps, recent);
        // As the begin of another one does.
        bounded.settle_surplus();
        prop_assert!(bounded.ended.len() <= recent);
        prop_assert!(bounded.kept.len() <= bounded.open.len() + recent + 3 * bounded.roots.len());
        prop_assert_eq!((bounded.left_out, bounded.resumed, bounded.unlisted), (0, 0, 0));
        for (found, of_all) in bounded.by_root().iter().zip(all.by_root()) {
            let (sums, open, times, slowest) = plain(&all, found.root.key.1);
            prop_assert_eq!(of_all.root.sums, sums);
            let known = IterationSums { wall: 0, ..found.root.sums };
            prop_assert_eq!(known, IterationSums { wall: 0, missing: known.missing, ..sums });
            prop_assert_eq!(found.root.open, open);
            prop_assert_eq!(found.extremes, times.first().copied().zip(times.last().copied()));
            prop_assert_eq!(found.times.count(), times.len() as u64);
            prop_assert_eq!(&*found.times.histogram(), &*of_all.times.histogram());
            let totals = |root: &Root| -> BTreeMap<Site, Total> {
                root.functions.iter().filter(|(_, sum)| sum.total != Total::default()).map(|(site, sum)| (*site, sum.total)).collect()
            };
            prop_assert_eq!(totals(found.root), totals(of_all.root));
            if bounded.late == 0 {
                prop_assert_eq!(found.root.sums, sums);
                let found: Vec<u64> = found.slowest.iter().map(|row| row.key.2).collect();
                prop_assert_eq!(found, slowest);
            }
        }
    }
}

#[test]
fn memory_does_not_grow_with_iterations() {
    let mut iterations = Iterations::new(&Limits::default(), false, 20);
    for number in 0..100_000 {
        let id = iterations.begin((1, 7, number), None).unwrap();
        iterations.charge(id, site(7), 5);
        iterations.count(id, site(7), &span(number * 100, number * 100 + 10 + number % 90), true);
    }
    assert_eq!(iterations.kept.len(), RECENT + 1 + 20);
    assert_eq!(iterations.roots[0].sums.count, 100_000);
    let [root] = &iterations.by_root()[..] else { panic!("one function") };
    assert_eq!((root.extremes, root.times.count()), (Some((10, 99)), 100_000));
    assert!(root.slowest.iter().all(|row| row.wall_ns() == 99) && root.slowest.len() == 20);
    // The number of one that is settled comes again.
    iterations.begin((1, 7, 5), None);
    assert_eq!((iterations.resumed, iterations.late), (1, 0));
}

#[test]
fn iterations_that_never_end_are_forgotten_and_counted() {
    let limits = Limits { iterations: 100, ..Limits::default() };
    let mut iterations = Iterations::new(&limits, false, 20);
    for number in 0..1_000 {
        iterations.begin((1, 7, number), None);
    }
    assert_eq!((iterations.kept.len(), iterations.numbers.len(), iterations.left_out), (100, 100, 900));
    assert_eq!(iterations.roots[0].open, 1_000);
    // Those that end are summed all the same.
    let id = iterations.begin((1, 7, 1_000), None).unwrap();
    iterations.count(id, site(7), &span(10, 30), true);
    assert_eq!((iterations.roots[0].sums.count, iterations.roots[0].open), (1, 1_000));
}
