//! Iterations, accounts and what is missing, as rows.

use crate::{
    model::{
        causality::{Causality, Edge, Site, accounts::AccountSum, iterations::Iteration},
        findings::Findings,
    },
    report::snapshot::{
        AccountFunctionRow, AccountRow, CalleeRow, ExplanationRow, GroupRow, HandOverCounts,
        IterationFunctionRow, IterationKey, IterationRow, MissingRow, SiteRow, StatesRow,
    },
};

impl Findings<'_> {
    fn causality(&self) -> &Causality {
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

    /// By process, function and number.
    pub(super) fn iterations(&self) -> Vec<IterationRow> {
        let all = self.causality().iterations.all();
        let key = |iteration: &Iteration| {
            let (_, name, iter) = iteration.key;
            IterationKey { name: self.marks.names.text(name), iter }
        };
        let row = |iteration: &Iteration| {
            let IterationKey { name, iter } = key(iteration);
            let functions = iteration.functions.iter().map(|(&site, sum)| IterationFunctionRow {
                site: self.site(site),
                count: sum.total.count,
                total_ns: sum.total.own,
                exclusive_ns: sum.total.exclusive,
                wall_ns: sum.wall.1 - sum.wall.0,
            });
            let mut functions: Vec<_> = functions.collect();
            functions.sort_by(|a, b| a.site.name.cmp(&b.site.name));
            IterationRow {
                pid: iteration.key.0,
                name,
                iter,
                parent: iteration.parent.and_then(|parent| all.get(parent as usize)).map(key),
                count: iteration.total.count,
                open: iteration.open,
                total_ns: iteration.total.own,
                exclusive_ns: iteration.total.exclusive,
                wall_ns: iteration.wall.map_or(0, |(begin, end)| end - begin),
                missing_ns: iteration.missing,
                functions,
            }
        };
        let mut rows: Vec<_> = all.iter().map(row).collect();
        rows.sort_by(|a, b| (a.pid, &a.name, a.iter).cmp(&(b.pid, &b.name, b.iter)));
        rows
    }

    /// By name; what nobody is charged with last. Nothing where no mark names an account.
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

    /// By value and function.
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
            (causality.iterations.left_out, "iterations began after the most that are kept one by one"),
            (causality.graph.left_out, "sections began after the most that a graph holds"),
            (
                causality.forgotten(),
                "begins and takes of handed-over work were forgotten in sections that last: what followed them there is the \
                 sections' own",
            ),
            (
                causality.explanation.as_ref().map_or(0, |explanation| explanation.forgotten),
                "sections were forgotten before the function around them ended: its explanation lacks them",
            ),
        ];
        let notes = left_out.iter().filter(|(count, _)| *count > 0);
        notes.map(|(count, what)| format!("{count} {what}")).collect()
    }
}
