//! Operators that are not recorded, as they would need probes.

use std::collections::BTreeMap;

use nntrace_common::layer::Layer;

use super::options::Operators;
use crate::{
    live::engines::{
        catalog::Catalog,
        probe::{EngineProbe, Level},
        resolve::Resolved,
    },
    model::run_facts::ProbedEngine,
};

/// Takes out the probes on operators that the CPU runs, if operators are recorded by hooks only; returns their number. What a
/// driver or a provider runs is called once for many operators: a probe costs little there.
pub(super) fn take_out(operators: &Operators, probes: &mut Vec<EngineProbe>) -> usize {
    if !matches!(operators, Operators::Hooked(_)) {
        return 0;
    }
    let before = probes.len();
    probes.retain(|probe| probe.level < Level::Op || probe.tag.layer() == Layer::Driver);
    before - probes.len()
}

/// Notes on engines with operators that are not recorded, by the engine's name.
#[derive(Debug, Default)]
pub(super) struct Unrecorded(BTreeMap<String, String>);

impl Unrecorded {
    /// Adds a note on an engine whose operators need probes, unless there is one; `call_ns` is what a probed call takes longer,
    /// where that is known.
    pub(super) fn add(&mut self, engine: &Resolved, reason: &str, call_ns: Option<u64>) {
        let cost = call_ns
            .map_or_else(|| "microseconds".to_owned(), |ns| format!("about {} us", ns.div_ceil(1_000)));
        self.0.entry(engine.engine.clone()).or_insert_with(|| {
            format!(
                "operators of {} are not recorded, as {reason}; --engine-level op records them by probes, which makes each take {cost} \
                 longer",
                engine.parts.join("; ")
            )
        });
    }

    /// Returns the notes on engines whose operators are recorded neither by hooks in another file nor by ITT.
    pub(super) fn notes(&self, engines: &[ProbedEngine], catalog: &Catalog) -> Vec<String> {
        let is_recorded = |name: &String| {
            engines.iter().any(|engine| engine.engine == *name && engine.hooked > 0)
                || catalog.is_left_to_itt(name)
        };
        self.0.iter().filter(|(name, _)| !is_recorded(name)).map(|(_, note)| note.clone()).collect()
    }
}
