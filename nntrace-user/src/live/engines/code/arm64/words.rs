//! Fields and kinds of arm64 instructions (Arm Architecture Reference Manual, chapter C4, "A64 Instruction Set
//! Encoding").

use crate::live::target::is_indirect_on_arm64;

/// Bit of the stack pointer in a set of registers, in which bits 0 to 30 are those of x0 to x30.
pub(in crate::live::engines) const SP: u32 = 1 << 31;
/// Registers that a call may change: x0 to x18 and x30.
const CHANGED_BY_CALLS: u32 = 0x4007_ffff;

/// Returns the register in the lowest bits: the destination of most instructions.
pub(in crate::live::engines) fn rd(word: u32) -> u32 {
    word & 31
}

/// Returns the first source register.
pub(in crate::live::engines) fn rn(word: u32) -> u32 {
    word >> 5 & 31
}

/// Returns the second source register.
pub(in crate::live::engines) fn rm(word: u32) -> u32 {
    word >> 16 & 31
}

/// Returns the second destination of a load of two registers.
fn rt2(word: u32) -> u32 {
    word >> 10 & 31
}

/// Returns the set of one register, where 31 is the zero register.
fn general(register: u32) -> u32 {
    if register == 31 { 0 } else { 1 << register }
}

/// Returns a field as a signed number.
fn signed(word: u32, lowest: u32, width: u32) -> i64 {
    i64::from((word << (32 - lowest - width)).cast_signed() >> (32 - width))
}

/// Returns the lowest bits of a value as a number.
fn extended(value: i64, bits: u32, is_signed: bool) -> i64 {
    let unused = 64 - bits;
    let value = value << unused;
    if is_signed { value >> unused } else { (value.cast_unsigned() >> unused).cast_signed() }
}

/// Whether an instruction is `ret`.
pub(in crate::live::engines) fn is_return(word: u32) -> bool {
    word & 0xffff_fc1f == 0xd65f_0000
}

/// Whether an instruction is `retaa` or `retab`.
pub(in crate::live::engines) fn is_authenticated_return(word: u32) -> bool {
    word & 0xffff_fbff == 0xd65f_0bff
}

/// Whether an instruction is `bl`, or `blr`, also with pointer authentication.
pub(in crate::live::engines) fn is_call(word: u32) -> bool {
    word & 0xfc00_0000 == 0x9400_0000
        || word & 0xffff_fc1f == 0xd63f_0000
        || word & 0xfeff_f800 == 0xd63f_0800
}

/// Whether the instruction after this one does not follow it: jumps without a condition, and returns.
pub(in crate::live::engines) fn ends_path(word: u32) -> bool {
    word & 0xfc00_0000 == 0x1400_0000
        || is_indirect_on_arm64(word)
        || is_return(word)
        || is_authenticated_return(word)
}

/// Returns the result of `adr` or `adrp` at an address.
pub(in crate::live::engines) fn page_or_place(word: u32, address: u64) -> Option<u64> {
    let distance = signed(word, 5, 19) << 2 | i64::from(word >> 29 & 3);
    match word & 0x9f00_0000 {
        0x1000_0000 => Some(address.wrapping_add_signed(distance)),
        0x9000_0000 => Some((address & !0xfff).wrapping_add_signed(distance << 12)),
        _ => None,
    }
}

/// Returns source and distance of an addition or subtraction of a constant in 64 bits.
pub(in crate::live::engines) fn added_constant(word: u32) -> Option<(u32, i64)> {
    let constant = i64::from(word >> 10 & 0xfff) << if word >> 22 & 1 == 1 { 12 } else { 0 };
    match word & 0xff80_0000 {
        0x9100_0000 => Some((rn(word), constant)),
        0xd100_0000 => Some((rn(word), -constant)),
        _ => None,
    }
}

/// Returns the source of `mov` between registers, in 64 bits.
pub(in crate::live::engines) fn copied(word: u32) -> Option<u32> {
    // `orr` with the zero register
    (word & 0xffe0_ffe0 == 0xaa00_03e0).then(|| rm(word))
}

/// Returns base and offset of a load of 64 bits at a constant offset.
pub(in crate::live::engines) fn load_at_offset(word: u32) -> Option<(u32, u64)> {
    (word & 0xffc0_0000 == 0xf940_0000).then(|| (rn(word), u64::from(word >> 10 & 0xfff) * 8))
}

