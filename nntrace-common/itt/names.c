/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Domains and names in hash tables that only grow, and without a lock: a child that was forked while another thread was
 * about to create a name must not wait for that thread.
 */
#include "names.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "domains.h"

/* Lists in a table. A power of two. */
#define LISTS 1024
/* Bytes that are kept of a text: as many as ITT's own static part keeps. */
#define MOST_TEXT 4096
/* Memory for all of them, bytes: programs may make up names as they go. */
#define MOST_MEMORY ((size_t)16 << 20)

/* Domain or name. */
struct entry {
    struct entry *next;
    uint32_t hash;
    union {
        struct itt_domain domain;
        struct itt_string string;
    } object;
    char text[];
};

static struct entry *domains[LISTS];
static struct entry *strings[LISTS];
static size_t memory;

static struct itt_domain no_domain;
static struct itt_string others = {.text = "(others)"};

/* FNV-1a. */
static uint32_t hash_of(const char *text, size_t length) {
    uint32_t hash = 0x811c9dc5;
    size_t at;
    for (at = 0; at < length; ++at) {
        hash = (hash ^ (unsigned char)text[at]) * 0x01000193;
    }
    return hash;
}

/* Finds a text among the entries before `end`. */
static struct entry *find(struct entry *first, const struct entry *end, uint32_t hash, const char *text,
                          size_t length) {
    for (; first != end; first = first->next) {
        if (first->hash == hash && strncmp(first->text, text, length) == 0 && first->text[length] == '\0') {
            return first;
        }
    }
    return NULL;
}

/* Allocates an entry; null when there is no room. */
static struct entry *allocate(const char *text, size_t length) {
    const size_t size = sizeof(struct entry) + length + 1;
    struct entry *entry;
    if (__atomic_add_fetch(&memory, size, __ATOMIC_RELAXED) > MOST_MEMORY) {
        __atomic_sub_fetch(&memory, size, __ATOMIC_RELAXED);
        return NULL;
    }
    entry = calloc(1, size);
    if (entry) {
        memcpy(entry->text, text, length);
    }
    return entry;
}

/* Initializes an entry's object. */
typedef void initializer(struct entry *entry);

/* Returns the entry of a text, which is created if there is none; null when there is no room. */
static struct entry *intern(struct entry **table, const char *text, initializer *initialize) {
    const size_t length = strnlen(text, MOST_TEXT);
    const uint32_t hash = hash_of(text, length);
    struct entry **const list = &table[hash & (LISTS - 1)];
    struct entry *first = __atomic_load_n(list, __ATOMIC_ACQUIRE);
    struct entry *found = find(first, NULL, hash, text, length);
    struct entry *new;
    if (found || !(new = allocate(text, length))) {
        return found;
    }
    new->hash = hash;
    initialize(new);
    for (;;) {
        struct entry *const seen = first;
        new->next = first;
        if (__atomic_compare_exchange_n(list, &first, new, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            return new;
        }
        /* Other threads were faster; one of them may have created the same. */
        found = find(first, seen, hash, text, length);
        if (found) {
            __atomic_sub_fetch(&memory, sizeof(struct entry) + length + 1, __ATOMIC_RELAXED);
            free(new);
            return found;
        }
    }
}

static void initialize_domain(struct entry *entry) {
    entry->object.domain.name = entry->text;
    nntrace_itt_set_up(&entry->object.domain);
}

static void initialize_string(struct entry *entry) { entry->object.string.text = entry->text; }

struct itt_domain *nntrace_itt_domain(const char *name) {
    struct entry *entry;
    if (!name) {
        return NULL;
    }
    entry = intern(domains, name, initialize_domain);
    return entry ? &entry->object.domain : &no_domain;
}

struct itt_string *nntrace_itt_string(const char *text) {
    struct entry *entry;
    if (!text) {
        return NULL;
    }
    entry = intern(strings, text, initialize_string);
    return entry ? &entry->object.string : &others;
}

void nntrace_itt_forget_uses(void) {
    struct entry *entry;
    size_t at;
    for (at = 0; at < LISTS; ++at) {
        for (entry = strings[at]; entry; entry = entry->next) {
            /* Not written where it is 0 already: the memory is shared with the parent until then. */
            if (entry->object.string.extra1) {
                entry->object.string.extra1 = 0;
            }
        }
    }
}
