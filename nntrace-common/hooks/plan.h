/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Plans: the profiler's lists of the functions of an engine's file that are to be hooked.
 */
#ifndef NNTRACE_HOOKS_PLAN_H
#define NNTRACE_HOOKS_PLAN_H

#include <stdint.h>
#include <sys/stat.h>

#include "hooks.h"

/* Function of a plan: its address, and the words that the loader makes lead to it, as linked. */
struct planned {
    struct function function;
    uint64_t address;
    uint32_t word_count;
    const uint64_t *words;
};

/* Plan for a file. */
struct plan {
    uint32_t count;
    struct planned functions[];
};

/* What the profiler has done with a file. */
enum progress { UNKNOWN, BEING_EXAMINED, EXAMINED };

/* Reads the plan for a file, once for all times that it is loaded: NULL unless the file is examined, and has functions to hook. */
enum progress nntrace_hook_plan(const char *folder, const struct stat *file, const struct plan **plan)
    __attribute__((visibility("hidden")));

#endif
