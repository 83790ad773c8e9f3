/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Parts of looking at what a process has loaded.
 */
#ifndef NNTRACE_HOOKS_LOADING_H
#define NNTRACE_HOOKS_LOADING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hooks.h"

/* Outcome of a look at all objects. */
struct look {
    /* Files that the profiler has not examined, and whether it examines one of them. */
    uint32_t unanswered;
    bool is_answer_coming;
    /* Whether an object was not relocated yet: the thread that loads it has to look again. */
    bool is_incomplete;
    /* Whether there were too many for one look: the next one takes the others. */
    bool leaves_more;
};

/* Looks at the objects that are new, and hooks what the plans in a folder say. One thread at a time may. */
struct look nntrace_hook_look(const char *folder) __attribute__((visibility("hidden")));

/* Whether an object with this dynamic section was looked at. */
bool nntrace_hook_was_looked_at(const void *dynamic) __attribute__((visibility("hidden")));

/* Forgets an object that is to be unloaded: another one may be at its address. */
void nntrace_hook_forget(const void *dynamic) __attribute__((visibility("hidden")));

/* Forgets objects that were unloaded; all, if others have been loaded since the last look. One thread at a time may. */
void nntrace_hook_forget_unloaded(void) __attribute__((visibility("hidden")));

/* Returns the address of a function in the objects after this library; 0 where there is none. */
uintptr_t nntrace_hook_next(const char *name) __attribute__((visibility("hidden")));

/* Writes the path of this library's folder; whether there was room for it. */
bool nntrace_hook_own_folder(char *folder, size_t bytes) __attribute__((visibility("hidden")));

/* Whether this thread may make any system call. Those that find out are calls that loading a library makes as well. */
bool nntrace_hook_is_free(void) __attribute__((visibility("hidden")));

/* Whether a profiler works on the plans in a folder, and whether it examines files now. */
bool nntrace_hook_is_at_work(const char *folder) __attribute__((visibility("hidden")));
bool nntrace_hook_is_busy(const char *folder) __attribute__((visibility("hidden")));

#endif
