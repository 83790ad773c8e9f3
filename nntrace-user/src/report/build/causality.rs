//! Iterations, accounts and what is missing, as rows.

use crate::{
    model::{
        causality::{Causality, Edge, Site, accounts::AccountSum},
        findings::Findings,
        plurals::one_or_many,
    },
    report::snapshot::{
        AccountFunctionRow, AccountRow, CalleeRow, ExplanationRow, GroupRow, HandOverCounts, MissingRow,
        SiteRow, StatesRow,
    },
};

impl Findings<'_> {
    pub(super) fn causality(&self) -> &Causality {
        &self.marks.causality
    }

    pub(super) fn site(&self, site: Site) -> SiteRow {
        SiteRow {
            pid: site.pid,
            layer: site.tag.layer(),
            phase: site.tag.phase(),
            name: self.marks.names.text(site.name),
        }
    }

    /// Returns the accounts by name; what nobody is charged with last. Nothing where no mark names an account.
    pub(super) fn accounts(&self) -> Vec<AccountRow> {
        let accounts = &self.causality().accounts;
        if !accounts.is_used() {
            return Vec::new();
        }
        let rows = accounts.by_name().into_iter().map(|((is_nobodys, name), sites)| {
            let by_edge = |edge: Edge| -> u64 {
                if is_nobodys { 0 } else { sites.values().map(|sum| sum.exclusive[edge as usize]).sum() }
            };
            let functions = sites.iter().map(|(&site, sum)| AccountFunctionRow {
                site: self.site(site),
                count: sum.count,
                exclusive_ns: sum.exclusive(),
            });
            let mut functions: Vec<_> = functions.collect();
            functions.sort_by(|a, b| (a.site.pid, &a.site.name).cmp(&(b.site.pid, &b.site.name)));
            AccountRow {
                account: (!is_nobodys).then(|| name.to_owned()),
                count: sites.values().map(|sum| sum.count).sum(),
                exclusive_ns: sites.values().map(AccountSum::exclusive).sum(),
                explicit_ns: by_edge(Edge::Explicit),
                nested_ns: by_edge(Edge::Nested),
                handed_over_ns: by_edge(Edge::HandedOver),
                created_ns: by_edge(Edge::Created),
                functions,
            }
        });
        rows.collect()
    }

    /// Returns the sums by value and function.
    pub(super) fn groups(&self) -> Vec<GroupRow> {
        let Some(key) = &self.causality().questions().by else { return Vec::new() };
        let rows = self.causality().groups.by_value().into_iter().map(|((value, site), sum)| GroupRow {
            key: key.clone(),
            value: value.to_owned(),
            site: self.site(site),
            count: sum.total.count,
            total_ns: sum.total.own,
            exclusive_ns: sum.total.exclusive,
            max_ns: sum.longest,
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by(|a, b| (&a.value, a.site.pid, &a.site.name).cmp(&(&b.value, b.site.pid, &b.site.name)));
        rows
    }

    pub(super) fn missing(&self) -> Vec<MissingRow> {
        let rows = self.causality().roots.all().map(|(site, sum)| MissingRow {
            site: self.site(site),
            count: sum.count,
            total_ns: sum.total,
            missing_ns: sum.missing.time,
            max_missing_ns: sum.most,
            states: sum.missing.states.map(|states| StatesRow {
                on_cpu_ns: states.on_cpu,
                runnable_ns: states.runnable,
                sleeping_ns: states.sleeping,
                uninterruptible_ns: states.uninterruptible,
                unknown_ns: states.unknown,
            }),
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by(|a, b| (a.site.pid, &a.site.name).cmp(&(b.site.pid, &b.site.name)));
        rows
    }

    pub(super) fn explanation(&self) -> Option<ExplanationRow> {
        let explanation = self.causality().explanation.as_ref()?;
        let callees = explanation.shares().into_iter().map(|share| CalleeRow {
            name: self.marks.names.text(share.name),
            calls: share.calls,
            mean_calls: share.mean_calls,
            mean_ns: share.mean_time,
            how_often: share.how_often,
            how_long: share.how_long,
        });
        Some(ExplanationRow {
            function: explanation.function().into(),
            count: explanation.count(),
            mean_ns: explanation.mean(),
            variance: explanation.variance(),
            callees: callees.collect(),
        })
    }

    pub(super) fn hand_overs(&self) -> Option<HandOverCounts> {
        let counts = self.causality().handles;
        let row =
            HandOverCounts { sent: counts.sent, received: counts.received, unmatched: counts.unmatched };
        (row != HandOverCounts::default()).then_some(row)
    }

    /// Notes on rows that were left out for want of room.
    pub(super) fn causality_notes(&self) -> Vec<String> {
        let causality = self.causality();
        let left_out = [
            (
                causality.iterations.left_out,
                ["iteration was", "iterations were"],
                "forgotten while open, as too many were: shown as open",
            ),
            (
                causality.iterations.unlisted,
                ["iteration is", "iterations are"],
                "in the sums and not in lists of all, which were full",
            ),
            (
                causality.iterations.late,
                ["section", "sections"],
                "ended in iterations after which many others had ended: in sums by function, not in the wall time of the \
                 iteration",
            ),
            (
                causality.iterations.resumed,
                ["iteration has", "iterations have"],
                "the number of one after which many others had ended: each counts as one more",
            ),
            (causality.graph.left_out, ["section", "sections"], "began after the most that a graph holds"),
            (
                causality.forgotten(),
                ["begin or take of handed-over work was", "begins and takes of handed-over work were"],
                "forgotten in sections that last: what followed there is the sections' own",
            ),
            (
                causality.explanation.as_ref().map_or(0, |explanation| explanation.forgotten),
                ["section was", "sections were"],
                "forgotten before the function around ended: its explanation is incomplete",
            ),
        ];
        let notes = left_out.into_iter().filter(|(count, ..)| *count > 0);
        notes
            .map(|(count, [one, many], what)| format!("{count} {} {what}", one_or_many(count, one, many)))
            .collect()
    }
}
