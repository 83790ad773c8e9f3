//! Probes on functions of engines: the sections that they make, as user space describes them to the kernel programs.
//!
//! A probe has a number, which the kernel hands to the programs as its cookie (Linux 5.15).

use crate::mark::{Label, Prefix, Text};

/// Probes of all engines at most.
pub const MAX_PROBES: usize = 4096;
/// Entries of maps whose names are compared, and one for all others.
pub const MAX_ENTRIES: usize = 256;
/// Offsets on the way from an argument to a name at most.
pub const MAX_STEPS: usize = 4;

/// Effect of a probe at the begin of its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Action {
    /// The function is a section.
    Section = 0,
    /// The function begins a section, which another function ends.
    BracketBegin = 1,
    /// The function ends the section that another function began.
    BracketEnd = 2,
    /// The function starts an asynchronous execution ([`crate::async_runs`]).
    AsyncBegin = 3,
    /// The function waits for the end of the execution.
    AsyncEnd = 4,
}

/// Argument number that stands for the arguments in memory: the address of the first one. Only x86-64 passes structures
/// there; arm64 passes their address in a register.
///
/// Source: System V ABI for x86-64, 3.2.3; AAPCS64, 6.8.2.
pub const IN_MEMORY: u8 = 6;

/// Form of a name in the memory of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum NameForm {
    /// No name: the probe's own stands for it.
    #[default]
    None = 0,
    /// Pointer to text that ends with a NUL; also the first word of a `std::string` of libstdc++.
    CString = 1,
    /// The text itself.
    Inline = 2,
    /// `std::string` of libc++.
    LibcxxString = 3,
    /// 32-bit number, which has a name in a table.
    Enum = 4,
    /// 32-bit number of tokens, or a `std::vector` of as many elements; see [`tokens`](crate::tokens).
    Tokens = 5,
}

/// Way from an argument of a function to a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct NameRecipe {
    /// Number of the argument, from 0; [`IN_MEMORY`] for one that is not in a register.
    pub argument: u8,
    /// [`NameForm`] at the end of the way.
    pub form: u8,
    /// Number of offsets in use.
    pub steps: u8,
    /// Size of an element, bytes, where the form is that of a vector; else 0.
    pub element: u8,
    /// Offsets, bytes: a pointer is read at each but the last.
    pub offsets: [u16; MAX_STEPS],
    /// Bytes from a number to the pointer to the text that stands for it where it has no name; 0 without such a text.
    pub other: i16,
    /// Always 0.
    pub reserved: u16,
}

/// Probe on a function of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct EngineProbe {
    /// Hash of the name that stands where there is no other.
    pub name: u64,
    /// Layer and phase.
    pub label: Label,
    /// [`Prefix`] of the tag.
    pub prefix: Prefix,
    /// [`Action`] of the probe.
    pub action: Action,
    /// 1 when the function ends without a probe, always or on some of its ways, as by jumps to others; else 0.
    pub ends_unseen: u8,
    /// Bytes that the function has pushed on the stack before the probed instruction.
    pub pushed: u32,
    /// Way to the name of the section.
    pub recipe: NameRecipe,
    /// For the end of a bracket, the number of the probe that begins it; else 0.
    pub begun_by: u32,
    /// Number of the argument by which begin and end of an asynchronous execution pair; else 0.
    pub object: u32,
    /// Number of the map's entry whose names are [compared](ObjectNames); 0 for none.
    pub entry: u32,
}

/// Comparison of the names that one entry of a map leads to: text at an offset in an object is its own name only if it
/// changes with the object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ObjectNames {
    /// Address of the last object.
    object: u64,
    /// Hash of its name.
    name: u64,
    /// Times that another object came with the same name.
    repeated: u32,
    /// 1 once two objects had different names; nothing is compared from then on.
    differ: u32,
}

impl ObjectNames {
    /// Other objects with the same name from which on it is not their own.
    pub const MOST_REPEATED: u32 = 100;

    /// Takes the name of an object; returns whether it may be the object's own.
    #[must_use]
    #[inline(always)]
    pub fn take(&mut self, object: u64, name: u64) -> bool {
        if self.differ != 0 {
            return true;
        }
        if object != self.object {
            if self.object != 0 {
                if name == self.name {
                    self.repeated = self.repeated.saturating_add(1);
                } else {
                    self.differ = 1;
                    return true;
                }
            }
            self.object = object;
            self.name = name;
        }
        !self.are_constant()
    }

    /// Whether all objects had the same name, and many there were.
    #[must_use]
    #[inline(always)]
    pub const fn are_constant(&self) -> bool {
        self.differ == 0 && self.repeated >= Self::MOST_REPEATED
    }
}

/// Key of the names of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct EnumKey {
    /// Number of the probe.
    pub probe: u32,
    /// Number with a name.
    pub value: u32,
}

