/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Reading of plans. A plan is a file whose name consists of the device, inode, size and ctime (seconds, nanoseconds) of the file
 * that it is for. Each of its lines has one text, or decimal numbers that are separated by blanks:
 *
 *     nntrace-hooks 1 FUNCTIONS ENTRIES
 *
 * and for each function
 *
 *     ADDRESS ENTRY ARGUMENT FORM STEPS OFFSET OFFSET OFFSET OFFSET VALUES WORDS
 *     tag
 *     name
 *     a line for each value
 *     WORD ..
 *
 * ENTRY is the number of the map's entry among those whose names are compared, from 1, or 0. The plan of a file without such
 * functions is empty. The profiler publishes it when it has examined and probed the file, for which programs that map it wait:
 * nntrace-user/src/live/engine_probes/plan.rs and hooks.rs.
 */
#include "plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Bytes of a plan at most. */
#define MOST_BYTES (64L << 20)
/* Bytes of a plan's name at most, with the slash before it. */
#define LONGEST_NAME 128
/* Plans that are kept. */
#define MOST_PLANS 1024
/* Last part of the name of a plan while the file is being examined. */
#define UNPUBLISHED ".new"

/* Rest of a plan's text, and whether it was well-formed so far. */
struct reader {
    char *at;
    char *end;
    bool is_good;
};

/* Memory for what a plan becomes. */
struct room {
    char *at;
    char *end;
};

/* Identity and state of a file: a changed file, or one that uses the inode number again, has another plan. */
struct file_state {
    uint64_t numbers[5];
};

static struct known {
    struct file_state file;
    const struct plan *plan;
} known[MOST_PLANS];
static uint32_t known_count;

/* Returns zeroed memory; NULL where there is no more. */
static void *take(struct room *room, uint64_t count, size_t bytes) {
    void *taken = room->at;
    const uint64_t left = (uint64_t)(room->end - room->at);
    if (count > left / bytes) {
        return NULL;
    }
    room->at += (count * bytes + 7) & ~(uint64_t)7;
    return taken;
}

/* Ends the next line with a NUL, and returns it. */
static char *next_line(struct reader *reader) {
    char *line = reader->at;
    char *end = line < reader->end ? memchr(line, '\n', (size_t)(reader->end - line)) : NULL;
    if (!end) {
        reader->is_good = false;
        return NULL;
    }
    *end = '\0';
    reader->at = end + 1;
    return line;
}

/* Takes a number from a line. */
static uint64_t number(struct reader *reader, char **line, uint64_t most) {
    char *end = NULL;
    uint64_t value = 0;
    if (*line && **line >= '0' && **line <= '9') {
        value = strtoull(*line, &end, 10);
        *line = *end == ' ' ? end + 1 : end;
    }
    reader->is_good = reader->is_good && end && value <= most;
    return reader->is_good ? value : 0;
}

static void read_function(struct reader *reader, struct room *room, struct planned *planned, struct compared *entries,
                          uint64_t entry_count) {
    struct recipe *recipe = &planned->function.recipe;
    char *line = next_line(reader);
    const char **values;
    uint64_t *words;
    uint64_t entry;
    uint32_t at;
    planned->address = number(reader, &line, UINT64_MAX);
    entry = number(reader, &line, entry_count);
    recipe->argument = (uint8_t)number(reader, &line, 5);
    recipe->form = (uint8_t)number(reader, &line, FORMS - 1);
    recipe->steps = (uint8_t)number(reader, &line, MOST_STEPS);
    for (at = 0; at < MOST_STEPS; ++at) {
        recipe->offsets[at] = (uint16_t)number(reader, &line, UINT16_MAX);
    }
    recipe->value_count = (uint32_t)number(reader, &line, UINT16_MAX);
    planned->word_count = (uint32_t)number(reader, &line, UINT32_MAX);
    planned->function.compared = entry ? &entries[entry - 1] : NULL;
    planned->function.tag = next_line(reader);
    planned->function.name = next_line(reader);
    values = take(room, recipe->value_count, sizeof *values);
    words = take(room, planned->word_count, sizeof *words);
    reader->is_good = reader->is_good && values && words;
    for (at = 0; reader->is_good && at < recipe->value_count; ++at) {
        values[at] = next_line(reader);
    }
    line = reader->is_good ? next_line(reader) : NULL;
    for (at = 0; reader->is_good && at < planned->word_count; ++at) {
        words[at] = number(reader, &line, UINT64_MAX);
    }
    recipe->values = values;
    planned->words = words;
}

