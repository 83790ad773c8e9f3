/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Thunks of hooked functions on x86-64. The addresses of engines' functions are replaced by theirs: each knows its
 * number, has the start of a section written, calls the function, and has the end written. While nobody listens it
 * jumps on at once.
 */
#if defined(__x86_64__)
#include "limits.h"

    .text
    .balign 64
    .globl nntrace_hook_thunks
    .hidden nntrace_hook_thunks
    .type nntrace_hook_thunks, @function
nntrace_hook_thunks:
    .cfi_startproc
    .set number, 0
    .rept HOOKS
    .balign THUNK_BYTES, 0xcc
    .cfi_def_cfa_offset 8
    endbr64
    cmpw $0, nntrace_lanes_wanted_(%rip)
    jne 1f
    jmp *nntrace_hook_targets + 8 * number(%rip)
1:
    pushq $number
    .cfi_def_cfa_offset 16
    jmp nntrace_hook_call
    .set number, number + 1
    .endr
    .cfi_endproc
    .size nntrace_hook_thunks, . - nntrace_hook_thunks

/* Offsets of the saved registers from the stack pointer. */
#define INTEGERS 0
#define VECTORS 64
#define SAVED (VECTORS + 8 * 16)
/* The frame's size, so that the stack pointer is a multiple of 16 at calls. */
#define FRAME (SAVED + 8)

/* Calls the function with the number on the stack. What carries arguments and results is as it was: general registers,
 * vectors, `al` (the number of vectors) and `r10` (the static chain); nothing here uses the x87 stack. */
    .balign 16
    .type nntrace_hook_call, @function
nntrace_hook_call:
    .cfi_startproc
    .cfi_personality 0x1b, nntrace_hook_personality
    .cfi_def_cfa_offset 16
    pushq %rbp
    .cfi_def_cfa_offset 24
    .cfi_offset %rbp, -24
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    subq $FRAME, %rsp
    movq %rdi, INTEGERS + 0(%rsp)
    movq %rsi, INTEGERS + 8(%rsp)
    movq %rdx, INTEGERS + 16(%rsp)
    movq %rcx, INTEGERS + 24(%rsp)
    movq %r8, INTEGERS + 32(%rsp)
    movq %r9, INTEGERS + 40(%rsp)
    movq %rax, INTEGERS + 48(%rsp)
    movq %r10, INTEGERS + 56(%rsp)
    movaps %xmm0, VECTORS + 0(%rsp)
    movaps %xmm1, VECTORS + 16(%rsp)
    movaps %xmm2, VECTORS + 32(%rsp)
    movaps %xmm3, VECTORS + 48(%rsp)
    movaps %xmm4, VECTORS + 64(%rsp)
    movaps %xmm5, VECTORS + 80(%rsp)
    movaps %xmm6, VECTORS + 96(%rsp)
    movaps %xmm7, VECTORS + 112(%rsp)
    movl 8(%rbp), %edi
    movq %rsp, %rsi
    movq %rbp, %rdx
    call nntrace_hook_enter
    movq %rax, %r11
    movq INTEGERS + 0(%rsp), %rdi
    movq INTEGERS + 8(%rsp), %rsi
    movq INTEGERS + 16(%rsp), %rdx
    movq INTEGERS + 24(%rsp), %rcx
    movq INTEGERS + 32(%rsp), %r8
    movq INTEGERS + 40(%rsp), %r9
    movq INTEGERS + 48(%rsp), %rax
    movq INTEGERS + 56(%rsp), %r10
    movaps VECTORS + 0(%rsp), %xmm0
    movaps VECTORS + 16(%rsp), %xmm1
    movaps VECTORS + 32(%rsp), %xmm2
    movaps VECTORS + 48(%rsp), %xmm3
    movaps VECTORS + 64(%rsp), %xmm4
    movaps VECTORS + 80(%rsp), %xmm5
    movaps VECTORS + 96(%rsp), %xmm6
    movaps VECTORS + 112(%rsp), %xmm7
    call *%r11
    movq %rax, INTEGERS + 0(%rsp)
    movq %rdx, INTEGERS + 8(%rsp)
    movaps %xmm0, VECTORS + 0(%rsp)
    movaps %xmm1, VECTORS + 16(%rsp)
    movq %rbp, %rdi
    call nntrace_hook_leave
    movq INTEGERS + 0(%rsp), %rax
    movq INTEGERS + 8(%rsp), %rdx
    movaps VECTORS + 0(%rsp), %xmm0
    movaps VECTORS + 16(%rsp), %xmm1
    movq %rbp, %rsp
    popq %rbp
    .cfi_def_cfa %rsp, 16
    .cfi_restore %rbp
    addq $8, %rsp
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
    .size nntrace_hook_call, . - nntrace_hook_call
#endif
    .section .note.GNU-stack, "", %progbits
