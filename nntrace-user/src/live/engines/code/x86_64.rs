//! Instructions of x86-64.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

use super::ShapeError;
use super::listing::{Indirection, Jump, Listing, Step};
use crate::live::engines::bounds::Bounds;
use crate::live::engines::image::Image;
use crate::live::target::{PAGE, is_emulated_on_x86_64};

/// Registers of the arguments.
const ARGUMENTS: [Register; 6] =
    [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8, Register::R9];
/// Registers that a call may change.
const CHANGED_BY_CALLS: [Register; 9] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];
/// Copies between the origin of a jump's target and the jump at most.
const MOST_COPIES: usize = 8;
/// Tables that are tried for an indirect jump at most.
const MOST_TABLES: usize = 1024;

/// Load of the address of a constant.
struct Constant {
    register: Register,
    value: u64,
}

/// Code whose indirect jumps are examined.
struct Code<'code, 'data> {
    image: &'code Image<'data>,
    bytes: &'code [u8],
    listing: &'code Listing,
    constants: &'code [Constant],
}

/// Lists the instructions of a function, or of a part of one.
pub(super) fn list(image: &Image<'_>, bounds: Bounds, bytes: &[u8]) -> Result<Listing, ShapeError> {
    let mut listing = Listing::new(bounds, 1);
    let (mut jumps, mut indirect, mut constants) = (Vec::new(), Vec::new(), Vec::new());
    let mut decoder = Decoder::with_ip(64, bytes, bounds.start, DecoderOptions::NONE);
    while decoder.can_decode() {
        let instruction = decoder.decode();
        let address = instruction.ip();
        if instruction.is_invalid() {
            return Err(ShapeError::NoInstruction(address));
        }
        listing.add_start(address);
        match instruction.flow_control() {
            FlowControl::UnconditionalBranch
            | FlowControl::ConditionalBranch
            | FlowControl::XbeginXabortXend
                if instruction.op0_kind() == OpKind::NearBranch64 =>
            {
                jumps.push(Jump { address, target: instruction.near_branch_target() });
            }
            FlowControl::IndirectBranch => indirect.push((address, instruction)),
            FlowControl::Return => listing.returns.push(address),
            _ => {}
        }
        if ends_path(&instruction) {
            listing.stops.push(address);
        }
        if instruction.mnemonic() == Mnemonic::Lea && instruction.is_ip_rel_memory_operand() {
            let register = instruction.op0_register().full_register();
            constants.push(Constant { register, value: instruction.ip_rel_memory_address() });
        }
    }
    Ok(listing.add_jumps(jumps, indirect, |listing, _, jump| {
        Code { image, bytes, listing, constants: &constants }.indirection(&jump)
    }))
}

impl Code<'_, '_> {
    /// Recognizes the usual forms of indirect jumps: a table of distances or of addresses, and a variable.
    fn indirection(&self, jump: &Instruction) -> Indirection {
        if jump.op0_kind() == OpKind::Memory {
            return self.in_memory(jump);
        }
        match self.origins(jump.ip(), jump.op0_register()) {
            Some(origins) => Indirection::of(origins.iter().map(|origin| self.origin(origin))),
            None => Indirection::Unknown,
        }
    }

    /// Examines the instruction that sets the register of a jump.
    fn origin(&self, origin: &Instruction) -> Indirection {
        match (origin.mnemonic(), origin.op0_kind(), origin.op1_kind()) {
            (Mnemonic::Mov, OpKind::Register, OpKind::Memory) => self.in_memory(origin),
            (Mnemonic::Add, OpKind::Register, OpKind::Register) => {
                self.sum(origin).unwrap_or(Indirection::Unknown)
            }
            (Mnemonic::Add | Mnemonic::Sub | Mnemonic::Lea, ..) if !origin.is_ip_rel_memory_operand() => {
                Indirection::Unknown
            }
            _ => Indirection::Pointer,
        }
    }

    /// Examines a sum of two registers: the address of a table, and a distance in it.
    fn sum(&self, sum: &Instruction) -> Option<Indirection> {
        let is_distance = |load: &Instruction| {
            load.mnemonic() == Mnemonic::Movsxd
                && load.op1_kind() == OpKind::Memory
                && load.memory_index() != Register::None
        };
        let loads = [sum.op0_register(), sum.op1_register()].into_iter().find_map(|term| {
            let origins = self.origins(sum.ip(), term)?;
            (!origins.is_empty() && origins.iter().all(is_distance)).then_some(origins)
        })?;
        let table = |table: u64| {
            let entry = |number: u64| {
                let bytes = self.image.bytes(table.checked_add(4 * number)?, 4)?.first_chunk()?;
                Some(table.wrapping_add_signed(i64::from(i32::from_le_bytes(*bytes))))
            };
            self.listing.targets_in_table((0..).map_while(entry))
        };
        let kinds = self.constants(loads[0].memory_base()).map(table);
        kinds.into_iter().find(|kind| matches!(kind, Indirection::Table(_)))
    }

    /// Examines an address in memory, which an instruction reads.
    fn in_memory(&self, read: &Instruction) -> Indirection {
        if read.memory_index() == Register::None || read.memory_index_scale() != 8 {
            return Indirection::Pointer;
        }
        let displacement = read.memory_displacement64();
        let bases: Vec<_> = match read.memory_base() {
            Register::None => vec![0],
            base => self.constants(base).collect(),
        };
        let table = |base: u64| {
            let first = base.wrapping_add(displacement);
            let entry = |number: u64| self.image.local_pointer(first.checked_add(8 * number)?);
            self.listing.targets_in_table((0..).map_while(entry))
        };
        let mut kinds = bases.into_iter().map(table);
        kinds.find(|kind| matches!(kind, Indirection::Table(_))).unwrap_or(Indirection::Pointer)
    }

