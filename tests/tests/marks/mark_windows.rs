//! Random marks with a window, in and out of the order of time, against sections that are looked up one by one.
//!
//! `NNTRACE_CASES` changes the number of traces.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::Result;
use nntrace_tests::trace::{self, Random, payload};
use nntrace_user::replay::{Options, TimeRange};

/// Time (ns), thread and text of a mark.
type Mark = (u64, u32, String);

/// Returns marks of some threads in order of time, sometimes several at one instant: nested sections, ends without a
/// begin and begins without an end.
fn marks(random: &mut Random) -> Vec<Mark> {
    let mut now = 9_000_000_000;
    let marks = (0..20 + random.below(200)).map(|_| {
        now += random.below(3) * 1_000;
        let text =
            if random.below(2) == 0 { format!("B|5|[NN_LR_PE]f{}", random.below(5)) } else { "E|5".into() };
        (now, 10 + random.below(4) as u32, text)
    });
    marks.collect()
}

/// Returns the place of a section's end: the first at which as many have ended as began.
fn end_of(marks: &[Mark], begin: usize) -> Option<usize> {
    let tid = marks[begin].1;
    let mut depth = 0;
    (begin..marks.len()).filter(|&at| marks[at].1 == tid).find(|&at| {
        depth += if marks[at].2.starts_with('B') { 1 } else { -1 };
        depth == 0
    })
}

/// Returns, by function, the number of ends in the window, and the time in it (ns). A section inside another one of its
/// function adds to neither.
fn sections(marks: &[Mark], begin: u64, end: u64) -> BTreeMap<String, (u64, u64)> {
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (number, (began, tid, text)) in marks.iter().enumerate() {
        let Some((_, name)) = text.split_once(']') else { continue };
        let is_in_itself = (0..number)
            .filter(|&before| (&marks[before].1, &marks[before].2) == (tid, text))
            .any(|before| end_of(marks, before).is_none_or(|ended| ended > number));
        let ended = end_of(marks, number).map(|place| marks[place].0);
        if let Some(ended) = ended.filter(|ended| (begin..=end).contains(ended)) {
            let (count, ns) = sums.entry(name.to_owned()).or_default();
            if !is_in_itself {
                *count += 1;
                *ns += ended - (*began).max(begin);
            }
        }
    }
    sums
}

/// Formats the marks as text; those of each instant in random order, or all in their order.
fn text(marks: &[Mark], random: Option<&mut Random>) -> String {
    let mut keys: BTreeMap<u64, u64> = marks.iter().map(|(at, ..)| (*at, *at)).collect();
    if let Some(random) = random {
        for key in keys.values_mut() {
            *key = random.below(1 << 30);
        }
    }
    let mut order: Vec<&Mark> = marks.iter().collect();
    order.sort_by_key(|(at, ..)| keys[at]);
    order.into_iter().fold(String::new(), |mut all, (at, tid, payload)| {
        let _ = writeln!(all, "{}", trace::line(*at, *tid, 5, payload));
        all
    })
}

