/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Interface between the static part of Intel's Instrumentation and Tracing Technology (ITT), which is linked into a
 * program or library, and a collector: as much of it as the collector here uses.
 *
 * Source: the public headers of ITT, 3.15 (2018) to 3.26 (2026). In between these structures only grew at their ends.
 */
#ifndef NNTRACE_ITT_ABI_H
#define NNTRACE_ITT_ABI_H

#include <pthread.h>

/* First bytes of an itt_global. */
#define ITT_MAGIC "\xED\xAB\xAB\xEC\x0D\xEE\xDA\x30"
/* Major version with this interface. */
#define ITT_MAJOR 3
/* First build (a date) whose itt_api has `null`. */
#define ITT_FIRST_BUILD 20110000

/* Origin of tasks. */
struct itt_domain {
    /* Zero: disabled. Its tasks are then not even passed to the collector. */
    volatile int flags;
    const char *name;
    void *wide_name;
    /* For use by the collector, like the next one. */
    int extra1;
    void *extra2;
    struct itt_domain *next;
};

/* Name of tasks. */
struct itt_string {
    const char *text;
    void *wide_text;
    /* For use by the collector, like the next one. */
    int extra1;
    void *extra2;
    struct itt_string *next;
};

/* Number of a task. Passed by value. */
struct itt_id {
    unsigned long long d1, d2, d3;
};

/* Function that the static part calls. */
struct itt_api {
    const char *name;
    /* Pointer to it; null: it is not called. */
    void **function;
    void *initial;
    /* Value of the pointer without a collector. */
    void *null;
    int group;
};

/* Static part. */
struct itt_global {
    unsigned char magic[8];
    unsigned long major;
    unsigned long minor;
    unsigned long build;
    volatile long api_initialized;
    volatile long mutex_initialized;
    volatile long atomic_counter;
    pthread_mutex_t mutex;
    void *library;
    void *error_handler;
    const char **library_path;
    /* Its functions; the last has no name. */
    struct itt_api *api;
    struct itt_global *next;
    void *threads;
    /* Domains and names that were created before the collector was there. */
    struct itt_domain *domains;
    struct itt_string *strings;
};

#endif
