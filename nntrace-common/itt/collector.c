/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * libnntrace-itt.so: makes marks of the tasks that libraries show to a collector of Intel's Instrumentation and Tracing
 * Technology (ITT).
 *
 * A program whose environment has INTEL_LIBITTNOTIFY64=/path/of/libnntrace-itt.so loads it; that is done by the static
 * part of ITT in each of its libraries, at the first task or before. What is marked: nntrace-user/docs/itt.md.
 *
 * It never ends or holds up its host: what is not understood, or has no room, is left out.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "abi.h"
#include "domains.h"
#include "names.h"
#include "tasks.h"

#define EXPORTED __attribute__((visibility("default")))

/* Tells nntrace-bpf that a file is this library, whatever its name. */
EXPORTED extern const int nntrace_itt_collector;
const int nntrace_itt_collector = 1;

EXPORTED void __itt_api_init(struct itt_global *global, int groups);

static struct itt_domain *domain_create(const char *name) { return nntrace_itt_domain(name); }

static struct itt_string *string_handle_create(const char *text) { return nntrace_itt_string(text); }

static void task_begin(const struct itt_domain *domain, struct itt_id id, struct itt_id parent,
                       struct itt_string *name) {
    (void)id, (void)parent;
    nntrace_itt_begin_task(domain, name);
}

/* A function's address is no name: the task has its domain's. */
static void task_begin_fn(const struct itt_domain *domain, struct itt_id id, struct itt_id parent, void *function) {
    (void)id, (void)parent, (void)function;
    nntrace_itt_begin_task(domain, NULL);
}

static void task_end(const struct itt_domain *domain) { nntrace_itt_end_task(domain); }

/* The functions with times: the time of the call counts, which is the time given unless that is of another clock. */
static void task_begin_ex(const struct itt_domain *domain, void *clock, unsigned long long time, struct itt_id id,
                          struct itt_id parent, struct itt_string *name) {
    (void)time, (void)id, (void)parent;
    if (!clock) {
        nntrace_itt_begin_task(domain, name);
    }
}

static void task_begin_fn_ex(const struct itt_domain *domain, void *clock, unsigned long long time, struct itt_id id,
                             struct itt_id parent, void *function) {
    (void)time, (void)id, (void)parent, (void)function;
    if (!clock) {
        nntrace_itt_begin_task(domain, NULL);
    }
}

static void task_end_ex(const struct itt_domain *domain, void *clock, unsigned long long time) {
    (void)time;
    if (!clock) {
        nntrace_itt_end_task(domain);
    }
}

static void task_begin_overlapped(const struct itt_domain *domain, struct itt_id id, struct itt_id parent,
                                  struct itt_string *name) {
    (void)parent;
    nntrace_itt_begin_slice(domain, &id, name);
}

static void task_begin_overlapped_ex(const struct itt_domain *domain, void *clock, unsigned long long time,
                                     struct itt_id id, struct itt_id parent, struct itt_string *name) {
    (void)time, (void)parent;
    if (!clock) {
        nntrace_itt_begin_slice(domain, &id, name);
    }
}

static void task_end_overlapped(const struct itt_domain *domain, struct itt_id id) {
    nntrace_itt_end_slice(domain, &id);
}

static void task_end_overlapped_ex(const struct itt_domain *domain, void *clock, unsigned long long time,
                                   struct itt_id id) {
    (void)time;
    if (!clock) {
        nntrace_itt_end_slice(domain, &id);
    }
}

static void region_begin(const struct itt_domain *domain, struct itt_id id, struct itt_id parent,
                         struct itt_string *name) {
    (void)id, (void)parent;
    nntrace_itt_begin_region(domain, name);
}

static void region_end(const struct itt_domain *domain, struct itt_id id) {
    (void)id;
    nntrace_itt_end_region(domain);
}

/* Collected functions. The others are not called, and cost a program nothing. */
#define FUNCTION(name) {"__itt_" #name, (void (*)(void))name}
static const struct {
    const char *name;
    void (*function)(void);
} functions[] = {
    FUNCTION(domain_create),
    FUNCTION(string_handle_create),
    FUNCTION(task_begin),
    FUNCTION(task_begin_fn),
    FUNCTION(task_end),
    FUNCTION(task_begin_ex),
    FUNCTION(task_begin_fn_ex),
    FUNCTION(task_end_ex),
    FUNCTION(task_begin_overlapped),
    FUNCTION(task_begin_overlapped_ex),
    FUNCTION(task_end_overlapped),
    FUNCTION(task_end_overlapped_ex),
    FUNCTION(region_begin),
    FUNCTION(region_end),
};
#define FUNCTIONS (sizeof functions / sizeof functions[0])

static void *function_for(const struct itt_api *api) {
    size_t at;
    for (at = 0; at < FUNCTIONS; ++at) {
        if (strcmp(functions[at].name, api->name) == 0) {
            return (void *)(uintptr_t)functions[at].function;
        }
    }
    return api->null;
}

/* Called once by each static part in the process, which holds its lock meanwhile. */
void __itt_api_init(struct itt_global *global, int groups) {
    struct itt_domain *domain;
    struct itt_api *api;
    (void)groups;
    if (!global || memcmp(global->magic, ITT_MAGIC, sizeof global->magic) != 0 || global->major != ITT_MAJOR ||
        global->build < ITT_FIRST_BUILD) {
        return;
    }
    /* Names that were created before are used as they are. */
    for (domain = global->domains; domain; domain = domain->next) {
        nntrace_itt_set_up(domain);
    }
    for (api = global->api; api && api->name; ++api) {
        /* Other threads may be about to call it. */
        __atomic_store_n(api->function, function_for(api), __ATOMIC_RELEASE);
    }
}

static void forked(void) {
    nntrace_itt_forget_tasks();
    nntrace_itt_forget_uses();
}

__attribute__((constructor)) static void loaded(void) {
    nntrace_itt_read_level();
    /* Without room for it only the child of a fork in the middle of a task has wrong marks. */
    (void)pthread_atfork(NULL, NULL, forked);
}
