//! Keeping of a program's frames on the kernel stack of the current task.
//!
//! From Linux 6.13 on the verifier may give a program a private stack, one per CPU, assuming that no second run of it
//! starts on that CPU before the first has ended. For programs on user functions that does not hold: they are
//! preempted, and may sleep, and nothing counts their runs. The second run then overwrites the frames of the first.
//! On 6.18 a target died of it in `mm/usercopy.c`.
//!
//! A program with a tail call gets no private stack. The verifier looks for one before it walks the program; a tail
//! call that is never reached counts, is not checked further, and is removed before the program is compiled.
//!
//! Source: `bpf_enable_priv_stack`, `check_subprogs` and `check_max_stack_depth` in kernel/bpf/verifier.c.

use aya_ebpf::Global;

/// Always 0: user space does not set it.
#[unsafe(no_mangle)]
static TAIL_CALLS: Global<u32> = Global::new(0);

/// Makes the verifier keep the frames of this program on the task's stack; each program on a user function begins
/// with it.
#[inline(always)]
pub fn keep_frames() {
    if TAIL_CALLS.load() != 0 {
        // SAFETY: never reached, as the verifier proves; the registers are those that a helper changes.
        unsafe {
            core::arch::asm!(
                "call 12", // BPF_FUNC_tail_call
                out("r0") _, out("r1") _, out("r2") _, out("r3") _, out("r4") _, out("r5") _,
            );
        }
    }
}
