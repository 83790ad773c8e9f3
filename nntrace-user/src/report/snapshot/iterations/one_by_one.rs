//! Iterations as snapshots had them first: one row for each. They are summed where they are read.

use std::{cmp::Reverse, collections::BTreeMap};

use serde::{Deserialize, Deserializer};

use super::{IterationFunctionRow, IterationKey, IterationRow, SlowIterationRow};
use crate::model::{
    causality::Questions,
    histogram::{FEW_DIGITS, Times},
};

/// A row of either form. What has `iter` is one iteration.
#[derive(Deserialize)]
#[serde(untagged)]
enum Row {
    One(One),
    Root(IterationRow),
}

/// One iteration.
#[derive(Deserialize)]
struct One {
    pid: u32,
    name: String,
    iter: u64,
    parent: Option<IterationKey>,
    count: u64,
    #[serde(default)]
    open: u64,
    total_ns: u64,
    exclusive_ns: u64,
    wall_ns: u64,
    missing_ns: u64,
    functions: Vec<IterationFunctionRow>,
}

/// Reads the iterations of a snapshot of any age.
pub(in super::super) fn of_either_form<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<IterationRow>, D::Error> {
    let mut ones: BTreeMap<(u32, String), Vec<One>> = BTreeMap::new();
    let mut roots = Vec::new();
    for row in Vec::<Row>::deserialize(deserializer)? {
        match row {
            Row::One(one) => ones.entry((one.pid, one.name.clone())).or_default().push(one),
            Row::Root(root) => roots.push(root),
        }
    }
    roots.extend(ones.into_iter().map(|((pid, name), ones)| sum(pid, name, ones)));
    Ok(roots)
}

fn sum(pid: u32, name: String, ones: Vec<One>) -> IterationRow {
    let (mut ended, open): (Vec<_>, Vec<_>) = ones.into_iter().partition(|one| one.open == 0);
    let total = |of: fn(&One) -> u64| ended.iter().map(of).fold(0, u64::saturating_add);
    let (count, total_ns) = (ended.len() as u64, total(|one| one.total_ns));
    let mut times = Times::new(FEW_DIGITS);
    let mut functions: Vec<IterationFunctionRow> = Vec::new();
    for one in &ended {
        times.record(one.total_ns);
        for row in &one.functions {
            match functions.iter_mut().find(|known| known.site == row.site) {
                Some(known) => {
                    known.count = known.count.saturating_add(row.count);
                    known.total_ns = known.total_ns.saturating_add(row.total_ns);
                    known.exclusive_ns = known.exclusive_ns.saturating_add(row.exclusive_ns);
                    known.wall_ns = known.wall_ns.saturating_add(row.wall_ns);
                }
                None => functions.push(row.clone()),
            }
        }
    }
    functions.sort_by(|a, b| a.site.name.cmp(&b.site.name));
    let (exclusive_ns, wall_ns, missing_ns) =
        (total(|one| one.exclusive_ns), total(|one| one.wall_ns), total(|one| one.missing_ns));
    let extremes = ended.iter().map(|one| one.total_ns).min().zip(ended.iter().map(|one| one.total_ns).max());
    ended.sort_by_key(|one| (Reverse(one.wall_ns), one.iter));
    ended.truncate(Questions::SLOWEST as usize);
    let slowest = ended.into_iter().map(|one| SlowIterationRow {
        iter: one.iter,
        parent: one.parent,
        count: one.count,
        total_ns: one.total_ns,
        exclusive_ns: one.exclusive_ns,
        wall_ns: one.wall_ns,
        missing_ns: one.missing_ns,
        functions: one.functions,
    });
    let slowest = slowest.collect();
    let rest = IterationRow {
        exclusive_ns,
        wall_ns,
        missing_ns,
        functions,
        slowest,
        ..IterationRow::empty(pid, name)
    };
    rest.with_durations(count, open.len() as u64, total_ns, extremes, times)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Deserialize)]
    struct Rows(#[serde(deserialize_with = "of_either_form")] Vec<IterationRow>);

    #[test]
    fn rows_of_one_iteration_are_summed_by_function() {
        let function = |count: u64, ns: u64| {
            json!({"pid": 7, "layer": "LR", "phase": "PE", "name": "f", "count": count, "total_ns": ns, "exclusive_ns": ns,
                   "wall_ns": ns})
        };
        let row = |iter: u64, open: u64, ns: u64| {
            json!({"pid": 7, "name": "frame", "iter": iter, "parent": null, "count": 1, "open": open, "total_ns": ns,
                   "exclusive_ns": 1, "wall_ns": ns + 5, "missing_ns": 2, "functions": [function(3, ns)]})
        };
        let old = json!([row(1, 0, 100), row(2, 0, 300), row(3, 1, 900), row(4, 0, 200)]);
        let Rows(rows) = serde_json::from_value(old).unwrap();
        let [all] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((all.count, all.open, all.total_ns, all.mean_ns), (3, 1, 600, Some(200)));
        assert_eq!((all.min_ns, all.p50_ns, all.max_ns), (Some(100), Some(200), Some(300)));
        assert_eq!((all.exclusive_ns, all.wall_ns, all.missing_ns), (3, 615, 6));
        assert_eq!((all.functions[0].count, all.functions[0].total_ns), (9, 600));
        let slowest: Vec<_> = all.slowest.iter().map(|row| (row.iter, row.wall_ns)).collect();
        assert_eq!(slowest, [(2, 305), (4, 205), (1, 105)]);
        // The other form is as it is.
        let again = serde_json::to_value(&rows).unwrap();
        assert_eq!(serde_json::from_value::<Rows>(again).unwrap().0, rows);
    }
}
