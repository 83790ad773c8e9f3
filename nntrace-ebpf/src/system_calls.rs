//! Numbers and arguments of system calls, as raw tracepoints see them, and the open files that they refer to.
//!
//! Which file a descriptor means is decided by the open file behind it, at every call: however the process got it
//! (opened, duplicated, inherited, sent by another one), the answer is right, and nothing has to be followed.

use core::mem::offset_of;

use aya_ebpf::bindings::pt_regs;

use crate::{
    atomic::add,
    helpers::{current_task, monotonic_ns},
    kernel_memory::read,
    maps::{FILE_OFFSETS, SYSTEM_CALL_COST},
};

/// Number of the system call `write`.
pub const WRITE: u64 = if cfg!(bpf_target_arch = "aarch64") { 64 } else { 1 };

/// Number of the system call `ioctl`.
pub const IOCTL: u64 = if cfg!(bpf_target_arch = "aarch64") { 29 } else { 16 };

/// Numbers of the system calls that open files.
pub mod opening {
    const fn number(x86_64: u64, aarch64: u64) -> u64 {
        if cfg!(bpf_target_arch = "aarch64") { aarch64 } else { x86_64 }
    }

    /// `open`, which arm64 has not.
    #[cfg(bpf_target_arch = "x86_64")]
    pub const OPEN: u64 = 2;
    /// `creat`, which arm64 has not.
    #[cfg(bpf_target_arch = "x86_64")]
    pub const CREAT: u64 = 85;
    /// `openat`.
    pub const OPENAT: u64 = number(257, 56);
    /// `openat2`.
    pub const OPENAT2: u64 = number(437, 437);
    /// `execve`.
    pub const EXECVE: u64 = number(59, 221);
    /// `execveat`.
    pub const EXECVEAT: u64 = number(322, 281);
}

/// Offsets of the first three arguments in the registers, bytes.
const ARGUMENTS: [u32; 3] = {
    #[cfg(bpf_target_arch = "x86_64")]
    let at = [offset_of!(pt_regs, rdi), offset_of!(pt_regs, rsi), offset_of!(pt_regs, rdx)];
    #[cfg(bpf_target_arch = "aarch64")]
    let at = [offset_of!(pt_regs, regs), offset_of!(pt_regs, regs) + 8, offset_of!(pt_regs, regs) + 16];
    [at[0] as u32, at[1] as u32, at[2] as u32]
};

/// Offset of the number of the call, which is still there when it returns, bytes.
const NUMBER: u32 = {
    #[cfg(bpf_target_arch = "x86_64")]
    let at = offset_of!(pt_regs, orig_rax);
    // The eighth register, which no call changes.
    #[cfg(bpf_target_arch = "aarch64")]
    let at = offset_of!(pt_regs, regs) + 8 * 8;
    at as u32
};

/// Offset of the stack pointer, bytes.
const STACK_POINTER: u32 = {
    #[cfg(bpf_target_arch = "x86_64")]
    let at = offset_of!(pt_regs, rsp);
    #[cfg(bpf_target_arch = "aarch64")]
    let at = offset_of!(pt_regs, sp);
    at as u32
};

/// Returns one of the first three arguments of a call from the registers at its begin.
#[inline(always)]
pub fn argument(registers: u64, number: usize) -> Result<u64, i32> {
    read(registers, ARGUMENTS[number])
}

/// Returns one of the first three arguments of a call from the registers at its end. A call that replaces the program leaves
/// none.
#[inline(always)]
pub fn argument_at_end(registers: u64, number: usize) -> Result<u64, i32> {
    // The result is in the register of the first argument, which the kernel keeps after the others.
    #[cfg(bpf_target_arch = "aarch64")]
    if number == 0 {
        return read(registers, size_of::<pt_regs>() as u32);
    }
    argument(registers, number)
}

/// Whether the caller is a program of 32 bits, whose calls have other numbers.
#[inline(always)]
pub fn is_of_32_bits(registers: u64) -> bool {
    #[cfg(bpf_target_arch = "x86_64")]
    {
        /// Code segment of programs of 64 bits (`__USER_CS`).
        const CODE_64: u64 = 0x33;
        read::<u64>(registers, offset_of!(pt_regs, cs) as u32)
            .is_ok_and(|segment| segment & 0xffff != CODE_64)
    }
    #[cfg(bpf_target_arch = "aarch64")]
    {
        /// Mode of 32 bits in the state of the processor (`PSR_MODE32_BIT`).
        const MODE_32: u64 = 0x10;
        read::<u64>(registers, offset_of!(pt_regs, pstate) as u32).is_ok_and(|state| state & MODE_32 != 0)
    }
}

/// Returns the number of a call from the registers at its end.
#[inline(always)]
pub fn number(registers: u64) -> Result<u64, i32> {
    read(registers, NUMBER)
}

/// Returns the stack pointer of the caller.
#[inline(always)]
pub fn stack_pointer(registers: u64) -> Result<u64, i32> {
    read(registers, STACK_POINTER)
}

/// Address of the file that the task has open as a descriptor.
#[inline(always)]
pub fn open_file(descriptor: u64) -> Result<u64, i32> {
    const NO_FILE: i32 = -9;
    let [files, table, length, slots, ..] = FILE_OFFSETS.load();
    let table: u64 = read(read::<u64>(current_task(), files)?, table)?;
    // A descriptor is an `int`, whatever is in the upper half of its register.
    let descriptor = descriptor & u64::from(u32::MAX);
    if descriptor >= u64::from(read::<u32>(table, length)?) {
        return Err(NO_FILE);
    }
    let slots: u64 = read(table, slots)?;
    let file: u64 = read(slots.wrapping_add(8 * descriptor), 0)?;
    if file == 0 { Err(NO_FILE) } else { Ok(file) }
}

/// Returns the operations of the file that the task has open as a descriptor.
#[inline(always)]
pub fn operations(descriptor: u64) -> Result<u64, i32> {
    let [.., operations, _, _, _] = FILE_OFFSETS.load();
    read(open_file(descriptor)?, operations)
}

/// Returns the number of the character device that the task has open as a descriptor.
#[inline(always)]
pub fn character_device(descriptor: u64) -> Result<u32, i32> {
    const NO_DEVICE: i32 = -19;
    /// Type in the mode of a file, and that of a character device.
    const TYPE: u32 = 0o17_0000;
    const CHARACTER_DEVICE: u32 = 0o2_0000;
    let [.., inode, mode, device] = FILE_OFFSETS.load();
    let inode: u64 = read(open_file(descriptor)?, inode)?;
    // The mode has 16 bits; what is read beyond them is masked.
    if read::<u32>(inode, mode)? & TYPE == CHARACTER_DEVICE { read(inode, device) } else { Err(NO_DEVICE) }
}

/// Adds the time since `begin` to the cost of the calls that count.
#[inline(always)]
pub fn add_cost(begin: u64) {
    if let Some(cost) = SYSTEM_CALL_COST.get_ptr_mut(0) {
        // SAFETY: the pointer comes from the map and is not null.
        unsafe {
            add(&raw mut (*cost).count, 1);
            add(&raw mut (*cost).ns, monotonic_ns().wrapping_sub(begin));
        }
    }
}
