//! Iterations by function, and the slowest of them, as rows.

use crate::{
    model::{
        causality::iterations::{Iteration, RootFunctionSum, RootResult},
        findings::Findings,
    },
    report::snapshot::{IterationFunctionRow, IterationKey, IterationRow, SlowIterationRow},
};

impl Findings<'_> {
    /// Returns the iterations by process and function.
    pub(super) fn iterations(&self) -> Vec<IterationRow> {
        let roots = self.causality().iterations.by_root();
        let mut rows: Vec<_> = roots.into_iter().map(|root| self.of_root(root)).collect();
        rows.sort_by(|a, b| (a.pid, &a.name).cmp(&(b.pid, &b.name)));
        rows
    }

    fn of_root(&self, result: RootResult<'_>) -> IterationRow {
        let RootResult { root, times, extremes, slowest } = result;
        let known = root.functions.iter().filter(|(_, sum)| **sum != RootFunctionSum::default());
        let functions = known.map(|(&site, sum)| IterationFunctionRow {
            site: self.site(site),
            count: sum.total.count,
            total_ns: sum.total.own,
            exclusive_ns: sum.total.exclusive,
            wall_ns: sum.wall,
        });
        let row = IterationRow {
            exclusive_ns: root.sums.total.exclusive,
            wall_ns: root.sums.wall,
            missing_ns: root.sums.missing,
            functions: by_name(functions),
            slowest: slowest.into_iter().map(|iteration| self.slow_iteration(iteration)).collect(),
            ..IterationRow::empty(root.key.0, self.marks.names.text(root.key.1))
        };
        row.with_durations(root.sums.count, root.open, root.sums.total.own, extremes, times)
    }

    fn slow_iteration(&self, iteration: &Iteration) -> SlowIterationRow {
        let functions = iteration.functions.iter().map(|(&site, sum)| IterationFunctionRow {
            site: self.site(site),
            count: sum.total.count,
            total_ns: sum.total.own,
            exclusive_ns: sum.total.exclusive,
            wall_ns: sum.wall.1 - sum.wall.0,
        });
        let parent = iteration.parent.and_then(|parent| self.causality().iterations.key(parent));
        SlowIterationRow {
            iter: iteration.key.2,
            parent: parent.map(|(_, name, iter)| IterationKey { name: self.marks.names.text(name), iter }),
            count: iteration.total.count,
            total_ns: iteration.total.own,
            exclusive_ns: iteration.total.exclusive,
            wall_ns: iteration.wall_ns(),
            missing_ns: iteration.missing,
            functions: by_name(functions),
        }
    }
}

fn by_name(rows: impl Iterator<Item = IterationFunctionRow>) -> Vec<IterationFunctionRow> {
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by(|a, b| a.site.name.cmp(&b.site.name));
    rows
}
