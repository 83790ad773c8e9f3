/* A static part of Intel's Instrumentation and Tracing Technology (ITT), by which a library shows its tasks, as the public
 * interface describes it: it loads the collector that the environment names. It has as much as the tests need. */

#ifndef ITT_PART_H
#define ITT_PART_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct domain {
    volatile int flags;
    const char *nameA;
    void *nameW;
    int extra1;
    void *extra2;
    struct domain *next;
} domain;

typedef struct handle {
    const char *strA;
    void *strW;
    int extra1;
    void *extra2;
    struct handle *next;
} handle;

typedef struct id {
    unsigned long long d1, d2, d3;
} id;

enum function {
    DOMAIN_CREATE,
    HANDLE_CREATE,
    TASK_BEGIN,
    TASK_BEGIN_FN,
    TASK_END,
    TASK_BEGIN_EX,
    TASK_END_EX,
    OVERLAPPED_BEGIN,
    OVERLAPPED_END,
    REGION_BEGIN,
    REGION_END,
    METADATA_ADD,
    THREAD_SET_NAME,
    FUNCTIONS
};

static const char *const function_names[FUNCTIONS] = {
    "__itt_domain_create", "__itt_string_handle_create",  "__itt_task_begin",          "__itt_task_begin_fn",
    "__itt_task_end",      "__itt_task_begin_ex",         "__itt_task_end_ex",         "__itt_task_begin_overlapped",
    "__itt_task_end_overlapped", "__itt_region_begin",    "__itt_region_end",          "__itt_metadata_add",
    "__itt_thread_set_name"};

typedef struct api {
    const char *name;
    void **func_ptr;
    void *init_func;
    void *null_func;
    int group;
} api;

typedef struct global {
    unsigned char magic[8];
    unsigned long version_major, version_minor, version_build;
    volatile long api_initialized, mutex_initialized, atomic_counter;
    pthread_mutex_t mutex;
    void *lib;
    void *error_handler;
    const char **dll_path_ptr;
    api *api_list_ptr;
    struct global *next;
    void *thread_list;
    domain *domain_list;
    handle *string_list;
    int state;
    void *counter_list;
    unsigned ipt_collect_events;
    void *histogram_list;
    void *counter_metadata_list;
} global;

typedef struct part {
    global global;
    void *functions[FUNCTIONS];
    api list[FUNCTIONS + 1];
} part;

/* Target of the functions before there is a collector. */
static char initial;

static void part_init(part *part, unsigned long major) {
    static const unsigned char magic[8] = {0xed, 0xab, 0xab, 0xec, 0x0d, 0xee, 0xda, 0x30};
    int at;
    memset(part, 0, sizeof *part);
    memcpy(part->global.magic, magic, sizeof magic);
    part->global.version_major = major;
    part->global.version_build = 20250807;
    pthread_mutex_init(&part->global.mutex, NULL);
    part->global.api_list_ptr = part->list;
    for (at = 0; at < FUNCTIONS; ++at) {
        part->functions[at] = &initial;
        part->list[at].name = function_names[at];
        part->list[at].func_ptr = &part->functions[at];
        part->list[at].init_func = &initial;
    }
}

/* Loads the collector; whether there is one. */
static int part_load(part *part) {
    union {
        void *found;
        void (*call)(global *, int);
    } init = {NULL};
    const char *const path = getenv("INTEL_LIBITTNOTIFY64");
    void *const library = path ? dlopen(path, RTLD_LAZY) : NULL;
    int at;
    if (library) {
        init.found = dlsym(library, "__itt_api_init");
    } else if (path) {
        fprintf(stderr, "%s\n", dlerror());
    }
    if (!init.found) {
        for (at = 0; at < FUNCTIONS; ++at) {
            part->functions[at] = NULL;
        }
        return 0;
    }
    part->global.lib = library;
    init.call(&part->global, -1);
    part->global.api_initialized = 1;
    return 1;
}

static const id no_id = {0, 0, 0};

/* Calls a function of the collector as its header's macros do: not where there is none, or the domain is disabled. */
#define FUNCTION_OF(part, number, type, pointer) \
    union {                                      \
        void *data;                              \
        type;                                    \
    } pointer = {(part)->functions[number]}
#define IS_ENABLED(domain, pointer) ((domain) && (domain)->flags && (pointer).data)

static domain *domain_create(part *part, const char *name) {
    FUNCTION_OF(part, DOMAIN_CREATE, domain *(*call)(const char *), function);
    return function.data ? function.call(name) : NULL;
}

static handle *handle_create(part *part, const char *text) {
    FUNCTION_OF(part, HANDLE_CREATE, handle *(*call)(const char *), function);
    return function.data ? function.call(text) : NULL;
}

static void task_begin(part *part, domain *in, handle *name) {
    FUNCTION_OF(part, TASK_BEGIN, void (*call)(const domain *, id, id, handle *), function);
    if (IS_ENABLED(in, function)) {
        function.call(in, no_id, no_id, name);
    }
}

static void task_end(part *part, domain *in) {
    FUNCTION_OF(part, TASK_END, void (*call)(const domain *), function);
    if (IS_ENABLED(in, function)) {
        function.call(in);
    }
}

static void region_begin(part *part, domain *in, handle *name) {
    FUNCTION_OF(part, REGION_BEGIN, void (*call)(const domain *, id, id, handle *), function);
    if (IS_ENABLED(in, function)) {
        function.call(in, no_id, no_id, name);
    }
}

static void region_end(part *part, domain *in) {
    FUNCTION_OF(part, REGION_END, void (*call)(const domain *, id), function);
    if (IS_ENABLED(in, function)) {
        function.call(in, no_id);
    }
}

#endif
