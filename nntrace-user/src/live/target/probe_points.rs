//! Places where a function can be probed, and the instructions that kernels probe cheaply.
//!
//! The cost of a probe depends on the instruction that it is on. Kernels run most of them by a single step, which
//! takes ten times as long as emulating one, and they emulate few: on x86-64 `nop` of one byte, `push`, direct calls
//! and jumps (Linux, `arch/x86/kernel/uprobes.c`), on arm64 jumps, calls, `ret`, `adr` and `adrp`, from Linux 6.13 on
//! `nop` (`arch/arm64/kernel/probes/decode-insn.c`). Newer x86-64 kernels replace a nop of five or of ten bytes by a call,
//! which is cheaper still, and on some of them kills forked children.

use serde::{Deserialize, Serialize};

/// Size of a page, within which an instruction has to lie to be replaced.
pub(in crate::live) const PAGE: u64 = 4096;
/// Bytes of code that [`ProbePoints::of`] examines: a landing pad, some nops, and the instruction after them.
pub(super) const LOOKED_AT: u64 = 48;

/// Landing pads for indirect calls: `endbr64`, `bti c`.
const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
const BTI_C: &[u8] = &[0x5f, 0x24, 0x03, 0xd5];
/// Instructions of arm64.
const NOP: &[u8] = &[0x1f, 0x20, 0x03, 0xd5];

/// Nop that some kernels probe in a special way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nop {
    /// Offset in the file.
    pub offset: u64,
    /// Length in bytes: five or ten on x86-64, four on arm64.
    pub length: u8,
}

/// Places where a function can be probed before it has done anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbePoints {
    /// Nop at its begin, after its landing pad.
    pub nop: Option<Nop>,
    /// Offset in the file of the instruction that no kernel replaces.
    pub plain: u64,
    /// Whether all kernels emulate that instruction.
    pub is_emulated: bool,
}

impl ProbePoints {
    /// Finds the probe points of a function whose code, up to [`LOOKED_AT`] bytes of it, is at this offset of its
    /// file.
    pub(super) fn of(code: &[u8], offset: u64) -> Self {
        if cfg!(target_arch = "aarch64") {
            Self::on_arm64(code, offset)
        } else {
            Self::on_x86_64(code, offset)
        }
    }

    fn on_x86_64(code: &[u8], offset: u64) -> Self {
        let pad = if code.starts_with(ENDBR64) { ENDBR64.len() } else { 0 };
        let nop_at = |at: usize| {
            let length = nop_length(code.get(at..)?);
            let from = offset + at as u64;
            let fits = from % PAGE + length as u64 <= PAGE;
            (matches!(length, 5 | 10) && fits).then_some(Nop { offset: from, length: length as u8 })
        };
        // If several nops follow each other, each of them may be replaced.
        let mut behind = pad;
        while let Some(nop) = nop_at(behind) {
            behind += usize::from(nop.length);
        }
        let is_emulated = code.get(behind..).is_some_and(is_emulated_on_x86_64);
        // A landing pad is never replaced, and never the target of a jump back. Otherwise the instruction after the
        // nop is used, whatever it is.
        let plain = if !is_emulated && pad > 0 { 0 } else { behind };
        Self { nop: nop_at(pad), plain: offset + plain as u64, is_emulated }
    }

    fn on_arm64(code: &[u8], offset: u64) -> Self {
        let pad = if code.starts_with(BTI_C) { BTI_C.len() } else { 0 };
        let first = offset + pad as u64;
        let words = code.get(pad..).unwrap_or_default();
        match words.strip_prefix(NOP) {
            // No kernel replaces it: as good a place as any, but a return or a jump right after it is better.
            Some(next) => {
                let is_emulated = begins_emulated(next);
                let plain = if is_emulated { first + NOP.len() as u64 } else { first };
                Self { nop: Some(Nop { offset: first, length: NOP.len() as u8 }), plain, is_emulated }
            }
            None => Self { nop: None, plain: offset, is_emulated: pad == 0 && begins_emulated(words) },
        }
    }
}

