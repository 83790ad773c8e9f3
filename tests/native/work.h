/* Work whose length is known. */
#ifndef NNTRACE_TESTS_WORK_H
#define NNTRACE_TESTS_WORK_H

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* Lets this process and its threads run before all ordinary ones, if it may: what else the machine does is then not in
 * their times. The kernel keeps a twentieth of each second for the others, so there must be pauses. */
static inline void go_first(void) {
    struct sched_param parameters;
    parameters.sched_priority = 1;
    if (sched_setscheduler(0, SCHED_FIFO, &parameters) != 0) {
        /* It may not: then the times are less even. */
    }
}

/* CLOCK_MONOTONIC, the clock of the profiler's records, ns. */
static inline int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Keeps the CPU busy for so long. */
static inline void busy_ns(int64_t length) {
    const int64_t end = now_ns() + length;
    while (now_ns() < end) {
    }
}

static inline void busy_ms(int64_t length) { busy_ns(length * 1000000); }

static inline void sleep_us(int64_t length) {
    const struct timespec time = {(time_t)(length / 1000000), (long)(length % 1000000) * 1000};
    nanosleep(&time, 0);
}

static inline void sleep_ms(int64_t length) { sleep_us(length * 1000); }

/* Between these is the time of marked sections, ns: no clock is read at the very moment of a mark, only before and behind
 * it. What the machine does meanwhile makes the bounds wider and never wrong. */
struct bounds {
    int64_t least, most;
};

/* Adds a section: the clock before and behind its begin, and before and behind its end. */
static inline void add_section(struct bounds *sum, int64_t before, int64_t begin, int64_t end, int64_t behind) {
    sum->least += end - begin;
    sum->most += behind - before;
}

/* The bounds as a member of a JSON object. */
static inline void print_bounds(const char *name, struct bounds bounds, const char *behind) {
    printf("\"%s\":{\"least_ns\":%lld,\"most_ns\":%lld}%s", name, (long long)bounds.least, (long long)bounds.most, behind);
}

#endif
