/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Open tasks of each thread. They decide on the mark of the next one (contract.md: layers and phases nest in an order)
 * and on whether an end is written: only where its begin was.
 */
#include "tasks.h"

/* A lane's memory for each thread is found by the dynamic linker: it would be a second library that this one needs. */
#define NNTRACE_NO_LANES
#include <nntrace.h>

#include "domains.h"
#include "tags.h"

/* Tasks of a thread that can be marked at once: as many as the accounting has room for. */
#define MOST_OPEN 64

/* Bytes of a slice's track and of its name, so that the number behind them has room. */
#define MOST_OF_TRACK 80
#define MOST_OF_SLICE 120

/* Open task: its tag, and the flags below. */
typedef uint16_t itt_frame;
#define TAG_BITS 0x7f
/* Its begin was written. */
#define WRITTEN 0x80
/* Region. */
#define REGION 0x100
/* Region that has ended, and is closed with the tasks that are open in it. */
#define ENDED 0x200

/* Open tasks of a thread. */
struct thread {
    /* Number of open tasks, marked or not. */
    uint32_t depth;
    /* Number of the task with helpers. */
    uint32_t helped;
    /* Name of the task with helpers; null if there is none. */
    struct itt_string *helped_name;
    itt_frame frames[MOST_OPEN];
};

/* In the memory that each thread has from its start: the first task of a thread allocates nothing. */
static __thread struct thread thread __attribute__((tls_model("initial-exec")));

/* Compilations of models that are open, on all threads. */
static int compilations;

static bool is_compilation(itt_frame frame) { return (frame & TAG_BITS) == TAG(RUNTIME, COMPILATION); }

/* Returns the tag of the innermost marked task of this thread; NO_TAG if there is none. */
static itt_tag around(void) {
    uint32_t at = thread.depth < MOST_OPEN ? thread.depth : MOST_OPEN;
    while (at > 0) {
        const itt_frame frame = thread.frames[--at];
        if (frame & WRITTEN) {
            return frame & TAG_BITS;
        }
    }
    return NO_TAG;
}

/* Returns the tag of a library's task without another one around it. An operator outside of an inference is a part of
 * another thread's work. */
static itt_tag outermost(const struct meaning *meaning, itt_tag tag, const struct itt_string *name) {
    const itt_tag own = meaning->outermost == NO_TAG ? tag : meaning->outermost;
    enum layer layer = layer_of(own);
    enum phase phase = phase_of(own);
    if (meaning->is_operator && phase == EXECUTION && __atomic_load_n(&compilations, __ATOMIC_RELAXED) > 0) {
        phase = COMPILATION;
    }
    if (meaning->has_helpers && name && __atomic_load_n(&name->extra1, __ATOMIC_RELAXED) > 0) {
        /* Adds nothing to the totals: the thread that it helps has the time already. */
        layer = UTILITY;
    }
    return TAG(layer, phase);
}

/* Appends as much of a text as there is room for, and at most `most` bytes. Control characters and the `special` one,
 * which would end it, become `_`. */
static void put_text(struct nntrace_text_ *text, const char *piece, size_t most, char special) {
    const size_t room = text->room;
    size_t at = text->length;
    size_t put;
    text->room = most < room ? most : room;
    /* One more than fits, so that it is cut behind a whole character. */
    nntrace_put_(text, piece, strnlen(piece, NNTRACE_CAPACITY_));
    put = text->length - at;
    /* What follows a text that was cut by `most` alone has room. */
    text->room = most < room ? room - put : text->room;
    for (; at < text->length; ++at) {
        const char byte = text->bytes[at];
        if ((unsigned char)byte < ' ' || byte == 0x7f || (byte == special && special)) {
            text->bytes[at] = '_';
        }
    }
}

/* Writes a begin; whether it did. An own tag is a part of the name. */
static bool write_begin(itt_tag tag, bool subtracted, bool is_own, const char *name) {
    struct nntrace_text_ text;
    if (!nntrace_start_(&text, 'B')) {
        return false;
    }
    nntrace_put_(&text, "|", 1);
    if (!is_own) {
        char tag_text[TAG_CAPACITY];
        nntrace_put_(&text, tag_text, nntrace_itt_write_tag(tag_text, tag, subtracted));
    }
    /* In an own name, attributes may follow. */
    put_text(&text, name, NNTRACE_CAPACITY_, is_own ? '\0' : '#');
    nntrace_write_(&text, 1);
    return true;
}

/* Writes a begin; returns the frame. */
static itt_frame marked(const struct meaning *meaning, itt_tag tag, bool is_own, const char *text,
                        struct itt_string *name) {
    bool subtracted = false;
    if (!is_own) {
        const itt_tag outer = around();
        tag = outer == NO_TAG ? outermost(meaning, tag, name) : nntrace_itt_fitted(outer, tag, &subtracted);
    }
    if (!write_begin(tag, subtracted, is_own, text)) {
        return tag;
    }
    if (meaning->has_helpers && name && layer_of(tag) != UTILITY && !thread.helped_name) {
        __atomic_add_fetch(&name->extra1, 1, __ATOMIC_RELAXED);
        thread.helped_name = name;
        thread.helped = thread.depth;
    }
    return tag | WRITTEN;
}

