/* The program whose threads write sections at a pace. Answers each line on stdin, `THREADS PACE MILLISECONDS`, once that
 * many threads have written sections for that long, each PACE of them a millisecond, or without a pause if that is 0: with
 * the number of sections that were written, and the longest time that a thread took, ns. */

#include "clock.h"

#include <nntrace.h>
#include <pthread.h>
#include <stdio.h>

enum { MOST_THREADS = 64, MILLISECOND = 1000000, WITHOUT_PAUSE = 1000 };

struct load {
    pthread_t thread;
    unsigned long pace, milliseconds;
    unsigned long long written, took_ns;
};

static void sections(unsigned long count) {
    while (count-- > 0) {
        NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "execute");
        __asm__ volatile("");
    }
}

static void *run(void *argument) {
    struct load *load = argument;
    const unsigned long long begin = now_ns();
    const unsigned long long end = begin + load->milliseconds * MILLISECOND;
    if (load->pace == 0) {
        while (now_ns() < end) {
            sections(WITHOUT_PAUSE);
            load->written += WITHOUT_PAUSE;
        }
    } else {
        for (unsigned long long next = begin; next < end; next += MILLISECOND) {
            sleep_until(next);
            sections(load->pace);
            load->written += load->pace;
        }
    }
    load->took_ns = now_ns() - begin;
    return NULL;
}

int main(void) {
    static struct load loads[MOST_THREADS];
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        unsigned long threads = 0, pace = 0, milliseconds = 0;
        unsigned long long written = 0, took_ns = 0;
        if (sscanf(line, "%lu %lu %lu", &threads, &pace, &milliseconds) != 3 || threads > MOST_THREADS) {
            fprintf(stderr, "expected THREADS PACE MILLISECONDS, of at most %d threads, not %s", MOST_THREADS, line);
            return 1;
        }
        for (unsigned long at = 0; at < threads; ++at) {
            const struct load load = {.pace = pace, .milliseconds = milliseconds};
            loads[at] = load;
            if (pthread_create(&loads[at].thread, NULL, run, &loads[at])) {
                perror("no thread");
                return 1;
            }
        }
        for (unsigned long at = 0; at < threads; ++at) {
            pthread_join(loads[at].thread, NULL);
            written += loads[at].written;
            took_ns = took_ns > loads[at].took_ns ? took_ns : loads[at].took_ns;
        }
        printf("%llu %llu\n", written, took_ns);
        fflush(stdout);
    }
    return 0;
}
