/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Hooked functions: how their sections are named, and where thunks and the other files find them.
 */
#ifndef NNTRACE_HOOKS_H
#define NNTRACE_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "limits.h"

/* Bytes of the longest name that is read, its NUL included: as in marks. */
#define NAME_CAPACITY 256
/* Offsets on the way from an argument to a name at most. */
#define MOST_STEPS 4

/* Form of a name in memory; the numbers are those of plans. */
enum form {
    NO_NAME,
    /* Pointer to text that ends with a NUL. */
    C_STRING,
    /* The text itself. */
    INLINE,
    /* `std::string` of libc++. */
    LIBCXX_STRING,
    /* 32-bit number, which has a name in a table. */
    NUMBER,
    FORMS
};

/* Way from an argument of a function to a name. */
struct recipe {
    /* Number of the argument, from 0. */
    uint8_t argument;
    uint8_t form;
    /* Number of offsets in use; a pointer is read at each but the last. */
    uint8_t steps;
    uint16_t offsets[MOST_STEPS];
    /* Names of numbers. */
    const char *const *values;
    uint32_t value_count;
};

/* Comparison of the names that one entry of a map leads to: text at an offset in an object is its own name only if it
 * changes with the object. As ObjectNames in nntrace-common/src/engine.rs. */
struct compared {
    uint64_t object;
    const char *name;
    uint32_t repeated;
    uint32_t differ;
};

/* Description of a function in a plan. All texts live as long as the process. */
struct function {
    /* Layer and phase as in marks: `[NN_LC_PE]`. */
    const char *tag;
    /* Name where there is no other. */
    const char *name;
    struct recipe recipe;
    /* NULL where names are not compared. */
    struct compared *compared;
};

/* Functions by the numbers of their thunks, and their addresses. */
extern const struct function *nntrace_hook_functions[HOOKS] __attribute__((visibility("hidden")));
extern uintptr_t nntrace_hook_targets[HOOKS] __attribute__((visibility("hidden")));

/* The first thunk. */
extern const char nntrace_hook_thunks[] __attribute__((visibility("hidden")));

/* Returns the name of a call's section: a text that lives as long as the process, the same each time. `number` is that of
 * the thunk, `registers` has the function's first arguments. */
const char *nntrace_hook_name(uint32_t number, const struct function *function, const uint64_t *registers)
    __attribute__((visibility("hidden")));

/* Whether this thread's system calls may be refused, or deadly. */
bool nntrace_hook_is_confined(void) __attribute__((visibility("hidden")));

/* Says how many words that hold addresses of functions could not be changed. */
void nntrace_hook_refused(uint32_t words) __attribute__((visibility("hidden")));

/* Says how many files this process has loaded that the profiler has not examined in time. */
void nntrace_hook_unanswered(uint32_t files) __attribute__((visibility("hidden")));

/* Lets this thread sleep. No function of libc does, in which a thread may be cancelled. */
void nntrace_hook_sleep(long ns) __attribute__((visibility("hidden")));

#endif
