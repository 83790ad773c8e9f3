/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * libnntrace-hooks.so: has the operators of engines marked in a program that does not know of it. It is loaded before the
 * program (LD_PRELOAD), looks at each object that is loaded, and where the profiler has a plan for its file replaces the
 * addresses of functions in its data by those of thunks. How it works: nntrace-user/docs/hooks.md.
 *
 * It never ends its host, and holds it up for a bounded time: what is not understood, or has no room, is left alone. A file
 * that the profiler has not examined yet is waited for, so that the program calls nothing in it before it is probed.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "plan.h"
#include "relocated.h"

#define EXPORTED __attribute__((visibility("default")))

/* Tells nntrace-bpf that a file is this library, whatever its name. */
EXPORTED extern const int nntrace_hooks_library;
const int nntrace_hooks_library = 1;

/* Variable with the folder of the plans. */
#define VARIABLE "NNTRACE_HOOKS"
/* Objects that are remembered as looked at. */
#define MOST_OBJECTS 1024
/* Time that a program waits until the profiler begins to examine what it has loaded, and until that is done, ns. It waits in vain
 * once. */
#define PATIENCE_BEFORE 500000000L
#define PATIENCE 10000000000L
/* Time between two looks, ns: at first, and at most. */
#define FIRST_LOOK 50000L
#define LAST_LOOK 1000000L

const struct function *nntrace_hook_functions[HOOKS];
uintptr_t nntrace_hook_targets[HOOKS];
static uint32_t hooks;

static void *(*real_dlopen)(const char *, int);
static void *(*real_dlsym)(void *, const char *);
static int (*real_start)(int (*)(int, char **, char **), int, char **, int (*)(int, char **, char **), void (*)(void),
                         void (*)(void), void *);
/* Folder of the plans; empty where there is none. */
static char folder[4096 - 64];

/* Objects that were looked at, by their program headers; loaded and unloaded ones so far, as of then. */
static const ElfW(Phdr) *looked_at[MOST_OBJECTS];
static uint32_t looked_at_count;
static unsigned long long loaded, unloaded;
/* Whether an object with a plan was not relocated yet. */
static bool is_waiting;
/* Files that the profiler has not examined, and whether it examines one. */
static uint32_t unanswered;
static bool is_answer_coming;
/* Whether it was waited for in vain. */
static bool is_impatient;
/* Whether the program has reached its entry point, from which on files are examined. */
static bool has_begun;
/* Thread that is looking; 0 for none. A child that was forked meanwhile has nobody to wait for. */
static int owner;

EXPORTED int __libc_start_main(int (*main)(int, char **, char **), int count, char **words, int (*begin)(int, char **, char **),
                               void (*end)(void), void (*unload)(void), void *stack);

/* ---- Functions that this library stands in front of ------------------------------------------------------------ */

/* Symbol that is looked for. */
struct wanted {
    const char *name;
    uintptr_t address;
    /* Whether this library was passed. */
    bool is_after;
};

static const ElfW(Dyn) *dynamic_of(const struct dl_phdr_info *object) {
    int at;
    for (at = 0; at < object->dlpi_phnum; ++at) {
        if (object->dlpi_phdr[at].p_type == PT_DYNAMIC) {
            return (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[at].p_vaddr);
        }
    }
    return NULL;
}

/* Number of an object's dynamic symbols, by the chains of its hash table. */
static uint32_t symbol_count(const uint32_t *gnu_hash, const uint32_t *hash) {
    uint32_t bucket, last = 0;
    const uint32_t *buckets, *chains;
    if (hash) {
        return hash[1];
    }
    if (!gnu_hash) {
        return 0;
    }
    buckets = gnu_hash + 4 + gnu_hash[2] * (sizeof(ElfW(Addr)) / 4);
    chains = buckets + gnu_hash[0] - gnu_hash[1];
    for (bucket = 0; bucket < gnu_hash[0]; ++bucket) {
        last = buckets[bucket] > last ? buckets[bucket] : last;
    }
    if (last < gnu_hash[1]) {
        return 0;
    }
    while (!(chains[last] & 1)) {
        ++last;
    }
    return last + 1;
}

/* Whether an object is this library. The thunks are nobody else's, as an exported function may be. */
static bool is_this_library(const struct dl_phdr_info *object) {
    const uintptr_t here = (uintptr_t)nntrace_hook_thunks - object->dlpi_addr;
    int at;
    for (at = 0; at < object->dlpi_phnum; ++at) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[at];
        if (header->p_type == PT_LOAD && here >= header->p_vaddr && here - header->p_vaddr < header->p_memsz) {
            return true;
        }
    }
    return false;
}

