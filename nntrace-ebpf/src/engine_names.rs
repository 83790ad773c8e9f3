//! Names of the sections of engines, read from the memory of a process on the way that user space describes.

use aya_ebpf::{bindings::pt_regs, helpers::bpf_probe_read_user};
use nntrace_common::{
    engine::{self, EngineProbe, EnumKey, MAX_STEPS, NameForm, NameRecipe},
    mark::{self, Captured},
    record::NameText,
    tokens,
};

use crate::{
    maps::{ENGINE_ENUMS, OBJECT_NAMES},
    mark_text,
};

/// Bytes of the return address, which is below the arguments in memory.
const RETURN_ADDRESS: u64 = 8;

/// Returns the hash of a section's name; `None` where there is none, it cannot be read, or is implausible. The text, if
/// it is one, is in `mark`. The stack pointer is that at the entry of the function.
#[inline(always)]
pub fn read(
    registers: &pt_regs,
    sp: u64,
    number: u32,
    probe: &EngineProbe,
    mark: &mut NameText,
) -> Option<u64> {
    let recipe = &probe.recipe;
    if recipe.form == NameForm::None as u8 {
        return None;
    }
    let object = if recipe.argument == engine::IN_MEMORY {
        sp.wrapping_add(RETURN_ADDRESS)
    } else {
        argument(registers, recipe.argument)?
    };
    let mut at = follow(recipe, object)?;
    if recipe.form == NameForm::Enum as u8 {
        let value = if recipe.steps == 0 { at as u32 } else { word(at)? };
        // SAFETY: user space writes an entry once, before the probe is attached.
        let name = unsafe { ENGINE_ENUMS.get(EnumKey { probe: number, value }) };
        if name.is_some() || recipe.other == 0 {
            return name.copied();
        }
        at = word(at.wrapping_add_signed(i64::from(recipe.other)))?;
    }
    if recipe.form == NameForm::Tokens as u8 {
        return tokens_name(recipe, at, mark);
    }
    if recipe.form == NameForm::LibcxxString as u8 {
        at = libcxx_text(at)?;
    } else if recipe.form == NameForm::CString as u8 && recipe.steps > 0 {
        at = word(at)?;
    }
    mark_text::clear(mark);
    let read = mark_text::string(at as *const u8, mark);
    let len = if read > 0 { (read - 1).cast_unsigned() as u32 } else { 0 };
    mark.len = len & (mark::MARK_BYTES as u32 - 1);
    mark.name_at = 0;
    name_hash(mark).filter(|&name| may_be_own(probe, object, name))
}

/// Writes the name of a batch of tokens, by their number or by the vector that has an element for each, and hashes it.
#[inline(always)]
fn tokens_name(recipe: &NameRecipe, at: u64, mark: &mut NameText) -> Option<u64> {
    let tokens = if recipe.element != 0 {
        let bytes = word::<u64>(at.wrapping_add(8))?.wrapping_sub(word(at)?);
        let element = u64::from(recipe.element);
        // Something that is not such a vector rarely has a length that is a multiple of the element's size.
        if !bytes.is_multiple_of(element) {
            return None;
        }
        u32::try_from(bytes / element).ok()?
    } else if recipe.steps == 0 {
        at as u32
    } else {
        word(at)?
    };
    let (name, len) = tokens::name_of(tokens)?;
    mark_text::clear(mark);
    mark.payload[..tokens::NAME_BYTES].copy_from_slice(&name);
    (mark.len, mark.name_at) = (len, 0);
    Some(mark::name_hash(Captured::of(&mark.payload), 0))
}

/// Whether a name may be the object's own, by those of other objects.
#[inline(always)]
fn may_be_own(probe: &EngineProbe, object: u64, name: u64) -> bool {
    if probe.entry == 0 {
        return true;
    }
    let Some(names) = OBJECT_NAMES.get_ptr_mut(probe.entry) else { return true };
    // SAFETY: a value of the map, of which any bytes are valid.
    unsafe { (*names).take(object, name) }
}

/// Hashes a plausible name.
#[inline(always)]
fn name_hash(mark: &NameText) -> Option<u64> {
    let text = Captured::of(&mark.payload);
    engine::is_plausible_name(text).then(|| mark::name_hash(text, 0))
}

/// Follows the offsets of a recipe: a pointer is read at each but the last.
#[inline(always)]
fn follow(recipe: &NameRecipe, argument: u64) -> Option<u64> {
    let mut at = argument;
    let steps = usize::from(recipe.steps);
    for step in 0..MAX_STEPS {
        if step < steps {
            at = at.wrapping_add(u64::from(recipe.offsets[step]));
            if step + 1 < steps {
                at = word(at)?;
            }
        }
    }
    Some(at)
}

/// Returns the address of the text of a `std::string` of libc++: in the object itself, unless its lowest bit is set.
///
/// Source: `__rep` in libcxx/include/string, the layout without `_LIBCPP_ABI_ALTERNATE_STRING_LAYOUT`.
#[inline(always)]
fn libcxx_text(at: u64) -> Option<u64> {
    let first: u8 = word(at)?;
    if first & 1 == 0 { Some(at.wrapping_add(1)) } else { word(at.wrapping_add(16)) }
}

/// Reads a value from the memory of the current process.
#[inline(always)]
fn word<T>(at: u64) -> Option<T> {
    // SAFETY: the helper checks the address.
    unsafe { bpf_probe_read_user(at as *const T) }.ok()
}

/// Returns an argument of the function, before its first instruction has changed a register.
///
/// All of them are read, each at its own place: the verifier refuses a place in the registers that is computed.
#[inline(always)]
pub fn argument(registers: &pt_regs, number: u8) -> Option<u64> {
    let [first, second, third, fourth, fifth, sixth] = arguments(registers);
    Some(match number {
        0 => first,
        1 => second,
        2 => third,
        3 => fourth,
        4 => fifth,
        5 => sixth,
        _ => return None,
    })
}

#[cfg(bpf_target_arch = "x86_64")]
#[inline(always)]
fn arguments(registers: &pt_regs) -> [u64; 6] {
    let pt_regs { rdi, rsi, rdx, rcx, r8, r9, .. } = registers;
    [loaded(rdi), loaded(rsi), loaded(rdx), loaded(rcx), loaded(r8), loaded(r9)]
}

#[cfg(bpf_target_arch = "aarch64")]
#[inline(always)]
fn arguments(registers: &pt_regs) -> [u64; 6] {
    let [x0, x1, x2, x3, x4, x5, ..] = &registers.regs;
    [loaded(x0), loaded(x1), loaded(x2), loaded(x3), loaded(x4), loaded(x5)]
}

/// Reads a register here and now.
#[inline(always)]
fn loaded(register: &u64) -> u64 {
    // SAFETY: a valid reference; volatile, so that the compiler does not choose the address instead of the value.
    unsafe { core::ptr::read_volatile(register) }
}
