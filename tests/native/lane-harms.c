/* Programs that lanes could do harm to. Argument: which. Ends with 0 if it came to none, and prints what the test is to find. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "express.h"

enum { MARKS = 100000, CHILDREN = 100, OF_CHILD = 200, ROUNDS = 600, STACK = 64 << 10, IN_HANDLER = 3, BURST = 5000 };

static unsigned run(unsigned count) {
    for (unsigned number = 0; number < count; ++number) {
        NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "work");
    }
    return count;
}

/* Forbids itself the processor's counter, and so the clock of the vDSO. */
static int forbid_counter(void) {
    if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0)) {
        return 2;
    }
    printf("%u\n", run(MARKS));
    return 0;
}

/* Locks all memory to come, and needs what it may lock. */
static int lock_memory(void) {
    const struct rlimit limit = {8 << 20, 8 << 20};
    unsigned count = 0;
    if (setrlimit(RLIMIT_MEMLOCK, &limit) || setresuid(65534, 65534, 65534) || mlockall(MCL_CURRENT | MCL_FUTURE)) {
        return 2;
    }
    while (count < 20 * MARKS) {
        count += run(1000);
    }
    printf("%u\n", count);
    return mmap(NULL, 3 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}

static volatile sig_atomic_t forks = 0;
static volatile sig_atomic_t is_child = 0;

/* By the system call: libc's function may do more in the child. */
static void fork_here(int number) {
    const int saved = errno;
    (void)number;
    if (!is_child && forks < CHILDREN) {
        const long child = forks % 2 ? fork() : syscall(SYS_clone, SIGCHLD, 0L, 0L, 0L, 0L);
        is_child = child == 0;
        forks += child > 0;
    }
    errno = saved;
}

/* Forks in a signal handler, which may interrupt a mark; the children return from it. Prints the sections of the parent and of
 * the children. */
static int fork_in_handler(void) {
    const struct itimerval often = {{0, 3000}, {0, 3000}}, never = {{0, 0}, {0, 0}};
    struct sigaction action;
    unsigned count = 0, ended = 0;
    int status;
    memset(&action, 0, sizeof action);
    action.sa_handler = fork_here;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    for (unsigned number = 0; number < 100; ++number) {
        count += run(100);
        sleep_ms(5);
    }
    setitimer(ITIMER_REAL, &often, NULL);
    while (!is_child && forks < CHILDREN) {
        {
            NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "work");
            ++count;
        }
        /* The reader is to keep up. */
        for (volatile unsigned pause = 0; pause < 100 && count % 2; ++pause) {
        }
    }
    if (is_child) {
        for (unsigned number = 0; number < OF_CHILD; ++number) {
            NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "child");
        }
        _exit(0);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    while (ended < CHILDREN && wait(&status) > 0) {
        ++ended;
        if (!WIFEXITED(status) || WEXITSTATUS(status)) {
            fprintf(stderr, "a child ended with status %d\n", status);
            return 3;
        }
    }
    printf("%u\n%u\n", count, ended * OF_CHILD);
    return 0;
}

static volatile unsigned in_handler = 0;
static volatile sig_atomic_t marks_in_handler = 0;

static void mark_here(int number) {
    const int saved = errno;
    (void)number;
    if (marks_in_handler) {
        for (unsigned mark = 0; mark < IN_HANDLER; ++mark) {
            {
                NNTRACE_CPU_WITH(NNTRACE_PHASE_EXECUTION, "handler", nntrace_iter(mark));
            }
            {
                NNTRACE_CPU(NNTRACE_PHASE_EXECUTION, "plain");
                ++in_handler;
            }
        }
    }
    errno = saved;
}

/* How much of a signal stack was written to since it was all zeros. */
static size_t used_of(const char *stack) {
    size_t at = 0;
    while (at < STACK && !stack[at]) {
        ++at;
    }
    return STACK - at;
}

/* Marks in handlers on a stack of their own: prints the sections, and by how much more of that stack is used than by handlers
 * without marks. */
static int mark_in_handler(void) {
    struct sigaction action;
    stack_t other;
    size_t without;
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(&action, 0, sizeof action);
    memset(&other, 0, sizeof other);
    other.ss_sp = stack;
    other.ss_size = STACK;
    action.sa_handler = mark_here;
    action.sa_flags = SA_ONSTACK;
    if (stack == MAP_FAILED || sigaltstack(&other, NULL) || sigaction(SIGUSR1, &action, NULL)) {
        return 2;
    }
    errno = 0; /* The handler is not the first to call its function. */
    raise(SIGUSR1);
    without = used_of(stack);
    memset(stack, 0, STACK);
    marks_in_handler = 1;
    /* The handlers make the lane, use it, fill it, and have it replaced. */
    for (unsigned number = 0; number < 1000; ++number) {
        raise(SIGUSR1);
        if (number % 10 == 0 && number < 500) {
            sleep_ms(5);
        }
    }
    printf("%u\n%zu\n", in_handler, used_of(stack) - without);
    return 0;
}

/* Loads a library with marks, has it mark, and unloads it, again and again. Prints its sections. */
static int load(const char *path) {
    const struct rlimit few = {64, 64};
    unsigned count = 0;
    setrlimit(RLIMIT_NOFILE, &few);
    for (unsigned round = 0; round < ROUNDS; ++round) {
        void *library = dlopen(path, RTLD_NOW);
        unsigned (*work)(void) = NULL;
        FILE *file;
        if (!library) {
            fprintf(stderr, "round %u: %s\n", round, dlerror());
            return 3;
        }
        *(void **)&work = dlsym(library, "work");
        count += work();
        dlclose(library);
        file = fopen("/dev/null", "r");
        if (!file) {
            perror("/dev/null");
            return 4;
        }
        fclose(file);
    }
    {
        unsigned read;
        printf("%u\n%llu\n", count, (unsigned long long)mapped_lanes(0, &read));
    }
    return 0;
}

static uint64_t all_sections = 0;

static void *burst(void *nothing) {
    unsigned count = 0;
    for (unsigned number = 0; number < 20; ++number) {
        count += run(BURST);
        sleep_ms(3);
    }
    __atomic_add_fetch(&all_sections, count, __ATOMIC_RELAXED);
    return nothing;
}

/* Threads that mark in bursts once there is a line to read. */
static int crowd(void) {
    pthread_t threads[32];
    char line[16];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    if (!fgets(line, sizeof line, stdin)) {
        return 2;
    }
    for (unsigned number = 0; number < 32; ++number) {
        if (pthread_create(&threads[number], &small, burst, NULL)) {
            return 2;
        }
    }
    for (unsigned number = 0; number < 32; ++number) {
        pthread_join(threads[number], NULL);
    }
    printf("%llu\n", (unsigned long long)all_sections);
    return 0;
}

int main(int count, char **words) {
    const char *which = count > 1 ? words[1] : "";
    return strcmp(which, "counter") == 0  ? forbid_counter()
           : strcmp(which, "locked") == 0 ? lock_memory()
           : strcmp(which, "forks") == 0  ? fork_in_handler()
           : strcmp(which, "stack") == 0  ? mark_in_handler()
           : strcmp(which, "crowd") == 0  ? crowd()
           : count > 2                    ? load(words[2])
                                          : 1;
}
