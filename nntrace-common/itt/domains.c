/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "domains.h"

#include <stdlib.h>
#include <string.h>

/* The first that fits. Found in OpenVINO 2026.4, oneDNN 3, oneTBB 2021.13 and PyTorch 2; ov::ReadTime and ov::LoadTime
 * are in builds of OpenVINO with all of its tasks only. */
static const struct meaning meanings[] = {
    {.domain = "ov::phases", .is_by_name = true},
    /* Stages of a request's pipeline: virtual devices (AUTO, HETERO, BATCH) have some of their own, around or beside
     * those of the device that infers. */
    {.domain = "ov::phases::inference", .is_left_out = true},
    /* A device's part of an execution, which may be on a thread of its own: the call of the runtime that asks for it shows
     * no task. */
    {.domain = "ov::phases::cpu::*", .tag = TAG(RUNTIME, EXECUTION), .outermost = TAG(CPU, EXECUTION)},
    {.domain = "ov::phases::*", .tag = TAG(RUNTIME, EXECUTION), .outermost = TAG(DRIVER, EXECUTION)},
    {.domain = "ov::op::*", .tag = TAG(CPU, EXECUTION), .is_operator = true},
    {.domain = "ov::ReadTime", .tag = TAG(RUNTIME, INITIALIZATION)},
    {.domain = "ov::LoadTime", .tag = TAG(RUNTIME, COMPILATION)},
    {.domain = "dnnl::primitive::create", .tag = TAG(CPU, COMPILATION), .is_operator = true},
    {.domain = "dnnl::primitive::execute", .tag = TAG(CPU, EXECUTION), .is_operator = true, .has_helpers = true},
    {.domain = "PyTorch", .tag = TAG(RUNTIME, EXECUTION)},
    /* How threads share work, not what the work is. */
    {.domain = "tbb*", .is_left_out = true},
    {.domain = "*", .is_unknown = true},
};
#define MEANINGS (sizeof meanings / sizeof meanings[0])

/* Layers and phases of `ov::phases`, by what the name begins with. */
static const struct {
    const char *name;
    itt_tag tag;
} phases[] = {
    {"Read", TAG(RUNTIME, INITIALIZATION)},
    {"Compile", TAG(RUNTIME, COMPILATION)},
    /* Of a model that was compiled before. */
    {"Import", TAG(RUNTIME, COMPILATION)},
};
#define PHASES (sizeof phases / sizeof phases[0])

static const struct meaning nothing = {.is_left_out = true};

static bool leaves_out_operators;

void nntrace_itt_read_level(void) {
    const char *const level = getenv("NNTRACE_ITT");
    leaves_out_operators = level && strcmp(level, "run") == 0;
}

static bool fits(const char *pattern, const char *name) {
    const size_t length = strlen(pattern);
    if (pattern[length - 1] == '*') {
        return strncmp(name, pattern, length - 1) == 0;
    }
    return strcmp(name, pattern) == 0;
}

static const struct meaning *look_up(const char *name) {
    size_t at = 0;
    if (!name) {
        return &nothing;
    }
    while (at < MEANINGS - 1 && !fits(meanings[at].domain, name)) {
        ++at;
    }
    return leaves_out_operators && meanings[at].is_operator ? &nothing : &meanings[at];
}

void nntrace_itt_set_up(struct itt_domain *domain) {
    const struct meaning *const meaning = look_up(domain->name);
    domain->extra2 = (void *)(uintptr_t)meaning;
    domain->flags = !meaning->is_left_out;
}

const struct meaning *nntrace_itt_meaning(const struct itt_domain *domain) {
    const uintptr_t kept = (uintptr_t)domain->extra2;
    if (kept == (uintptr_t)&nothing || kept - (uintptr_t)meanings < sizeof meanings) {
        return domain->extra2;
    }
    /* Of a static part that has not passed it to us, or was another collector's. */
    return look_up(domain->name);
}

itt_tag nntrace_itt_tag(const struct meaning *meaning, const char *name) {
    size_t at;
    if (!meaning->is_by_name) {
        return meaning->tag;
    }
    for (at = 0; at < PHASES; ++at) {
        if (strncmp(name, phases[at].name, strlen(phases[at].name)) == 0) {
            return phases[at].tag;
        }
    }
    return NO_TAG;
}
