/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Thunks of hooked functions on arm64, as those of thunks-x86_64.S.
 */
#if defined(__aarch64__)
#include "limits.h"

    .text
    .balign 64
    .globl nntrace_hook_thunks
    .hidden nntrace_hook_thunks
    .type nntrace_hook_thunks, %function
nntrace_hook_thunks:
    .cfi_startproc
    .set number, 0
    .rept HOOKS
    .balign THUNK_BYTES
    hint #34 /* bti c */
    adrp x16, nntrace_lanes_wanted_
    ldrh w16, [x16, :lo12:nntrace_lanes_wanted_]
    cbnz w16, 1f
    adrp x16, nntrace_hook_targets + 8 * number
    ldr x16, [x16, :lo12:nntrace_hook_targets + 8 * number]
    br x16
1:
    mov x16, #number
    b nntrace_hook_call
    .set number, number + 1
    .endr
    .cfi_endproc
    .size nntrace_hook_thunks, . - nntrace_hook_thunks

/* Offsets of the saved registers from the stack pointer, after the frame's record. */
#define INTEGERS 16
#define VECTORS 96
#define FRAME (VECTORS + 8 * 16)

/* Calls the function whose number is in x16. What carries arguments and results is as it was: x0 to x7, x8 (the address
 * of a result in memory) and q0 to q7. */
    .balign 16
    .type nntrace_hook_call, %function
nntrace_hook_call:
    .cfi_startproc
    .cfi_personality 0x1b, nntrace_hook_personality
    stp x29, x30, [sp, #-FRAME]!
    .cfi_def_cfa_offset FRAME
    .cfi_offset x29, -FRAME
    .cfi_offset x30, -(FRAME - 8)
    mov x29, sp
    .cfi_def_cfa_register x29
    stp x0, x1, [sp, #INTEGERS + 0]
    stp x2, x3, [sp, #INTEGERS + 16]
    stp x4, x5, [sp, #INTEGERS + 32]
    stp x6, x7, [sp, #INTEGERS + 48]
    str x8, [sp, #INTEGERS + 64]
    stp q0, q1, [sp, #VECTORS + 0]
    stp q2, q3, [sp, #VECTORS + 32]
    stp q4, q5, [sp, #VECTORS + 64]
    stp q6, q7, [sp, #VECTORS + 96]
    mov w0, w16
    add x1, sp, #INTEGERS
    mov x2, x29
    bl nntrace_hook_enter
    mov x17, x0
    ldp x0, x1, [sp, #INTEGERS + 0]
    ldp x2, x3, [sp, #INTEGERS + 16]
    ldp x4, x5, [sp, #INTEGERS + 32]
    ldp x6, x7, [sp, #INTEGERS + 48]
    ldr x8, [sp, #INTEGERS + 64]
    ldp q0, q1, [sp, #VECTORS + 0]
    ldp q2, q3, [sp, #VECTORS + 32]
    ldp q4, q5, [sp, #VECTORS + 64]
    ldp q6, q7, [sp, #VECTORS + 96]
    blr x17
    stp x0, x1, [sp, #INTEGERS + 0]
    stp q0, q1, [sp, #VECTORS + 0]
    stp q2, q3, [sp, #VECTORS + 32]
    mov x0, x29
    bl nntrace_hook_leave
    ldp x0, x1, [sp, #INTEGERS + 0]
    ldp q0, q1, [sp, #VECTORS + 0]
    ldp q2, q3, [sp, #VECTORS + 32]
    ldp x29, x30, [sp], #FRAME
    .cfi_def_cfa sp, 0
    .cfi_restore x29
    .cfi_restore x30
    ret
    .cfi_endproc
    .size nntrace_hook_call, . - nntrace_hook_call
#endif
    .section .note.GNU-stack, "", %progbits
