//! Our totals against the kernel's own, over the same window: what may differ, and what may not.
//!
//! Source: drivers/cpuidle/cpuidle.c, `drivers/cpufreq/cpufreq_stats.c`. The kernel adds a sleep to `time` and `usage`
//! when it ends, so that one that goes on at an end of the window is whole on one side and missing on the other; it
//! times it inside of the events that we time; and it does not count a state that the hardware refused (`rejected`).
//! Its time at a frequency is in units of 10 ms, and rounded to ticks at each change before Linux 5.11.

use std::collections::BTreeMap;

use nntrace_common::{power::Residency, time_count::TimeCount};

use super::run_facts::VerifiedFigure;

/// A unit of `time_in_state`, ns.
pub(crate) const TICK_NS: u64 = 10_000_000;
/// Between the event and the kernel's own reading of the clock, at both ends of a sleep together, ns.
const PER_SLEEP_NS: u64 = 5_000;
/// Tolerance in any case, ns: reading the files takes its time, in which the host may do something else.
const FLOOR_NS: u64 = 1_000_000;
/// Relative tolerance of every figure: one part in this many.
const SHARE: u64 = 100;

/// Counts of an idle state of a CPU in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IdleCount {
    /// Time, ns; in steps of a microsecond.
    pub ns: u64,
    /// How often it was entered.
    pub usage: u64,
    /// How often it was refused.
    pub rejected: u64,
}

/// Counts of the kernel at an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// By CPU and state.
    pub idle: BTreeMap<(u32, u32), IdleCount>,
    /// Units of time by policy, named by its first CPU, and frequency in kHz.
    pub frequency: BTreeMap<(u32, u32), u64>,
    /// Between the begin or end of the window and when the last of it was read, ns.
    pub apart_ns: u64,
    /// How often a state was entered then, by CPU and state; at most.
    pub meanwhile: BTreeMap<(u32, u32), u64>,
}

impl Counts {
    /// These were read before the window ended, and `self` after: what came between the end and the reading came
    /// between the two readings.
    pub(crate) fn came_after(&mut self, before: &Self) {
        let entered = |at, count: &IdleCount| {
            before.idle.get(at).map(|before| (*at, count.usage.saturating_sub(before.usage)))
        };
        self.meanwhile = self.idle.iter().filter_map(|(at, count)| entered(at, count)).collect();
    }
}

/// Our figures for the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ours {
    /// By CPU.
    pub cpus: BTreeMap<u32, OurCpu>,
    /// Time (ns) and changes to it by policy and frequency in kHz, whatever its CPUs do.
    pub frequency: BTreeMap<(u32, u32), TimeCount>,
    /// Length of the window, ns.
    pub window_ns: u64,
}

/// Our figures for one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OurCpu {
    /// By idle state.
    pub idle: BTreeMap<u32, Residency>,
    /// The state that it is in at the end, and how long it has been, in the window, ns.
    pub open_at_end: Option<(u32, u64)>,
    /// How long it may have been asleep when the window began, ns; `None` when that is not known.
    pub asleep_at_begin_ns: Option<u64>,
}

/// A figure, twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Kind of the figure.
    pub what: VerifiedFigure,
    /// The CPU, or the first CPU of the policy.
    pub cpu: u32,
    /// The idle state, or the frequency in kHz.
    pub state: u32,
    /// Ours.
    pub ours: u64,
    /// The kernel's.
    pub kernel: u64,
    /// Difference that is granted; `None` when the kernel's figure is of another time and they are not compared.
    pub tolerance: Option<u64>,
    /// Why they may be.
    pub why: String,
}

impl Row {
    /// Whether they are no more apart than they may be.
    #[must_use]
    pub(crate) fn passes(&self) -> bool {
        self.tolerance.is_none_or(|tolerance| self.ours.abs_diff(self.kernel) <= tolerance)
    }
}

