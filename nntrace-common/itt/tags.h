/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Layers and phases of marks, and how they may nest: docs/contract.md.
 */
#ifndef NNTRACE_ITT_TAGS_H
#define NNTRACE_ITT_TAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order of their letters in tags.c. */
enum layer { APPLICATION, RUNTIME, IPC, DRIVER, CPU, UTILITY, OTHER };
/* In the order of their letters in tags.c. */
enum phase {
    OVERALL,
    WARMUP,
    BENCHMARK,
    INITIALIZATION,
    PREPARATION,
    COMPILATION,
    EXECUTION,
    TERMINATION,
    UNSPECIFIED,
    INPUTS_AND_OUTPUTS,
    TRANSFORMATION,
    COMPUTATION,
    RESULTS
};

/* Layer and phase of a mark in seven bits; 0 is none. */
typedef uint8_t itt_tag;
#define NO_TAG ((itt_tag)0)
#define TAG(layer, phase) ((itt_tag)((layer) << 4 | ((phase) + 1)))

static inline enum layer layer_of(itt_tag tag) { return (enum layer)(tag >> 4); }
static inline enum phase phase_of(itt_tag tag) { return (enum phase)((tag & 15) - 1); }

/* Bytes of the longest text of a tag, prefix and NUL included: `[SUB][NN_LR_PCO]`. */
#define TAG_CAPACITY 18

/* Writes a tag as in marks, with `[SUB]` before it if its time is to be subtracted. Returns the length. */
size_t nntrace_itt_write_tag(char text[TAG_CAPACITY], itt_tag tag, bool subtracted);

/* Reads the tag that a task's name begins with, which may have `[SUB]` before it; NO_TAG if there is none. `[SW]` is
 * not taken: a task has one end, and a switch two. */
itt_tag nntrace_itt_read_tag(const char *name);

/* Returns the tag that a library's section has inside of another one's, and whether its time is subtracted from that:
 * execution as a part of something else, such as the compilation that reorders weights, takes that phase; any other
 * section that may not be there is subtracted. */
itt_tag nntrace_itt_fitted(itt_tag around, itt_tag tag, bool *subtracted);

#endif
