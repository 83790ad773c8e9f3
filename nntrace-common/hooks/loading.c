/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * libnntrace-hooks.so: marks the operators of engines in a program that was not built for it. It is loaded before the
 * program (LD_PRELOAD), looks at each object that is loaded, and where the profiler has a plan for its file replaces the
 * addresses of functions in its data by those of thunks. How it works: nntrace-user/docs/hooks.md.
 *
 * It never ends its host, and holds it up for a bounded time: what is not understood, or has no room, is left alone. A file
 * that the profiler has not examined yet is waited for, so that the program calls nothing in it before it is probed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "loading.h"

#define EXPORTED __attribute__((visibility("default")))

/* Symbol by which nntrace-bpf recognizes this library under any file name. */
EXPORTED extern const int nntrace_hooks_library;
const int nntrace_hooks_library = 1;

/* Folder of the plans, beside this library. */
#define PLANS "/plans"
/* Time that a program waits for the profiler to examine what it has loaded, and how much of it without a break in which nothing is
 * examined, ns. After a wait in vain it does not wait again until all that it has loaded is examined. */
#define PATIENCE 10000000000L
#define PATIENCE_IDLE 500000000L
/* Time between two looks, ns: at first, and at most. */
#define FIRST_LOOK 50000L
#define LAST_LOOK 1000000L

/* Type of `main`. */
typedef int main_function(int, char **, char **);

static void *(*real_dlopen)(const char *, int);
static void *(*real_dlsym)(void *, const char *);
static int (*real_dlclose)(void *);
static int (*real_start)(main_function *, int, char **, main_function *, void (*)(void), void (*)(void), void *);

/* Folder of the plans; empty where nothing is hooked. */
static char folder[4096 - 64];
/* Whether the program has reached its entry point, from which on files are examined. */
static bool has_begun;
/* Whether the last wait was in vain. */
static bool is_impatient;
/* Whether objects were unloaded. */
static bool has_unloaded;
/* Thread that is looking; 0 for none. A child that was forked meanwhile has nobody to wait for. */
static int owner;

/* Page whose first word is 0 in a forked child that has not looked yet; NULL if there is no such page. If another thread of the
 * parent held the loader's lock at the fork, nothing releases it in the child. */
static uint32_t *has_looked;
/* Process in which this thread has loaded something that it could not look at; 0 for none. */
static __thread int has_more_in;

EXPORTED int __libc_start_main(main_function *main, int count, char **words, main_function *begin, void (*end)(void),
                               void (*unload)(void), void *stack);

