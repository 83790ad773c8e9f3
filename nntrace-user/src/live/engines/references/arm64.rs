//! References in the code of arm64: a page and a place in it by two instructions, a near place by one, and jumps.

use std::ops::Range;

use super::{Places, Reference, has, hull};
use crate::live::{
    engines::{bounds::Bounds, code::words, image::Image},
    target::arm64_target,
};

/// Bits of an address within a page of `adrp`.
const WITHIN_PAGE: u64 = 0xfff;
/// Instructions from the one with the page to the one with the place in it at most: compilers move them apart.
const APART: usize = 64;

/// Calls a function for each instruction that may be a reference: those with the page of a place, or a jump to one.
pub(super) fn candidates(
    code: &[u8],
    start: u64,
    wanted: &[Range<u64>],
    kind: Reference,
    found: &mut impl FnMut(u64),
) {
    let hull = hull(wanted);
    let pages = hull.start & !WITHIN_PAGE..hull.end;
    for (address, word) in (start..).step_by(4).zip(code.as_chunks::<4>().0) {
        let word = u32::from_le_bytes(*word);
        let is_one = match kind {
            Reference::Data => {
                words::page_or_place(word, address).is_some_and(|place| pages.contains(&place))
            }
            Reference::Jump => arm64_target(word, address).is_some_and(|target| hull.contains(&target)),
        };
        if is_one {
            found(address);
        }
    }
}

/// Counts the instructions that call a function, or jump to it.
pub(super) fn count_callers(code: &[u8], start: u64, function: u64, places: &mut Places) {
    /// Distinguishes `bl` from `b`.
    const LINK: u32 = 1 << 31;
    for (address, word) in (start..).step_by(4).zip(code.as_chunks::<4>().0) {
        let word = u32::from_le_bytes(*word);
        let is_unconditional = word & 0x7c00_0000 == 0x1400_0000;
        let jump = if is_unconditional { word & !LINK } else { word };
        if arm64_target(jump, address) == Some(function) {
            if is_unconditional {
                places.others += 1;
            } else {
                places.conditional += 1;
            }
        }
    }
}

/// Whether the instruction at an address of a function refers to one of these places, if need be together with a later
/// one.
pub(super) fn refers(
    image: &Image<'_>,
    function: &Bounds,
    address: u64,
    wanted: &[Range<u64>],
    kind: Reference,
) -> bool {
    let Some(code) = image.bytes(address, function.end.saturating_sub(address)) else { return false };
    let mut words = code.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
    let Some(first) = words.next() else { return false };
    if kind == Reference::Jump {
        return arm64_target(first, address).is_some_and(|target| has(wanted, target));
    }
    let Some(place) = words::page_or_place(first, address) else { return false };
    if has(wanted, place) {
        return true;
    }
    let page = words::rd(first);
    for word in words.take(APART) {
        let is_of_page =
            |(from, added): (u32, i64)| from == page && has(wanted, place.wrapping_add_signed(added));
        if words::added_constant(word).is_some_and(is_of_page) {
            return true;
        }
        if words::written(word) >> page & 1 == 1 {
            return false;
        }
    }
    false
}
