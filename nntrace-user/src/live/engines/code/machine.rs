//! Choice among the two architectures.

use super::listing::{Listing, Step};
use super::{LONGEST, ShapeError, arm64, x86_64};
use crate::live::engines::bounds::{Bounds, BoundsError};
use crate::live::engines::image::{Image, Machine};

/// Lists the instructions of a function, or of a part of one.
pub(super) fn list(image: &Image<'_>, bounds: Bounds) -> Result<Listing, ShapeError> {
    let Bounds { start, end, .. } = bounds;
    let length = end.saturating_sub(start);
    if length > LONGEST {
        return Err(ShapeError::Long { start, length });
    }
    let code = image.bytes(start, length).ok_or(BoundsError::Unknown(start))?;
    match image.machine() {
        Machine::X86_64 => x86_64::list(image, bounds, code),
        Machine::Arm64 => Ok(arm64::list(image, bounds, code)),
    }
}

/// Returns the effect of the instruction at an address.
pub(super) fn step(image: &Image<'_>, address: u64) -> Step {
    let Some(code) = image.rest(address) else { return Step::Other };
    match image.machine() {
        Machine::X86_64 => x86_64::step(code, address),
        Machine::Arm64 => arm64::step(code),
    }
}

/// Whether kernels refuse a probe on the instruction at an address.
pub(super) fn is_refused(image: &Image<'_>, address: u64) -> bool {
    let code = image.rest(address).unwrap_or_default();
    match image.machine() {
        Machine::X86_64 => x86_64::is_refused(code),
        Machine::Arm64 => arm64::is_refused(code),
    }
}

/// Whether a jump leads to an instruction that the linker has moved, and back.
pub(super) fn is_veneer(image: &Image<'_>, jump: u64, target: u64) -> bool {
    image.machine() == Machine::Arm64 && arm64::is_veneer(image, jump, target)
}
