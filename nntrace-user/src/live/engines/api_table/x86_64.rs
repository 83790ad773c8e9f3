//! Instructions of x86-64, as far as constants in registers depend on them.

use iced_x86::{
    ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpKind, Register,
};

use super::Effect;
use crate::live::engines::code::written_on_x86_64;
use crate::live::engines::image::Image;

/// Constants in the general registers.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct State {
    registers: [Option<u64>; 16],
}

impl State {
    fn get(&self, register: Register) -> Option<u64> {
        let is_general = register.is_gpr64() || register.is_gpr32();
        self.registers.get(register.number()).copied().flatten().filter(|_| is_general)
    }

    fn set(&mut self, register: Register, value: Option<u64>) {
        if register.is_gpr()
            && let Some(place) = self.registers.get_mut(register.number())
        {
            *place = value;
        }
    }
}

/// Runs the instruction at an address.
pub(super) fn run(image: &Image<'_>, state: &State, address: u64) -> Effect<State> {
    let code = image.rest(address).filter(|_| image.is_code(address)).unwrap_or_default();
    let instruction = Decoder::with_ip(64, code, address, DecoderOptions::NONE).decode();
    if instruction.is_invalid() {
        return Effect::End;
    }
    let next = instruction.next_ip();
    let branch = || match instruction.op0_kind() {
        OpKind::NearBranch64 => Some(instruction.near_branch_target()),
        OpKind::Memory if instruction.is_ip_rel_memory_operand() => {
            image.local_pointer(instruction.ip_rel_memory_address())
        }
        OpKind::Register => state.get(instruction.op0_register()),
        _ => None,
    };
    match instruction.flow_control() {
        FlowControl::Next => {
            Effect::GoOn(results(image, state, &instruction).map(|state| (next, state)).collect())
        }
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => {
            branch().map_or(Effect::End, |target| Effect::GoOn(vec![(target, state.clone())]))
        }
        FlowControl::ConditionalBranch => {
            let both = [Some(next), branch()].into_iter().flatten();
            Effect::GoOn(both.map(|target| (target, state.clone())).collect())
        }
        FlowControl::Call | FlowControl::IndirectCall => {
            Effect::GoOn(vec![(next, clobbered(state, &instruction))])
        }
        FlowControl::Return => Effect::Return(state.get(Register::RAX)),
        _ => Effect::End,
    }
}

/// Returns what is known besides the registers that an instruction writes.
fn clobbered(state: &State, instruction: &Instruction) -> State {
    let mut after = state.clone();
    for register in written_on_x86_64(&mut InstructionInfoFactory::new(), instruction) {
        after.set(register, None);
    }
    after
}

/// Returns what may be known after an instruction.
fn results(image: &Image<'_>, state: &State, instruction: &Instruction) -> impl Iterator<Item = State> {
    let mut after = clobbered(state, instruction);
    let to = instruction.op0_register();
    let is_to_register = instruction.op_count() == 2
        && instruction.op0_kind() == OpKind::Register
        && (to.is_gpr64() || to.is_gpr32());
    let mut unmoved = None;
    if is_to_register {
        let value = match instruction.mnemonic() {
            Mnemonic::Lea => address(state, instruction),
            Mnemonic::Mov => source(image, state, instruction),
            Mnemonic::Xor | Mnemonic::Sub if instruction.op1_kind() == OpKind::Register => {
                (instruction.op1_register() == to).then_some(0)
            }
            // A conditional move; the condition is not known.
            _ if instruction.condition_code() != ConditionCode::None => {
                unmoved = Some(state.clone());
                source(image, state, instruction)
            }
            _ => None,
        };
        after.set(to, value.map(|value| if to.is_gpr32() { value & 0xffff_ffff } else { value }));
    }
    std::iter::once(after).chain(unmoved)
}

/// Returns the value of the second operand.
fn source(image: &Image<'_>, state: &State, instruction: &Instruction) -> Option<u64> {
    match instruction.op1_kind() {
        OpKind::Register => state.get(instruction.op1_register()),
        OpKind::Memory if instruction.op0_register().is_gpr64() => {
            image.local_pointer(address(state, instruction)?)
        }
        _ => instruction.try_immediate(1).ok(),
    }
}

/// Returns the address of the operand in memory, if it is constant.
fn address(state: &State, instruction: &Instruction) -> Option<u64> {
    if instruction.is_ip_rel_memory_operand() {
        return Some(instruction.ip_rel_memory_address());
    }
    let displacement = instruction.memory_displacement64();
    let is_plain =
        instruction.memory_index() == Register::None && instruction.segment_prefix() == Register::None;
    match instruction.memory_base() {
        _ if !is_plain => None,
        Register::None => Some(displacement),
        base => Some(state.get(base)?.wrapping_add(displacement)),
    }
}
