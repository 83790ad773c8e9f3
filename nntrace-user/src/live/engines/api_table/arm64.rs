//! Instructions of arm64, as far as constants in registers depend on them.

use super::Effect;
use crate::live::engines::code::words;
use crate::live::engines::image::Image;
use crate::live::target::{arm64_target, is_indirect_on_arm64};

/// Constants in registers x0 to x30.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct State {
    registers: [Option<u64>; 31],
}

impl State {
    fn get(&self, register: u32) -> Option<u64> {
        // The last one is the zero register, where it is not the stack pointer.
        self.registers.get(register as usize).map_or(Some(0), |value| *value)
    }

    fn set(&mut self, register: u32, value: Option<u64>) {
        if let Some(place) = self.registers.get_mut(register as usize) {
            *place = value;
        }
    }
}

/// Runs the instruction at an address.
pub(super) fn run(image: &Image<'_>, state: &State, address: u64) -> Effect<State> {
    let code = image.rest(address).filter(|_| image.is_code(address)).unwrap_or_default();
    let Some(word) = code.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)) else { return Effect::End };
    let next = address.wrapping_add(4);
    if words::is_return(word) || words::is_authenticated_return(word) {
        return Effect::Return(state.get(0));
    }
    if is_indirect_on_arm64(word) {
        let target = state.get(words::rn(word));
        return target.map_or(Effect::End, |target| Effect::GoOn(vec![(target, state.clone())]));
    }
    if let Some(target) = arm64_target(word, address) {
        let is_conditional = word & 0xfc00_0000 != 0x1400_0000;
        let targets = [target].into_iter().chain(is_conditional.then_some(next));
        return Effect::GoOn(targets.map(|target| (target, state.clone())).collect());
    }
    let mut after = state.clone();
    let written = words::written(word);
    for register in (0..31).filter(|register| written >> register & 1 == 1) {
        after.set(register, None);
    }
    let to = words::rd(word);
    if let Some([one, other]) = chosen(word) {
        let mut otherwise = after.clone();
        after.set(to, state.get(one));
        otherwise.set(to, state.get(other));
        return Effect::GoOn(vec![(next, after), (next, otherwise)]);
    }
    if let Some(value) = value(image, state, word, address) {
        after.set(to, Some(value));
    }
    Effect::GoOn(vec![(next, after)])
}

/// Returns the constant that an instruction writes to its destination.
fn value(image: &Image<'_>, state: &State, word: u32, address: u64) -> Option<u64> {
    if let Some(place) = words::page_or_place(word, address) {
        return Some(place);
    }
    if let Some((from, added)) = words::added_constant(word) {
        return Some(state.get(from).filter(|_| from != 31)?.wrapping_add_signed(added));
    }
    if let Some((base, offset)) = words::load_at_offset(word) {
        return image.local_pointer(state.get(base).filter(|_| base != 31)?.wrapping_add(offset));
    }
    if let Some(from) = words::copied(word) {
        return state.get(from);
    }
    // movz, in 32 or 64 bits, and mov of the zero register in 32 bits
    if word & 0x7f80_0000 == 0x5280_0000 {
        return Some(u64::from(word >> 5 & 0xffff) << (16 * (word >> 21 & 3)));
    }
    (word & 0xffff_ffe0 == 0x2a1f_03e0).then_some(0)
}

/// Returns the registers between which `csel` chooses, in 64 bits.
fn chosen(word: u32) -> Option<[u32; 2]> {
    (word & 0xffe0_0c00 == 0x9a80_0000).then(|| [words::rn(word), words::rm(word)])
}
