//! Merging of many rings into one order of time, with the gaps where power records were lost.

use std::collections::BTreeMap;

use nntrace_common::record::{PowerRecord, Record};

/// Records waiting to be handed out in order.
#[derive(Default)]
pub(crate) struct Merge {
    /// Records since the last [`Merge::hand_out`].
    fresh: Vec<Record>,
    /// Records younger than the watermark, in order.
    waiting: Vec<Record>,
    /// Time up to which all records were handed out, ns.
    watermark: u64,
    late: u64,
    /// Time (ns) of the last record of each CPU, and the records it had lost by then.
    heard: BTreeMap<u32, (u64, u32)>,
}

impl Merge {
    /// Adds a record, in any order.
    pub(crate) fn push(&mut self, record: Record) {
        self.late += u64::from(record.time() < self.watermark);
        self.fresh.push(record);
    }

    /// Returns the number of records that came after younger ones had been handed out.
    pub(crate) fn late(&self) -> u64 {
        self.late
    }

    /// Finds gaps in the new records: where a CPU's count of lost records grew between two of its records, or since
    /// its last one. `lost` are the current counts, read before the records were taken.
    pub(crate) fn find_losses(&mut self, lost: &[u32]) {
        // Stable, and fast on a few sorted runs.
        self.fresh.sort_by_key(Record::time);
        for at in 0..self.fresh.len() {
            if let Record::Idle(PowerRecord { cpu, time, lost, .. })
            | Record::Frequency(PowerRecord { cpu, time, lost, .. })
            | Record::Hotplug(PowerRecord { cpu, time, lost, .. }) = self.fresh[at]
            {
                self.note_lost(cpu, lost);
                self.heard.insert(cpu, (time, lost));
            }
        }
        for (cpu, &lost) in (0..).zip(lost) {
            self.note_lost(cpu, lost);
        }
    }

    /// Records a gap since the CPU's last record if its count of lost records has grown.
    fn note_lost(&mut self, cpu: u32, lost: u32) {
        let (time, before) = self.heard.get(&cpu).copied().unwrap_or_default();
        // Counts wrap around; a record about the CPU from another CPU may carry an older count.
        if lost.wrapping_sub(before).cast_signed() > 0 {
            self.fresh.push(Record::Lost { cpu, time: time.max(self.watermark) });
            self.heard.insert(cpu, (time, lost));
        }
    }

    /// Hands out, in order, all records up to `until` (ns).
    pub(crate) fn hand_out(&mut self, until: u64, mut sink: impl FnMut(&Record)) {
        if !self.fresh.is_empty() {
            self.waiting.append(&mut self.fresh);
            self.waiting.sort_by_key(Record::time);
        }
        let ready = self.waiting.partition_point(|record| record.time() <= until);
        if let Some(last) = self.waiting[..ready].last() {
            // Further records may be as old as the last one, but not older.
            self.watermark = self.watermark.max(if until == u64::MAX { last.time() } else { until });
        }
        self.waiting.drain(..ready).for_each(|record| sink(&record));
    }
}

#[cfg(test)]
mod tests {
    use nntrace_common::record::RecordKind;
    use proptest::prelude::*;

    use super::*;
    use crate::model::scheduling::{
        KEPT,
        simulated_machine::{self, CPUS, SimulatedMachine, TIDS},
    };

    fn idle(cpu: u32, time: u64, lost: u32) -> Record {
        Record::Idle(PowerRecord { kind: RecordKind::Idle as u32, cpu, time, state: 1, lost })
    }

    fn drain(merge: &mut Merge, until: u64) -> Vec<Record> {
        let mut out = Vec::new();
        merge.hand_out(until, |record| out.push(*record));
        out
    }

    #[test]
    fn records_of_all_rings_come_in_order_of_time_up_to_the_watermark() {
        let mut merge = Merge::default();
        for (cpu, time) in [(0, 10), (0, 30), (0, 50), (1, 20), (1, 40)] {
            merge.push(idle(cpu, time, 0));
        }
        merge.find_losses(&[0, 0]);
        assert_eq!(drain(&mut merge, 35), [idle(0, 10, 0), idle(1, 20, 0), idle(0, 30, 0)]);
        merge.push(idle(1, 33, 0));
        merge.push(idle(1, 45, 0));
        merge.find_losses(&[0, 0]);
        assert_eq!(merge.late(), 1);
        let rest = drain(&mut merge, u64::MAX);
        assert_eq!(rest.iter().map(Record::time).collect::<Vec<_>>(), [33, 40, 45, 50]);
    }

