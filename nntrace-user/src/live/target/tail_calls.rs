//! Jumps of a function to places outside of it: a mark function that ends by a jump to another one (a tail call)
//! leaves no frame, and at the entry of that one, the jump cannot be distinguished from another call of the same
//! place in the program.
//!
//! Instructions are not decoded one by one: every place that may be a jump is taken for one, as a jump that does not
//! exist does little harm.

/// Jumps out of a function.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Jumps {
    /// Target addresses.
    pub targets: Vec<u64>,
    /// Target addresses that this many bytes resemble that only known places among them mean something.
    pub doubtful: Vec<u64>,
    /// Whether some are indirect, through a register or memory.
    pub is_indirect: bool,
}

impl Jumps {
    /// Finds the jumps in the code of a whole function at this address.
    pub(super) fn of(code: &[u8], address: u64) -> Self {
        if cfg!(target_arch = "aarch64") {
            Self::on_arm64(code, address)
        } else {
            Self::on_x86_64(code, address)
        }
    }

    fn on_x86_64(code: &[u8], address: u64) -> Self {
        let mut jumps = Self::default();
        let end = address.wrapping_add(code.len() as u64);
        let is_outside = |target: u64| !(address..end).contains(&target);
        for at in 0..code.len() {
            let next = |length: u64| address.wrapping_add(at as u64).wrapping_add(length);
            let far = |distance: [u8; 4], length| {
                next(length).wrapping_add_signed(i64::from(i32::from_le_bytes(distance)))
            };
            match code[at..] {
                [0xe9, a, b, c, d, ..] => jumps.targets.push(far([a, b, c, d], 5)),
                [0x0f, 0x80..=0x8f, a, b, c, d, ..] => jumps.targets.push(far([a, b, c, d], 6)),
                [0xeb | 0x70..=0x7f, near, ..] => {
                    jumps.doubtful.push(next(2).wrapping_add_signed(i64::from(near.cast_signed())));
                }
                // `jmp` through a register or memory.
                [0xff, operand, ..] if operand >> 3 & 7 == 4 => jumps.is_indirect = true,
                _ => {}
            }
        }
        jumps.targets.retain(|&target| is_outside(target));
        jumps.doubtful.retain(|&target| is_outside(target));
        jumps
    }

    fn on_arm64(code: &[u8], address: u64) -> Self {
        let mut jumps = Self::default();
        let end = address.wrapping_add(code.len() as u64);
        let (words, _) = code.as_chunks::<4>();
        for (number, word) in (0..).zip(words) {
            let word = u32::from_le_bytes(*word);
            match arm64_target(word, address.wrapping_add(4 * number)) {
                Some(target) => jumps.targets.push(target),
                None => jumps.is_indirect |= is_indirect_on_arm64(word),
            }
        }
        jumps.targets.retain(|&target| !(address..end).contains(&target));
        jumps
    }
}

/// Returns the target of a direct jump of arm64 at an address; `None` for other instructions, calls among them.
pub(in crate::live) fn arm64_target(word: u32, address: u64) -> Option<u64> {
    // Offsets count words; they take the bits from `above` bits below the top down to bit `low`.
    let target = |above: u32, low: u32| {
        let words = i64::from((word << above).cast_signed() >> (above + low));
        address.wrapping_add_signed(4 * words)
    };
    match word {
        // b
        _ if word & 0xfc00_0000 == 0x1400_0000 => Some(target(6, 0)),
        // b.cond, cbz and cbnz, tbz and tbnz
        _ if word & 0xff00_0000 == 0x5400_0000 || word & 0x7e00_0000 == 0x3400_0000 => Some(target(8, 5)),
        _ if word & 0x7e00_0000 == 0x3600_0000 => Some(target(13, 5)),
        _ => None,
    }
}

/// Whether an instruction of arm64 is a jump through a register, also with pointer authentication.
pub(in crate::live) fn is_indirect_on_arm64(word: u32) -> bool {
    word & 0xfeff_f800 == 0xd61f_0800 || word & 0xffff_fc1f == 0xd61f_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_of_x86_64() {
        let of = |code: &[u8]| Jumps::on_x86_64(code, 0x1000);
        assert_eq!(of(&[0xe9, 0xfb, 0xff, 0xff, 0xff]), Jumps::default(), "to itself");
        assert_eq!(of(&[0xe9, 0x10, 0, 0, 0]).targets, [0x1015]);
        assert_eq!(of(&[0x90, 0x0f, 0x84, 0xf0, 0xff, 0xff, 0xff]).targets, [0xff7]);
        assert_eq!(of(&[0xeb, 0x80]).doubtful, [0xf82]);
        assert!(of(&[0xff, 0x25, 0, 0, 0, 0]).is_indirect && of(&[0x3e, 0xff, 0xe0]).is_indirect);
        // Calls and returns are not jumps.
        assert_eq!(of(&[0xe8, 0, 1, 0, 0, 0xff, 0xd0, 0xff, 0x15, 0, 1, 0, 0, 0xc3]), Jumps::default());
        assert_eq!(of(&[]), Jumps::default());
    }

    #[test]
    fn jumps_of_arm64() {
        let of = |words: &[u32]| {
            let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            Jumps::on_arm64(&code, 0x1000)
        };
        let nop = 0xd503_201f;
        assert_eq!(of(&[nop, 0x1400_0004]).targets, [0x1014]);
        assert_eq!(of(&[nop, 0x17ff_fffe]).targets, [0xffc]);
        assert_eq!(of(&[nop, 0x17ff_ffff]), Jumps::default(), "to its own start");
        assert_eq!(of(&[0x5400_0080, 0xb4ff_ffc0]).targets, [0x1010, 0xffc]);
        assert_eq!(of(&[0x3600_0080]).targets, [0x1010]);
        assert!(of(&[0xd61f_0200]).is_indirect && of(&[0xd71f_0a11]).is_indirect);
        // bl, blr and ret are not jumps.
        assert_eq!(of(&[0x9400_0010, 0xd63f_0200, 0xd65f_03c0]), Jumps::default());
    }
}
