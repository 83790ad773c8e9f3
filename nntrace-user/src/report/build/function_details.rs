//! Details of functions, for the live view.

use std::collections::BTreeMap;

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

fn details(sum: &FunctionSum, threads: BTreeMap<u32, Total>) -> FunctionDetails {
    let row = |(tid, total): (u32, Total)| FunctionThreadRow {
        tid,
        count: total.count,
        total_ns: total.own,
        exclusive_ns: total.exclusive,
    };
    FunctionDetails {
        times: sum.times.buckets(),
        slowest: sum
            .slowest
            .iter()
            .map(|call| SlowCallRow { ns: call.ns, begin_ns: call.begin, tid: call.tid })
            .collect(),
        threads: threads.into_iter().map(row).collect(),
    }
}

impl Findings<'_> {
    /// Returns the sums of each function by thread.
    fn threads_of_functions(&self) -> FxHashMap<FunctionKey, BTreeMap<u32, Total>> {
        let mut threads: FxHashMap<FunctionKey, BTreeMap<u32, Total>> = FxHashMap::default();
        for site in self.marks.sites.counted() {
            let of_function = threads.entry((site.key.pid, site.tag, site.key.name)).or_default();
            let sum = of_function.entry(site.key.tid).or_default();
            for (_, part) in &site.sums {
                // The duration of one that is in itself is in that of the outermost one.
                let outermost = if site.key.in_itself {
                    Total { exclusive: part.total.exclusive, ..Total::default() }
                } else {
                    part.total
                };
                sum.add(&outermost);
            }
        }
        threads
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::replay::{self, Options};

    /// Two threads in one function; the first one's call has a call of itself in it.
    const TRACE: &str = " app-7 (7) [000] .... 1.000000: tracing_mark_write: B|7|[NN_LR_PE]conv
 app-7 (7) [000] .... 1.002000: tracing_mark_write: B|7|[NN_LR_PE]conv
 app-7 (7) [000] .... 1.005000: tracing_mark_write: E|7
 app-7 (7) [000] .... 1.010000: tracing_mark_write: E|7
 app-8 (7) [000] .... 2.000000: tracing_mark_write: B|7|[NN_LR_PE]conv
 app-8 (7) [000] .... 2.003000: tracing_mark_write: E|7
 app-8 (7) [000] .... 2.100000: tracing_mark_write: B|7|[NN_LR_PE]conv
 app-8 (7) [000] .... 2.107000: tracing_mark_write: E|7
";

    #[test]
    fn threads_add_up_to_the_function_and_calls_have_their_begins() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), TRACE).unwrap();
        let files = vec![file.path().to_owned()];
        let replayed = replay::replay(&Options { files, ..Options::default() }).unwrap();
        let findings = replayed.findings();
        let snapshot = Snapshot::of(&findings).with_function_details(&findings);
        let [row] = &snapshot.functions[..] else { panic!("{:?}", snapshot.functions) };
        assert_eq!((row.count, row.total_ns, row.exclusive_ns), (3, 20_000_000, 20_000_000));
        let details = row.details.as_deref().unwrap();
        let thread =
            |tid, count| FunctionThreadRow { tid, count, total_ns: 10_000_000, exclusive_ns: 10_000_000 };
        assert_eq!(details.threads, [thread(7, 1), thread(8, 2)]);
        let call = |ns, begin_ns, tid| SlowCallRow { ns, begin_ns, tid };
        let expected = [
            call(10_000_000, 1_000_000_000, 7),
            call(7_000_000, 2_100_000_000, 8),
            call(3_000_000, 2_000_000_000, 8),
        ];
        assert_eq!(details.slowest, expected);
        assert_eq!(details.times.iter().map(|(_, count)| count).sum::<u64>(), 3);
    }
}
