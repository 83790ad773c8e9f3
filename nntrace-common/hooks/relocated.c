/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Whether the loader is done with an object: another thread may be about to load it. The last step is to make what is only
 * written by relocation read-only (_dl_protect_relro in glibc's elf/dl-reloc.c).
 */
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "relocated.h"

static uintptr_t hexadecimal(const char **text) {
    uintptr_t value = 0;
    for (;; ++*text) {
        const char digit = **text;
        if (digit >= '0' && digit <= '9') {
            value = value << 4 | (uintptr_t)(digit - '0');
        } else if (digit >= 'a' && digit <= 'f') {
            value = value << 4 | (uintptr_t)(digit - 'a' + 10);
        } else {
            return value;
        }
    }
}

/* Whether a line of the maps is that of a mapping with this address; sets whether it can be written to. */
static bool is_mapping(const char *line, uintptr_t address, bool *is_writable) {
    const uintptr_t start = hexadecimal(&line);
    uintptr_t end;
    if (*line != '-') {
        return false;
    }
    ++line;
    end = hexadecimal(&line);
    *is_writable = line[0] == ' ' && line[1] == 'r' && line[2] == 'w';
    return address >= start && address < end;
}

/* Whether the memory at an address can be written to, by the maps of the process; true where that is not known. */
static bool can_be_written(uintptr_t address) {
    char text[4096];
    size_t kept = 0;
    long taken;
    bool is_found = false, is_writable = true;
    /* By number: libc's functions may end a thread that is cancelled. */
    const long file = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return true;
    }
    while (!is_found && (taken = syscall(SYS_read, file, text + kept, sizeof text - 1 - kept)) > 0) {
        char *line = text, *end;
        kept += (size_t)taken;
        text[kept] = '\0';
        for (; !is_found && (end = memchr(line, '\n', kept - (size_t)(line - text))); line = end + 1) {
            *end = '\0';
            is_found = is_mapping(line, address, &is_writable);
        }
        kept -= (size_t)(line - text);
        if (kept == sizeof text - 1) {
            kept = 0; /* The rest of a path that is longer than any. */
        }
        memmove(text, line, kept);
    }
    syscall(SYS_close, file);
    return !is_found || is_writable;
}

bool nntrace_hook_is_relocated(uintptr_t base, const ElfW(Phdr) *headers, int count, bool leads_there) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    int at;
    for (at = 0; at < count; ++at) {
        const uintptr_t begin = (base + headers[at].p_vaddr) & ~(page - 1);
        const uintptr_t end = (base + headers[at].p_vaddr + headers[at].p_memsz) & ~(page - 1);
        if (headers[at].p_type == PT_GNU_RELRO && begin < end) {
            return !can_be_written(begin);
        }
    }
    return leads_there;
}
