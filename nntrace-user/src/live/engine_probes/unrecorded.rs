//! Operators that are not recorded, as they would need probes.

use std::collections::HashSet;

use nntrace_common::layer::Layer;

use super::options::Operators;
use crate::live::engines::{
    probe::{EngineProbe, Level},
    resolve::Resolved,
};

/// Takes out the probes on operators that the CPU runs, if they are to be hooked or not recorded; returns their number. What a
/// driver or a provider runs is called once for many operators: a probe costs little there.
pub(super) fn take_out(operators: &Operators, probes: &mut Vec<EngineProbe>) -> usize {
    if !matches!(operators, Operators::Hooked(_)) {
        return 0;
    }
    let before = probes.len();
    probes.retain(|probe| probe.level < Level::Op || probe.tag.layer() == Layer::Driver);
    before - probes.len()
}

/// Engines with operators that are not recorded, each of which is in one note.
#[derive(Debug, Default)]
pub(super) struct Unrecorded(HashSet<String>);

impl Unrecorded {
    /// Returns a note on an engine whose operators need probes, unless there was one before; `call_ns` is what a probed call
    /// takes longer, where that is known.
    pub(super) fn note(&mut self, engine: &Resolved, reason: &str, call_ns: Option<u64>) -> Option<String> {
        if !self.0.insert(engine.engine.clone()) {
            return None;
        }
        let cost = call_ns
            .map_or_else(|| "microseconds".to_owned(), |ns| format!("about {} us", ns.div_ceil(1_000)));
        Some(format!(
            "operators of {} are not recorded, as {reason}; --engine-level op records them by probes, which makes each take {cost} \
             longer",
            engine.parts.join("; ")
        ))
    }
}