/* Looks for a symbol in an object after this library. musl does not relocate the addresses of a dynamic section. */
static int find_in(struct dl_phdr_info *object, size_t size, void *data) {
    struct wanted *wanted = data;
    const ElfW(Dyn) *entry = dynamic_of(object);
    const ElfW(Sym) *symbols = NULL;
    const char *texts = NULL;
    const ElfW(Half) *versions = NULL;
    const uint32_t *gnu_hash = NULL, *hash = NULL;
    uint32_t count, at;
    (void)size;
    if (!wanted->is_after) {
        wanted->is_after = is_this_library(object);
        return 0;
    }
    for (; entry && entry->d_tag != DT_NULL; ++entry) {
        const uintptr_t address = entry->d_un.d_ptr < object->dlpi_addr ? object->dlpi_addr + entry->d_un.d_ptr : entry->d_un.d_ptr;
        switch (entry->d_tag) {
        case DT_SYMTAB: symbols = (const ElfW(Sym) *)address; break;
        case DT_STRTAB: texts = (const char *)address; break;
        case DT_VERSYM: versions = (const ElfW(Half) *)address; break;
        case DT_GNU_HASH: gnu_hash = (const uint32_t *)address; break;
        case DT_HASH: hash = (const uint32_t *)address; break;
        default: break;
        }
    }
    count = symbols && texts ? symbol_count(gnu_hash, hash) : 0;
    for (at = 1; at < count; ++at) {
        const ElfW(Sym) *symbol = &symbols[at];
        /* The highest bit of a version hides it: it is an old one. */
        if (symbol->st_shndx != SHN_UNDEF && (symbol->st_info & 15) == STT_FUNC && !(versions && versions[at] & 0x8000) &&
            strcmp(texts + symbol->st_name, wanted->name) == 0) {
            wanted->address = object->dlpi_addr + symbol->st_value;
            return 1;
        }
    }
    return 0;
}

static uintptr_t find(const char *name) {
    struct wanted wanted = {name, 0, false};
    dl_iterate_phdr(find_in, &wanted);
    return wanted.address;
}

static void find_real(void) {
    if (!real_dlsym) {
        real_dlopen = (void *(*)(const char *, int))find("dlopen");
        real_start = (int (*)(int (*)(int, char **, char **), int, char **, int (*)(int, char **, char **), void (*)(void),
                              void (*)(void), void *))find("__libc_start_main");
        real_dlsym = (void *(*)(void *, const char *))find("dlsym");
    }
}

/* ---- Hooking --------------------------------------------------------------------------------------------------- */

/* Returns the number of the thunk for a function; HOOKS where all are taken. */
static uint32_t thunk_for(uintptr_t target, const struct function *function) {
    uint32_t at;
    for (at = 0; at < hooks && nntrace_hook_targets[at] != target; ++at) {
    }
    if (at == hooks && hooks < HOOKS) {
        nntrace_hook_targets[hooks++] = target;
    }
    if (at < HOOKS) {
        /* Of the same address there may have been another object's, which is gone. */
        __atomic_store_n(&nntrace_hook_functions[at], function, __ATOMIC_RELEASE);
    }
    return at;
}

/* Whether a word of an object is in its data. */
static bool is_in_data(const struct dl_phdr_info *object, uint64_t word) {
    int at;
    for (at = 0; at < object->dlpi_phnum; ++at) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[at];
        if (header->p_type == PT_LOAD && header->p_flags & PF_W && word >= header->p_vaddr &&
            word - header->p_vaddr <= header->p_memsz - sizeof(uint64_t) && word % sizeof(uint64_t) == 0) {
            return header->p_memsz >= sizeof(uint64_t);
        }
    }
    return false;
}

/* Changes the protection of what the loader has made read-only after relocation; whether it could. */
static bool protect(const struct dl_phdr_info *object, int protection) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    int at;
    for (at = 0; at < object->dlpi_phnum; ++at) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[at];
        const uintptr_t begin = (object->dlpi_addr + header->p_vaddr) & ~(page - 1);
        const uintptr_t end = (object->dlpi_addr + header->p_vaddr + header->p_memsz) & ~(page - 1);
        if (header->p_type == PT_GNU_RELRO && begin < end && mprotect((void *)begin, end - begin, protection) != 0) {
            return false;
        }
    }
    return true;
}