/// Whether text that was found where a name is expected may be one: not empty, without control characters, and UTF-8, of
/// which the last character may be cut off. Hardly a pointer is.
#[must_use]
#[inline(always)]
pub fn is_plausible_name<T: Text + ?Sized>(text: &T) -> bool {
    let mut at = 0;
    // Top bits of the bytes of the word that characters before it go on in.
    let mut owed = 0;
    // Two bounds, as in [`crate::mark::hashed_name`].
    for _ in 0..crate::mark::MARK_BYTES / 8 {
        if at > text.zeros_at() {
            break;
        }
        let word = text.word(at);
        let zero = word.wrapping_sub(LOW) & !word & HIGH;
        // The lowest zero byte is found exactly; those above it do not matter.
        let below = zero & zero.wrapping_neg();
        let seen = if zero == 0 { u64::MAX } else { below.wrapping_sub(1) >> 7 };
        // A byte below 0x20 has none of the three upper bits.
        let printable = (word | word << 1 | word << 2) & HIGH;
        let deleted = (word ^ DELETE).wrapping_sub(LOW) & !(word ^ DELETE) & HIGH;
        let lead = word & word << 1 & HIGH;
        // First bytes of three at least, and of four.
        let (lead_of_three, lead_of_four) = (lead & word << 2, lead & word << 2 & word << 3);
        let continuation = word & !(word << 1) & HIGH;
        let stray = continuation ^ (lead << 8 | lead_of_three << 16 | lead_of_four << 24 | owed);
        if (!printable & HIGH | deleted | stray) & seen != 0 || at == 0 && seen == 0 {
            return false;
        }
        owed = lead >> 56 | lead_of_three >> 48 | lead_of_four >> 40;
        if zero != 0 {
            return true;
        }
        at += 8;
    }
    true
}

/// The control character that is not below a blank, in every byte.
const DELETE: u64 = LOW * 0x7f;
/// One in every byte.
const LOW: u64 = 0x0101_0101_0101_0101;
/// Top bit of every byte.
const HIGH: u64 = LOW << 7;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_layers_are_plausible_and_pointers_are_not() {
        for name in ["conv1", "a", "r1_nchwc/Relu:0 (fused)", "ügrün", "12345678", "123456789abcdef0"] {
            assert!(is_plausible_name(name.as_bytes()), "{name}");
        }
        for bytes in
            [&b""[..], b"\x01", b"conv\x02", b"12345678\x7f\x1f", &0x7fff_1234_5600_u64.to_le_bytes()]
        {
            assert!(!is_plausible_name(bytes), "{bytes:x?}");
        }
        // Pointers to the heap and to libraries without a byte below a blank.
        for pointer in [0x5581_a7d4_2370_u64, 0x7f6d_647b_d8e0, 0x5555_9c9c_3770, 0x5641_6de8_3770] {
            assert!(!is_plausible_name(&pointer.to_le_bytes()[..]), "{pointer:x}");
        }
    }

    #[test]
    fn names_that_do_not_change_with_the_object_are_not_its_own() {
        let mut names = ObjectNames::default();
        let last = u64::from(ObjectNames::MOST_REPEATED);
        assert!((0..last).all(|object| names.take(0x1000 + object, 7)));
        assert!(!names.take(0x2000, 7) && names.are_constant());
        assert!(names.take(0x3000, 8) && !names.are_constant(), "they do change");
        assert!(names.take(0x4000, 8), "objects may share a name");
        let mut one = ObjectNames::default();
        assert!((0..1000).all(|_| one.take(0x1000, 7)), "one object has one name");
    }

    proptest! {
        #[test]
        fn plausible_is_utf8_without_control_characters(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), 0x1e_u8..0x23], 0..40),
            text in "[ -~äé€漢😀]{0,16}",
            cut in 0..3_usize,
        ) {
            for bytes in [&bytes[..], text.as_bytes(), &text.as_bytes()[..text.len().saturating_sub(cut)]] {
                let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
                let is_printable = bytes[..end].iter().all(|&byte| byte >= 0x20 && byte != 0x7f);
                // Too long forms, surrogates and what is beyond the last character have the right bytes, in order.
                let is_in_order = |mut bytes: &[u8]| {
                    while let [first, rest @ ..] = bytes {
                        let more = match first {
                            0..0x80 => 0,
                            0x80..0xc0 => return false,
                            0xc0..0xe0 => 1,
                            0xe0..0xf0 => 2,
                            0xf0.. => 3,
                        };
                        let (all, rest) = rest.split_at(rest.len().min(more));
                        if !all.iter().all(|byte| matches!(byte, 0x80..0xc0)) {
                            return false;
                        }
                        bytes = rest;
                    }
                    true
                };
                let expected = end > 0 && is_printable && is_in_order(&bytes[..end]);
                prop_assert_eq!(is_plausible_name(bytes), expected, "{:x?}", bytes);
            }
        }
    }
}
