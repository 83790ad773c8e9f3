// Short sections, of which one is long: `slow-once MILLISECONDS AT LENGTH` runs for so long, and about AT milliseconds after
// its begin a section takes LENGTH milliseconds. Prints `ready` at first; ends with status 7.

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "nntrace.h"
#include "work.h"

static void step(int64_t length) {
    tracing_mark_write("B|0|[NN_LC_PCO]step");
    if (length > 0) sleep_ms(length);
    tracing_mark_write("E");
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    const int64_t begin = now_ns(), at = begin + atoll(argv[2]) * 1000000;
    const int64_t end = begin + atoll(argv[1]) * 1000000;
    puts("ready");
    fflush(stdout);
    int is_over = 0;
    while (now_ns() < end) {
        if (!is_over && now_ns() >= at) {
            step(atoll(argv[3]));
            is_over = 1;
        }
        step(0);
        sleep_ms(1);
    }
    return 7;
}
