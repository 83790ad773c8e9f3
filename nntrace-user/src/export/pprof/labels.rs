//! Labels of samples: the account and the iteration that the time of a function is known to belong to.
//!
//! Sums by account and iteration are kept by function, those of stacks are not split by them. A function in one stack is
//! divided; one in several stacks has a label if all of its time is of one account, or of one iteration.

use std::collections::BTreeMap;

use nntrace_common::record::Total;

use crate::model::{
    Findings,
    causality::{Site, accounts::AccountSum},
    stacked_functions::StackedFunction,
};

/// Label of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Label {
    /// Key.
    pub(super) key: &'static str,
    /// Value.
    pub(super) value: Value,
}

/// Value of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Text.
    Text(String),
    /// Number.
    Number(u64),
}

/// Part of the sections of a function.
#[derive(Clone, Debug)]
struct Share {
    labels: Vec<Label>,
    total: Total,
}

/// Sections of a function in one stack, with their labels.
pub(super) type Labelled<'a> = (&'a StackedFunction, Total, Vec<Label>);

/// Parts of the sections of all functions.
pub(super) struct Labels {
    accounts: BTreeMap<Site, Vec<Share>>,
    iterations: BTreeMap<Site, Vec<Share>>,
}

impl Labels {
    /// Returns what findings have by account and by iteration.
    pub(super) fn of(findings: &Findings<'_>) -> Self {
        let causality = &findings.marks.causality;
        let mut accounts: BTreeMap<Site, Vec<Share>> = BTreeMap::new();
        let charged = causality.accounts.by_name().into_iter().filter(|((is_nobodys, _), _)| !is_nobodys);
        for ((_, account), sites) in charged {
            let label = [Label { key: "account", value: Value::Text(account.to_owned()) }];
            for (site, sum) in sites {
                accounts.entry(site).or_default().extend(share(&label, total_of(&sum)));
            }
        }
        let mut iterations: BTreeMap<Site, Vec<Share>> = BTreeMap::new();
        for iteration in causality.iterations.kept() {
            let (_, name, number) = iteration.key;
            let labels = [
                Label { key: "iteration", value: Value::Number(number) },
                Label { key: "iteration_of", value: Value::Text(findings.marks.names.text(name)) },
            ];
            for (&site, sum) in &iteration.functions {
                iterations.entry(site).or_default().extend(share(&labels, sum.total));
            }
        }
        Self { accounts, iterations }
    }

    /// Returns the sections of one function, in all of its stacks, divided as far as that is known.
    pub(super) fn split<'a>(&self, stacks: &'a [StackedFunction]) -> Vec<Labelled<'a>> {
        let rows = stacks.iter().map(|function| (function, function.total, Vec::new())).collect();
        let site = stacks.first().and_then(|function| {
            Some(Site { pid: function.pid, tag: function.tag()?, name: function.name? })
        });
        let Some(site) = site else { return rows };
        let rows = divide(rows, self.accounts.get(&site).map_or(&[], Vec::as_slice));
        divide(rows, self.iterations.get(&site).map_or(&[], Vec::as_slice))
    }
}

fn total_of(sum: &AccountSum) -> Total {
    Total { count: sum.count, own: 0, exclusive: sum.exclusive() }
}

/// Returns a share, unless nothing is in it.
fn share(labels: &[Label], total: Total) -> Option<Share> {
    let has_any = total.count > 0 || total.exclusive > 0;
    has_any.then(|| Share { labels: labels.to_vec(), total })
}

/// Divides rows into shares, where it is known how; else they stay as they are.
fn divide<'a>(mut rows: Vec<Labelled<'a>>, shares: &[Share]) -> Vec<Labelled<'a>> {
    let all = sum(rows.iter().map(|(_, total, _)| total));
    let shared = sum(shares.iter().map(|share| &share.total));
    // Where records were lost, or rows summed, shares may be of others too.
    if shared.count > all.count || shared.exclusive > all.exclusive {
        return rows;
    }
    let is_whole = (shared.count, shared.exclusive) == (all.count, all.exclusive);
    match (shares, &rows[..]) {
        ([share], _) if is_whole => {
            for (.., labels) in &mut rows {
                labels.extend_from_slice(&share.labels);
            }
            rows
        }
        (_, [(function, _, labels)]) => {
            let rest = Total {
                count: all.count - shared.count,
                own: 0,
                exclusive: all.exclusive - shared.exclusive,
            };
            let rest = share(&[], rest);
            let parts = shares.iter().chain(&rest);
            parts.map(|part| (*function, part.total, [&labels[..], &part.labels].concat())).collect()
        }
        _ => rows,
    }
}

fn sum<'a>(totals: impl Iterator<Item = &'a Total>) -> Total {
    let mut sum = Total::default();
    totals.for_each(|total| sum.add(total));
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(count: u64, exclusive: u64) -> Total {
        Total { count, own: 0, exclusive }
    }

    fn function(exclusive: u64) -> StackedFunction {
        StackedFunction { pid: 1, path: Vec::new(), name: Some(7), total: total(2, exclusive) }
    }

    fn shares(of: &[(&str, u64, u64)]) -> Vec<Share> {
        let label = |text: &str| Label { key: "account", value: Value::Text(text.into()) };
        of.iter().filter_map(|(text, count, ns)| share(&[label(text)], total(*count, *ns))).collect()
    }

    /// Returns count, exclusive time and accounts of the rows that functions are divided into.
    fn divided(functions: &[StackedFunction], of: &[(&str, u64, u64)]) -> Vec<(u64, u64, String)> {
        let rows = functions.iter().map(|function| (function, function.total, Vec::new())).collect();
        let rows = divide(rows, &shares(of)).into_iter().map(|(_, total, labels)| {
            let texts = labels.iter().map(|label| match &label.value {
                Value::Text(text) => text.clone(),
                Value::Number(number) => number.to_string(),
            });
            (total.count, total.exclusive, texts.collect())
        });
        rows.collect()
    }

    #[test]
    fn a_function_in_one_stack_is_divided() {
        let [a, b, nobody] = ["a", "b", ""].map(str::to_owned);
        let one = [function(100)];
        assert_eq!(divided(&one, &[]), [(2, 100, nobody.clone())]);
        assert_eq!(divided(&one, &[("a", 1, 30), ("b", 1, 70)]), [(1, 30, a.clone()), (1, 70, b)]);
        assert_eq!(divided(&one, &[("a", 1, 30)]), [(1, 30, a.clone()), (1, 70, nobody.clone())]);
        assert_eq!(divided(&one, &[("a", 2, 100)]), [(2, 100, a)]);
        assert_eq!(divided(&one, &[("a", 3, 100)]), [(2, 100, nobody)], "more than there is");
    }

    #[test]
    fn a_function_in_several_stacks_is_labelled_as_a_whole_or_not_at_all() {
        let [a, nobody] = ["a", ""].map(str::to_owned);
        let two = [function(100), function(50)];
        assert_eq!(divided(&two, &[("a", 4, 150)]), [(2, 100, a.clone()), (2, 50, a)]);
        let unknown = [(2, 100, nobody.clone()), (2, 50, nobody)];
        assert_eq!(divided(&two, &[("a", 4, 149)]), unknown);
        assert_eq!(divided(&two, &[("a", 2, 100), ("b", 2, 50)]), unknown);
    }
}