/* Whether all words of a plan lead to its functions. */
static bool leads_there(const struct dl_phdr_info *object, const struct plan *plan) {
    uint32_t at, word;
    for (at = 0; at < plan->count; ++at) {
        const struct planned *planned = &plan->functions[at];
        for (word = 0; word < planned->word_count; ++word) {
            const uintptr_t place = object->dlpi_addr + planned->words[word];
            if (is_in_data(object, planned->words[word]) &&
                __atomic_load_n((const uintptr_t *)place, __ATOMIC_RELAXED) != object->dlpi_addr + planned->address) {
                return false;
            }
        }
    }
    return true;
}

/* Replaces the addresses of the functions of a plan. */
static void hook(const struct dl_phdr_info *object, const struct plan *plan) {
    uint32_t refused = 0, at, word;
    const bool is_writable = protect(object, PROT_READ | PROT_WRITE);
    for (at = 0; at < plan->count; ++at) {
        const struct planned *planned = &plan->functions[at];
        const uintptr_t target = object->dlpi_addr + planned->address;
        const uint32_t number = is_writable ? thunk_for(target, &planned->function) : HOOKS;
        for (word = 0; word < planned->word_count; ++word) {
            uintptr_t *const place = (uintptr_t *)(object->dlpi_addr + planned->words[word]);
            if (number == HOOKS || !is_in_data(object, planned->words[word])) {
                ++refused;
            } else if (__atomic_load_n(place, __ATOMIC_RELAXED) == target) {
                __atomic_store_n(place, (uintptr_t)nntrace_hook_thunks + number * (uintptr_t)THUNK_BYTES, __ATOMIC_RELEASE);
            }
        }
    }
    (void)protect(object, PROT_READ);
    if (refused) {
        nntrace_hook_refused(refused);
    }
}

/* ---- Objects --------------------------------------------------------------------------------------------------- */

/* Reads how many objects have been loaded and unloaded, from the first one. */
static int count_objects(struct dl_phdr_info *object, size_t size, void *data) {
    unsigned long long *counts = data;
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof object->dlpi_subs) {
        counts[0] = object->dlpi_adds;
        counts[1] = object->dlpi_subs;
    }
    return 1;
}

/* Whether an object was looked at before. */
static bool was_looked_at(const ElfW(Phdr) *headers) {
    uint32_t at;
    for (at = 0; at < looked_at_count; ++at) {
        if (looked_at[at] == headers) {
            return true;
        }
    }
    return false;
}

/* Whether an object has code. The profiler examines no others. */
static bool has_code(const struct dl_phdr_info *object) {
    int at;
    for (at = 0; at < object->dlpi_phnum; ++at) {
        if (object->dlpi_phdr[at].p_type == PT_LOAD && object->dlpi_phdr[at].p_flags & PF_X) {
            return true;
        }
    }
    return false;
}

/* Looks at an object: hooks the functions of its plan, once it is relocated. */
static int look(struct dl_phdr_info *object, size_t size, void *data) {
    const bool is_program = (uintptr_t)object->dlpi_phdr == getauxval(AT_PHDR);
    const char *path = is_program ? "/proc/self/exe" : object->dlpi_name;
    const struct plan *plan = NULL;
    enum progress progress = EXAMINED;
    struct stat status;
    (void)size, (void)data;
    if (was_looked_at(object->dlpi_phdr)) {
        return 0;
    }
    if (path && strchr(path, '/') && has_code(object) && syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0) == 0) {
        progress = nntrace_hook_plan(folder, status.st_dev, status.st_ino, &plan);
    }
    if (progress != EXAMINED) {
        is_answer_coming = is_answer_coming || progress == BEING_EXAMINED;
        ++unanswered;
        if (!is_impatient) {
            return 0;
        }
    }
    if (plan && !nntrace_hook_is_relocated(object->dlpi_addr, object->dlpi_phdr, object->dlpi_phnum, leads_there(object, plan))) {
        /* The thread that loads it looks again. */
        is_waiting = true;
        return 0;
    }
    if (plan) {
        hook(object, plan);
    }
    if (looked_at_count < MOST_OBJECTS) {
        looked_at[looked_at_count++] = object->dlpi_phdr;
    }
    return 0;
}

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

