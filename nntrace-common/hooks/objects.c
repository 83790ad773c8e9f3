/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Objects of the process: which are new, and what is hooked in them.
 *
 * A look at them has three steps. The loader's list is read, files are looked up, and functions are hooked: the first and the last
 * while the loader's lock is held, so that nothing is unloaded meanwhile, and only what does not take long. A child that is
 * forked while another thread holds that lock never gets it.
 */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loading.h"
#include "plan.h"
#include "relocated.h"

/* Objects that are remembered as looked at. */
#define MOST_OBJECTS 4096
/* Objects that are looked up at a time, and bytes of their names. */
#define MOST_NEW 256
#define NAME_BYTES 65536

const struct function *nntrace_hook_functions[HOOKS];
uintptr_t nntrace_hook_targets[HOOKS];
static uint32_t hooks;

/* Objects that were looked at, by their dynamic sections. */
static const void *looked_at[MOST_OBJECTS];
static uint32_t looked_at_count;
/* Numbers of objects loaded and unloaded up to the last look: dlpi_adds and dlpi_subs. */
static unsigned long long loaded, unloaded;
/* Whether objects were only unloaded since: the remaining ones are unchanged. */
static bool is_fewer;
/* Which of those that were looked at are still in the loader's list. */
static bool is_there[MOST_OBJECTS];
/* Whether the next object is the first one of the list. */
static bool is_first;

/* Object that was not looked at. */
static struct new_object {
    const void *dynamic;
    const char *path;
    /* Whether its file has code. Only such files are examined by the profiler. */
    bool has_code;
    enum progress progress;
    const struct plan *plan;
} new_objects[MOST_NEW];
static uint32_t new_count;
/* Number of them that were finished. */
static uint32_t finished_count;
static char names[NAME_BYTES];
static size_t name_bytes;
/* Whether an object with a plan was not relocated yet. */
static bool is_incomplete;

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
        /* An object that is gone may have had a function at the same address. */
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

/* Whether an address is that of a thunk. */
static bool is_thunk(uintptr_t address) {
    return address - (uintptr_t)nntrace_hook_thunks < HOOKS * (uintptr_t)THUNK_BYTES;
}

