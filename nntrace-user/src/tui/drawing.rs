//! Parts of the screen that several views have in common.

pub(super) mod chart;
pub(super) mod device_usage;
mod histogram;
pub(super) mod names;
pub(super) mod rails;
pub(super) mod states;
pub(super) mod text;
pub(super) mod theme;
