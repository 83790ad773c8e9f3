//! Resources by function, account, iteration and process, at one time of the run.

use std::collections::BTreeMap;

use nntrace_common::layer::Tag;

use super::{Books, Owner, RowKey, Usage, UsageLedgers, feed::Reach};
use crate::model::{
    capped_table::{OTHERS_NAME, OTHERS_PID},
    marks::Marks,
    scheduling::{NamedThread, Scheduling},
};

/// Resources that were used in a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UsageTables {
    /// By function: process, layer and phase, hash of the name. The times of each add up to its exclusive time.
    pub functions: BTreeMap<(u32, Tag, u64), Usage>,
    /// By number of the account, `None` for sections of none.
    pub accounts: BTreeMap<Option<u32>, Usage>,
    /// By place of the iterations' root.
    pub iterations: BTreeMap<u32, Usage>,
    /// Work of threads outside of sections, by process.
    pub others: BTreeMap<u32, Usage>,
}

impl UsageLedgers {
    /// The tables until `end` (ns). `threads` are those to count outside of sections.
    #[must_use]
    pub(crate) fn tables(
        &self,
        end: u64,
        scheduling: &Scheduling,
        threads: &[NamedThread],
        marks: &Marks,
    ) -> UsageTables {
        let mut all = self.clone();
        all.doubt(scheduling.losses());
        let ids = scheduling.ids().map(|(tid, _)| tid);
        let mut ids: Vec<u32> = ids.chain(self.feeds.keys().copied()).collect();
        ids.sort_unstable();
        ids.dedup();
        for tid in ids {
            all.read(tid, end, scheduling, Reach::Everything);
        }
        all.books.clocks.give_up_waiting();
        all.books.settle();
        let mut process_of: BTreeMap<u32, u32> =
            threads.iter().map(|thread| (thread.tid, thread.pid)).collect();
        // Of those that had one id after each other, the last one has the ledger.
        process_of.extend(scheduling.ids().filter_map(|(tid, tgid)| Some((tid, tgid?))));
        all.books.tables(end, threads, &process_of, marks)
    }
}

impl Books {
    /// The tables; `process_of` has the processes of the threads that have not ended.
    fn tables(
        self,
        end: u64,
        threads: &[NamedThread],
        process_of: &BTreeMap<u32, u32>,
        marks: &Marks,
    ) -> UsageTables {
        let mut tables =
            UsageTables { iterations: self.iterations, accounts: self.accounts, ..UsageTables::default() };
        // Processes, and the times (ns) of their threads.
        let mut times: BTreeMap<u32, u64> = BTreeMap::new();
        for thread in threads {
            *times.entry(thread.pid).or_default() += thread.times.total();
        }
        let mut add_other = |pid: u32, usage: &Usage| {
            if times.contains_key(&pid) {
                tables.others.entry(pid).or_default().merge(usage);
            }
        };
        for (owner, usage) in &self.ended {
            let pid = match *owner {
                Owner::Process(pid) => pid,
                Owner::Thread(tid) => process_of.get(&tid).copied().unwrap_or(tid),
            };
            add_other(pid, usage);
        }
        for (tid, ledger) in &self.ledgers {
            add_other(process_of.get(tid).copied().unwrap_or(*tid), &ledger.rest(end));
        }
        let functions = marks.sites.functions();
        for (&RowKey { pid, tag, name, tid }, usage, _) in self.rows.iter() {
            if !marks.sites.counts(pid, tid) {
                add_other(pid, usage);
                continue;
            }
            let candidates = [(pid, tag, name), (pid, tag, OTHERS_NAME), (OTHERS_PID, tag, OTHERS_NAME)];
            let known = candidates.into_iter().find(|key| functions.contains_key(key));
            tables.functions.entry(known.unwrap_or(candidates[2])).or_default().merge(usage);
        }
        // Sections from before the first event of a thread, or whose row had no room.
        for (key, function) in &functions {
            let usage = tables.functions.entry(*key).or_default();
            usage.unknown += function.sum.total.exclusive.saturating_sub(usage.total());
        }
        for (&(pid, ..), usage) in &tables.functions {
            if let Some(left) = times.get_mut(&pid) {
                *left = left.saturating_sub(usage.total());
            }
        }
        for (pid, left) in times {
            let other = tables.others.entry(pid).or_default();
            other.unknown += left.saturating_sub(other.total());
        }
        tables
    }
}
