//! `--verify`: reading of the kernel's counts at both ends of the window.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{clock, sysfs};
use crate::model::{
    Topology,
    cpu_residency::CpuReading,
    initial_state::{IdleSource, InitialState},
    kernel_comparison::{self, Counts, IdleCount, OurCpu, Ours, PolicyClock},
    run_facts::{Verify, VerifyRow},
};

/// Comparison for one window.
pub(crate) struct Verifier {
    root: PathBuf,
    begin: Counts,
    /// Counts shortly before the end.
    before_end: Counts,
    begin_ns: u64,
    /// Time from attaching to the begin, ns, in which no event was missed.
    attached_ns: u64,
    policies: PolicyClock,
    lost: bool,
}

impl Verifier {
    /// Reads the counts under `root` at the begin of the window, `begin` (ns). The programs were attached at
    /// `attached` (ns).
    #[must_use]
    pub(crate) fn begin(
        root: &Path,
        topology: &Topology,
        begin: u64,
        attached: u64,
        initial: &InitialState,
    ) -> Self {
        Self {
            root: root.to_owned(),
            begin: counts(root, topology, begin),
            before_end: Counts::default(),
            begin_ns: begin,
            attached_ns: begin.saturating_sub(attached),
            policies: PolicyClock::new(&topology.policies, begin, |cpu| initial.of(cpu).khz),
            lost: false,
        }
    }

    /// Takes the idle entries of the CPUs since the begin, read after [`Verifier::begin`]: those that happened while
    /// the files were being read are among them.
    pub(crate) fn begun(&mut self, readings: &[CpuReading]) {
        let stays = |reading: &CpuReading| {
            let cpu = reading.cpu;
            (0..).zip(reading.idle.idle).map(move |(state, stay)| ((cpu, state), stay.hits))
        };
        self.begin.meanwhile = readings.iter().flat_map(stays).filter(|(_, hits)| *hits > 0).collect();
    }

    /// Reads the counts before the window ends.
    pub(crate) fn before_end(&mut self, topology: &Topology) {
        self.before_end = counts(&self.root, topology, clock::now());
    }

    /// Takes a frequency event at `now` (ns).
    pub(crate) fn frequency_event(&mut self, now: u64, cpu: u32, khz: u32) {
        self.policies.event(now, cpu, khz);
    }

    /// Notes that events were lost.
    pub(crate) fn lost(&mut self) {
        self.lost = true;
    }

    /// Reads the counts at the end of the window, `end` (ns), after [`Verifier::before_end`].
    #[must_use]
    pub(crate) fn end(&self, topology: &Topology, end: u64) -> Counts {
        let mut counts = counts(&self.root, topology, end);
        counts.came_after(&self.before_end);
        counts
    }

    /// Compares the kernel's counts with our own.
    #[must_use]
    pub(crate) fn compare(
        &self,
        readings: &[CpuReading],
        initial: &InitialState,
        end: u64,
        counts: &Counts,
    ) -> Verify {
        let cpus = readings.iter().map(|reading| (reading.cpu, self.ours(reading, initial, end)));
        let mut ours = Ours {
            cpus: cpus.collect(),
            frequency: self.policies.until(end),
            window_ns: end.saturating_sub(self.begin_ns),
        };
        let mut notes = Vec::new();
        if counts.idle.is_empty() {
            notes.push("idle states are not compared: no cpuidle driver counts them here".into());
        }
        if counts.frequency.is_empty() {
            notes.push("frequencies are not compared: no policy counts them here (cpufreq/stats)".into());
        }
        let mut counts = counts.clone();
        if self.lost {
            // Idle states are counted by the programs, but times at frequencies come from records.
            notes.push("frequencies are not compared: records were lost".into());
            ours.frequency.clear();
            counts.frequency.clear();
        }
        // One that was away all the time changed nothing for the others.
        let came_or_went = |reading: &&CpuReading| {
            let away = reading.since(&initial.of(reading.cpu), end).offline_ns;
            away > 0 && away < ours.window_ns
        };
        if let Some(CpuReading { cpu, .. }) = readings.iter().find(came_or_went) {
            // cpuidle_pause_and_lock: the other CPUs then sleep as default_idle_call does, with events and without counts.
            ours.cpus.clear();
            ours.frequency.clear();
            counts.frequency.clear();
            notes.push(format!(
                "idle states and frequencies are not compared: CPU {cpu} came or went meanwhile; the kernel then suspends its \
                 counts of all CPUs for a moment, and drivers may restart those of this one"
            ));
        }
        let rows = kernel_comparison::compare(&ours, &self.begin, &counts);
        Verify {
            passes: rows.iter().all(kernel_comparison::Row::passes),
            rows: rows
                .into_iter()
                .map(|row| VerifyRow {
                    what: row.what,
                    cpu: row.cpu,
                    state: row.state,
                    ours: row.ours,
                    kernel: row.kernel,
                    tolerance: row.tolerance,
                    passes: row.passes(),
                    why: row.why,
                })
                .collect(),
            notes,
        }
    }

    fn ours(&self, reading: &CpuReading, initial: &InitialState, end: u64) -> OurCpu {
        let initial = initial.of(reading.cpu);
        let residency = reading.since(&initial, end);
        let open = residency.idle_at_end;
        OurCpu {
            open_at_end: open.map(|state| (state, end.saturating_sub(reading.idle.since()))),
            // A CPU cannot have been idle for longer than since its last event.
            asleep_at_begin_ns: match initial.idle {
                IdleSource::Event | IdleSource::Sysfs => Some(self.attached_ns),
                _ if residency.idle_unknown_ns == 0 && !initial.was_asleep() => Some(0),
                _ => None,
            },
            idle: residency.idle,
        }
    }
}

