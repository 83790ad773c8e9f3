/* The monotonic clock, for programs that write at a pace. */

#ifndef CLOCK_H
#define CLOCK_H

#include <time.h>

static unsigned long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000000000U + (unsigned long long)now.tv_nsec;
}

static void sleep_until(unsigned long long ns) {
    const struct timespec until = {(time_t)(ns / 1000000000U), (long)(ns % 1000000000U)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL)) {
    }
}

#endif
