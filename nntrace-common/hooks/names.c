/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Names of hooked calls' sections, read from the program's own memory on the way that a plan describes. Nothing says
 * that the way is right for what is there, so names are read by system calls, which fail where there is no memory. Once two
 * objects had different names the way is taken to be right: from then on it is followed by plain loads for the same object
 * and function, and what it leads to is compared with the name, as an object may end, and another begin at its address.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "hooks.h"

/* Named objects at most; names of others are read each time. */
#define MOST_OBJECTS (1U << 16)
/* Places that are looked at for an object. */
#define PLACES 16
/* Different names at most, and bytes of all of them. */
#define MOST_NAMES (1U << 15)
#define MOST_BYTES (8U << 20)
/* Other objects with the same name from which on it is not their own. */
#define MOST_REPEATED 100

/* Text that is kept, once for all that have it. */
struct text {
    /* As it is in memory, as far as it counts. */
    uint16_t length;
    char bytes[];
};

/* Object that has passed a hooked function, and its name; NULL where it has none. */
struct object {
    uint64_t key;
    const struct text *name;
};
static struct object objects[MOST_OBJECTS];
static const struct text *names[MOST_NAMES];
static char *free_bytes;
static size_t free_left, bytes_taken;
/* Thread that changes them; 0 for none. */
static int holder;

static bool read_process(uint64_t address, void *to, size_t length) {
    const struct iovec local = {to, length}, remote = {(void *)(uintptr_t)address, length};
    const int saved = errno;
    const bool is_read = process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)length;
    errno = saved;
    return is_read;
}

/* Reads memory that may not be there. */
static bool read_safely(uint64_t address, void *to, size_t length) {
    /* A thread under seccomp may be killed for it. */
    if (nntrace_hook_is_confined()) {
        return false;
    }
    return read_process(address, to, length);
}

/* Reads a word: by a plain load where the way is known to be right. */
static inline bool word(uint64_t address, uint64_t *value, bool is_safe) {
    if (is_safe) {
        memcpy(value, (const void *)(uintptr_t)address, sizeof *value);
        return true;
    }
    return read_safely(address, value, sizeof *value);
}

/* Whether nothing is at an address: no program has its first page. */
static inline bool is_null(uint64_t address) { return address < 4096; }

/* Follows the offsets of a recipe to the text of a name. */
static inline bool follow(const struct recipe *recipe, uint64_t at, uint64_t *text, bool is_safe) {
    uint32_t step;
    for (step = 0; step < recipe->steps; ++step) {
        at += recipe->offsets[step];
        if (step + 1 < recipe->steps && (!word(at, &at, is_safe) || is_null(at))) {
            return false;
        }
    }
    if (recipe->form == C_STRING && recipe->steps && !word(at, &at, is_safe)) {
        return false;
    }
    if (recipe->form == LIBCXX_STRING) {
        /* In the object itself, unless its lowest bit is set: `__rep` in libcxx/include/string. */
        uint64_t first;
        if (!word(at, &first, is_safe)) {
            return false;
        }
        if (!(first & 1)) {
            ++at;
        } else if (!word(at + 16, &at, is_safe)) {
            return false;
        }
    }
    *text = at;
    return !is_null(at);
}

/* Length of a name: its text up to a NUL, a line's end or `#`, which begins attributes in marks. */
static size_t name_length(const char *text) {
    size_t length = 0;
    while (length < NAME_CAPACITY - 1 && text[length] && text[length] != '\n' && text[length] != '#') {
        ++length;
    }
    return length;
}

/* Whether text that was found where a name is expected may be one: not empty, without control characters, and UTF-8, with a
 * last character that may be cut off. As is_plausible_name in nntrace-common/src/engine.rs. */
