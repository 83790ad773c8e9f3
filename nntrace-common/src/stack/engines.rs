//! Functions of engines that are classified by what is around them: operators that compute constants, and engines that other
//! engines run.

use super::{Label, Layer, Phase, Stack, Tag, rules};

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
            && !rules::phase_may_nest(parent.phase_number(), phase)
    }

    /// Returns the layer and phase of a function of an engine that begins now. An engine that runs inside of the driver's
    /// layer, as OpenVINO by a provider of ONNX Runtime, is a part of it: only the outer engine is the runtime.
    #[must_use]
    #[inline(always)]
    pub fn label_of_engine(&self, label: Label) -> Label {
        let link = self.parent_of_next();
        if link == 0 || !label.is_of_runtime() {
            return label;
        }
        let driver = Layer::Driver as u8;
        if self.frame(link as usize - 1).tag >> 4 != driver {
            return label;
        }
        Label::tagged(Tag::from_trusted_index(driver << 4 | label.tag_index() & 15))
    }
}
