//! The probed function, and the check whether it is probed.

use core::arch::global_asm;

/// Body of a function with two places that kernels probe without a single step: a nop of five bytes, which newer kernels
/// replace by a call instead of a breakpoint, and a `nop` of one byte, which all kernels emulate: on some kernels the call
/// kills forked children.
#[cfg(target_arch = "x86_64")]
macro_rules! body {
    () => {
        ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x90, 0xc3\n.balign 16, 0xcc"
    };
}
/// Body of a function with two places that kernels probe without a single step: a `nop`, which newer kernels simulate,
/// and the `ret`, which all simulate.
#[cfg(target_arch = "aarch64")]
macro_rules! body {
    () => {
        "nop\nret\n.balign 16"
    };
}

/// Defines a function that is probed. Both places are at the function's entry because a probe may push on the stack, and
/// only here is no red zone in use. The kernel does not replace a nop that crosses a page: the function is aligned.
///
/// The same text as in `nntrace.h`, so that a program of several languages has one function: the linker keeps one of
/// its group. Hidden, so that each library has its own and calls it directly. The note, in the form of SystemTap's
/// probes, identifies it after `strip`.
///
/// Lines after it are for data of its own.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! function {
    ($name:literal, $note:literal, $semaphore:literal, $arguments:literal $(, $line:literal)*) => {
        global_asm!(
            concat!(".ifndef ", $name),
            concat!(".pushsection .text.", $name, ",\"axG\",%progbits,", $name, ",comdat"),
            ".balign 16",
            concat!(".weak ", $name),
            concat!(".hidden ", $name),
            concat!(".type ", $name, ",%function"),
            concat!($name, ":"),
            // By a label of its own: of a function that another file has as well, the size is no constant.
            "990:",
            body!(),
            concat!(".size ", $name, ", . - 990b"),
            ".popsection",
            ".ifndef _.stapsdt.base",
            ".pushsection .stapsdt.base,\"aG\",%progbits,.stapsdt.base,comdat",
            ".weak _.stapsdt.base",
            ".hidden _.stapsdt.base",
            "_.stapsdt.base: .space 1",
            ".size _.stapsdt.base, 1",
            ".popsection",
            ".endif",
            // Owner, type 3; address, base, semaphore; provider, name, arguments.
            concat!(".pushsection .note.stapsdt,\"G\",%note,", $name, ",comdat"),
            ".balign 4",
            ".4byte 8, 992f - 991f, 3",
            ".asciz \"stapsdt\"",
            concat!("991: .8byte ", $name, ", _.stapsdt.base, ", $semaphore),
            concat!(".asciz \"nntrace\", \"", $note, "\", \"", $arguments, "\""),
            "992: .balign 4",
            ".popsection",
            $($line,)*
            ".endif",
        );
    };
}

#[cfg(target_arch = "x86_64")]
function!("tracing_mark_write", "mark", "0", "8@%rdi");
#[cfg(target_arch = "aarch64")]
function!("tracing_mark_write", "mark", "0", "8@x0");

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
// SAFETY: the function above, which takes one pointer and touches nothing.
unsafe extern "C" {
    /// Does nothing: the profiler probes this function, and sees its address and its argument.
    pub safe fn tracing_mark_write(buf: *const u8);
}

/// Does nothing: the profiler probes this function, and sees its address and its argument.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(never)]
// SAFETY: the name is the contract's; no other Rust item of a program exports it, since there is one
// nntrace-common in it.
#[unsafe(no_mangle)]
pub extern "C" fn tracing_mark_write(buf: *const u8) {
    core::hint::black_box(buf);
}

/// First eight bytes of the function while it is not probed.
#[cfg(target_arch = "x86_64")]
const UNPROBED: u64 = 0xccc3_9000_0044_1f0f;
/// First eight bytes of the function while it is not probed.
#[cfg(target_arch = "aarch64")]
const UNPROBED: u64 = 0xd65f_03c0_d503_201f;

/// Whether the function is probed: a probe changes its code, at one of the two places. Always true where that is not
/// known to be so.
#[inline(always)]
pub(super) fn is_probed() -> bool {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        let start = (tracing_mark_write as *const ()).cast::<u64>();
        // SAFETY: the function is 16 bytes long and aligned to 16, and code is readable. Volatile, as the kernel
        // changes it: one load gives its state at one moment.
        let bytes = unsafe { start.read_volatile() };
        bytes != UNPROBED
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    true
}

#[cfg(test)]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod tests {
    use super::*;

    /// The kernel replaces the nop only when it finds exactly this instruction, within one page.
    #[test]
    fn the_function_has_its_two_places() {
        const PLACES: &[u8] = if cfg!(target_arch = "x86_64") {
            &[0x0f, 0x1f, 0x44, 0, 0, 0x90]
        } else {
            &[0x1f, 0x20, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6]
        };
        let start = (tracing_mark_write as *const ()).cast::<u8>();
        // SAFETY: the function is 16 bytes long, and code is readable for as long as the program runs.
        let code = unsafe { core::slice::from_raw_parts(start, PLACES.len()) };
        assert_eq!(code, PLACES);
        assert_eq!(start as usize % 16, 0);
    }

    #[test]
    fn nobody_probes_a_test() {
        assert!(!is_probed());
    }
}
