//! Hand-overs and time in no section.

use nntrace_common::layer::{Layer, Phase};

use crate::report::snapshot::{
    HandOverEvidence, HandOverPair, HandOverPart, HandOverSplit, MissingRow, SiteRow, Snapshot, StatesRow,
};

/// Lengths of 400 hand-overs.
fn part(p50_ns: u64) -> HandOverPart {
    HandOverPart {
        count: 400,
        sum_ns: u128::from(p50_ns) * 440,
        min_ns: p50_ns / 2,
        p50_ns,
        p95_ns: p50_ns * 3,
        max_ns: p50_ns * 9,
        first_ns: Some(p50_ns * 9),
        rest_p50_ns: Some(p50_ns),
        rest_max_ns: Some(p50_ns * 8),
    }
}

fn pair(from: Layer, to: Layer, name: &str, evidence: HandOverEvidence) -> HandOverPair {
    HandOverPair {
        from: Some(from),
        to: Some(to),
        phase: Some(Phase::Execution),
        name: Some(name.to_owned()),
        evidence,
        count: 411,
        hb_violations: 0,
        gated: 0,
        propagation: Some(part(60_000)),
        setup: Some(part(20_000)),
        head: Some(part(80_000)),
        execution: Some(part(9_000_000)),
        tail: Some(part(50_000)),
        latency: Some(part(9_200_000)),
    }
}

/// Adds three kinds of hand-overs, and the time that two functions spend in no section.
pub(crate) fn with_hand_overs(snapshot: Snapshot) -> Snapshot {
    let woken = HandOverPair {
        latency: None,
        tail: None,
        execution: Some(part(310_000)),
        ..pair(Layer::Runtime, Layer::CpuFallback, "Conv2D block1/conv1", HandOverEvidence::WakeUp)
    };
    let odd = HandOverPair {
        from: None,
        phase: None,
        name: None,
        hb_violations: 3,
        gated: 20,
        propagation: None,
        head: None,
        latency: Some(part(700_000)),
        ..pair(Layer::Driver, Layer::Driver, "", HandOverEvidence::Handle)
    };
    let missing = |name: &str, missing_ns, states| MissingRow {
        site: SiteRow {
            pid: 1234,
            layer: Layer::Application,
            phase: Phase::Execution,
            name: name.to_owned(),
        },
        count: 411,
        total_ns: 6_000_000_000,
        missing_ns,
        max_missing_ns: missing_ns / 50,
        states,
    };
    let states = StatesRow {
        on_cpu_ns: 300_000_000,
        runnable_ns: 100_000_000,
        sleeping_ns: 500_000_000,
        uninterruptible_ns: 100_000_000,
        unknown_ns: 0,
    };
    let interface =
        pair(Layer::Ipc, Layer::Driver, "IPreparedModel::executeFenced", HandOverEvidence::Interface);
    Snapshot {
        hand_over_split: Some(HandOverSplit {
            count: 1_233,
            hb_violations: 3,
            pairs: vec![odd, interface, woken],
            ..HandOverSplit::default()
        }),
        missing: vec![missing("warm-up", 20_000_000, None), missing("classify", 1_000_000_000, Some(states))],
        ..snapshot
    }
}
