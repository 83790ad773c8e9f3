/* f calls g a number of times. The time of f varies from call to call: with the argument `count` because g runs more or
 * less often, with `length` because each g takes more or less time, whatever the others of that f take.
 *
 * Prints the truth as JSON, a line: calls of f and g, and the means and variances of f's time, of g's time and of how often
 * g ran in an f (ns, ns^2), as the clock says around them. */

#include <nntrace.h>
#include <stdio.h>

#include "work.h"

enum { CALLS = 400 };

/* Mean and variance, a value at a time, by Welford's recurrence. */
struct spread {
    long count;
    double mean;
    double sum_of_squares;
};

static void add(struct spread *spread, double value) {
    const double distance = value - spread->mean;
    spread->count += 1;
    spread->mean += distance / (double)spread->count;
    spread->sum_of_squares += distance * (value - spread->mean);
}

static double variance(const struct spread *spread) { return spread->sum_of_squares / (double)spread->count; }

/* The same numbers each time, below the limit. They begin where those of one f happen to be independent of each other,
 * in so few calls. */
static uint64_t next_number(uint64_t limit) {
    static uint64_t state = 14;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
}

static void g(int64_t length, struct spread *spread) {
    const int64_t begin = now_ns();
    {
        NNTRACE_FULL(NNTRACE_LAYER_CPU, NNTRACE_PHASE_COMPUTATION, "g");
        busy_ns(length);
    }
    add(spread, (double)(now_ns() - begin));
}

int main(int argc, char **argv) {
    const int count_varies = argc == 2 && strcmp(argv[1], "count") == 0;
    struct spread of_f = {0, 0, 0}, of_g = {0, 0, 0}, of_count = {0, 0, 0};
    if (!count_varies && (argc != 2 || strcmp(argv[1], "length") != 0)) {
        fprintf(stderr, "usage: f-calls-g count|length\n");
        return 2;
    }
    go_first();
    for (uint64_t call = 0; call < CALLS; ++call) {
        const uint64_t times = count_varies ? next_number(8) + 1 : 4;
        const int64_t begin = now_ns();
        {
            NNTRACE_RT_WITH(NNTRACE_PHASE_EXECUTION, "f", nntrace_iter(call));
            for (uint64_t time = 0; time < times; ++time) {
                g(count_varies ? 1000000 : 300000 * ((int64_t)next_number(8) + 1), &of_g);
            }
        }
        add(&of_f, (double)(now_ns() - begin));
        add(&of_count, (double)times);
        sleep_us(1000);
    }
    printf("{\"f_calls\":%ld,\"f_mean\":%.0f,\"f_variance\":%.0f,"
           "\"g_calls\":%ld,\"g_mean\":%.0f,\"g_variance\":%.0f,\"count_mean\":%.6f,\"count_variance\":%.6f}\n",
           of_f.count, of_f.mean, variance(&of_f), of_g.count, of_g.mean, variance(&of_g), of_count.mean,
           variance(&of_count));
    return 0;
}
