/* The program that is recorded: `recorded SECTIONS NAP MILLISECONDS`. One thread writes SECTIONS in a burst each
 * millisecond; a thread on each CPU sleeps for NAP us at a time, so that the CPU falls idle and leaves idle. After
 * MILLISECONDS, prints the number of sections that were written. A section is a call of a function, too, for tools that trace
 * those. */

#define _GNU_SOURCE
#include "clock.h"

#include <nntrace.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

enum { MOST_CPUS = 256, MILLISECOND = 1000000 };

static unsigned long long until_ns;
static unsigned long nap_us;

__attribute__((noinline)) void execute(void);
void execute(void) {
    NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "execute");
    __asm__ volatile("");
}

__attribute__((no_instrument_function)) static void *nap(void *cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
    prctl(PR_SET_TIMERSLACK, 1);
    for (unsigned long long next = now_ns(); next < until_ns; next += nap_us * 1000) {
        sleep_until(next);
    }
    return NULL;
}

int main(int count, char **arguments) {
    if (count != 4) {
        fprintf(stderr, "expected SECTIONS NAP MILLISECONDS\n");
        return 1;
    }
    const unsigned long sections = strtoul(arguments[1], NULL, 10);
    nap_us = strtoul(arguments[2], NULL, 10);
    const unsigned long long begin = now_ns();
    until_ns = begin + strtoul(arguments[3], NULL, 10) * MILLISECOND;
    pthread_t threads[MOST_CPUS];
    cpu_set_t set;
    size_t naps = 0;
    sched_getaffinity(0, sizeof set, &set);
    for (size_t cpu = 0; nap_us > 0 && cpu < MOST_CPUS; ++cpu) {
        if (CPU_ISSET(cpu, &set) && pthread_create(&threads[naps], NULL, nap, (void *)cpu) == 0) {
            ++naps;
        }
    }
    unsigned long long written = 0;
    for (unsigned long long next = begin; next < until_ns; next += MILLISECOND) {
        sleep_until(next);
        for (unsigned long at = 0; at < sections; ++at) {
            execute();
        }
        written += sections;
    }
    while (naps > 0) {
        pthread_join(threads[--naps], NULL);
    }
    printf("%llu\n", written);
    return 0;
}
