//! The snapshot of what the model found.

mod causality;
mod devices;
mod dispatch_overhead;
mod energy;
mod full_kernel_tables;
mod function_details;
mod hand_overs;
mod iterations;
mod language_models;
mod marks;
mod perf_counters;
mod power;
mod recent;
mod threads;
mod unfinished;
mod usage;

use super::snapshot::{Diagnostic, Loss, SCHEMA, Snapshot, Tool, VERSION};
use crate::model::findings::Findings;

impl Snapshot {
    /// The snapshot; every list in it is sorted, so that equal input gives equal bytes.
    #[must_use]
    pub fn of(found: &Findings<'_>) -> Self {
        let usage = found.usage();
        let energy = found.energy().map(|energy| energy.with_phases(usage.as_ref()));
        Self {
            schema: SCHEMA.into(),
            version: VERSION,
            tool: Tool { name: "nntrace-bpf".into(), version: env!("CARGO_PKG_VERSION").into() },
            host: found.run.host.clone(),
            window: found.run.window.clone(),
            source: found.run.source.clone(),
            reports: found.reports(),
            phases: found.phases(),
            stacks: found.stacks(),
            functions: found.functions(),
            details: if found.run.with_details { found.details() } else { Vec::new() },
            unfinished: found.unfinished_rows(),
            language_models: found.language_models(),
            devices: found.devices(),
            iterations: found.iterations(),
            accounts: found.accounts(),
            groups: found.groups(),
            missing: found.missing(),
            explanation: found.explanation(),
            hand_overs: found.hand_overs(),
            hand_over_split: found.hand_over_split(),
            dispatch_overhead: None,
            threads: found.thread_rows(),
            usage,
            perf_counters: found.perf_counters(),
            counters: found.counters(),
            tracks: found.tracks(),
            cpus: found.cpus(),
            clusters: found.clusters(),
            energy,
            rails: found.run.rails.clone().filter(|rails| !rails.is_empty()),
            device_clocks: found.device_clocks(),
            device_usage: found.run.device_usage.clone().filter(|usage| !usage.is_empty()),
            evidence: found.run.evidence.clone(),
            verify: found.run.verify.clone(),
            overhead: found.run.overhead.clone(),
            loss: Loss { summed: found.summed(), ..found.run.loss.clone() },
            recent: None,
            diagnostics: found.diagnostics(),
            notes: [
                found.run.notes.clone(),
                found.causality_notes(),
                found.notes_on_devices(),
                found.notes_on_room(),
            ]
            .concat(),
        }
    }
}

impl Findings<'_> {
    fn diagnostics(&self) -> Vec<Diagnostic> {
        let rows = self.run.diagnostics.iter().map(|(kind, count)| Diagnostic {
            kind: *kind,
            count: count.count,
            first_ns: count.first_ns,
            tid: count.tid,
            example: String::from_utf8_lossy(count.example.get(..count.len as usize).unwrap_or_default())
                .into_owned(),
        });
        rows.collect()
    }
}