static bool is_plausible(const char *text, size_t length) {
    size_t at = 0;
    while (at < length) {
        const unsigned char lead = (unsigned char)text[at++];
        int more = lead < 0xc0 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
        if (lead < 0x20 || lead == 0x7f || (lead & 0xc0) == 0x80) {
            return false;
        }
        for (; more > 0 && at < length; --more, ++at) {
            if (((unsigned char)text[at] & 0xc0) != 0x80) {
                return false;
            }
        }
        if (more > 0 && length < NAME_CAPACITY - 1) {
            return false;
        }
    }
    return length > 0;
}

static uint64_t mixed(uint64_t value) {
    value *= 0x9e3779b97f4a7c15ULL;
    return value ^ value >> 29;
}

/* Takes the lock, which is held for some instructions: whether it could. A child that was forked meanwhile takes it from the
 * parent's thread. Where a thread of a higher priority keeps the holder from running, names are those of functions. */
static bool lock(void) {
    const int saved = errno, self = (int)syscall(SYS_gettid);
    bool is_taken = false;
    int tries, found = 0;
    for (tries = 1; !is_taken && tries <= 20000 && found != self; ++tries) {
        found = 0;
        is_taken = __atomic_compare_exchange_n(&holder, &found, self, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
        if (!is_taken && tries % 100 == 0) {
            if (syscall(SYS_tgkill, getpid(), found, 0) != 0) {
                __atomic_compare_exchange_n(&holder, &found, 0, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
            }
            sched_yield();
        }
    }
    errno = saved;
    return is_taken;
}

static void unlock(void) { __atomic_store_n(&holder, 0, __ATOMIC_RELEASE); }

/* Takes memory that is never given back; NULL where there is no more. The lock is held. */
static void *take(size_t bytes) {
    const size_t block = 64 << 10;
    void *taken;
    bytes = (bytes + 7) & ~(size_t)7;
    if (bytes > free_left) {
        void *more = bytes_taken < MOST_BYTES
                         ? mmap(NULL, block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                         : MAP_FAILED;
        if (more == MAP_FAILED) {
            return NULL;
        }
        free_bytes = more;
        free_left = block;
        bytes_taken += block;
    }
    taken = free_bytes;
    free_bytes += bytes;
    free_left -= bytes;
    return taken;
}

/* Returns the kept text of a name; NULL where there is no room. */
static const struct text *keep(const char *name, size_t length) {
    uint64_t hash = length;
    const struct text *found = NULL;
    size_t at, looks;
    for (at = 0; at < length; ++at) {
        hash = (hash ^ (unsigned char)name[at]) * 0x100000001b3ULL;
    }
    if (!lock()) {
        return NULL;
    }
    for (looks = 0, at = mixed(hash) % MOST_NAMES; looks < PLACES && !found; ++looks, at = (at + 1) % MOST_NAMES) {
        if (!names[at]) {
            struct text *made = take(sizeof *made + length + 1);
            if (!made) {
                break;
            }
            made->length = (uint16_t)length;
            memcpy(made->bytes, name, length);
            made->bytes[length] = '\0';
            names[at] = found = made;
        } else if (names[at]->length == length && memcmp(names[at]->bytes, name, length) == 0) {
            found = names[at];
        }
    }
    unlock();
    return found;
}

/* Reads the name that a recipe leads to, which may lead anywhere; it may be empty. NULL where there is no text. */
static const struct text *read_name(const struct recipe *recipe, uint64_t argument) {
    char bytes[NAME_CAPACITY];
    uint64_t text;
    size_t length, taken;
    if (!follow(recipe, argument, &text, false)) {
        return NULL;
    }
    /* As far as the page reaches, and on to the next one if the name does. */
    for (taken = 0; taken < sizeof bytes; taken += length) {
        length = 4096 - ((text + taken) & 4095);
        length = length < sizeof bytes - taken ? length : sizeof bytes - taken;
        if (!read_safely(text + taken, bytes + taken, length)) {
            bytes[taken] = '\0';
            if (name_length(bytes) == taken) {
                return NULL;
            }
            break;
        }
        if (memchr(bytes + taken, '\0', length)) {
            break;
        }
    }
    bytes[sizeof bytes - 1] = '\0';
    length = name_length(bytes);
    return bytes[0] == '\0' || is_plausible(bytes, length) ? keep(bytes, length) : NULL;
}

/* Whether the way leads to this name, for an object of which it is known to be right. */
static bool leads_to(const struct recipe *recipe, uint64_t argument, const struct text *name) {
    uint64_t at;
    const char *text;
    if (!follow(recipe, argument, &at, true)) {
        return false;
    }
    text = (const char *)(uintptr_t)at;
    if (strncmp(text, name->bytes, name->length) != 0) {
        return false;
    }
    return name->length == NAME_CAPACITY - 1 || text[name->length] == '\0' || text[name->length] == '#' ||
           text[name->length] == '\n';
}

/* Returns the place of an object; NULL where there is none for it. */
static struct object *place_of(uint64_t key) {
    size_t at = mixed(key) % MOST_OBJECTS, looks;
    for (looks = 0; looks < PLACES; ++looks, at = (at + 1) % MOST_OBJECTS) {
        uint64_t found = __atomic_load_n(&objects[at].key, __ATOMIC_ACQUIRE);
        if (found == 0 && __atomic_compare_exchange_n(&objects[at].key, &found, key, 0, __ATOMIC_ACQ_REL,
                                                      __ATOMIC_ACQUIRE)) {
            return &objects[at];
        }
        if (found == key) {
            return &objects[at];
        }
    }
    return NULL;
}

/* Returns the name of the object that is a function's argument; NULL where it has none. */
static const struct text *object_name(uint32_t number, const struct function *function, uint64_t argument) {
    const struct recipe *recipe = &function->recipe;
    /* Addresses have 52 bits at most, unless a program asks for more. */
    struct object *object = place_of(argument ^ (uint64_t)(number + 1) << 52);
    const struct text *name = object ? __atomic_load_n(&object->name, __ATOMIC_ACQUIRE) : NULL;
    const bool is_right = !function->compared || __atomic_load_n(&function->compared->differ, __ATOMIC_RELAXED);
    if (name && is_right && leads_to(recipe, argument, name)) {
        return name;
    }
    name = read_name(recipe, argument);
    if (object) {
        __atomic_store_n(&object->name, name, __ATOMIC_RELEASE);
    }
    return name;
}

/* Whether the name of an object may be its own. */
static bool may_be_own(struct compared *compared, uint64_t object, const char *name) {
    if (__atomic_load_n(&compared->differ, __ATOMIC_RELAXED)) {
        return true;
    }
    if (!lock()) {
        return false;
    }
    if (object != compared->object) {
        if (compared->object && name != compared->name) {
            compared->differ = 1;
        } else if (compared->object && compared->repeated < MOST_REPEATED) {
            ++compared->repeated;
        }
        compared->object = object;
        compared->name = name;
    }
    unlock();
    return compared->differ || compared->repeated < MOST_REPEATED;
}

const char *nntrace_hook_name(uint32_t number, const struct function *function, const uint64_t *registers) {
    const struct recipe *recipe = &function->recipe;
    const uint64_t argument = registers[recipe->argument];
    if (recipe->form == NUMBER) {
        uint64_t at = argument;
        uint32_t value = (uint32_t)argument;
        if (recipe->steps && (!follow(recipe, argument, &at, false) || !read_safely(at, &value, sizeof value))) {
            return function->name;
        }
        return value < recipe->value_count ? recipe->values[value] : function->name;
    }
    if (recipe->form != NO_NAME && argument) {
        const struct text *name = object_name(number, function, argument);
        if (name && name->length && (!function->compared || may_be_own(function->compared, argument, name->bytes))) {
            return name->bytes;
        }
    }
    return function->name;
}
