//! References in the code of x86-64: distances from the next instruction, and addresses in files that are not moved.

use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind};

use super::{Reference, has, hull};
use crate::live::engines::{bounds::Bounds, image::Image};

/// Bytes of a distance, and of an address below 4 GiB.
const WIDTH: u64 = 4;

/// Calls a function for each place of four bytes that would be a reference if they were the last of an instruction.
pub(super) fn candidates(
    image: &Image<'_>,
    code: &[u8],
    start: u64,
    wanted: &[Range<u64>],
    found: &mut impl FnMut(u64),
) {
    let hull = hull(wanted);
    for (address, bytes) in (start..).zip(code.windows(WIDTH as usize)) {
        let Some(bytes) = bytes.first_chunk() else { continue };
        let distance = i32::from_le_bytes(*bytes);
        let target = (address + WIDTH).wrapping_add_signed(i64::from(distance));
        let absolute = u64::from(u32::from_le_bytes(*bytes));
        if hull.contains(&target) && has(wanted, target)
            || image.is_fixed() && hull.contains(&absolute) && has(wanted, absolute)
        {
            found(address);
        }
    }
}

/// Calls a function with the target of all that looks like a call or a jump, and whether it is a conditional one.
pub(super) fn for_each_jump(code: &[u8], start: u64, found: &mut impl FnMut(u64, bool)) {
    for (address, bytes) in (start..).zip(code.windows(2 + WIDTH as usize)) {
        let Some(&[before, opcode, a, b, c, d]) = bytes.first_chunk() else { continue };
        let is_conditional = match (before, opcode) {
            (0x0f, 0x80..=0x8f) => true,
            // `call` and `jmp`
            (_, 0xe8 | 0xe9) => false,
            _ => continue,
        };
        let distance = i32::from_le_bytes([a, b, c, d]);
        found((address + 2 + WIDTH).wrapping_add_signed(i64::from(distance)), is_conditional);
    }
}

/// Whether the instruction of a function that has the byte at an address refers to one of these places.
pub(super) fn refers(
    image: &Image<'_>,
    function: &Bounds,
    address: u64,
    wanted: &[Range<u64>],
    kind: Reference,
) -> bool {
    let Some(code) = image.bytes(function.start, function.end - function.start) else { return false };
    let mut decoder = Decoder::with_ip(64, code, function.start, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() && decoder.ip() <= address {
        decoder.decode_out(&mut instruction);
    }
    let is_there = instruction.ip() <= address && address < instruction.next_ip();
    let mut targets = targets(&instruction, kind, image.is_fixed()).into_iter().flatten();
    is_there && !instruction.is_invalid() && targets.any(|target| has(wanted, target))
}

/// Returns the places that an instruction refers to.
fn targets(instruction: &Instruction, kind: Reference, is_fixed: bool) -> [Option<u64>; 2] {
    match kind {
        Reference::Jump => {
            let is_jump = matches!(
                instruction.flow_control(),
                FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
            );
            let is_direct = instruction.op0_kind() == OpKind::NearBranch64;
            [(is_jump && is_direct).then(|| instruction.near_branch_target()), None]
        }
        Reference::Data => {
            let is_relative = instruction.is_ip_rel_memory_operand();
            let last = instruction.op_count().checked_sub(1).filter(|_| is_fixed);
            let immediate = last.and_then(|last| instruction.try_immediate(last).ok());
            [
                is_relative.then(|| instruction.ip_rel_memory_address()),
                immediate.map(|value| value & 0xffff_ffff),
            ]
        }
    }
}
