//! Time of each function in each stack: the exact totals of stacks, split by function as far as there are records.

use std::collections::BTreeMap;

use nntrace_common::{layer::Tag, record::Total};

use super::{
    capped_table::{OTHERS, OTHERS_PID},
    findings::Findings,
    stacks::StackFrame,
};

/// Sections of one function in one stack of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StackedFunction {
    /// Process.
    pub(crate) pid: u32,
    /// Layers and phases from the outermost section in; the last one is the function's.
    pub(crate) path: Vec<StackFrame>,
    /// Hash of the function's name; `None` for sections whose records were lost.
    pub(crate) name: Option<u64>,
    /// Sum.
    pub(crate) total: Total,
}

impl StackedFunction {
    /// Returns the layer and phase of the function, where they are known.
    #[must_use]
    pub(crate) fn tag(&self) -> Option<Tag> {
        self.path.last().and_then(|frame| frame.tag)
    }
}

/// Sums of one stack of one process.
#[derive(Default)]
struct Sums {
    /// Exact sum of all of its sections; `None` where there is none.
    all: Option<Total>,
    /// Sums of the records, by function.
    functions: BTreeMap<u64, Total>,
}

impl Sums {
    /// Returns what the functions lack of the exact sum.
    fn rest(&self) -> Total {
        let mut known = Total::default();
        self.functions.values().for_each(|total| known.add(total));
        let all = self.all.unwrap_or(known);
        Total {
            count: all.count.saturating_sub(known.count),
            own: all.own.saturating_sub(known.own),
            exclusive: all.exclusive.saturating_sub(known.exclusive),
        }
    }
}

impl Findings<'_> {
    /// Returns every function in every stack, by process, stack and name. Together they are the exact totals of the stacks;
    /// what the kernel's tables had no room for is added as far as there are records.
    #[must_use]
    pub(crate) fn stacked_functions(&self) -> Vec<StackedFunction> {
        let mut stacks: BTreeMap<(u32, u64), Sums> = BTreeMap::new();
        for (key, total) in &self.sums.totals {
            stacks.entry((key.tgid, key.path)).or_default().all.get_or_insert_default().add(total);
        }
        for site in self.marks.sites.counted() {
            let stack = stacks.entry((site.key.pid, site.key.path)).or_default();
            let function = stack.functions.entry(site.key.name).or_default();
            site.sums.iter().for_each(|(_, part)| function.add(&part.total));
        }
        let mut found = Vec::new();
        for ((pid, path), sums) in stacks {
            // Functions that are summed for want of room are in the totals of their own processes.
            if pid == OTHERS_PID && sums.all.is_none() {
                continue;
            }
            let path = self.marks.paths.frames(path);
            let rest = Some(sums.rest()).filter(|rest| *rest != Total::default());
            let functions = sums.functions.into_iter().map(|(name, total)| (Some(name), total));
            found.extend(rest.map(|rest| (None, rest)).into_iter().chain(functions).map(|(name, total)| {
                let text = name.map(|name| self.marks.names.text(name));
                (text, StackedFunction { pid, path: path.clone(), name, total })
            }));
        }
        found.sort_by(|(a_text, a), (b_text, b)| {
            (a.pid, &a.path, a_text, a.name).cmp(&(b.pid, &b.path, b_text, b.name))
        });
        found.into_iter().map(|(_, function)| function).collect()
    }

    /// Returns the name of a process, or its number where it has none.
    #[must_use]
    pub(crate) fn process_name(&self, pid: u32) -> String {
        match self.run.processes.get(&pid) {
            Some(process) if !process.comm.is_empty() => process.comm.clone(),
            _ if pid == OTHERS_PID => OTHERS.into(),
            _ => format!("pid {pid}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_without_records_are_the_rest() {
        let total = |count, exclusive| Total { count, own: exclusive, exclusive };
        let functions = BTreeMap::from([(1, total(2, 30)), (2, total(1, 12))]);
        let sums = |all| Sums { all, functions: functions.clone() };
        assert_eq!(sums(Some(total(5, 100))).rest(), total(2, 58));
        assert_eq!(sums(Some(total(3, 42))).rest(), Total::default());
        assert_eq!(sums(Some(total(1, 5))).rest(), Total::default(), "the kernel's table was full");
        assert_eq!(sums(None).rest(), Total::default());
    }
}
