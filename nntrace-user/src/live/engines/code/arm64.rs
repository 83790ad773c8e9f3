//! Instructions of arm64, which have four bytes each.

pub(in crate::live::engines) mod words;

use super::listing::{Indirection, Jump, Listing, Step};
use crate::live::engines::bounds::Bounds;
use crate::live::engines::image::Image;
use crate::live::target::{arm64_target, is_emulated_on_arm64, is_indirect_on_arm64};

/// Bytes of an instruction.
const LENGTH: u64 = 4;
/// Registers of the arguments, and of the place for a result in memory: x0 to x8.
const ARGUMENTS: u32 = 0x1ff;
/// Copies and sums between the origin of a value and its use at most.
const MOST_COPIES: usize = 8;

/// Code whose indirect jumps are examined.
struct Code<'code, 'data> {
    image: &'code Image<'data>,
    words: &'code [[u8; 4]],
    listing: &'code Listing,
}

/// Lists the instructions of a function, or of a part of one.
pub(super) fn list(image: &Image<'_>, bounds: Bounds, bytes: &[u8]) -> Listing {
    let mut listing = Listing::new(bounds, LENGTH);
    let (words, _) = bytes.as_chunks();
    let (mut jumps, mut indirect) = (Vec::new(), Vec::new());
    for (address, word) in (bounds.start..).step_by(LENGTH as usize).zip(words) {
        let word = u32::from_le_bytes(*word);
        listing.add_start(address);
        if words::ends_path(word) {
            listing.stops.push(address);
        }
        if let Some(target) = arm64_target(word, address) {
            jumps.push(Jump { address, target });
        } else if is_indirect_on_arm64(word) {
            indirect.push((address, words::rn(word)));
        } else if words::is_return(word) {
            listing.returns.push(address);
        } else if words::is_authenticated_return(word) {
            listing.refused_returns.push(address);
        }
    }
    listing.add_jumps(jumps, indirect, |listing, address, register| {
        Code { image, words, listing }.indirection(address, register)
    })
}

impl Code<'_, '_> {
    /// Recognizes the usual forms of indirect jumps: a table of distances, in 1, 2 or 4 bytes each, and a variable.
    fn indirection(&self, jump: u64, register: u32) -> Indirection {
        match self.origins(jump, register) {
            Some(origins) => Indirection::of(origins.into_iter().map(|origin| self.origin(origin))),
            None => Indirection::Unknown,
        }
    }

    /// Examines the instruction that sets the register of a jump.
    fn origin(&self, origin: u64) -> Indirection {
        let sum = self.at(origin).and_then(words::Sum::read);
        sum.map_or(Indirection::Pointer, |sum| self.sum(origin, &sum).unwrap_or(Indirection::Unknown))
    }

    /// Examines the sum of a place in the code and a distance from a table.
    fn sum(&self, at: u64, sum: &words::Sum) -> Option<Indirection> {
        let load = *self.origins(at, sum.added)?.first()?;
        let entry = words::IndexedLoad::read(self.at(load)?)?;
        let place = self.constant(at, sum.base)?;
        let table = self.constant(load, entry.base)?;
        let target = |number: u64| {
            let bytes = self.image.bytes(table.checked_add(entry.size * number)?, entry.size)?;
            Some(place.wrapping_add_signed(sum.summand(entry.value(bytes))))
        };
        Some(self.listing.targets_in_table((0..).map_while(target)))
    }

    /// Returns the constant that a register holds where an instruction uses it.
    fn constant(&self, user: u64, register: u32) -> Option<u64> {
        let (mut user, mut register, mut sum) = (user, register, 0_i64);
        for _ in 0..MOST_COPIES {
            // Where several set it, all of them compute the same.
            user = *self.origins(user, register)?.first()?;
            let word = self.at(user)?;
            if let Some(value) = words::page_or_place(word, user) {
                return Some(value.wrapping_add_signed(sum));
            }
            let (from, added) = words::added_constant(word)?;
            (register, sum) = (from, sum.wrapping_add(added));
        }
        None
    }

    /// Returns the instructions that set a register before one uses it. Copies are followed.
    fn origins(&self, user: u64, register: u32) -> Option<Vec<u64>> {
        let (mut user, mut register) = (user, register);
        for _ in 0..MOST_COPIES {
            let sets =
                |address| self.at(address).is_none_or(|word| words::written(word) >> register & 1 == 1);
            let goes_on = |address| self.at(address).is_some_and(|word| !words::ends_path(word));
            let origins = self.listing.origins(user, sets, goes_on)?;
            match (&origins[..], origins.first().and_then(|&origin| words::copied(self.at(origin)?))) {
                ([copy], Some(from)) => (user, register) = (*copy, from),
                _ => return Some(origins),
            }
        }
        None
    }

    fn at(&self, address: u64) -> Option<u32> {
        let number = address.checked_sub(self.listing.bounds.start)? / LENGTH;
        Some(u32::from_le_bytes(*self.words.get(usize::try_from(number).ok()?)?))
    }
}

/// Whether a jump leads to one instruction that the linker has moved, after which a jump leads back: linkers avoid an
/// erratum of Cortex-A53 so.
pub(super) fn is_veneer(image: &Image<'_>, jump: u64, target: u64) -> bool {
    let back = image.bytes(target, 2 * LENGTH).and_then(<[u8]>::last_chunk);
    let back = back.and_then(|word| arm64_target(u32::from_le_bytes(*word), target.wrapping_add(LENGTH)));
    back.is_some_and(|back| back == jump.wrapping_add(LENGTH))
}

/// Returns the effect of the instruction that code begins with.
pub(super) fn step(code: &[u8]) -> Step {
    let Some(word) = code.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)) else { return Step::Other };
    if is_emulated_on_arm64(word) {
        return Step::Emulated;
    }
    let written = words::written(word);
    if written & ARGUMENTS != 0 || words::is_exception(word) {
        return Step::Other;
    }
    let pushed = if written & words::SP == 0 { Some(0) } else { words::pushed(word) };
    pushed.map_or(Step::Other, |pushed| Step::Skippable { length: LENGTH, pushed })
}

/// Whether kernels refuse a probe on the instruction that code begins with (Linux,
/// `arch/arm64/kernel/probes/decode-insn.c`), for all releases since 5.10.
pub(super) fn is_refused(code: &[u8]) -> bool {
    let Some(word) = code.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)) else { return true };
    !is_emulated_on_arm64(word) && words::is_unsteppable(word)
}
