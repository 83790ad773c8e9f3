/* Processes and threads that come and go while lanes are up. The first argument:
 *   fork              a child and its child, which mark at the same time as the parent
 *   inherit           forks a child in a section, which is ended in both, over and over
 *   vfork             a child that borrows the memory, marks, and executes this program
 *   exec              executes this program from the main thread, with a lane
 *   exec-thread       the same from another thread
 *   threads N         N threads, one after the other by fours, each with its lane
 *   left N            N threads, each of which leaves two sections open, half of them by pthread_exit
 *   child             only writes sections
 * Each that is not one of many threads waits for its lane, in sections of another name.
 * Ends with 0 when all of its children did. */

#define _GNU_SOURCE
#include <pthread.h>
#include <sys/wait.h>

#include "express.h"

enum { SECTIONS = 200, AT_ONCE = 4, SHORT = 100, INHERITED = 40, BORROWED = 10, BEFORE_LANE = 40, PAUSE_MS = 100 };

static void parent_section(void) { NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "parent"); }
static void child_section(void) { NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "child"); }
static void grandchild_section(void) { NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "grandchild"); }
static void thread_section(void) { NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "thread"); }

static void waiting(void) { NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "waiting"); }

/* Waits for a lane, and writes sections. */
static void mark(void (*section)(void)) {
    await_lanes(1, waiting);
    for (int number = 0; number < SECTIONS; ++number) {
        section();
    }
}

static int ended_well(pid_t child) {
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static int with_forks(void) {
    pid_t child;
    mark(parent_section);
    child = fork();
    if (child == 0) {
        pid_t grandchild;
        mark(child_section);
        grandchild = fork();
        if (grandchild == 0) {
            mark(grandchild_section);
            _exit(0);
        }
        mark(child_section);
        _exit(ended_well(grandchild) ? 0 : 1);
    }
    mark(parent_section);
    return ended_well(child) ? 0 : 1;
}

static int with_inherited_sections(void) {
    mark(parent_section);
    for (int number = 0; number < INHERITED; ++number) {
        nntrace_section section = NNTRACE_BEGIN(NNTRACE_LAYER_RUNTIME, NNTRACE_PHASE_EXECUTION, "inherited");
        const pid_t child = fork();
        if (child == 0) {
            child_section();
            nntrace_end(&section);
            child_section();
            _exit(0);
        }
        parent_section();
        nntrace_end(&section);
        if (!ended_well(child)) {
            return 1;
        }
    }
    return 0;
}

static void execute(void) {
    const char *const words[] = {"express-processes", "child", NULL};
    execv("/proc/self/exe", (char *const *)(uintptr_t)words);
    _exit(3);
}

static int with_vfork(void) {
    for (int number = 0; number < 3; ++number) {
        mark(parent_section);
        const pid_t child = vfork();
        if (child == 0) {
            for (int borrowed = 0; borrowed < BORROWED; ++borrowed) {
                NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "borrowed");
            }
            execute();
        }
        mark(parent_section);
        if (!ended_well(child)) {
            return 1;
        }
    }
    return 0;
}

static void *execute_from_thread(void *nothing) {
    mark(thread_section);
    execute();
    return nothing;
}

static void *be_short(void *nothing) {
    for (int number = 0; number < SHORT; ++number) {
        thread_section();
    }
    return nothing;
}

static void *leave_open(void *is_by_exit) {
    for (int number = 0; number < SECTIONS; ++number) {
        thread_section();
        if (number == BEFORE_LANE) {
            sleep_ms(PAUSE_MS); /* Until it probably has a lane. */
        }
    }
    /* Where nobody listens these are not open. */
    (void)NNTRACE_BEGIN(NNTRACE_LAYER_RUNTIME, NNTRACE_PHASE_TERMINATION, "left");
    (void)NNTRACE_BEGIN_WITH(NNTRACE_LAYER_RUNTIME, NNTRACE_PHASE_TERMINATION, "left with", nntrace_number("size", 1));
    if (is_by_exit) {
        pthread_exit(NULL);
    }
    return NULL;
}

static int with_threads(int count, int at_once, void *(*run)(void *)) {
    pthread_t threads[AT_ONCE * 16];
    for (int begin = 0; begin < count; begin += at_once) {
        int number = 0;
        for (; number < at_once && begin + number < count; ++number) {
            if (pthread_create(&threads[number], NULL, run, number % 2 ? threads : NULL)) {
                return 1;
            }
        }
        while (number > 0) {
            pthread_join(threads[--number], NULL);
        }
    }
    return 0;
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    const int number = count > 2 ? atoi(words[2]) : 0;
    pthread_t thread;
    if (strcmp(what, "fork") == 0) {
        return with_forks();
    }
    if (strcmp(what, "inherit") == 0) {
        return with_inherited_sections();
    }
    if (strcmp(what, "vfork") == 0) {
        return with_vfork();
    }
    if (strcmp(what, "exec") == 0) {
        mark(parent_section);
        execute();
    }
    if (strcmp(what, "exec-thread") == 0) {
        mark(parent_section);
        return pthread_create(&thread, NULL, execute_from_thread, NULL) || pthread_join(thread, NULL);
    }
    if (strcmp(what, "threads") == 0) {
        return with_threads(number, AT_ONCE, be_short);
    }
    if (strcmp(what, "left") == 0) {
        return with_threads(number, AT_ONCE * 16, leave_open);
    }
    if (strcmp(what, "child") == 0) {
        mark(child_section);
        return 0;
    }
    return 2;
}
