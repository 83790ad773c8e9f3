//! States of the threads of a swimlane: on a CPU, waiting for one, or asleep.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::sections::{Held, Shown};
use crate::model::{
    Findings,
    scheduling::{Activity, History, Scheduling},
};

/// Maximum number of stretches over all threads; the longest histories lose their oldest.
const MOST: usize = 200_000;

/// Number of a state: of one that is not known, of sleep, of waiting for a CPU, and of running on CPU 0. Other CPUs follow.
const UNKNOWN: u32 = 0;
const ASLEEP: u32 = 1;
const RUNNABLE: u32 = 2;
const ON_CPU: u32 = 3;

/// States of one thread, one stretch after the other.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct ThreadStates {
    /// Begin of the first stretch, ns from that of the window on.
    begin: i64,
    /// Lengths of the stretches.
    ns: Vec<u64>,
    /// Their states, by number.
    state: Vec<u32>,
    /// Number of older stretches that were left out.
    left_out: usize,
    /// Whether even older ones were discarded before.
    is_cut: bool,
}

impl ThreadStates {
    /// Returns the states of these threads, by process and thread id, in the time that is shown and as long as the sections last;
    /// `None` for threads without context switches.
    pub(super) fn of(
        findings: &Findings<'_>,
        shown: Shown,
        sections: &[&Held],
        threads: &[(u32, u32)],
    ) -> Vec<Option<Self>> {
        let Some(scheduling) = findings.scheduling else { return threads.iter().map(|_| None).collect() };
        let window = &findings.run.window;
        let range = shown.range.unwrap_or((0, u64::MAX));
        let first = sections.iter().map(|section| section.begin_ns).fold(range.0, u64::min);
        let last = sections.iter().map(|section| section.end_ns()).fold(range.1, u64::max);
        let range = (first, last.min(window.end_ns));
        let mut of_id: FxHashMap<u32, usize> = FxHashMap::default();
        for (_, tid) in threads {
            *of_id.entry(*tid).or_default() += 1;
        }
        let states = |&(pid, tid): &(u32, u32)| stretches(scheduling, (pid, tid), of_id[&tid] == 1, range);
        let stretches: Vec<Stretches> = threads.iter().map(states).collect();
        let lengths: Vec<usize> = stretches.iter().map(|(all, _)| all.len()).collect();
        let most = most_each(&lengths, MOST);
        let states = |(mut all, is_cut): Stretches| {
            let left_out = all.len().saturating_sub(most);
            all.drain(..left_out);
            let begin = all.first()?.begin.wrapping_sub(window.begin_ns).cast_signed();
            let (ns, state) =
                all.into_iter().map(|stretch| (stretch.end - stretch.begin, stretch.state)).unzip();
            Some(Self { begin, ns, state, left_out, is_cut })
        };
        stretches.into_iter().map(states).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    begin: u64,
    end: u64,
    state: u32,
}

/// What a thread did, without gaps, and whether it did more before that.
type Stretches = (Vec<Stretch>, bool);

/// Returns what a thread, by process and thread id, did within a range of time (ns). If no other process has a thread of this id,
/// lives whose process is not known are its own.
fn stretches(
    scheduling: &Scheduling,
    (pid, tid): (u32, u32),
    is_only: bool,
    (first, last): (u64, u64),
) -> Stretches {
    let mut all: Vec<Stretch> = Vec::new();
    let mut is_cut = false;
    let mut push = |begin: u64, end: u64, state: u32| {
        if begin >= end {
            return;
        }
        match all.last_mut() {
            Some(before) if before.state == state && before.end == begin => before.end = end,
            _ => all.push(Stretch { begin, end, state }),
        }
    };
    let mut until = None;
    let is_own = |life: &&History| life.tgid.map_or(is_only, |tgid| tgid == pid);
    for life in scheduling.lives_since(tid, first).filter(is_own) {
        is_cut |= life.has_forgotten_since(first);
        for stretch in life.stretches_from(first).take_while(|stretch| stretch.begin < last) {
            let end = stretch.end.or(life.end).unwrap_or(last).min(last);
            let begin = stretch.begin.max(first).max(until.unwrap_or(0));
            if let Some(until) = until.replace(end.max(begin)) {
                push(until, begin, UNKNOWN);
            }
            push(begin, end, number(stretch.state.into()));
        }
    }
    (all, is_cut)
}

fn number(activity: Activity) -> u32 {
    match activity {
        Activity::OnCpu(cpu) => cpu.saturating_add(ON_CPU),
        Activity::Runnable => RUNNABLE,
        Activity::Asleep => ASLEEP,
        Activity::Unknown => UNKNOWN,
    }
}

/// Returns how many of its own each may keep, so that all together keep `most` at most.
fn most_each(lengths: &[usize], most: usize) -> usize {
    let kept = |each: usize| lengths.iter().map(|&length| length.min(each)).sum::<usize>();
    let (mut enough, mut too_many) = (0, lengths.iter().copied().max().unwrap_or(0) + 1);
    while too_many - enough > 1 {
        let each = usize::midpoint(enough, too_many);
        if kept(each) <= most { enough = each } else { too_many = each }
    }
    enough
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::replay::{self, Options};

    const TRACE: &str = "
   <idle>-0  (-----) [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=app next_pid=70 next_prio=120
   app-70    (   70) [000] ..... 1.000000: tracing_mark_write: B|70|[NN_LR_PE]conv
   app-70    (   70) [000] d..2. 1.000300: sched_switch: prev_comm=app prev_pid=70 prev_prio=120 prev_state=R ==> next_comm=hog next_pid=9 next_prio=120
   hog-9     (    9) [000] d..2. 1.000700: sched_switch: prev_comm=hog prev_pid=9 prev_prio=120 prev_state=S ==> next_comm=app next_pid=70 next_prio=120
   app-70    (   70) [000] ..... 1.000850: tracing_mark_write: E|70
   app-70    (   70) [000] d..2. 1.000900: sched_switch: prev_comm=app prev_pid=70 prev_prio=120 prev_state=S ==> next_comm=hog next_pid=9 next_prio=120
   hog-9     (    9) [000] ..... 1.001000: tracing_mark_write: C|9|end|1
";

    /// Returns the states of the thread 70, in this range of the trace, ns.
    fn states(range: Option<(u64, u64)>) -> Option<ThreadStates> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), TRACE).unwrap();
        let options = Options { files: vec![file.path().to_owned()], with_steps: true, ..Options::default() };
        let run = replay::replay(&options).unwrap();
        let shown = Shown { range, least_ns: 0 };
        let mut states = ThreadStates::of(&run.findings(), shown, &[], &[(70, 70), (70, 5)]);
        assert_eq!(states.pop(), Some(None), "a thread without context switches");
        states.remove(0)
    }

    #[test]
    fn states_follow_each_other_without_gaps() {
        let expected = ThreadStates {
            begin: 0,
            ns: vec![300_000, 400_000, 200_000, 100_000],
            state: vec![ON_CPU, RUNNABLE, ON_CPU, ASLEEP],
            left_out: 0,
            is_cut: false,
        };
        assert_eq!(states(None), Some(expected));
        let expected = ThreadStates {
            begin: 400_000,
            ns: vec![300_000, 150_000],
            state: vec![RUNNABLE, ON_CPU],
            left_out: 0,
            is_cut: false,
        };
        assert_eq!(states(Some((1_000_400_000, 1_000_850_000))), Some(expected));
    }

    #[test]
    fn those_with_most_keep_as_much_as_each_other() {
        assert_eq!(most_each(&[], 10), 0);
        assert_eq!(most_each(&[3, 4], 10), 4);
        assert_eq!(most_each(&[3, 100, 50], 23), 10);
        assert_eq!(most_each(&[5, 5, 5], 2), 0);
        for most in 0..200 {
            let lengths = [1, 7, 30, 90];
            let each = most_each(&lengths, most);
            let kept = |each: usize| lengths.iter().map(|&length| length.min(each)).sum::<usize>();
            assert!(kept(each) <= most && (each == 90 || kept(each + 1) > most), "{most}: {each}");
        }
    }
}
