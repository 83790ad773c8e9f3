//! Hand-overs as rows.

use crate::{
    model::{
        causality::hand_overs::{HandOverResults, PairKey, PairSums, Part, Source},
        findings::Findings,
    },
    report::snapshot::{HandOverEvidence, HandOverPair, HandOverPart, HandOverSplit},
};

impl Findings<'_> {
    /// Returns hand-overs by layers, phase, name and evidence; `None` unless they were put together.
    pub(super) fn hand_over_split(&self) -> Option<HandOverSplit> {
        let results = self.marks.causality.hand_overs.as_ref()?.results();
        let pairs = results.rows.iter().map(|(key, sums, _)| self.hand_over_pair(&results, key, sums));
        let mut pairs: Vec<_> = pairs.collect();
        pairs.sort_by(|a, b| {
            let key = |pair: &HandOverPair| (pair.from, pair.to, pair.phase, pair.evidence as u8);
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
        });
        Some(HandOverSplit {
            count: pairs.iter().map(|pair| pair.count).sum(),
            hb_violations: results.violations,
            setup_suppressed: results.without_setup,
            unserved: results.unserved,
            uncalled: results.uncalled,
            pairs,
        })
    }

    fn hand_over_pair(&self, results: &HandOverResults, key: &PairKey, sums: &PairSums) -> HandOverPair {
        let part = |part| part_of(sums, part);
        let name = key.function.map(|function| results.function_name(function, &self.marks.names));
        HandOverPair {
            from: key.from,
            to: key.to,
            phase: key.phase,
            name: name.map(Into::into),
            evidence: match key.source {
                Source::Handle => HandOverEvidence::Handle,
                Source::Binder => HandOverEvidence::Binder,
                Source::Interface => HandOverEvidence::Interface,
                Source::Asynchronous => HandOverEvidence::Asynchronous,
                Source::WakeUp => HandOverEvidence::WakeUp,
            },
            count: sums.count,
            hb_violations: sums.violations,
            gated: sums.gated,
            propagation: part(Part::Propagation),
            setup: part(Part::Setup),
            head: part(Part::Head),
            execution: part(Part::Execution),
            tail: part(Part::Tail),
            latency: part(Part::Latency),
        }
    }
}

fn part_of(sums: &PairSums, part: Part) -> Option<HandOverPart> {
    let all = sums.all(part);
    if all.count == 0 {
        return None;
    }
    let [p50_ns, p95_ns] = all.percentiles([50.0, 95.0]);
    let rest = Some(sums.rest(part)).filter(|rest| rest.count > 0);
    Some(HandOverPart {
        count: all.count,
        sum_ns: all.sum,
        min_ns: all.min,
        p50_ns,
        p95_ns,
        max_ns: all.max,
        first_ns: sums.first(part),
        rest_p50_ns: rest.map(|rest| rest.percentiles([50.0])[0]),
        rest_max_ns: rest.map(|rest| rest.max),
    })
}
