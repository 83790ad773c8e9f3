//! Place for the probe at a function's begin.

use super::function::Function;
use super::listing::Step;
use super::machine::{is_refused, step};
use super::{EntryPoint, ShapeError};
use crate::live::engines::bounds::{BoundsError, FunctionBounds};
use crate::live::engines::image::Image;

/// Instructions at a function's begin among which a place for a probe is looked for.
const MOST_SKIPPED: usize = 32;

/// Returns the place for a probe at the begin of the function at an address, also of one whose end is unclear.
///
/// # Errors
/// When no instruction there can be probed.
pub(in crate::live) fn entry_point<'image, 'data>(
    image: &'image Image<'data>,
    bounds: &'image FunctionBounds<'image, 'data>,
    address: u64,
) -> Result<EntryPoint, ShapeError> {
    let function = Function::read(image, bounds, address).ok();
    entry(image, function.as_ref(), address)
}

/// Returns the place for a probe at an address; if the function there is known, at one of its instructions.
pub(super) fn entry(
    image: &Image<'_>,
    function: Option<&Function<'_, '_>>,
    address: u64,
) -> Result<EntryPoint, ShapeError> {
    if let Some(cheap) = function.and_then(|function| cheap_point(image, function, address)) {
        return Ok(cheap);
    }
    if !image.is_code(address) {
        return Err(BoundsError::Unknown(address).into());
    }
    if is_refused(image, address) {
        return Err(ShapeError::Refused(address));
    }
    let is_emulated = matches!(step(image, address), Step::Emulated);
    Ok(EntryPoint { address, sp_offset: 0, is_emulated })
}

/// Returns the first place where a probe is cheap among those that each call passes once, before it changes its arguments.
fn cheap_point(image: &Image<'_>, function: &Function<'_, '_>, start: u64) -> Option<EntryPoint> {
    let end = function.targets().filter(|&target| target > start).min().unwrap_or(function.end());
    let (mut address, mut pushed) = (start, 0_i64);
    for _ in 0..MOST_SKIPPED {
        match step(image, address) {
            _ if address >= end => return None,
            Step::Emulated => {
                let sp_offset = u64::try_from(pushed).ok()?;
                return Some(EntryPoint { address, sp_offset, is_emulated: true });
            }
            Step::Skippable { length, pushed: more } => {
                address = address.checked_add(length)?;
                pushed = pushed.checked_add(more)?;
            }
            Step::Other => return None,
        }
    }
    None
}