/* Waits until no other thread looks; false in a signal handler that interrupts one which does. */
static bool take_turn(void) {
    const int self = (int)syscall(SYS_gettid);
    int holder = 0;
    while (!__atomic_compare_exchange_n(&owner, &holder, self, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        if (holder == self) {
            return false;
        }
        if (syscall(SYS_tgkill, getpid(), holder, 0) != 0) {
            /* The parent's, at the fork. */
            __atomic_compare_exchange_n(&owner, &holder, 0, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        }
        holder = 0;
        nntrace_hook_sleep(FIRST_LOOK);
    }
    return true;
}

/* Takes the turn unless another thread looks. */
static bool try_turn(void) {
    int holder = 0;
    return __atomic_compare_exchange_n(&owner, &holder, (int)syscall(SYS_gettid), 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* By number: a thread may be forbidden to read the counter, which libc does. */
static int64_t now(void) {
    struct timespec time = {0, 0};
    (void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Looks at all objects, until the profiler has examined those that are new; returns whether another look would find more. */
static bool look_until_answered(void) {
    int64_t start = 0, last_busy = 0;
    long pause = FIRST_LOOK;
    for (;;) {
        const struct look look = nntrace_hook_look(folder);
        const int64_t time = look.unanswered ? now() : 0;
        if (look.leaves_more) {
            continue;
        }
        if (!look.unanswered) {
            is_impatient = false;
            return look.is_incomplete;
        }
        if (is_impatient || !has_begun) {
            return true;
        }
        start = start ? start : time;
        if (!last_busy || look.is_answer_coming || nntrace_hook_is_busy(folder)) {
            last_busy = time;
        }
        if (!nntrace_hook_is_at_work(folder) || time - start > PATIENCE || time - last_busy > PATIENCE_IDLE) {
            nntrace_hook_unanswered(look.unanswered);
            is_impatient = true;
            if (syscall(SYS_faccessat, AT_FDCWD, folder, F_OK) != 0) {
                *folder = '\0'; /* The run has ended. */
            }
            return true;
        }
        nntrace_hook_sleep(pause);
        pause = pause * 2 < LAST_LOOK ? pause * 2 : LAST_LOOK;
    }
}

/* Looks at what has been loaded since the last look, and hooks what the plans say. */
static void look_at_new(void) {
    const int saved = errno;
    has_more_in = 0;
    /* A thread under a filter has no lane, and some system calls may be its last. */
    if (*folder && nntrace_hook_is_free() && take_turn()) {
        __atomic_store_n(&has_unloaded, false, __ATOMIC_RELAXED);
        has_more_in = look_until_answered() && !is_impatient ? getpid() : 0;
        if (has_looked) {
            __atomic_store_n(has_looked, 1, __ATOMIC_RELAXED);
        }
        __atomic_store_n(&owner, 0, __ATOMIC_RELEASE);
    }
    errno = saved;
}

/* Whether an object was looked at, by its handle. */
static bool is_known(const void *handle) {
    return nntrace_hook_was_looked_at(((const struct link_map *)handle)->l_ld);
}

/* Whether this thread has more to look at, in this process. */
static bool has_more(void) { return has_more_in && has_more_in == getpid(); }

/* Whether looking is safe without having loaded anything. */
static bool may_look(void) { return has_looked && __atomic_load_n(has_looked, __ATOMIC_RELAXED); }

/* Finds what this library stands in front of. */
static void find_real(void) {
    if (!real_dlsym) {
        real_dlopen = (void *(*)(const char *, int))nntrace_hook_next("dlopen");
        real_dlclose = (int (*)(void *))nntrace_hook_next("dlclose");
        real_start = (int (*)(main_function *, int, char **, main_function *, void (*)(void), void (*)(void),
                              void *))nntrace_hook_next("__libc_start_main");
        real_dlsym = (void *(*)(void *, const char *))nntrace_hook_next("dlsym");
    }
}

/* Loads a library. The C library searches the folders of the one that calls it: only where the path does not depend on these
 * may that be this library. Otherwise it is called by a jump, and the library is looked at before the thread finds a
 * function in it. */
EXPORTED void *dlopen(const char *path, int flags) {
    find_real();
    if (!real_dlopen) {
        return NULL; /* A program without it, which only asked whether it is there. */
    }
    if (path && strchr(path, '/') && !strchr(path, '$')) {
        void *opened = real_dlopen(path, flags);
        if (opened && (!is_known(opened) ||
                       (may_look() && (has_more() || __atomic_load_n(&has_unloaded, __ATOMIC_RELAXED))))) {
            look_at_new();
        }
        return opened;
    }
    if (path && has_begun && *folder) {
        has_more_in = getpid();
    }
    return real_dlopen(path, flags);
}

/* Forgets unloaded objects. Those still loaded are kept: another file may be at their paths by now. If it is not possible now, the
 * next look does it. */
static void forget_unloaded(void) {
    const int saved = errno;
    if (may_look() && *folder && nntrace_hook_is_free() && try_turn()) {
        __atomic_store_n(&has_unloaded, false, __ATOMIC_RELAXED);
        nntrace_hook_forget_unloaded();
        __atomic_store_n(&owner, 0, __ATOMIC_RELEASE);
    }
    errno = saved;
}

/* Unloads a library. */
EXPORTED int dlclose(void *handle) {
    int result;
    find_real();
    if (!real_dlclose) {
        return -1;
    }
    if (!may_look()) {
        nntrace_hook_forget(((const struct link_map *)handle)->l_ld);
    }
    __atomic_store_n(&has_unloaded, true, __ATOMIC_RELAXED);
    result = real_dlclose(handle);
    /* Again: a look in between has seen what is gone now. */
    __atomic_store_n(&has_unloaded, true, __ATOMIC_RELAXED);
    forget_unloaded();
    return result;
}

/* Finds a function, of the objects after the one that calls it where the handle says so: by a jump, as above. */
EXPORTED void *dlsym(void *restrict handle, const char *restrict name) {
    find_real();
    if (has_begun && has_more() && (may_look() || (handle != RTLD_DEFAULT && handle != RTLD_NEXT && !is_known(handle)))) {
        look_at_new();
    }
    return real_dlsym ? real_dlsym(handle, name) : NULL;
}

/* Finds the folder of the plans. */
static void set_up(void) {
    find_real();
    if (!*folder && nntrace_hook_own_folder(folder, sizeof folder - sizeof PLANS)) {
        memcpy(folder + strlen(folder), PLANS, sizeof PLANS);
    }
}

__attribute__((constructor)) static void start(void) { set_up(); }

/* Calls the program's main function. The profiler writes the plans for what a program is linked with when that has reached
 * its entry point, after all constructors, which musl calls later: these are the first steps after it. */
EXPORTED int __libc_start_main(main_function *main, int count, char **words, main_function *begin, void (*end)(void),
                               void (*unload)(void), void *stack) {
    set_up();
    if (nntrace_hook_is_free()) {
        void *page = mmap(NULL, sizeof *has_looked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page != MAP_FAILED && syscall(SYS_madvise, page, sizeof *has_looked, MADV_WIPEONFORK) == 0) {
            has_looked = page;
        }
        has_begun = true;
        look_at_new();
    } else {
        *folder = '\0';
    }
    return real_start(main, count, words, begin, end, unload, stack);
}
