/* Executes a program under a filter that ends it at system calls which neither it nor its loader makes. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENDS_AT(number) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

int main(int count, char **words) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ENDS_AT(SYS_gettid),
        ENDS_AT(SYS_tgkill),
#ifdef SYS_access
        /* Elsewhere loaders make it. */
        ENDS_AT(SYS_faccessat),
#endif
        ENDS_AT(SYS_flock),
        ENDS_AT(SYS_nanosleep),
        ENDS_AT(SYS_clock_gettime),
        ENDS_AT(SYS_prctl),
        ENDS_AT(SYS_madvise),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof steps / sizeof steps[0], steps};
    if (count < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        perror("no filter");
        return 2;
    }
    execv(words[1], words + 1);
    perror(words[1]);
    return 2;
}