/// Whether an instruction is this load, with an offset in a register.
fn is_indexed(word: u32, load: u32) -> bool {
    word & 0xffe0_0c00 == load | 0x800
}

/// Load of an entry of a table.
pub(in crate::live::engines) struct IndexedLoad {
    /// Register with the table's address.
    pub base: u32,
    /// Bytes of an entry.
    pub size: u64,
    is_signed: bool,
}

impl IndexedLoad {
    pub(in crate::live::engines) fn read(word: u32) -> Option<Self> {
        // ldrb, ldrh, ldr; ldrsb, ldrsh, ldrsw to 64 bits; ldrsb, ldrsh to 32
        const LOADS: [(u32, u64, bool); 8] = [
            (0x3860_0000, 1, false),
            (0x7860_0000, 2, false),
            (0xb860_0000, 4, false),
            (0x38a0_0000, 1, true),
            (0x78a0_0000, 2, true),
            (0xb8a0_0000, 4, true),
            (0x38e0_0000, 1, true),
            (0x78e0_0000, 2, true),
        ];
        let (_, size, is_signed) = LOADS.into_iter().find(|(load, ..)| is_indexed(word, *load))?;
        Some(Self { base: rn(word), size, is_signed })
    }

    /// Returns the value of an entry's bytes.
    pub(in crate::live::engines) fn value(&self, bytes: &[u8]) -> i64 {
        let value = bytes.iter().rev().fold(0, |value, byte| value << 8 | i64::from(*byte));
        extended(value, 8 * self.size as u32, self.is_signed)
    }
}

/// Sum of two registers in 64 bits. Of the second one, some bits are taken and shifted.
pub(in crate::live::engines) struct Sum {
    pub base: u32,
    pub added: u32,
    bits: u32,
    is_signed: bool,
    shift: u32,
}

impl Sum {
    pub(in crate::live::engines) fn read(word: u32) -> Option<Self> {
        let (base, added) = (rn(word), rm(word));
        match word & 0xffe0_0000 {
            0x8b20_0000 => {
                let (kind, shift) = (word >> 13 & 7, word >> 10 & 7);
                Some(Self { base, added, bits: 8 << (kind & 3), is_signed: kind & 4 != 0, shift })
            }
            0x8b00_0000 => Some(Self { base, added, bits: 64, is_signed: true, shift: word >> 10 & 63 }),
            _ => None,
        }
    }

    /// Returns the second summand for a value of its register.
    pub(in crate::live::engines) fn summand(&self, value: i64) -> i64 {
        extended(value, self.bits, self.is_signed) << self.shift
    }
}

/// Returns the bytes by which an instruction makes the stack grow, if that is a constant.
pub(in crate::live::engines) fn pushed(word: u32) -> Option<i64> {
    if let Some((source, added)) = added_constant(word) {
        return (source == 31 && rd(word) == 31).then_some(-added);
    }
    if rn(word) != 31 {
        return None;
    }
    let is_vector = word >> 26 & 1 == 1;
    match (word & 0x3b80_0000, word & 0x3b20_0400) {
        // `stp` and `ldp` with write-back: the distance counts registers.
        (0x2980_0000 | 0x2880_0000, _) => {
            let size = match (is_vector, word >> 30) {
                (_, 0) => 4,
                (false, 2) | (true, 1) => 8,
                (true, 2) => 16,
                _ => return None,
            };
            Some(-(signed(word, 15, 7) * size))
        }
        // `str` and `ldr` with write-back
        (_, 0x3800_0400) => Some(-signed(word, 12, 9)),
        _ => None,
    }
}