/* Makes a plan of its text; NULL where it is not well-formed. */
static const struct plan *parsed(struct reader *reader, struct room *room) {
    static const char magic[] = "nntrace-hooks 1 ";
    char *line = next_line(reader);
    struct compared *entries;
    struct plan *plan;
    uint64_t count, entry_count;
    uint32_t at;
    if (!line || strncmp(line, magic, sizeof magic - 1) != 0) {
        return NULL;
    }
    line += sizeof magic - 1;
    count = number(reader, &line, HOOKS);
    entry_count = number(reader, &line, HOOKS);
    plan = take(room, 1, sizeof *plan + count * sizeof plan->functions[0]);
    entries = take(room, entry_count, sizeof *entries);
    if (!plan || !entries) {
        return NULL;
    }
    for (at = 0; reader->is_good && at < count; ++at) {
        read_function(reader, room, &plan->functions[at], entries, entry_count);
    }
    plan->count = (uint32_t)count;
    return reader->is_good ? plan : NULL;
}

/* Reads a plan from a file that is open; returns whether it could. What it becomes is in one piece with its text, and stays. */
static bool read_plan(long file, const struct plan **plan) {
    struct stat status;
    char *memory;
    size_t length, all;
    if (syscall(SYS_fstat, file, &status) != 0 || status.st_size < 0 || status.st_size > MOST_BYTES) {
        return false;
    }
    if (status.st_size == 0) {
        return true;
    }
    length = ((size_t)status.st_size + 7) & ~(size_t)7;
    /* A number of two bytes, with its blank, becomes eight; a function takes more text than its fixed part has words. */
    all = length * 9 + 4096;
    memory = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return false;
    }
    if (syscall(SYS_read, file, memory, (size_t)status.st_size) == status.st_size) {
        struct reader reader = {memory, memory + status.st_size, true};
        struct room room = {memory + length, memory + all};
        *plan = parsed(&reader, &room);
    }
    if (!*plan) {
        munmap(memory, all);
    }
    return *plan != NULL;
}

static char *put_hexadecimal(char *to, uint64_t number) {
    int shift = 60;
    while (shift > 0 && number >> shift == 0) {
        shift -= 4;
    }
    for (; shift >= 0; shift -= 4) {
        *to++ = "0123456789abcdef"[number >> shift & 15];
    }
    return to;
}

/* Appends the name of a file's plan: its numbers, with hyphens between them. */
static char *put_name(char *to, const struct file_state *file) {
    size_t at;
    for (at = 0; at < sizeof file->numbers / sizeof file->numbers[0]; ++at) {
        if (at > 0) {
            *to++ = '-';
        }
        to = put_hexadecimal(to, file->numbers[at]);
    }
    return to;
}

enum progress nntrace_hook_plan(const char *folder, const struct stat *status, const struct plan **plan) {
    const struct file_state file_state = {{status->st_dev, status->st_ino, (uint64_t)status->st_size,
                                           (uint64_t)status->st_ctim.tv_sec, (uint64_t)status->st_ctim.tv_nsec}};
    char path[4096];
    const size_t length = strlen(folder);
    char *end;
    uint32_t at;
    long file;
    *plan = NULL;
    for (at = 0; at < known_count; ++at) {
        if (memcmp(&known[at].file, &file_state, sizeof file_state) == 0) {
            *plan = known[at].plan;
            return EXAMINED;
        }
    }
    if (known_count == MOST_PLANS || length > sizeof path - LONGEST_NAME) {
        nntrace_hook_unanswered(1);
        return EXAMINED;
    }
    memcpy(path, folder, length);
    end = path + length;
    *end++ = '/';
    end = put_name(end, &file_state);
    *end = '\0';
    /* By number: libc's functions may end a thread that is cancelled. */
    file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (file < 0 && errno == ENOENT) {
        memcpy(end, UNPUBLISHED, sizeof UNPUBLISHED);
        return syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0 ? BEING_EXAMINED : UNKNOWN;
    }
    if (file < 0) {
        nntrace_hook_unanswered(1);
    } else if (!read_plan(file, plan)) {
        nntrace_hook_refused(1);
    }
    if (file >= 0) {
        syscall(SYS_close, file);
    }
    if (*plan) {
        known[known_count].file = file_state;
        known[known_count++].plan = *plan;
    }
    return EXAMINED;
}