#[test]
fn windows_of_marks_in_no_order_hold_what_ends_in_them() -> Result<()> {
    let cases = std::env::var("NNTRACE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(100);
    let mut cut = 0;
    for seed in 0..cases {
        let mut random = Random::new(30_000 + seed);
        let marks = marks(&mut random);
        let (first, last) = (marks[0].0, marks[marks.len() - 1].0);
        let (one, other) = (first + random.below(last - first + 1), first + random.below(last - first + 1));
        let range = TimeRange { begin: one.min(other), end: one.max(other) };
        let (shuffled, in_order) = (text(&marks, Some(&mut random)), text(&marks, None));
        let words = |text: &str| {
            let word = |at, word| trace::line(at, 99, 99, word) + "\n";
            text.to_owned() + &word(range.end, "nntrace_end") + &word(range.begin, "nntrace_start")
        };
        let with_range = Options { range: Some(range), ..Options::default() };
        let mut snapshots = Vec::new();
        for (text, options) in [
            (shuffled.clone(), &with_range),
            (in_order.clone(), &with_range),
            (words(&shuffled), &Options::default()),
            (words(&in_order), &Options::default()),
        ] {
            let snapshot = trace::replay_with(text, options)?;
            assert_eq!((snapshot.window.begin_ns, snapshot.window.end_ns), (range.begin, range.end));
            let found = snapshot.functions.iter().map(|row| (row.name.clone(), (row.count, row.total_ns)));
            assert_eq!(
                found.collect::<BTreeMap<_, _>>(),
                sections(&marks, range.begin, range.end),
                "seed {seed}"
            );
            snapshots.push(snapshot);
        }
        assert_eq!(snapshots[0], snapshots[1], "seed {seed}");
        assert_eq!(snapshots[2], snapshots[3], "seed {seed}");
        cut += u64::from(sections(&marks, range.begin, range.end) != sections(&marks, 0, u64::MAX));
    }
    assert!(cut > cases / 2, "{cut} of {cases} windows leave anything out");
    Ok(())
}

#[test]
fn everything_about_marks_and_threads_is_the_same_in_any_order() -> Result<()> {
    let cases = std::env::var("NNTRACE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(40);
    for seed in 0..cases {
        let mut random = Random::new(40_000 + seed);
        let mut now = 5_000_000_000;
        let lines = (0..300).map(|_| {
            now += random.below(3) * 1_000;
            let (tid, other) = (10 + random.below(5) as u32, 10 + random.below(5));
            let (seconds, fraction) = (now / 1_000_000_000, now % 1_000_000_000);
            let cpu = random.below(3);
            let at = format!("[{cpu:03}] d..2. {seconds}.{fraction:09}");
            let state = ["S", "R", "D"][random.below(3) as usize];
            let line = match random.below(8) {
                0 => format!("<idle>-0 (-----) {at}: sched_wakeup: comm=w pid={other} prio=120 target_cpu=000"),
                1 | 2 => format!(
                    "w-{tid} ({:>5}) {at}: sched_switch: prev_comm=w prev_pid={tid} prev_prio=120 prev_state={state} ==> \
                     next_comm=w next_pid={other} next_prio=120",
                    tid % 2
                ),
                3 => format!("w-{tid} ({:>5}) {at}: tracing_mark_write: C|1|queue|{other}", tid % 2),
                _ => trace::line(now, tid, tid % 2, &payload(&mut random)),
            };
            (now, 0, line)
        });
        let lines: Vec<Mark> = lines.collect();
        let join = |lines: &[Mark], random: Option<&mut Random>| {
            let mut keys: BTreeMap<u64, u64> = lines.iter().map(|(at, ..)| (*at, *at)).collect();
            if let Some(random) = random {
                for key in keys.values_mut() {
                    *key = random.below(1 << 30);
                }
            }
            let mut order: Vec<&Mark> = lines.iter().collect();
            order.sort_by_key(|(at, ..)| keys[at]);
            order.into_iter().fold(String::new(), |all, (.., line)| all + line + "\n")
        };
        let (first, length) = (lines[0].0, now - lines[0].0);
        let (one, other) = (first + random.below(length + 1), first + random.below(length + 1));
        let range = TimeRange { begin: one.min(other), end: one.max(other) };
        for range in [None, Some(range)] {
            let options = Options { range, with_details: true, ..Options::default() };
            let first = trace::replay_with(join(&lines, None), &options)?;
            let shuffled = join(&lines, Some(&mut random));
            assert_eq!(trace::replay_with(shuffled, &options)?, first, "seed {seed}");
        }
    }
    Ok(())
}

/// Function and number of an iteration.
type Iteration = (String, u64);

/// Returns, by iteration, the numbers of ended and of open sections, and the time of the ended ones (ns).
fn iterations(marks: &[Mark]) -> BTreeMap<Iteration, (u64, u64, u64)> {
    let mut found: BTreeMap<_, (u64, u64, u64)> = BTreeMap::new();
    let mut open: BTreeMap<u32, Vec<(u64, Iteration)>> = BTreeMap::new();
    for (at, tid, text) in marks {
        let stack = open.entry(*tid).or_default();
        let begun = text.split_once(']').and_then(|(_, rest)| rest.split_once("#iter="));
        if let Some((name, number)) = begun {
            stack.push((*at, (name.to_owned(), number.parse().unwrap_or_default())));
        } else if let Some((began, iteration)) = stack.pop() {
            let sums = found.entry(iteration).or_default();
            *sums = (sums.0 + 1, sums.1, sums.2 + (at - began));
        }
    }
    for (_, iteration) in open.into_values().flatten() {
        found.entry(iteration).or_default().1 += 1;
    }
    found
}

#[test]
fn iterations_that_have_not_ended_are_in_no_sum() -> Result<()> {
    let cases = std::env::var("NNTRACE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(100);
    let mut unfinished = 0;
    for seed in 0..cases {
        let mut random = Random::new(70_000 + seed);
        let mut marks = marks(&mut random);
        for (_, tid, text) in &mut marks {
            if text.starts_with('B') {
                *text = format!("B|5|[NN_LR_PE]loop{tid}#iter={}", random.below(6));
            }
        }
        let expected = iterations(&marks);
        for text in [text(&marks, None), text(&marks, Some(&mut random))] {
            let snapshot = trace::replay(text)?;
            let mut sums: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
            for ((name, _), (_, open, total)) in &expected {
                let row = sums.entry(name.clone()).or_default();
                let has_ended = *open == 0;
                row.0 += u64::from(has_ended);
                row.1 += u64::from(!has_ended);
                row.2 += if has_ended { *total } else { 0 };
            }
            let rows = snapshot.iterations.iter();
            let rows = rows.map(|row| (row.name.clone(), (row.count, row.open, row.total_ns)));
            assert_eq!(rows.collect::<BTreeMap<_, _>>(), sums, "seed {seed}");
            for (row, slow) in
                snapshot.iterations.iter().flat_map(|row| row.slowest.iter().map(move |slow| (row, slow)))
            {
                let (count, open, total) = expected[&(row.name.clone(), slow.iter)];
                assert_eq!((slow.count, 0, slow.total_ns), (count, open, total), "seed {seed}");
            }
        }
        unfinished += expected.values().filter(|(_, open, _)| *open > 0).count();
    }
    assert!(unfinished > cases as usize, "only {unfinished} had not ended");
    Ok(())
}
