/* The program whose marks are a tracepoint of LTTng-UST. Answers each line on stdin, `marks N`, with ns per mark, and how
 * many there were; any other line with whether the tracepoint is recorded, 0 or 1. */

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Parts of a round. A round counts with its median part: in another one something else may have run. */
enum { PARTS = 20 };

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_size(const void *a, const void *b) {
    const double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

static void measure(unsigned count) {
    double parts[PARTS];
    for (int part = 0; part < PARTS; ++part) {
        const double begin = now_ns();
        for (unsigned number = 0; number < count / PARTS; ++number) {
            lttng_ust_tracepoint(nntrace_bench, mark, "execute");
        }
        parts[part] = (now_ns() - begin) / (count / PARTS);
    }
    qsort(parts, PARTS, sizeof *parts, by_size);
    printf("%.3f %u\n", (parts[PARTS / 2 - 1] + parts[PARTS / 2]) / 2, count / PARTS * PARTS);
}

int main(void) {
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        unsigned count = 0;
        if (sscanf(line, "marks %u", &count) == 1 && count >= PARTS) {
            measure(count);
        } else {
            printf("%d\n", lttng_ust_tracepoint_enabled(nntrace_bench, mark) != 0);
        }
        fflush(stdout);
    }
    return 0;
}
