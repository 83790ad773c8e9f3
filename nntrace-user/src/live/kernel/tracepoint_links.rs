//! Raw tracepoint attachments that end before the programs are unloaded.

use aya::programs::raw_trace_point::RawTracePointLinkId;

use super::{error::KernelError, object::Object};

/// Attachments of a feature, by program, in the order in which they were made.
#[derive(Default)]
pub(super) struct Links(Vec<(&'static str, RawTracePointLinkId)>);

impl Links {
    /// Loads a program, if that is not done yet, and attaches it to a raw tracepoint.
    pub(super) fn attach(
        &mut self,
        object: &mut Object,
        program: &'static str,
        point: &str,
    ) -> Result<(), KernelError> {
        object.load_raw(program)?;
        self.0.push((program, object.attach_raw(program, point)?));
        Ok(())
    }

    /// Detaches all programs.
    pub(super) fn detach(&mut self, object: &mut Object) {
        for (program, link) in std::mem::take(&mut self.0) {
            // A link that is already gone needs no detaching.
            let _ = object.raw_tracepoint(program).map(|program| program.detach(link));
        }
    }
}
