//! Details of functions, for the live view.

use nntrace_common::{layer::Tag, record::Total};
use rustc_hash::FxHashMap;

use crate::{
    model::{findings::Findings, section_sites::FunctionSum},
    report::snapshot::{FunctionDetails, FunctionThreadRow, SlowCallRow, Snapshot},
};

/// Key of a function: its process, layer and phase, and the hash of its name.
type FunctionKey = (u32, Tag, u64);

impl Snapshot {
    /// Adds what the live view shows of a function that is opened.
    #[must_use]
    pub fn with_function_details(mut self, found: &Findings<'_>) -> Self {
        let mut threads = found.threads_of_functions();
        for (row, function) in self.functions.iter_mut().zip(found.sorted_functions()) {
            let threads = threads.remove(&function.key).unwrap_or_default();
            row.details = Some(Box::new(details(&function.function.sum, threads)));
        }
        self
    }
}

fn details(sum: &FunctionSum, mut threads: Vec<(u32, Total)>) -> FunctionDetails {
    threads.sort_unstable_by_key(|&(tid, _)| tid);
    let mut rows: Vec<FunctionThreadRow> = Vec::new();
    for (tid, total) in threads {
        match rows.last_mut().filter(|row| row.tid == tid) {
            Some(row) => {
                row.count += total.count;
                row.total_ns += total.own;
                row.exclusive_ns += total.exclusive;
            }
            None => rows.push(FunctionThreadRow {
                tid,
                count: total.count,
                total_ns: total.own,
                exclusive_ns: total.exclusive,
            }),
        }
    }
    FunctionDetails {
        times: sum.times.buckets(),
        slowest: sum
            .slowest
            .iter()
            .map(|call| SlowCallRow { ns: call.ns, begin_ns: call.begin, tid: call.tid })
            .collect(),
        threads: rows,
    }
}

impl Findings<'_> {
    /// Returns the sums of each function by thread, one for each place of it.
    fn threads_of_functions(&self) -> FxHashMap<FunctionKey, Vec<(u32, Total)>> {
        let mut threads: FxHashMap<FunctionKey, Vec<(u32, Total)>> = FxHashMap::default();
        for site in self.marks.sites.counted() {
            let mut sum = Total::default();
            site.sums.iter().for_each(|(_, part)| sum.add(&part.total));
            if site.key.in_itself {
                // Its duration is in that of the outermost one.
                sum = Total { exclusive: sum.exclusive, ..Total::default() };
            }
            threads.entry((site.key.pid, site.tag, site.key.name)).or_default().push((site.key.tid, sum));
        }
        threads
    }
}