    /// Returns the constants that a register may hold, the likeliest first: compilers keep them in others, too.
    fn constants(&self, register: Register) -> impl Iterator<Item = u64> {
        let of_register = move |constant: &&Constant| constant.register == register;
        let others = self.constants.iter().filter(move |constant| !of_register(constant));
        self.constants
            .iter()
            .filter(of_register)
            .chain(others)
            .map(|constant| constant.value)
            .take(MOST_TABLES)
    }

    /// Returns the instructions that set a register before one uses it. Copies are followed.
    fn origins(&self, user: u64, register: Register) -> Option<Vec<Instruction>> {
        let (mut user, mut register) = (user, register.full_register());
        for _ in 0..MOST_COPIES {
            let origins = self.setters(user, register)?;
            let copy = origins.first().filter(|copy| {
                let is_move = copy.mnemonic() == Mnemonic::Mov && copy.op1_kind() == OpKind::Register;
                is_move && copy.op1_register().is_gpr64() && origins.len() == 1
            });
            let Some(copy) = copy else { return Some(origins) };
            (user, register) = (copy.ip(), copy.op1_register());
        }
        None
    }

    /// Returns the last instructions that set a register before one uses it.
    fn setters(&self, user: u64, register: Register) -> Option<Vec<Instruction>> {
        let sets = |address: u64| {
            let writes = |instruction| {
                written(&mut InstructionInfoFactory::new(), &instruction).any(|other| other == register)
            };
            self.at(address).is_none_or(writes)
        };
        let goes_on = |address: u64| self.at(address).is_some_and(|instruction| !ends_path(&instruction));
        self.listing.origins(user, sets, goes_on)?.into_iter().map(|address| self.at(address)).collect()
    }

    fn at(&self, address: u64) -> Option<Instruction> {
        let within = usize::try_from(address.checked_sub(self.listing.bounds.start)?).ok()?;
        let mut decoder = Decoder::with_ip(64, self.bytes.get(within..)?, address, DecoderOptions::NONE);
        decoder.can_decode().then(|| decoder.decode())
    }
}

/// Whether the code does not go on after an instruction.
fn ends_path(instruction: &Instruction) -> bool {
    use FlowControl::{Exception, IndirectBranch, Return, UnconditionalBranch};
    matches!(instruction.flow_control(), UnconditionalBranch | IndirectBranch | Return | Exception)
        || matches!(instruction.mnemonic(), Mnemonic::Int3 | Mnemonic::Hlt)
}

/// Returns the effect of the instruction that code begins with.
pub(super) fn step(code: &[u8], address: u64) -> Step {
    let instruction = Decoder::with_ip(64, code, address, DecoderOptions::NONE).decode();
    if instruction.is_invalid() {
        return Step::Other;
    }
    let length = instruction.len() as u64;
    if is_emulated_on_x86_64(code) && address % PAGE + length <= PAGE {
        return Step::Emulated;
    }
    let mut factory = InstructionInfoFactory::new();
    let changes_arguments = written(&mut factory, &instruction).any(|register| ARGUMENTS.contains(&register));
    if instruction.flow_control() != FlowControl::Next || changes_arguments {
        return Step::Other;
    }
    let writes_stack_pointer = written(&mut factory, &instruction).any(|register| register == Register::RSP);
    let pushed = if writes_stack_pointer { pushed(&instruction) } else { Some(0) };
    pushed.map_or(Step::Other, |pushed| Step::Skippable { length, pushed })
}

/// Whether kernels refuse a probe on the instruction that code begins with: those that lock memory, and those with a
/// prefix of a segment (Linux, `arch/x86/kernel/uprobes.c`). Other refused ones are for the kernel only.
pub(super) fn is_refused(code: &[u8]) -> bool {
    const REFUSED: [u8; 5] = [0xf0, 0x26, 0x2e, 0x36, 0x3e];
    let is_prefix = |byte: &&u8| REFUSED.contains(byte) || matches!(byte, 0x64..=0x67 | 0xf2 | 0xf3);
    code.is_empty() || code.iter().take_while(is_prefix).any(|prefix| REFUSED.contains(prefix))
}

/// Returns the bytes by which an instruction makes the stack grow, if that is a constant.
fn pushed(instruction: &Instruction) -> Option<i64> {
    let is_constant = instruction.op_count() == 2 && instruction.op1_kind() != OpKind::Register;
    match instruction.mnemonic() {
        Mnemonic::Push => Some(-i64::from(instruction.stack_pointer_increment())),
        Mnemonic::Sub if is_constant => Some(instruction.try_immediate(1).ok()?.cast_signed()),
        Mnemonic::Add if is_constant => instruction.try_immediate(1).ok()?.cast_signed().checked_neg(),
        Mnemonic::Lea
            if instruction.memory_base() == Register::RSP && instruction.memory_index() == Register::None =>
        {
            instruction.memory_displacement64().cast_signed().checked_neg()
        }
        _ => None,
    }
}

/// Returns the general registers that an instruction writes, each by its 64-bit name; after a call, those that the other
/// function may have changed.
pub(in crate::live::engines) fn written<'factory>(
    factory: &'factory mut InstructionInfoFactory,
    instruction: &Instruction,
) -> impl Iterator<Item = Register> + use<'factory> {
    let is_call = matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
    let changed = is_call.then_some(CHANGED_BY_CALLS).into_iter().flatten();
    let is_written = |access| {
        matches!(
            access,
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        )
    };
    let registers = factory.info(instruction).used_registers().iter();
    let written = registers.filter(move |register| is_written(register.access()));
    written.map(|register| register.register().full_register()).chain(changed)
}