/// Reads the current counts of the kernel under `root`; the window begins or ends at `at` (ns).
fn counts(root: &Path, topology: &Topology, at: u64) -> Counts {
    let mut counts = Counts::default();
    for &cpu in topology.cpus.keys() {
        for (state, folder) in sysfs::numbered(&root.join(format!("cpu{cpu}/cpuidle")), "state") {
            let number = |name: &str| sysfs::number(&folder.join(name));
            if let (Some(us), Some(usage)) = (number("time"), number("usage")) {
                // Kernels before 5.11 do not count rejected entries.
                let rejected = number("rejected").unwrap_or(0);
                counts.idle.insert((cpu, state), IdleCount { ns: us.saturating_mul(1_000), usage, rejected });
            }
        }
    }
    for cpus in &topology.policies {
        let Some(&first) = cpus.first() else { continue };
        // Offline CPUs have no such folder.
        let text = cpus.iter().find_map(|cpu| {
            fs::read_to_string(root.join(format!("cpu{cpu}/cpufreq/stats/time_in_state"))).ok()
        });
        for line in text.unwrap_or_default().lines() {
            let mut words = line.split_whitespace().map(str::parse::<u64>);
            if let (Some(Ok(khz)), Some(Ok(ticks))) = (words.next(), words.next())
                && let Ok(khz) = u32::try_from(khz)
            {
                counts.frequency.insert((first, khz), ticks);
            }
        }
    }
    counts.apart_ns = clock::now().abs_diff(at);
    counts
}

#[cfg(test)]
mod tests {
    use nntrace_common::power::{CpuFrequency, CpuIdle, IDLE_EXIT};

    use super::*;
    use crate::model::run_facts::VerifiedFigure::{FrequencyTime, IdleTime, IdleUsage};

    const MS: u64 = 1_000_000;

    struct Tree(tempfile::TempDir);

    impl Tree {
        /// Creates the tree of a host whose CPU 0 has idle counts, and time at 600 MHz in ticks.
        fn new() -> Self {
            let tree = Self(tempfile::tempdir().unwrap());
            tree.set("present", "0\n");
            tree.set("cpufreq/policy0/related_cpus", "0\n");
            tree.set("cpu0/cpuidle/state0/name", "WFI\n");
            tree.counts(1_000, 100, 10);
            tree
        }

        fn set(&self, name: &str, text: &str) {
            let path = self.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn counts(&self, us: u64, usage: u64, ticks: u64) {
            self.set("cpu0/cpuidle/state0/time", &format!("{us}\n"));
            self.set("cpu0/cpuidle/state0/usage", &format!("{usage}\n"));
            self.set("cpu0/cpufreq/stats/time_in_state", &format!("600000 {ticks}\n900000 0\n"));
        }

        /// Verifies a window of a second, in which CPU 0 is idle for 400 ms in 4 stays, against these counts of the
        /// kernel.
        fn verify(&self, us: u64, usage: u64, ticks: u64) -> Verify {
            let begin = clock::now();
            let end = begin + 1_000 * MS;
            let (topology, _) = sysfs::topology(self.0.path());
            let mut verifier =
                Verifier::begin(self.0.path(), &topology, begin, begin - 20 * MS, &InitialState::default());
            verifier.begin.apart_ns = 0;
            verifier.policies =
                PolicyClock::new(&topology.policies, begin, |cpu| (cpu == 0).then_some(600_000));
            let mut idle = CpuIdle::starting_at(begin);
            for stay in 0..4 {
                idle.event(begin + (100 + 200 * stay) * MS, 0);
                idle.event(begin + (200 + 200 * stay) * MS, IDLE_EXIT);
            }
            let frequency = CpuFrequency::requested(600_000);
            let reading = CpuReading { cpu: 0, idle, frequency, slices: Vec::new() };
            self.counts(us, usage, ticks);
            let mut counts = verifier.end(&topology, end);
            counts.apart_ns = 0;
            verifier.compare(&[reading], &InitialState::default(), end, &counts)
        }
    }

    #[test]
    fn a_kernel_that_counts_the_same_passes() {
        let verify = Tree::new().verify(401_000, 104, 110);
        assert!(verify.passes, "{verify:#?}");
        let what: Vec<_> = verify.rows.iter().map(|row| (row.what, row.state)).collect();
        assert_eq!(what, [(IdleTime, 0), (IdleUsage, 0), (FrequencyTime, 600_000), (FrequencyTime, 900_000)]);
        assert_eq!(verify.notes, [] as [&str; 0]);
    }

    #[test]
    fn a_kernel_that_counts_otherwise_does_not() {
        let failed = |verify: &Verify| {
            assert!(!verify.passes);
            let rows = verify.rows.iter().filter(|row| !row.passes);
            rows.map(|row| row.what).collect::<Vec<_>>()
        };
        assert_eq!(failed(&Tree::new().verify(381_000, 104, 110)), [IdleTime]);
        assert_eq!(failed(&Tree::new().verify(401_000, 108, 110)), [IdleUsage]);
        assert_eq!(failed(&Tree::new().verify(401_000, 104, 60)), [FrequencyTime]);
    }

    #[test]
    fn without_counts_there_is_a_note_and_nothing_fails() {
        let tree = Tree(tempfile::tempdir().unwrap());
        tree.set("present", "0\n");
        let (topology, _) = sysfs::topology(tree.0.path());
        let verifier = Verifier::begin(tree.0.path(), &topology, 100, 90, &InitialState::default());
        let verify = verifier.compare(&[], &InitialState::default(), 200, &verifier.end(&topology, 200));
        assert!(verify.passes && verify.rows.is_empty());
        assert_eq!(verify.notes.len(), 2);
    }
}