/* Whether this thread may make any system call. Those that find out are calls that loading a library makes as well. */
static bool is_free(void) {
    static const char word[] = "\nSeccomp:\t0\n";
    char text[4096];
    const long file = syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
    long length = 0;
    if (file >= 0) {
        length = syscall(SYS_read, file, text, sizeof text - 1);
        syscall(SYS_close, file);
    }
    text[length > 0 ? length : 0] = '\0';
    return strstr(text, word) != NULL;
}

/* Whether the profiler works on plans: it holds a lock on their folder, which is removed at the end of its run. */
static bool is_at_work(void) {
    const long file = syscall(SYS_openat, AT_FDCWD, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_locked;
    if (file < 0) {
        return false;
    }
    is_locked = syscall(SYS_flock, file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    syscall(SYS_close, file);
    return is_locked;
}

/* By number: a thread may be forbidden to read the counter, which libc does. */
static int64_t now(void) {
    struct timespec time = {0, 0};
    (void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Looks at all objects, until the profiler has examined those that are new. */
static void look_until_answered(void) {
    int64_t start = 0;
    long pause = FIRST_LOOK;
    for (;;) {
        unanswered = 0;
        is_answer_coming = false;
        __atomic_store_n(&is_waiting, false, __ATOMIC_RELAXED);
        dl_iterate_phdr(look, NULL);
        if (!unanswered || is_impatient || !has_begun) {
            return;
        }
        if (!start && !is_free()) {
            is_impatient = true;
        } else if (start && (now() - start > (is_answer_coming ? PATIENCE : PATIENCE_BEFORE) || !is_at_work())) {
            nntrace_hook_unanswered(unanswered);
            is_impatient = true;
        } else {
            start = start ? start : now();
            nntrace_hook_sleep(pause);
            pause = pause * 2 < LAST_LOOK ? pause * 2 : LAST_LOOK;
        }
    }
}

void nntrace_hook_loaded(void) {
    unsigned long long counts[2] = {0, 0};
    const int saved = errno;
    if (!*folder) {
        return;
    }
    dl_iterate_phdr(count_objects, counts);
    if (counts[0] != __atomic_load_n(&loaded, __ATOMIC_RELAXED) || counts[1] != __atomic_load_n(&unloaded, __ATOMIC_RELAXED) ||
        __atomic_load_n(&is_waiting, __ATOMIC_RELAXED)) {
        if (take_turn()) {
            if (counts[1] != unloaded) {
                /* Others may be at their addresses. */
                looked_at_count = 0;
            }
            look_until_answered();
            __atomic_store_n(&loaded, counts[0], __ATOMIC_RELAXED);
            __atomic_store_n(&unloaded, counts[1], __ATOMIC_RELAXED);
            __atomic_store_n(&owner, 0, __ATOMIC_RELEASE);
        }
    }
    errno = saved;
}

/* Loads a library. The C library searches the folders of the one that calls it: only where the path does not depend on these
 * may that be this library. Otherwise it is called by a jump, and the library is looked at before the program finds a
 * function in it. */
EXPORTED void *dlopen(const char *path, int flags) {
    find_real();
    if (!real_dlopen) {
        return NULL; /* A program without it, which only asked whether it is there. */
    }
    if (path && strchr(path, '/') && !strchr(path, '$')) {
        void *opened = real_dlopen(path, flags);
        if (opened) {
            nntrace_hook_loaded();
        }
        return opened;
    }
    return real_dlopen(path, flags);
}

/* Finds a function, of the objects after the one that calls it where the handle says so: by a jump, as above. */
EXPORTED void *dlsym(void *restrict handle, const char *restrict name) {
    find_real();
    nntrace_hook_loaded();
    return real_dlsym ? real_dlsym(handle, name) : NULL;
}

/* Finds the folder of the plans. */
static void set_up(void) {
    const char *found = getenv(VARIABLE);
    find_real();
    if (found && *found == '/' && strlen(found) < sizeof folder) {
        memcpy(folder, found, strlen(found) + 1);
    }
}

__attribute__((constructor)) static void start(void) { set_up(); }

/* Calls the program's main function. The profiler writes the plans for what a program is linked with when that has reached
 * its entry point, after all constructors, which musl calls later: these are the first steps after it. */
EXPORTED int __libc_start_main(int (*main)(int, char **, char **), int count, char **words, int (*begin)(int, char **, char **),
                               void (*end)(void), void (*unload)(void), void *stack) {
    set_up();
    has_begun = true;
    looked_at_count = 0;
    loaded = 0;
    nntrace_hook_loaded();
    return real_start(main, count, words, begin, end, unload, stack);
}
