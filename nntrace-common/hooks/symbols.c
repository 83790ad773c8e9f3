/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Functions that this library stands in front of. They are looked up by the hash tables of objects: an object before the C library
 * may have hundreds of thousands of symbols.
 */
#include <elf.h>
#include <link.h>
#include <string.h>

#include "loading.h"

/* Symbol that is looked for. */
struct wanted {
    const char *name;
    uintptr_t address;
    /* Whether this library was passed. */
    bool is_after;
};

/* Dynamic symbols of an object. */
struct symbols {
    const ElfW(Sym) *all;
    const char *texts;
    const ElfW(Half) *versions;
    const uint32_t *gnu_hash;
    const uint32_t *hash;
};

/* Whether an object is this library. It is found by its thunks: another object may define a function of the same name. */
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

/* Finds the tables of an object. musl does not relocate the addresses of a dynamic section. */
static struct symbols symbols_of(const struct dl_phdr_info *object) {
    struct symbols symbols = {NULL, NULL, NULL, NULL, NULL};
    const ElfW(Dyn) *entry = NULL;
    int at;
    for (at = 0; at < object->dlpi_phnum; ++at) {
        if (object->dlpi_phdr[at].p_type == PT_DYNAMIC) {
            entry = (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[at].p_vaddr);
        }
    }
    for (; entry && entry->d_tag != DT_NULL; ++entry) {
        const uintptr_t address = entry->d_un.d_ptr < object->dlpi_addr ? object->dlpi_addr + entry->d_un.d_ptr : entry->d_un.d_ptr;
        switch (entry->d_tag) {
        case DT_SYMTAB: symbols.all = (const ElfW(Sym) *)address; break;
        case DT_STRTAB: symbols.texts = (const char *)address; break;
        case DT_VERSYM: symbols.versions = (const ElfW(Half) *)address; break;
        case DT_GNU_HASH: symbols.gnu_hash = (const uint32_t *)address; break;
        case DT_HASH: symbols.hash = (const uint32_t *)address; break;
        default: break;
        }
    }
    return symbols;
}

/* Whether a symbol is a function of this name. The highest bit of a version hides it: it is an old one. */
static bool is_it(const struct symbols *symbols, uint32_t at, const char *name) {
    const ElfW(Sym) *symbol = &symbols->all[at];
    return symbol->st_shndx != SHN_UNDEF && (symbol->st_info & 15) == STT_FUNC &&
           !(symbols->versions && symbols->versions[at] & 0x8000) && strcmp(symbols->texts + symbol->st_name, name) == 0;
}

/* Finds a symbol by the table of GNU; 0 where there is none. */
static uint32_t by_gnu_hash(const struct symbols *symbols, const char *name) {
    const uint32_t *table = symbols->gnu_hash;
    const uint32_t bucket_count = table[0], first = table[1], bloom_count = table[2], shift = table[3];
    const uint32_t bits = sizeof(ElfW(Addr)) * 8;
    const ElfW(Addr) *bloom = (const ElfW(Addr) *)(const void *)(table + 4);
    const uint32_t *buckets = (const uint32_t *)(const void *)(bloom + bloom_count);
    const uint32_t *chains = buckets + bucket_count;
    const unsigned char *byte = (const unsigned char *)name;
    ElfW(Addr) mask;
    uint32_t hash = 5381, at;
    for (; *byte; ++byte) {
        hash = hash * 33 + *byte;
    }
    mask = (ElfW(Addr))1 << hash % bits | (ElfW(Addr))1 << (hash >> shift) % bits;
    if (!bucket_count || !bloom_count || (bloom[hash / bits % bloom_count] & mask) != mask) {
        return 0;
    }
    for (at = buckets[hash % bucket_count]; at >= first && at != 0; ++at) {
        if ((chains[at - first] | 1) == (hash | 1) && is_it(symbols, at, name)) {
            return at;
        }
        if (chains[at - first] & 1) {
            break;
        }
    }
    return 0;
}

/* Finds a symbol by the table of the System V ABI; 0 where there is none. */
static uint32_t by_hash(const struct symbols *symbols, const char *name) {
    const uint32_t bucket_count = symbols->hash[0], count = symbols->hash[1];
    const uint32_t *buckets = symbols->hash + 2, *chains = buckets + bucket_count;
    const unsigned char *byte = (const unsigned char *)name;
    uint32_t hash = 0, at, steps = 0;
    for (; *byte; ++byte) {
        hash = (hash << 4) + *byte;
        hash = (hash ^ (hash & 0xf0000000) >> 24) & 0x0fffffff;
    }
    for (at = bucket_count ? buckets[hash % bucket_count] : 0; at != 0 && at < count && steps < count; at = chains[at], ++steps) {
        if (is_it(symbols, at, name)) {
            return at;
        }
    }
    return 0;
}

/* Looks for a symbol in an object after this library. */
static int find_in(struct dl_phdr_info *object, size_t size, void *data) {
    struct wanted *wanted = data;
    struct symbols symbols;
    uint32_t at = 0;
    (void)size;
    if (!wanted->is_after) {
        wanted->is_after = is_this_library(object);
        return 0;
    }
    symbols = symbols_of(object);
    if (symbols.all && symbols.texts && (symbols.gnu_hash || symbols.hash)) {
        at = symbols.gnu_hash ? by_gnu_hash(&symbols, wanted->name) : by_hash(&symbols, wanted->name);
    }
    if (at) {
        wanted->address = object->dlpi_addr + symbols.all[at].st_value;
    }
    return at != 0;
}

uintptr_t nntrace_hook_next(const char *name) {
    struct wanted wanted = {name, 0, false};
    dl_iterate_phdr(find_in, &wanted);
    return wanted.address;
}

/* Folder that is looked for. */
struct own_folder {
    char *path;
    size_t bytes;
    bool is_found;
};

static int find_folder(struct dl_phdr_info *object, size_t size, void *data) {
    struct own_folder *wanted = data;
    const char *end;
    (void)size;
    if (!is_this_library(object)) {
        return 0;
    }
    end = object->dlpi_name ? strrchr(object->dlpi_name, '/') : NULL;
    if (end && *object->dlpi_name == '/' && (size_t)(end - object->dlpi_name) < wanted->bytes) {
        memcpy(wanted->path, object->dlpi_name, (size_t)(end - object->dlpi_name));
        wanted->path[end - object->dlpi_name] = '\0';
        wanted->is_found = true;
    }
    return 1;
}

bool nntrace_hook_own_folder(char *folder, size_t bytes) {
    struct own_folder wanted = {folder, bytes, false};
    dl_iterate_phdr(find_folder, &wanted);
    return wanted.is_found;
}
