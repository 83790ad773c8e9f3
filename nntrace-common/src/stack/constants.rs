//! Operators that an engine executes before any run, to compute what is constant in a model.

use super::{Label, Layer, Phase, Stack, rules};

impl Stack {
    /// Whether a section that begins now would be a part of what a runtime prepares: engines execute operators there to
    /// compute constants.
    #[must_use]
    #[inline(always)]
    pub fn computes_constants(&self, label: Label) -> bool {
        let link = self.parent_of_next();
        if link == 0 || !label.is_tagged() {
            return false;
        }
        let parent = self.frame(link as usize - 1);
        let (layer, phase) = (label.tag_index() >> 4, label.tag_index() & 15);
        parent.tag >> 4 == Layer::Runtime as u8
            && layer != Layer::Runtime as u8
            && phase == Phase::Execution as u8
            && !rules::may_nest(parent.tag >> 4, parent.phase_number(), layer, phase)
    }
}