/// Compares every figure that the kernel has at both ends of the window.
#[must_use]
pub(crate) fn compare(ours: &Ours, begin: &Counts, end: &Counts) -> Vec<Row> {
    let apart = begin.apart_ns + end.apart_ns;
    let mut rows = Vec::new();
    for (&(cpu, state), after) in &end.idle {
        let (Some(before), Some(ours_of_cpu)) = (begin.idle.get(&(cpu, state)), ours.cpus.get(&cpu)) else {
            continue;
        };
        let kernel = IdleCount {
            ns: after.ns.saturating_sub(before.ns),
            usage: after.usage.saturating_sub(before.usage),
            rejected: after.rejected.saturating_sub(before.rejected),
        };
        let meanwhile = [begin, end].map(|counts| counts.meanwhile.get(&(cpu, state)).copied().unwrap_or(0));
        let read = Reading { apart_ns: apart, entered: meanwhile.iter().sum() };
        rows.extend(idle(ours_of_cpu, cpu, state, &kernel, read, ours.window_ns));
    }
    for (&(policy, khz), after) in &end.frequency {
        let Some(before) = begin.frequency.get(&(policy, khz)) else { continue };
        let TimeCount { ns, count: changes } =
            ours.frequency.get(&(policy, khz)).copied().unwrap_or_default();
        let kernel = after.saturating_sub(*before).saturating_mul(TICK_NS);
        // Roundings up and down make each other good, but for the root of their number.
        let roundings = 2 + changes.isqrt();
        rows.push(Row {
            what: VerifiedFigure::FrequencyTime,
            cpu: policy,
            state: khz,
            ours: ns,
            kernel,
            tolerance: Some(TICK_NS * roundings + apart + ns.max(kernel) / SHARE),
            why: format!("units of 10 ms, {changes} changes; read {} us apart", apart / 1_000),
        });
    }
    rows
}

/// Cost of reading the files at both ends.
#[derive(Clone, Copy)]
struct Reading {
    apart_ns: u64,
    /// How often the state was entered meanwhile.
    entered: u64,
}

fn idle(ours: &OurCpu, cpu: u32, state: u32, kernel: &IdleCount, read: Reading, window: u64) -> [Row; 2] {
    let of_state = ours.idle.get(&state).copied().unwrap_or(Residency::NONE);
    let open = ours.open_at_end.filter(|(open, _)| *open == state).map_or(0, |(_, ns)| ns);
    let most = of_state.hits.max(kernel.usage);
    let mean = kernel.ns.checked_div(kernel.usage).unwrap_or(0).min(window);
    let refused = kernel.rejected.saturating_mul(mean);
    let time = |before: u64| {
        FLOOR_NS
            + before
            + open
            + read.apart_ns
            + refused
            + PER_SLEEP_NS.saturating_mul(most)
            + of_state.ns.max(kernel.ns) / SHARE
    };
    let usage = 2 + kernel.rejected + most / SHARE + read.entered;
    let asleep = ours.asleep_at_begin_ns;
    let why = match asleep {
        Some(before) => format!(
            "open for {} us at the begin and {} us at the end, {} refused, {} sleeps; read {} us apart",
            before / 1_000,
            open / 1_000,
            kernel.rejected,
            most,
            read.apart_ns / 1_000,
        ),
        None => "not compared: it slept since before the programs were attached, and the kernel counts all of that".into(),
    };
    let row = |what, ours, kernel, tolerance, why| Row { what, cpu, state, ours, kernel, tolerance, why };
    [
        row(VerifiedFigure::IdleTime, of_state.ns, kernel.ns, asleep.map(time), why),
        row(
            VerifiedFigure::IdleUsage,
            of_state.hits,
            kernel.usage,
            Some(usage),
            format!(
                "one open at each end, {} refused, {} while the files were read",
                kernel.rejected, read.entered
            ),
        ),
    ]
}

