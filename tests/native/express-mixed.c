/* Sections by all ways of marking, one in the other, on two threads at once: by nntrace.h in the executable and in a library
 * (express-mixed-part.c), which have a lane each, by payloads, and by functions of another header.
 * Argument: rounds of each thread, more than 100. */

#define _GNU_SOURCE
#include <pthread.h>

#include "express-mixed.h"
#include "express.h"

#define FUNCTION __attribute__((noinline))

enum { THREADS = 2, LANES = 2 * THREADS, BEFORE_LANES = 70, BETWEEN_PAUSES = 100 };

static pthread_barrier_t have_marked, have_lanes;

static unsigned rounds = 1000;

FUNCTION void ATrace_beginSection(const char *name);
FUNCTION void ATrace_beginSection(const char *name) { __asm__ volatile("" : : "r"(name) : "memory"); }

FUNCTION void ATrace_endSection(void);
FUNCTION void ATrace_endSection(void) { __asm__ volatile("" : : : "memory"); }

static void leaf(void) { NNTRACE_COMP("leaf"); }

static void in_library(void) {
    tracing_mark_write("B|1|[NN_LR_PE]payload");
    leaf();
    ATrace_beginSection("[NN_LR_PE]atrace");
    leaf();
    mixed_part(leaf);
    ATrace_endSection();
    NNTRACE_INSTANT("tick");
    tracing_mark_write("E|1");
    leaf();
}

static void *run_thread(void *nothing) {
    (void)nothing;
    for (unsigned number = 0; number < rounds; ++number) {
        {
            NNTRACE_APP(NNTRACE_PHASE_EXECUTION, "outer");
            mixed_part(in_library);
        }
        if (number == BEFORE_LANES) {
            pthread_barrier_wait(&have_marked);
            pthread_barrier_wait(&have_lanes);
        } else if (number % BETWEEN_PAUSES == 0) {
            sleep_ms(1); /* The rings of probed marks are small. */
        }
    }
    return NULL;
}

static void nothing(void) {}

int main(int count, char **words) {
    pthread_t threads[THREADS];
    rounds = count > 1 ? (unsigned)strtoul(words[1], NULL, 10) : rounds;
    pthread_barrier_init(&have_marked, NULL, THREADS + 1);
    pthread_barrier_init(&have_lanes, NULL, THREADS + 1);
    for (int number = 0; number < THREADS; ++number) {
        if (pthread_create(&threads[number], NULL, run_thread, NULL)) {
            return 1;
        }
    }
    pthread_barrier_wait(&have_marked);
    await_lanes(LANES, nothing);
    pthread_barrier_wait(&have_lanes);
    for (int number = 0; number < THREADS; ++number) {
        pthread_join(threads[number], NULL);
    }
    return 0;
}
