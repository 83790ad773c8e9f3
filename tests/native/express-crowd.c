/* Many threads at once, each with a lane. Argument: how many. Waits for a line; prints the sections of all threads and, from
 * when all had a lane and were at work, the bytes of lanes that the process mapped; waits for another line, and ends. */

#define _GNU_SOURCE
#include <pthread.h>

#include "express.h"

/* Looks become rarer: threads that are always about to run would leave the profiler no time to hand out lanes. */
enum { BEFORE = 50, FIRST_LOOK_MS = 50, RAREST_LOOK_MS = 800, AFTER = 300, STACK = 64 << 10 };

static pthread_barrier_t all;
static int have_lanes = 0;
static uint64_t sections = 0;

static unsigned run(unsigned count) {
    for (unsigned number = 0; number < count; ++number) {
        NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "work");
    }
    return count;
}

static void *run_thread(void *nothing) {
    unsigned count = run(BEFORE);
    unsigned look_ms = FIRST_LOOK_MS;
    while (!__atomic_load_n(&have_lanes, __ATOMIC_ACQUIRE)) {
        sleep_ms(look_ms);
        look_ms = look_ms < RAREST_LOOK_MS ? 2 * look_ms : RAREST_LOOK_MS;
        count += run(1);
    }
    count += run(AFTER);
    __atomic_add_fetch(&sections, count, __ATOMIC_RELAXED);
    pthread_barrier_wait(&all);
    /* Until the lanes were counted. */
    pthread_barrier_wait(&all);
    return nothing;
}

static void nothing(void) {}

int main(int count, char **words) {
    const unsigned threads = count > 1 ? (unsigned)strtoul(words[1], NULL, 10) : 10;
    pthread_attr_t small;
    char line[16];
    unsigned read;
    uint64_t mapped;
    pthread_t *ids = calloc(threads, sizeof *ids);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    pthread_barrier_init(&all, NULL, threads + 1);
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    if (!ids || !fgets(line, sizeof line, stdin)) {
        return 1;
    }
    for (unsigned number = 0; number < threads; ++number) {
        if (pthread_create(&ids[number], &small, run_thread, NULL)) {
            return 2;
        }
    }
    await_lanes(threads, nothing);
    __atomic_store_n(&have_lanes, 1, __ATOMIC_RELEASE);
    pthread_barrier_wait(&all);
    mapped = mapped_lanes(0, &read);
    pthread_barrier_wait(&all);
    for (unsigned number = 0; number < threads; ++number) {
        pthread_join(ids[number], NULL);
    }
    printf("%llu %llu\n", (unsigned long long)sections, (unsigned long long)mapped);
    return !fgets(line, sizeof line, stdin);
}