/// How long each policy was at each frequency, whatever its CPUs did: fed with the events of a window in order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicyClock {
    policies: BTreeMap<u32, Policy>,
    /// First CPU of the policy of each CPU.
    of_cpu: BTreeMap<u32, u32>,
}

#[derive(Clone, Debug, Default)]
struct Policy {
    khz: Option<u32>,
    since: u64,
    /// Time (ns) and changes to it.
    by_khz: BTreeMap<u32, TimeCount>,
}

impl PolicyClock {
    /// Creates the clock of these policies; `khz` returns the frequency (kHz) of a CPU when the window begins, at
    /// `begin` (ns).
    #[must_use]
    pub(crate) fn new(policies: &[Vec<u32>], begin: u64, khz: impl Fn(u32) -> Option<u32>) -> Self {
        let mut clock = Self::default();
        for cpus in policies {
            let Some(&first) = cpus.first() else { continue };
            clock.of_cpu.extend(cpus.iter().map(|&cpu| (cpu, first)));
            let khz = cpus.iter().find_map(|&cpu| khz(cpu));
            clock.policies.insert(first, Policy { khz, since: begin, by_khz: BTreeMap::new() });
        }
        clock
    }

    /// A frequency event at `now` (ns).
    pub(crate) fn event(&mut self, now: u64, cpu: u32, khz: u32) {
        let Some(policy) = self.of_cpu.get(&cpu).and_then(|first| self.policies.get_mut(first)) else {
            return;
        };
        if policy.khz != Some(khz) {
            policy.close(now);
            policy.khz = Some(khz);
            policy.by_khz.entry(khz).or_default().count += 1;
        }
    }

    /// Time (ns) and changes by policy and frequency until `end` (ns).
    #[must_use]
    pub(crate) fn until(&self, end: u64) -> BTreeMap<(u32, u32), TimeCount> {
        let closed = self.policies.iter().map(|(&first, policy)| {
            let mut policy = policy.clone();
            policy.close(end);
            (first, policy)
        });
        closed
            .flat_map(|(first, policy)| policy.by_khz.into_iter().map(move |(khz, sum)| ((first, khz), sum)))
            .collect()
    }
}