    #[test]
    fn a_gap_begins_at_the_last_record_before_the_loss() {
        let mut merge = Merge::default();
        for record in [idle(0, 10, 0), idle(1, 15, 0), idle(0, 20, 3)] {
            merge.push(record);
        }
        merge.find_losses(&[3, 0]);
        let lost = Record::Lost { cpu: 0, time: 10 };
        assert_eq!(drain(&mut merge, 50), [idle(0, 10, 0), lost, idle(1, 15, 0), idle(0, 20, 3)]);
    }

    #[test]
    fn a_loss_after_the_last_record_is_told_once() {
        let mut merge = Merge::default();
        merge.push(idle(0, 10, 0));
        merge.find_losses(&[0]);
        assert_eq!(drain(&mut merge, 50).len(), 1);
        merge.find_losses(&[7]);
        assert_eq!(drain(&mut merge, 60), [Record::Lost { cpu: 0, time: 50 }]);
        merge.push(idle(0, 70, 7));
        merge.find_losses(&[7]);
        assert_eq!(drain(&mut merge, 80), [idle(0, 70, 7)]);
    }

    #[test]
    fn a_thousand_cpus_are_put_in_order_and_each_has_its_own_losses() {
        const CPUS: u32 = 1_024;
        let mut merge = Merge::default();
        let mut lost = vec![0; CPUS as usize];
        lost[777] = 3;
        for cpu in 0..CPUS {
            for event in [1_u32, 2] {
                let lost = if event == 2 { lost[cpu as usize] } else { 0 };
                merge.push(idle(cpu, u64::from(event * 10_000 + CPUS - cpu), lost));
            }
        }
        merge.find_losses(&lost);
        let out = drain(&mut merge, u64::MAX);
        assert!(out.is_sorted_by_key(Record::time));
        assert_eq!(out.len(), 2 * CPUS as usize + 1);
        let gaps: Vec<_> = out.iter().filter(|record| matches!(record, Record::Lost { .. })).collect();
        assert_eq!(gaps, [&Record::Lost { cpu: 777, time: 10_000 + 247 }]);
    }

    /// Time from a program's reading of the clock to finishing its record at most, ns.
    const SLACK: u64 = 5;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// Without loss, the result for threads does not depend on when which ring was drained. Events of one thread
        /// never coincide, on whichever CPUs: the kernel makes them under one lock.
        #[test]
        fn threads_of_several_cpus_are_put_together_as_they_were(
            found in simulated_machine::found(), steps in simulated_machine::calm_steps(),
            delays in prop::collection::vec(0..=SLACK, 1..40), drains in prop::collection::vec(1..30_u64, 1..20),
        ) {
            let world = SimulatedMachine::new(&found).apart().run(&steps);
            let mut rings = vec![Vec::new(); CPUS];
            for (record, delay) in world.records.iter().zip(delays.iter().cycle()) {
                let ring: &mut Vec<_> = &mut rings[record.cpu as usize];
                // Finished records after an unfinished one cannot be read yet.
                let ready = ring.last().map_or(0, |&(ready, _)| ready).max(record.time + delay);
                ring.push((ready, Record::Sched(*record)));
            }
            let (mut merge, mut model) = (Merge::default(), world.model(KEPT, &found));
            let mut sink = |record: &Record| if let Record::Sched(record) = record { model.record(record) };
            let mut now = 0;
            for drain in drains {
                now += drain;
                for ring in &mut rings {
                    let ready = ring.partition_point(|&(ready, _)| ready <= now);
                    ring.drain(..ready).for_each(|(_, record)| merge.push(record));
                }
                merge.find_losses(&[0; CPUS]);
                merge.hand_out(now.saturating_sub(SLACK), &mut sink);
            }
            rings.into_iter().flatten().for_each(|(_, record)| merge.push(record));
            merge.find_losses(&[0; CPUS]);
            merge.hand_out(u64::MAX, &mut sink);
            prop_assert_eq!(merge.late(), 0);
            let merged = world.fed(model, &[]);
            let expected = world.fed(world.model(KEPT, &found), &world.records);
            for tid in 1..=TIDS {
                for pair in world.instants().windows(2) {
                    let times = merged.times(tid, pair[0], pair[1]);
                    prop_assert_eq!(times, expected.times(tid, pair[0], pair[1]), "thread {}", tid);
                }
            }
        }
    }
}