/* Marks a task or region; returns the frame. While nobody listens, only the tags of regions are needed. */
static itt_frame begun(const struct meaning *meaning, const struct itt_domain *domain, struct itt_string *name,
                       bool is_region) {
    const bool listens = nntrace_listens();
    const char *const text = name && name->text ? name->text : domain->name;
    itt_tag own, tag;
    if ((!listens && !is_region) || !text) {
        return 0;
    }
    own = nntrace_itt_read_tag(text);
    tag = own != NO_TAG ? own : nntrace_itt_tag(meaning, text);
    return listens && tag != NO_TAG ? marked(meaning, tag, own != NO_TAG, text, name) : tag;
}

static void push(const struct meaning *meaning, const struct itt_domain *domain, struct itt_string *name,
                 itt_frame kind) {
    if (thread.depth < MOST_OPEN) {
        const itt_frame frame = begun(meaning, domain, name, kind & REGION);
        thread.frames[thread.depth] = frame | kind;
        if (is_compilation(frame)) {
            __atomic_add_fetch(&compilations, 1, __ATOMIC_RELAXED);
        }
    }
    ++thread.depth;
}

/* Closes the innermost task, which must be there. */
static void pop(void) {
    --thread.depth;
    if (thread.depth < MOST_OPEN) {
        const itt_frame frame = thread.frames[thread.depth];
        if (frame & WRITTEN) {
            nntrace_write_end_();
        }
        if (is_compilation(frame)) {
            __atomic_sub_fetch(&compilations, 1, __ATOMIC_RELAXED);
        }
        if (thread.helped_name && thread.helped == thread.depth) {
            __atomic_sub_fetch(&thread.helped_name->extra1, 1, __ATOMIC_RELAXED);
            thread.helped_name = NULL;
        }
    }
}

/* Returns the innermost task; 0 if there is none, or no room was left for it. */
static itt_frame top(void) {
    return thread.depth > 0 && thread.depth <= MOST_OPEN ? thread.frames[thread.depth - 1] : 0;
}

static void pop_ended_regions(void) {
    while (top() & ENDED) {
        pop();
    }
}

void nntrace_itt_begin_task(const struct itt_domain *domain, struct itt_string *name) {
    const struct meaning *meaning;
    if (domain && !(meaning = nntrace_itt_meaning(domain))->is_left_out) {
        push(meaning, domain, name, 0);
    }
}

void nntrace_itt_end_task(const struct itt_domain *domain) {
    if (!domain || nntrace_itt_meaning(domain)->is_left_out || thread.depth == 0 || top() & REGION) {
        return;
    }
    pop();
    pop_ended_regions();
}

/* Whether the regions of a domain are marked. Those that nothing is known of may end on other threads. */
static bool has_regions(const struct itt_domain *domain, const struct meaning **meaning) {
    if (!domain) {
        return false;
    }
    *meaning = nntrace_itt_meaning(domain);
    return !(*meaning)->is_left_out && !(*meaning)->is_unknown;
}

void nntrace_itt_begin_region(const struct itt_domain *domain, struct itt_string *name) {
    const struct meaning *meaning;
    itt_tag tag;
    uint32_t at;
    if (!has_regions(domain, &meaning) || thread.depth >= MOST_OPEN) {
        return;
    }
    tag = name && name->text ? nntrace_itt_tag(meaning, name->text) : NO_TAG;
    for (at = 0; at < thread.depth; ++at) {
        const itt_frame open = thread.frames[at];
        if (open & REGION && !(open & ENDED) && (open & TAG_BITS) == tag) {
            return;
        }
    }
    push(meaning, domain, name, REGION);
}

void nntrace_itt_end_region(const struct itt_domain *domain) {
    const struct meaning *meaning;
    uint32_t at = thread.depth < MOST_OPEN ? thread.depth : MOST_OPEN;
    if (!has_regions(domain, &meaning)) {
        return;
    }
    while (at > 0) {
        itt_frame *const open = &thread.frames[--at];
        if (*open & REGION && !(*open & ENDED)) {
            *open |= ENDED;
            pop_ended_regions();
            return;
        }
    }
}

/* Starts the payload of a slice: kind, process, track; whether anybody wants it. */
static bool start_slice(struct nntrace_text_ *text, char kind, const struct itt_domain *domain) {
    if (!domain || nntrace_itt_meaning(domain)->is_left_out || !nntrace_listens() || !nntrace_start_(text, kind)) {
        return false;
    }
    nntrace_put_(text, "|", 1);
    put_text(text, domain->name ? domain->name : "?", MOST_OF_TRACK, '|');
    return true;
}

/* Ends the payload of a slice, by a number that its begin and its end have in common. */
static void write_slice(struct nntrace_text_ *text, const struct itt_id *id) {
    nntrace_put_(text, "|", 1);
    nntrace_put_number_(text, id->d1 * 0x9e3779b97f4a7c15 ^ id->d2 * 0xc2b2ae3d27d4eb4f ^ id->d3);
    nntrace_write_(text, 0);
}

void nntrace_itt_begin_slice(const struct itt_domain *domain, const struct itt_id *id, const struct itt_string *name) {
    struct nntrace_text_ text;
    if (start_slice(&text, 'G', domain)) {
        nntrace_put_(&text, "|", 1);
        put_text(&text, name && name->text ? name->text : "?", MOST_OF_SLICE, '|');
        write_slice(&text, id);
    }
}

void nntrace_itt_end_slice(const struct itt_domain *domain, const struct itt_id *id) {
    struct nntrace_text_ text;
    if (start_slice(&text, 'H', domain)) {
        write_slice(&text, id);
    }
}

void nntrace_itt_forget_tasks(void) {
    thread.depth = 0;
    thread.helped_name = NULL;
    compilations = 0;
}
