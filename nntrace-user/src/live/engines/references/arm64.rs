//! References in the code of arm64: a page and a place in it by two instructions, a near place by one, and jumps.

use std::ops::Range;

use super::{Reference, has, hull};
use crate::live::{
    engines::{code::words, image::Image},
    target::arm64_target,
};

/// Bits of an address within a page of `adrp`.
const WITHIN_PAGE: u64 = 0xfff;
/// Instructions from the one with the page to the one with the place in it at most: compilers move them apart.
const APART: usize = 64;

/// Calls a function for each instruction that is a reference to one of these places, if it is in a function.
pub(super) fn candidates(
    image: &Image<'_>,
    code: &[u8],
    range: &Range<u64>,
    wanted: &[Range<u64>],
    kind: Reference,
    found: &mut impl FnMut(u64),
) {
    let hull = hull(wanted);
    let pages = hull.start & !WITHIN_PAGE..hull.end;
    for (address, word) in (range.start..).step_by(4).zip(code.as_chunks::<4>().0) {
        let word = u32::from_le_bytes(*word);
        let place = match kind {
            Reference::Data => words::page_or_place(word, address).filter(|place| pages.contains(place)),
            Reference::Jump => arm64_target(word, address).filter(|target| hull.contains(target)),
        };
        if place.is_some() && refers(image, range.end, address, wanted, kind) {
            found(address);
        }
    }
}

/// Calls a function with the target of each direct call or jump, and whether it is a conditional one.
pub(super) fn for_each_jump(code: &[u8], start: u64, found: &mut impl FnMut(u64, bool)) {
    /// Distinguishes `bl` from `b`.
    const LINK: u32 = 1 << 31;
    for (address, word) in (start..).step_by(4).zip(code.as_chunks::<4>().0) {
        let word = u32::from_le_bytes(*word);
        let is_unconditional = word & 0x7c00_0000 == 0x1400_0000;
        let jump = if is_unconditional { word & !LINK } else { word };
        if let Some(target) = arm64_target(jump, address) {
            found(target, !is_unconditional);
        }
    }
}

/// Whether the instruction at an address, in code that ends at `end`, refers to one of these places, if need be together
/// with later ones.
pub(super) fn refers(
    image: &Image<'_>,
    end: u64,
    address: u64,
    wanted: &[Range<u64>],
    kind: Reference,
) -> bool {
    /// Distinguishes `adrp` from `adr`.
    const PAGE: u32 = 1 << 31;
    let length = end.saturating_sub(address).min(4 * (1 + APART as u64));
    let Some(code) = image.bytes(address, length) else { return false };
    let mut words = code.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
    let Some(first) = words.next() else { return false };
    if kind == Reference::Jump {
        return arm64_target(first, address).is_some_and(|target| has(wanted, target));
    }
    let Some(mut place) = words::page_or_place(first, address) else { return false };
    if first & PAGE == 0 {
        return has(wanted, place);
    }
    let register = words::rd(first);
    for word in words {
        let sum = words::added_constant(word).filter(|(from, _)| *from == register);
        let sum = sum.map(|(_, added)| place.wrapping_add_signed(added));
        if sum.is_some_and(|sum| has(wanted, sum)) {
            return true;
        }
        match sum {
            Some(sum) if words::rd(word) == register => place = sum,
            _ if words::written(word) >> register & 1 == 1 => return false,
            _ => {}
        }
    }
    false
}
