//! Mark functions that call one another, or jump there: the outermost one makes the mark. See
//! [`nntrace_common::nesting`].

use aya_ebpf::{bindings::pt_regs, helpers::bpf_probe_read_user, programs::ProbeContext};
use nntrace_common::nested_functions::{Entry, FunctionKind};

use crate::{
    log,
    maps::{MARK_CODE, NESTING, THREADS},
    task_ids,
};

/// Enters a mark function; `false` when it is part of another one's mark.
#[inline(always)]
pub fn enter(ctx: &ProbeContext, kind: FunctionKind) -> bool {
    if NESTING.get(0) != Some(&1) {
        return true;
    }
    // SAFETY: the registers that the program was called with.
    let registers = unsafe { &*ctx.regs };
    let Some([address, sp, return_address, frame]) = entry_of(registers) else { return true };
    enter_function(u64::from(task_ids::current().tid) << 32 | kind as u64, address, sp, return_address, frame)
        != 0
}

/// Enters a mark function: its [`FunctionKind`] is in the lower half of `who`, the thread in the upper one. Returns 0
/// when it is part of another one's mark.
///
/// A global function, which the verifier checks once, for any arguments.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn enter_function(who: u64, address: u64, sp: u64, return_address: u64, frame: u64) -> u32 {
    let Some(kind) = FunctionKind::from_code(who as u32) else { return 1 };
    // The same in all processes, as files are mapped by pages.
    let code = MARK_CODE.get((address & 0xfff) as u32).copied().unwrap_or_default();
    let Some(thread) = THREADS.get_ptr_mut((who >> 32) as u32) else { return 1 };
    // SAFETY: the pointer comes from the map and is not null; only this thread writes its own entry.
    let nesting = unsafe { &mut (*thread).nesting };
    let is_mark = nesting.enter(&Entry { kind, address, code, sp, return_address, frame }, words);
    if !is_mark {
        log::nested_mark((who >> 32) as u32);
    }
    u32::from(is_mark)
}

/// Reads the two words at an address of the current process.
#[inline(always)]
fn words(address: u64) -> Option<[u64; 2]> {
    // SAFETY: the helper checks the address.
    unsafe { bpf_probe_read_user(address as *const [u64; 2]) }.ok()
}

/// Returns address, stack pointer, return address and frame pointer at the entry of a function, whose first
/// instructions have changed no register.
#[cfg(bpf_target_arch = "x86_64")]
#[inline(always)]
fn entry_of(registers: &pt_regs) -> Option<[u64; 4]> {
    // SAFETY: the helper checks the address.
    let return_address = unsafe { bpf_probe_read_user(registers.rsp as *const u64) }.ok()?;
    Some([registers.rip, registers.rsp, return_address, registers.rbp])
}

/// Returns address, stack pointer, return address and frame pointer at the entry of a function, whose first
/// instructions have changed no register.
#[cfg(bpf_target_arch = "aarch64")]
#[inline(always)]
fn entry_of(registers: &pt_regs) -> Option<[u64; 4]> {
    Some([registers.pc, registers.sp, registers.regs[30], registers.regs[29]])
}
