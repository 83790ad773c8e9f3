//! Checks the accounting of any stream of marks against the slow tree, and that any stream of power events leaves no
//! gap.

use std::collections::BTreeMap;

use arbitrary::{Arbitrary, Result, Unstructured};
use nntrace_common::{
    layer::{Layer, Phase, Tag},
    mark::{Label, Prefix},
    power::{Activity, CpuFrequency, CpuIdle, IDLE_EXIT},
    stack::{
        Closed, PathStep, ROOT_PATH, Stack,
        oracle::{self, Event, Sums},
    },
};

/// Marks that are used at most: the tree is slow, and these are enough to exceed the table of frames.
const MOST_MARKS: usize = 160;

/// Checks one input.
///
/// # Panics
/// When the sums differ, when a path has two meanings, or when the times of a CPU do not add up.
pub fn check(data: &[u8]) {
    let mut input = Unstructured::new(data);
    // Parts that the input does not contain are left out.
    let _ = if input.arbitrary().unwrap_or(false) { power(&mut input) } else { marks(&mut input) };
}

/// Returns the next instant, ns: mostly later, by a step that does not overflow any sum.
fn after(now: u64, input: &mut Unstructured<'_>) -> Result<u64> {
    let step = i64::from(i16::arbitrary(input)?);
    // Time runs backwards where clocks of CPUs differ.
    Ok(now.saturating_add_signed(if step % 8 == 0 { step } else { step.abs() }))
}

fn marks(input: &mut Unstructured<'_>) -> Result<()> {
    let mut now = 1 << 20;
    let mut events = Vec::new();
    while events.len() < MOST_MARKS && !input.is_empty() {
        let event = match input.int_in_range(0..=9_u8)? {
            0..=4 => {
                let tag = Tag::new(*input.choose(&Layer::ALL)?, *input.choose(&Phase::ALL)?);
                let prefix =
                    *input.choose(&[Prefix::None, Prefix::None, Prefix::Switch, Prefix::Subtract])?;
                Event::Begin(prefix, Label::tagged(tag))
            }
            5 => Event::Begin(Prefix::None, *input.choose(&[Label::FOREIGN, Label::UNKNOWN])?),
            _ => Event::End,
        };
        events.push((now, event));
        now = after(now, input)?;
    }

    let mut stack = Stack::EMPTY;
    let (mut sums, mut paths) = (Sums::default(), BTreeMap::new());
    for &(now, event) in &events {
        let sink = |stack: &Stack, closed: &Closed| {
            sums.add(closed);
            name(stack, closed, &mut paths);
        };
        match event {
            Event::Begin(prefix, label) => stack.begin(now, prefix, label, 0, sink),
            Event::End => stack.end(now, sink),
        };
    }
    sums.open = stack.open_sections();
    assert_eq!(stack.open_frames().count(), sums.open as usize);
    assert_eq!(sums, oracle::sums(&events), "{events:?}");
    Ok(())
}

/// Checks that a frame's path leads to the root, and that every path has one meaning.
fn name(stack: &Stack, closed: &Closed, paths: &mut BTreeMap<u64, PathStep>) {
    let mut expected = closed.path;
    stack.steps(closed.depth, |path, step| {
        assert_eq!(path, expected, "a step is missing");
        expected = step.parent;
        let known = *paths.entry(path).or_insert(step);
        assert_eq!((known.parent, known.tag), (step.parent, step.tag), "one path for two stacks");
    });
    assert_eq!(expected, ROOT_PATH, "a path that does not end");
}

fn power(input: &mut Unstructured<'_>) -> Result<()> {
    let begin = 1 << 20;
    let mut idle = CpuIdle::starting_at(begin);
    let mut frequency = CpuFrequency::requested(input.int_in_range(0..=3)?);
    let (mut now, mut slices, mut covered) = (begin, Vec::new(), begin);
    while !input.is_empty() {
        now = after(now, input)?;
        let closed = match input.int_in_range(0..=7_u8)? {
            0..=1 => idle.event(now, IDLE_EXIT).closed,
            2..=3 => idle.event(now, input.int_in_range(0..=20)?).closed,
            4 => idle.event(now, input.arbitrary()?).closed,
            5 => Some(
                idle.set(now, *input.choose(&[Activity::Unknown, Activity::Offline, Activity::Running])?),
            ),
            _ => {
                slices.extend(frequency.event(&mut idle, now, input.int_in_range(0..=3)?));
                None
            }
        };
        if let Some(interval) = closed {
            assert_eq!(interval.begin, covered, "a gap, or an overlap");
            assert!(interval.begin <= interval.end);
            covered = interval.end;
        }
    }
    let end = now.max(covered);
    idle.finish(end);
    slices.push(frequency.slice(&idle, end));
    let running: i64 = slices.iter().filter(|slice| slice.holds(idle.start())).map(|slice| slice.ns).sum();
    let stays: u64 = idle.idle.iter().map(|stay| stay.ns).sum();
    let others = stays + idle.idle_unknown_ns + idle.offline_ns + idle.unknown_ns;
    assert_eq!(others.checked_add_signed(running), Some(end - begin), "the times are not the window's");
    for stay in idle.idle.iter().filter(|stay| stay.hits > 0) {
        assert!(stay.min_ns <= stay.max_ns && stay.max_ns <= stay.ns);
    }
    Ok(())
}