impl Policy {
    fn close(&mut self, now: u64) {
        if let Some(khz) = self.khz {
            self.by_khz.entry(khz).or_default().ns += now.saturating_sub(self.since);
        }
        self.since = self.since.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn stays(ns: u64, hits: u64) -> Residency {
        Residency { ns, hits, ..Residency::NONE }
    }

    fn ours(cpu: OurCpu) -> Ours {
        Ours { cpus: BTreeMap::from([(3, cpu)]), window_ns: 10 * SECOND, ..Ours::default() }
    }

    fn counts(ns: u64, usage: u64, rejected: u64) -> Counts {
        let idle = BTreeMap::from([((3, 1), IdleCount { ns, usage, rejected })]);
        Counts { idle, apart_ns: 50_000, ..Counts::default() }
    }

    fn judged(cpu: OurCpu, kernel: &Counts) -> [bool; 2] {
        let rows = compare(&ours(cpu), &counts(7, 5, 1), kernel);
        assert_eq!(rows.len(), 2);
        [rows[0].passes(), rows[1].passes()]
    }

    #[test]
    fn one_part_in_a_hundred_and_not_more() {
        let cpu = || OurCpu {
            idle: BTreeMap::from([(1, stays(5 * SECOND, 1_000))]),
            asleep_at_begin_ns: Some(0),
            ..OurCpu::default()
        };
        assert_eq!(judged(cpu(), &counts(7 + 5 * SECOND, 1_005, 1)), [true, true]);
        assert_eq!(judged(cpu(), &counts(7 + 5 * SECOND - 49_000_000, 1_005 - 12, 1)), [true, true]);
        assert_eq!(judged(cpu(), &counts(7 + 5 * SECOND - 70_000_000, 1_005, 1)), [false, true]);
        assert_eq!(judged(cpu(), &counts(7 + 5 * SECOND, 1_005 + 20, 1)), [true, false]);
        let mut late = counts(7 + 5 * SECOND, 1_005 + 20, 1);
        late.meanwhile.insert((3, 1), 8);
        assert_eq!(judged(cpu(), &late), [true, true], "they came while the files were read");
        late.meanwhile.insert((3, 1), 7);
        assert_eq!(judged(cpu(), &late), [true, false]);
        // A state that we have nothing of.
        assert_eq!(
            judged(OurCpu { asleep_at_begin_ns: Some(0), ..OurCpu::default() }, &counts(7 + SECOND, 50, 1)),
            [false, false]
        );
    }

    #[test]
    fn a_sleep_at_either_end_is_granted_for_as_long_as_it_is() {
        let asleep = |at_end, at_begin| OurCpu {
            idle: BTreeMap::from([(1, stays(4 * SECOND, 10))]),
            open_at_end: Some((1, at_end)),
            asleep_at_begin_ns: at_begin,
        };
        let short = counts(7 + 3 * SECOND, 14, 1);
        assert_eq!(judged(asleep(SECOND, Some(0)), &short), [true, true]);
        assert_eq!(judged(asleep(SECOND / 2, Some(0)), &short), [false, true]);
        let long = counts(7 + 5 * SECOND, 15, 1);
        assert_eq!(judged(asleep(0, Some(SECOND)), &long), [true, true]);
        assert_eq!(judged(asleep(0, Some(0)), &long), [false, true]);
        assert_eq!(judged(asleep(0, None), &long), [true, true], "it is not compared");
    }

    #[test]
    fn what_came_between_two_readings_is_known_of_the_states_that_both_have() {
        let (before, mut after) = (counts(0, 5, 0), counts(0, 9, 0));
        after.idle.insert((4, 0), IdleCount { usage: 3, ..IdleCount::default() });
        after.came_after(&before);
        assert_eq!(after.meanwhile, BTreeMap::from([((3, 1), 4)]));
    }

    #[test]
    fn refused_states_are_granted() {
        let cpu = OurCpu {
            idle: BTreeMap::from([(1, stays(SECOND, 1_000))]),
            asleep_at_begin_ns: Some(0),
            ..OurCpu::default()
        };
        let kernel = |rejected: u64| counts(7 + SECOND / 2, 505, 1 + rejected);
        assert_eq!(judged(cpu.clone(), &kernel(500)), [true, true]);
        assert_eq!(judged(cpu, &kernel(100)), [false, false]);
    }

    #[test]
    fn frequencies_are_compared_by_policy_over_all_of_the_time() {
        let mut clock =
            PolicyClock::new(&[vec![0, 3], vec![1]], 100, |cpu| Some(if cpu == 1 { 500 } else { 600 }));
        clock.event(100 + SECOND, 3, 900);
        clock.event(100 + SECOND + 5, 0, 900); // the same
        clock.event(100 + 3 * SECOND, 0, 600);
        clock.event(100, 9, 700); // in no policy
        let frequency = clock.until(100 + 4 * SECOND);
        let sum = |seconds: u64, changes| TimeCount::new(seconds * SECOND, changes);
        let expected = [((0, 600), sum(2, 1)), ((0, 900), sum(2, 1)), ((1, 500), sum(4, 0))];
        assert_eq!(frequency, BTreeMap::from(expected));
        let ours = Ours { frequency, window_ns: 4 * SECOND, ..Ours::default() };
        let counts = |ticks: [u64; 2]| Counts {
            frequency: BTreeMap::from([((0, 600), ticks[0]), ((0, 900), ticks[1])]),
            ..Counts::default()
        };
        let judged = |ticks| {
            compare(&ours, &counts([10, 0]), &counts(ticks)).iter().map(Row::passes).collect::<Vec<_>>()
        };
        assert_eq!(judged([211, 199]), [true, true]);
        assert_eq!(judged([190, 220]), [false, false]);
    }
}