/* Whether all words of a plan lead to its functions, or to thunks already. */
static bool leads_there(const struct dl_phdr_info *object, const struct plan *plan) {
    uint32_t at, word;
    for (at = 0; at < plan->count; ++at) {
        const struct planned *planned = &plan->functions[at];
        for (word = 0; word < planned->word_count; ++word) {
            const uintptr_t *place = (const uintptr_t *)(object->dlpi_addr + planned->words[word]);
            const uintptr_t target = object->dlpi_addr + planned->address;
            const uintptr_t value =
                is_in_data(object, planned->words[word]) ? __atomic_load_n(place, __ATOMIC_RELAXED) : target;
            if (value != target && !is_thunk(value)) {
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

/* ---- Looking --------------------------------------------------------------------------------------------------- */

static const void *dynamic_section(const struct dl_phdr_info *object) {
    int at;
    for (at = 0; at < object->dlpi_phnum; ++at) {
        if (object->dlpi_phdr[at].p_type == PT_DYNAMIC) {
            return (const void *)(object->dlpi_addr + object->dlpi_phdr[at].p_vaddr);
        }
    }
    return NULL;
}

static bool has_code(const struct dl_phdr_info *object) {
    int at;
    for (at = 0; at < object->dlpi_phnum; ++at) {
        if (object->dlpi_phdr[at].p_type == PT_LOAD && object->dlpi_phdr[at].p_flags & PF_X) {
            return true;
        }
    }
    return false;
}

static const char *path_of(const struct dl_phdr_info *object) {
    const bool is_program = (uintptr_t)object->dlpi_phdr == getauxval(AT_PHDR);
    return is_program ? "/proc/self/exe" : object->dlpi_name ? object->dlpi_name : "";
}

/* Returns the place of an object among those that were looked at; MOST_OBJECTS if it was not. */
static uint32_t place_of(const void *dynamic) {
    const uint32_t count = __atomic_load_n(&looked_at_count, __ATOMIC_ACQUIRE);
    uint32_t at;
    for (at = 0; at < count; ++at) {
        if (__atomic_load_n(&looked_at[at], __ATOMIC_RELAXED) == dynamic) {
            return at;
        }
    }
    return MOST_OBJECTS;
}

bool nntrace_hook_was_looked_at(const void *dynamic) { return place_of(dynamic) < MOST_OBJECTS; }

void nntrace_hook_forget(const void *dynamic) {
    const uint32_t at = place_of(dynamic);
    if (at < MOST_OBJECTS) {
        __atomic_store_n(&looked_at[at], NULL, __ATOMIC_RELAXED);
    }
}

/* Drops remembered objects if any were unloaded since the last look: their addresses may be used again. */
static void forget_unloaded(const struct dl_phdr_info *object) {
    is_fewer = object->dlpi_subs != unloaded && object->dlpi_adds == loaded;
    if (is_fewer) {
        memset(is_there, 0, sizeof is_there);
    } else if (object->dlpi_subs != unloaded) {
        __atomic_store_n(&looked_at_count, 0, __ATOMIC_RELAXED);
    }
    loaded = object->dlpi_adds;
    unloaded = object->dlpi_subs;
}

/* Marks an object as present; returns its place. */
static uint32_t see(const struct dl_phdr_info *object, const void *dynamic) {
    uint32_t place;
    if (is_first) {
        is_first = false;
        forget_unloaded(object);
    }
    place = dynamic ? place_of(dynamic) : MOST_OBJECTS;
    if (place < MOST_OBJECTS) {
        is_there[place] = true;
    }
    return place;
}

static int see_only(struct dl_phdr_info *object, size_t size, void *data) {
    (void)size, (void)data;
    (void)see(object, dynamic_section(object));
    return 0;
}

/* Walks the loader's list, and drops remembered objects that are gone. */
static void go_through(int (*take)(struct dl_phdr_info *, size_t, void *), void *data) {
    uint32_t at;
    is_first = true;
    is_fewer = false;
    dl_iterate_phdr(take, data);
    for (at = 0; is_fewer && at < looked_at_count; ++at) {
        if (!is_there[at]) {
            __atomic_store_n(&looked_at[at], NULL, __ATOMIC_RELAXED);
        }
    }
}

void nntrace_hook_forget_unloaded(void) { go_through(see_only, NULL); }

/* Takes an object of the loader's list, if it is new. */
static int take_new(struct dl_phdr_info *object, size_t size, void *data) {
    const void *dynamic = dynamic_section(object);
    const char *path = path_of(object);
    const size_t length = strlen(path) + 1;
    bool *is_full = data;
    (void)size;
    if (see(object, dynamic) < MOST_OBJECTS || !dynamic) {
        return 0;
    }
    if (new_count == MOST_NEW || length > sizeof names - name_bytes) {
        *is_full = true;
        return 0;
    }
    new_objects[new_count] =
        (struct new_object){dynamic, memcpy(names + name_bytes, path, length), has_code(object), EXAMINED, NULL};
    name_bytes += length;
    ++new_count;
    return 0;
}

/* Looks up the file of an object. */
static void look_up(struct new_object *object, const char *folder) {
    struct stat status;
    if (object->has_code && strchr(object->path, '/') && syscall(SYS_newfstatat, AT_FDCWD, object->path, &status, 0) == 0) {
        object->progress = nntrace_hook_plan(folder, &status, &object->plan);
    }
}

/* Hooks the functions of an object's plan, once it is relocated. */
static int finish_new(struct dl_phdr_info *object, size_t size, void *data) {
    const void *dynamic = dynamic_section(object);
    const struct new_object *found = NULL;
    uint32_t at;
    (void)size, (void)data;
    for (at = 0; at < new_count && !found; ++at) {
        /* Another one may have taken its place. */
        if (new_objects[at].dynamic == dynamic && strcmp(new_objects[at].path, path_of(object)) == 0) {
            found = &new_objects[at];
        }
    }
    if (!found || found->progress != EXAMINED) {
        return 0;
    }
    if (found->plan && !nntrace_hook_is_relocated(object->dlpi_addr, object->dlpi_phdr, object->dlpi_phnum,
                                                  leads_there(object, found->plan))) {
        /* The thread that loads it looks again. */
        is_incomplete = true;
        return 0;
    }
    if (found->plan) {
        hook(object, found->plan);
    }
    /* Reuse a free slot, or append. */
    at = place_of(NULL) < MOST_OBJECTS ? place_of(NULL) : looked_at_count;
    if (at < MOST_OBJECTS) {
        __atomic_store_n(&looked_at[at], dynamic, __ATOMIC_RELAXED);
        __atomic_store_n(&looked_at_count, at < looked_at_count ? looked_at_count : at + 1, __ATOMIC_RELEASE);
        ++finished_count;
    }
    return 0;
}

struct look nntrace_hook_look(const char *folder) {
    struct look look = {0, false, false, false};
    bool is_full = false;
    uint32_t at;
    new_count = 0;
    name_bytes = 0;
    is_incomplete = false;
    finished_count = 0;
    go_through(take_new, &is_full);
    for (at = 0; at < new_count; ++at) {
        look_up(&new_objects[at], folder);
        look.unanswered += new_objects[at].progress != EXAMINED;
        look.is_answer_coming = look.is_answer_coming || new_objects[at].progress == BEING_EXAMINED;
    }
    if (new_count > 0) {
        dl_iterate_phdr(finish_new, NULL);
    }
    look.is_incomplete = is_incomplete;
    look.leaves_more = is_full && finished_count > 0;
    return look;
}