/// Returns the registers that an instruction may write. Where its kind is not known here, they are too many.
pub(in crate::live::engines) fn written(word: u32) -> u32 {
    match word >> 25 & 15 {
        // Data processing with a constant
        0b1000 | 0b1001 => {
            let is_sum = matches!(word & 0x3f80_0000, 0x1100_0000 | 0x1180_0000);
            let is_logical = word & 0x1f80_0000 == 0x1200_0000 && word & 0x6000_0000 != 0x6000_0000;
            if is_sum || is_logical { 1 << rd(word) } else { general(rd(word)) }
        }
        // Jumps and system instructions
        0b1010 | 0b1011 => {
            if is_call(word) {
                CHANGED_BY_CALLS
            } else if is_hint(word) {
                // Some sign an address, in x30 or in x17.
                1 << 30 | 1 << 17
            } else if word & 0xfff0_0000 == 0xd530_0000 || word & 0xfff8_0000 == 0xd528_0000 {
                general(rd(word))
            } else {
                0
            }
        }
        0b0100 | 0b0110 | 0b1100 | 0b1110 => written_by_memory(word),
        // Data processing with registers
        0b0101 | 0b1101 => match word & 0x3fe0_0000 {
            // `ccmp` and `ccmn` have no destination.
            0x3a40_0000 => 0,
            0x0b20_0000 => 1 << rd(word),
            _ => general(rd(word)),
        },
        // Vectors: conversions to numbers in general registers, and copies of elements to these
        0b0111 | 0b1111 => {
            let is_conversion = word & 0x5f20_fc00 == 0x1e20_0000 || word & 0x5f20_0000 == 0x1e00_0000;
            let is_element = matches!(word & 0xbfe0_fc00, 0x0e00_3c00 | 0x0e00_2c00);
            if is_conversion || is_element { general(rd(word)) } else { 0 }
        }
        _ => u32::MAX,
    }
}

/// As [`written`], for loads and stores.
fn written_by_memory(word: u32) -> u32 {
    let is_vector = word >> 26 & 1 == 1;
    let base = 1 << rn(word);
    let loaded = |register: u32| if is_vector { 0 } else { general(register) };
    match word >> 27 & 7 {
        // Pairs
        0b101 => {
            let is_load = word >> 22 & 1 == 1;
            let has_write_back = word >> 23 & 1 == 1;
            let loaded = if is_load { loaded(rd(word)) | loaded(rt2(word)) } else { 0 };
            loaded | if has_write_back { base } else { 0 }
        }
        // Single registers
        0b111 => {
            let is_store = word & 0x00c0_0000 == 0;
            let loaded = if is_store { 0 } else { loaded(rd(word)) };
            match (word >> 24 & 1, word >> 21 & 1, word >> 10 & 3) {
                (0, 0, 1 | 3) => loaded | base,
                (1, ..) | (_, 0, _) | (_, _, 2) => loaded,
                // Atomic operations, and loads with pointer authentication
                _ => general(rd(word)) | general(rm(word)) | base,
            }
        }
        // Literals
        0b011 if word >> 24 & 1 == 0 => loaded(rd(word)),
        _ if is_vector => base,
        // Exclusive ones, copies of memory
        _ => general(rd(word)) | general(rt2(word)) | general(rm(word)) | base,
    }
}

/// Whether an instruction that is not emulated cannot be run at another place, in a single step.
pub(in crate::live::engines) fn is_unsteppable(word: u32) -> bool {
    if word & 0x1c00_0000 == 0x1400_0000 {
        let is_direct = word & 0x7c00_0000 == 0x1400_0000
            || word & 0x7c00_0000 == 0x3400_0000
            || word & 0xfe00_0000 == 0x5400_0000;
        let is_indirect = word & 0xfe00_0000 == 0xd600_0000;
        let is_to_system = word & 0xfff8_f01f == 0xd500_401f || word & 0xfff0_0000 == 0xd510_0000;
        let is_refused_hint = is_hint(word) && !is_steppable_hint(word);
        return is_direct || is_indirect || is_exception(word) || is_to_system || is_refused_hint;
    }
    let is_literal = word & 0x3b00_0000 == 0x1800_0000;
    let is_exclusive = word & 0x3f80_0000 == 0x0800_0000;
    let is_copy_of_memory = word & 0x3b20_0c00 == 0x1900_0400;
    is_literal || is_exclusive || is_copy_of_memory
}

/// Whether an instruction raises an exception, as `svc` and `brk` do.
pub(in crate::live::engines) fn is_exception(word: u32) -> bool {
    word & 0xff00_0000 == 0xd400_0000
}

fn is_hint(word: u32) -> bool {
    word & 0xffff_f01f == 0xd503_201f
}

/// Whether a hint is `nop`, a landing pad, or signs an address or removes a signature.
fn is_steppable_hint(word: u32) -> bool {
    // nop; xpaclri, pacia1716, pacib1716; paciaz, paciasp, pacibz, pacibsp; bti, bti c, bti j, bti jc
    matches!(word >> 5 & 0x7f, 0 | 7 | 8 | 10 | 24..=27 | 32 | 34 | 36 | 38)
}

#[cfg(test)]
mod tests;
