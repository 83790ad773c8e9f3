/* A program that confines itself by seccomp. Arguments: how, and when.
 *   refused     the system calls that a lane needs fail by EPERM
 *   killed      they are deadly
 *   listed      all are deadly but the few that are needed here
 *   strict      the same by the kernel's oldest mode
 * and when:
 *   first       before it prints that it is ready
 *   thread      the same, but not in the main thread, which writes no marks
 *   later       while it has a lane, and marks at once
 *   noticed     while it has a lane, prints that it is confined, and waits for a line
 * When it is ready it waits for a line, writes sections, and prints how many. */

#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "express.h"

enum { EARLY = 200, LATE = 20000 };

static const char *how;
static int is_later = 0, is_noticed = 0;

#define NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define IF(name, action) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, action)
#define ELSE(action) BPF_STMT(BPF_RET | BPF_K, action)

/* What a thread needs that only reads, writes and marks. */
#define WORKS SECCOMP_RET_ALLOW
static struct sock_filter listed[] = {
    NUMBER,
    IF(read, WORKS),
    IF(write, WORKS),
    IF(exit, WORKS),
    IF(exit_group, WORKS),
    IF(clock_gettime, WORKS),
    IF(futex, WORKS),
    IF(madvise, WORKS), /* By libc, at the end of a thread. */
    IF(rt_sigprocmask, WORKS),
    IF(rt_sigreturn, WORKS),
    ELSE(SECCOMP_RET_KILL_PROCESS),
};

/* Of those that a lane needs, those that nothing else here does. */
#define FAILS (SECCOMP_RET_ERRNO | EPERM)
static struct sock_filter refused[] = {
    NUMBER,
    IF(memfd_create, FAILS),
    IF(fallocate, FAILS),
    IF(mmap, FAILS),
    IF(munmap, FAILS),
    IF(fcntl, FAILS),
    IF(prlimit64, FAILS),
    IF(fstat, FAILS),
    IF(tgkill, FAILS),
    ELSE(SECCOMP_RET_ALLOW),
};

#define KILLS SECCOMP_RET_KILL_PROCESS
static struct sock_filter killed[] = {
    NUMBER,
    IF(memfd_create, KILLS),
    IF(fallocate, KILLS),
    IF(fcntl, KILLS),
    IF(prlimit64, KILLS),
    IF(tgkill, KILLS),
    ELSE(SECCOMP_RET_ALLOW),
};

static void set(struct sock_filter *filter, size_t bytes) {
    const struct sock_fprog program = {(unsigned short)(bytes / sizeof *filter), filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)) {
        _exit(4);
    }
}

static void confine(void) {
    if (strcmp(how, "refused") == 0) {
        set(refused, sizeof refused);
    } else if (strcmp(how, "killed") == 0) {
        set(killed, sizeof killed);
    } else if (strcmp(how, "listed") == 0) {
        set(listed, sizeof listed);
    } else if (strcmp(how, "strict") != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0)) {
        _exit(4);
    }
}

static void section(void) { NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "work"); }

static unsigned run(unsigned count) {
    for (unsigned number = 0; number < count; ++number) {
        section();
    }
    return count;
}

static void say(const char *text) {
    if (write(STDOUT_FILENO, text, strlen(text)) < 0) {
        _exit(3);
    }
}

static void await_line(void) {
    char byte;
    do {
        if (read(STDIN_FILENO, &byte, 1) != 1) {
            _exit(3);
        }
    } while (byte != '\n');
}

static void *work(void *nothing) {
    unsigned count = 0;
    char text[32];
    if (!is_later) {
        confine();
    }
    say("ready\n");
    await_line();
    count += run(EARLY);
    if (is_later) {
        count += await_lanes(1, section) + run(EARLY);
        confine();
    }
    if (is_noticed) {
        say("confined\n");
        await_line();
    }
    /* More than a ring has room for. */
    count += run(LATE);
    snprintf(text, sizeof text, "%u\n", count);
    say(text);
    return nothing;
}

int main(int count, char **words) {
    pthread_t thread;
    if (count != 3) {
        return 2;
    }
    how = words[1];
    is_noticed = strcmp(words[2], "noticed") == 0;
    is_later = is_noticed || strcmp(words[2], "later") == 0;
    if (strcmp(words[2], "thread") == 0) {
        if (pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, NULL)) {
            return 1;
        }
    } else {
        work(NULL);
    }
    /* Strictly confined, libc's end of the program is deadly, too. */
    syscall(SYS_exit, 0);
    return 0;
}
