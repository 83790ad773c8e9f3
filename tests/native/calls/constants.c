/* Functions with constants among their instructions, as hand-written assembly has: what they compute depends on them. */
#include <stdio.h>

unsigned over(unsigned n), behind(unsigned n), by_table(unsigned n);

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl over\n.type over, @function\n"
        "over: lea 2f(%rip), %rax\n mov (%rax), %eax\n jmp 1f\n2: .long 0xc3c3c3c3\n1: add %edi, %eax\n ret\n.size over, .-over\n"
        ".globl behind\n.type behind, @function\n"
        "behind: mov 3f(%rip), %eax\n add %edi, %eax\n ret\n3: .long 0xc3c3c3c3\n.size behind, .-behind\n"
        ".globl by_table\n.type by_table, @function\n"
        "by_table: lea 4f(%rip), %rcx\n mov %edi, %eax\n and $1, %eax\n movslq (%rcx, %rax, 4), %rax\n add %rcx, %rax\n jmp *%rax\n"
        "4: .long 5f-4b, 6f-4b\n5: mov $0xc3c3c3c3, %eax\n add %edi, %eax\n ret\n6: mov $0xc3c3c3c3, %eax\n add %edi, %eax\n ret\n"
        ".size by_table, .-by_table\n");
#else
__asm__(".text\n"
        ".globl over\n.type over, %function\n"
        "over: adr x1, 2f\n ldr w1, [x1]\n b 1f\n2: .word 0xd65f03c0\n1: add w0, w0, w1\n ret\n.size over, .-over\n"
        ".globl behind\n.type behind, %function\n"
        "behind: ldr w1, 3f\n add w0, w0, w1\n ret\n3: .word 0xd65f03c0\n.size behind, .-behind\n"
        ".globl by_table\n.type by_table, %function\n"
        "by_table: tbz w0, 0, 5f\n ldr w1, 4f\n add w0, w0, w1\n ret\n4: .word 0xd65f03c0\n5: ldr w1, 4b\n add w0, w0, w1\n ret\n"
        ".size by_table, .-by_table\n");
#endif

int main(void) {
    /* What they compute when nobody looks. */
    unsigned constant = over(0), wrong = 0;
    for (unsigned n = 0; n < 1000; n++) {
        wrong += over(n) != constant + n || behind(n) != constant + n || by_table(n) != constant + n;
    }
    printf("wrong %u, %s\n", wrong, constant == 0xc3c3c3c3u || constant == 0xd65f03c0u ? "as written" : "changed");
    return wrong != 0;
}