/// Returns the length of the nop that x86-64 code begins with, in any of its forms: prefixes and `90`, or `0f 1f`
/// with an operand; else 0.
fn nop_length(code: &[u8]) -> usize {
    let is_prefix = |byte: &u8| {
        matches!(byte, 0x66 | 0x67 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65 | 0xf2 | 0xf3 | 0x40..=0x4f)
    };
    let prefixes = code.iter().take_while(|byte| is_prefix(byte)).count();
    // With these prefixes it is `pause`, or exchanges two registers.
    let is_other = |byte: &u8| matches!(byte, 0xf3 | 0x41 | 0x43 | 0x45 | 0x47 | 0x49 | 0x4b | 0x4d | 0x4f);
    match code[prefixes..] {
        [0x90, ..] if code[..prefixes].iter().any(is_other) => 0,
        [0x90, ..] => prefixes + 1,
        [0x0f, 0x1f, operand, ref rest @ ..] => {
            let (mode, register) = (operand >> 6, operand & 7);
            let has_scale = mode != 3 && register == 4;
            let scale_base = if has_scale { rest.first().map_or(0, |scale| scale & 7) } else { 0 };
            let displacement = match mode {
                1 => 1,
                2 => 4,
                0 if register == 5 || has_scale && scale_base == 5 => 4,
                _ => 0,
            };
            prefixes + 3 + usize::from(has_scale) + displacement
        }
        _ => 0,
    }
}

/// Whether all x86-64 kernels emulate the instruction that code begins with: `nop` of one byte, `push` of a register,
/// direct jumps and calls.
pub(in crate::live) fn is_emulated_on_x86_64(code: &[u8]) -> bool {
    matches!(
        code,
        [0x90 | 0x50..=0x57 | 0xe8 | 0xe9 | 0xeb | 0x70..=0x7f, ..]
            | [0x41, 0x50..=0x57, ..]
            | [0x0f, 0x80..=0x8f, ..]
    )
}

/// Whether all arm64 kernels emulate the instruction that code begins with.
fn begins_emulated(code: &[u8]) -> bool {
    code.first_chunk().is_some_and(|word| is_emulated_on_arm64(u32::from_le_bytes(*word)))
}

