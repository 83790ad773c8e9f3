//! Names of threads by their ancestry: `main`, the threads that it starts `main_0` and `main_1`, theirs `main_0_0`.
//!
//! Sources are the kernel's events of forks, in order of time. A thread that was there before is `main_?` and its id; the
//! main thread of a second process that was is `main@` and its id.

use std::cmp::Ordering;

use nntrace_common::record::{ProcessRecord, Record};
use rustc_hash::FxHashMap;

use crate::model::input::Input;

/// Characters of a name at most: a file's name has no room for more. The oldest ancestors are left out of longer ones.
const LONGEST: usize = 200;

/// Names of threads by their ancestry.
#[derive(Debug, Default)]
pub(super) struct Ancestry {
    threads: FxHashMap<u32, Thread>,
    /// Forks later than what has been taken.
    forks: Vec<ProcessRecord>,
    /// Process that is `main`.
    first: Option<u32>,
}

#[derive(Debug)]
struct Thread {
    name: String,
    /// Threads and processes that it has started.
    started: u32,
}

impl Ancestry {
    /// Takes an input: forks, in any order, and times up to which all have come.
    pub(super) fn take(&mut self, input: &Input<'_>) {
        match *input {
            Input::Record(Record::Fork(fork)) => self.forks.push(*fork),
            Input::Advance { until } => self.name_until(until),
            _ => {}
        }
    }

    /// Names the threads of all forks up to a time, ns, of which none is still to come.
    pub(super) fn name_until(&mut self, until: u64) {
        if self.forks.is_empty() {
            return;
        }
        self.forks.sort_by_key(|fork| fork.time);
        let due = self.forks.partition_point(|fork| fork.time <= until);
        let forks: Vec<ProcessRecord> = self.forks.drain(..due).collect();
        for ProcessRecord { tgid, tid: child, detail: parent, .. } in forks {
            let parent = self.known(tgid, parent);
            let name = child_name(&parent.name, parent.started);
            parent.started += 1;
            self.threads.insert(child, Thread { name, started: 0 });
        }
    }

    /// Returns the name of a thread.
    pub(super) fn name(&mut self, tgid: u32, tid: u32) -> &str {
        &self.known(tgid, tid).name
    }

    fn known(&mut self, tgid: u32, tid: u32) -> &mut Thread {
        if !self.threads.contains_key(&tid) {
            let name =
                if tid == tgid { self.main_name(tgid) } else { format!("{}_?{tid}", self.name(tgid, tgid)) };
            self.threads.insert(tid, Thread { name, started: 0 });
        }
        self.threads.entry(tid).or_insert_with(|| Thread { name: String::new(), started: 0 })
    }

    fn main_name(&mut self, tgid: u32) -> String {
        if *self.first.get_or_insert(tgid) == tgid { "main".into() } else { format!("main@{tgid}") }
    }
}

/// Returns the name of the child of this number.
fn child_name(parent: &str, number: u32) -> String {
    let name = format!("{parent}_{number}");
    if name.len() <= LONGEST {
        return name;
    }
    let kept = name.len() - LONGEST / 2;
    let end = name[kept..].find('_').map_or(kept, |place| kept + place);
    format!("main_..{}", &name[end..])
}

/// Order of names: a thread before those that it starts, and these by their numbers.
pub(super) fn order(a: &str, b: &str) -> Ordering {
    a.split('_').map(Step::of).cmp(b.split('_').map(Step::of))
}

/// Part of a name between two underscores.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Step<'a> {
    Number(u32),
    Other(&'a str),
}

impl<'a> Step<'a> {
    fn of(text: &'a str) -> Self {
        text.parse().map_or(Self::Other(text), Self::Number)
    }
}

#[cfg(test)]
mod tests {
    use nntrace_common::record::RecordKind;

    use super::*;

    fn fork(ancestry: &mut Ancestry, time: u64, parent: u32, child: u32) {
        let record =
            ProcessRecord { kind: RecordKind::Fork as u32, tgid: 10, tid: child, detail: parent, time };
        ancestry.take(&Input::Record(&Record::Fork(record)));
    }

    #[test]
    fn threads_are_numbered_by_the_time_of_their_forks() {
        let mut ancestry = Ancestry::default();
        // By CPU, and so not in order of time.
        fork(&mut ancestry, 30, 11, 13);
        fork(&mut ancestry, 40, 11, 14);
        fork(&mut ancestry, 20, 10, 12);
        fork(&mut ancestry, 10, 10, 11);
        ancestry.take(&Input::Advance { until: 35 });
        fork(&mut ancestry, 38, 11, 15);
        ancestry.take(&Input::Advance { until: 50 });
        let names = [10, 11, 12, 13, 15, 14].map(|tid| ancestry.name(10, tid).to_owned());
        assert_eq!(names, ["main", "main_0", "main_1", "main_0_0", "main_0_1", "main_0_2"]);
    }

    #[test]
    fn threads_that_were_there_before_have_their_ids() {
        let mut ancestry = Ancestry::default();
        assert_eq!(ancestry.name(10, 17), "main_?17");
        assert_eq!(ancestry.name(10, 10), "main");
        assert_eq!(ancestry.name(20, 21), "main@20_?21");
        fork(&mut ancestry, 5, 17, 18);
        ancestry.take(&Input::Advance { until: 5 });
        assert_eq!(ancestry.name(10, 18), "main_?17_0");
    }

    #[test]
    fn threads_come_before_those_that_they_start() {
        let sorted = ["main", "main_0", "main_0_0", "main_2", "main_10", "main_10_0", "main_?7", "main@20"];
        let mut names = sorted;
        names.reverse();
        names.sort_by(|a, b| order(a, b));
        assert_eq!(names, sorted);
    }

    #[test]
    fn names_stay_short_enough_for_files() {
        let mut ancestry = Ancestry::default();
        for generation in 0..1_000 {
            fork(&mut ancestry, u64::from(generation), 10 + generation, 11 + generation);
        }
        ancestry.take(&Input::Advance { until: 1_000 });
        let name = ancestry.name(10, 1_010);
        assert!(name.len() <= LONGEST && name.starts_with("main_.._0_"), "{name}");
    }
}