/// Whether all arm64 kernels emulate an instruction: jumps and calls, direct or through a register, `ret`, `adr`,
/// `adrp`; none of those with pointer authentication.
pub(in crate::live) fn is_emulated_on_arm64(word: u32) -> bool {
    let is_direct = word & 0x7c00_0000 == 0x1400_0000 // b, bl
        || word & 0xff00_0010 == 0x5400_0000 // b.cond
        || word & 0x7c00_0000 == 0x3400_0000; // cbz, cbnz, tbz, tbnz
    let is_adr = word & 0x1f00_0000 == 0x1000_0000;
    let is_indirect = matches!(word & 0xffff_fc1f, 0xd61f_0000 | 0xd63f_0000 | 0xd65f_0000);
    is_direct || is_adr || is_indirect
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOP5: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];

    fn x86(parts: &[&[u8]]) -> (Option<(u64, u8)>, u64, bool) {
        let points = ProbePoints::on_x86_64(&parts.concat(), 0x100);
        (points.nop.map(|nop| (nop.offset - 0x100, nop.length)), points.plain - 0x100, points.is_emulated)
    }

    #[test]
    fn our_function_has_two_places_and_that_of_older_headers_a_dear_second_one() {
        assert_eq!(x86(&[&NOP5, &[0x90, 0xc3]]), (Some((0, 5)), 5, true));
        assert_eq!(x86(&[&NOP5, &[0xc3, 0xcc]]), (Some((0, 5)), 5, false));
    }

    #[test]
    fn behind_a_nop_may_be_anything() {
        let push: &[u8] = &[0x55, 0x48, 0x89, 0xe5];
        let moves: &[u8] = &[0x48, 0x89, 0xf8];
        assert_eq!(x86(&[&NOP5, push]), (Some((0, 5)), 5, true));
        assert_eq!(x86(&[&NOP5, moves]), (Some((0, 5)), 5, false));
        assert_eq!(x86(&[ENDBR64, &NOP5, push]), (Some((4, 5)), 9, true));
        assert_eq!(x86(&[ENDBR64, &NOP5, moves]), (Some((4, 5)), 0, false), "the landing pad is safe, too");
        assert_eq!(
            x86(&[&NOP5, &NOP5, push]),
            (Some((0, 5)), 10, true),
            "the second one may be replaced, too"
        );
        assert_eq!(x86(&[&NOP5]), (Some((0, 5)), 5, false), "the file ends");
    }

    #[test]
    fn without_a_nop_the_landing_pad_is_left_out_where_that_is_cheaper() {
        assert_eq!(x86(&[ENDBR64, &[0x41, 0x57]]), (None, 4, true));
        assert_eq!(x86(&[ENDBR64, &[0xc3]]), (None, 0, false));
        assert_eq!(x86(&[&[0xe9, 1, 2, 3, 4]]), (None, 0, true));
        assert_eq!(x86(&[&[0x48, 0x83, 0xec, 0x08]]), (None, 0, false));
        assert_eq!(x86(&[]), (None, 0, false));
    }

    #[test]
    fn nops_of_every_form() {
        let forms: [(&[u8], usize); 13] = [
            (&[0x90], 1),
            (&[0x66, 0x90], 2),
            (&[0x0f, 0x1f, 0x00], 3),
            (&[0x0f, 0x1f, 0x40, 0x00], 4),
            (&[0x0f, 0x1f, 0x44, 0x00, 0x08], 5),
            (&[0x66, 0x0f, 0x1f, 0x40, 0x00], 5),
            (&[0x66, 0x66, 0x66, 0x66, 0x90], 5),
            (&[0x0f, 0x1f, 0x80, 0, 0, 0, 0], 7),
            (&[0x0f, 0x1f, 0x05, 0, 0, 0, 0], 7),
            (&[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0], 8),
            (&[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0], 10),
            (&[0xf3, 0x90], 0),
            (&[0x41, 0x90], 0),
        ];
        for (code, length) in forms {
            assert_eq!(nop_length(code), length, "{code:x?}");
        }
        assert_eq!((nop_length(&[]), nop_length(&[0x0f, 0x1f])), (0, 0));
    }

    #[test]
    fn a_nop_that_crosses_a_page_is_not_replaced() {
        let code = [&NOP5[..], &[0xc3]].concat();
        let at = |offset: u64| ProbePoints::on_x86_64(&code, offset);
        assert_eq!((at(4091).nop.is_some(), at(4091).plain), (true, 4096));
        assert_eq!((at(4092).nop, at(4092).plain), (None, 4092));
        assert_eq!((at(8187).nop.is_some(), at(8191).nop), (true, None));
    }

    #[test]
    fn on_arm64_the_return_is_simulated_by_all_kernels() {
        const RET: &[u8] = &[0xc0, 0x03, 0x5f, 0xd6];
        const B: &[u8] = &[0x04, 0x00, 0x00, 0x14];
        const STP: &[u8] = &[0xfd, 0x7b, 0xbf, 0xa9];
        let arm = |parts: &[&[u8]]| {
            let points = ProbePoints::on_arm64(&parts.concat(), 64);
            (points.nop.map(|nop| nop.offset - 64), points.plain - 64, points.is_emulated)
        };
        assert_eq!(arm(&[NOP, RET]), (Some(0), 4, true));
        assert_eq!(arm(&[BTI_C, NOP, RET]), (Some(4), 8, true));
        assert_eq!(arm(&[NOP, STP]), (Some(0), 0, false));
        assert_eq!(arm(&[BTI_C, STP]), (None, 0, false));
        assert_eq!(arm(&[RET]), (None, 0, true));
        assert_eq!(arm(&[NOP, B]), (Some(0), 4, true));
        assert_eq!(arm(&[B]), (None, 0, true));
    }

    #[test]
    fn instructions_of_arm64_that_all_kernels_simulate() {
        // b, bl, b.eq, cbz, cbnz, tbz, tbnz, adr, adrp, br, blr, ret
        let emulated = [
            0x1400_0004,
            0x97ff_ffff,
            0x5400_0080,
            0xb400_0040,
            0x3500_0041,
            0x3600_0080,
            0xb7f8_0080,
            0x1000_0000,
            0xb000_0401,
            0xd61f_0200,
            0xd63f_0100,
            0xd65f_03c0,
        ];
        assert_eq!(emulated.iter().find(|&&word| !is_emulated_on_arm64(word)), None);
        // nop, bti c, paciasp, retaa, braaz, ldr (literal), stp, svc, bc.eq
        let others = [
            0xd503_201f,
            0xd503_245f,
            0xd503_233f,
            0xd65f_0bff,
            0xd61f_081f,
            0x5800_0040,
            0xa9bf_7bfd,
            0xd400_0001,
            0x5400_0090,
        ];
        assert_eq!(others.iter().find(|&&word| is_emulated_on_arm64(word)), None);
    }
}
