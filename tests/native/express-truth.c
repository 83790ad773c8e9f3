/* Sections whose times the program takes itself, before and behind each mark: bounds that every reader of the marks is
 * within. Prints counts and bounds as JSON. Argument: rounds of each thread, more than 100. */

#define _GNU_SOURCE
#include <pthread.h>

#include "express.h"

enum { THREADS = 2, BEFORE_LANES = 70, FUNCTIONS = 4 };

static pthread_barrier_t have_marked, have_lanes;

/* Sections of one name: their own times, and those of the sections directly in them. */
struct function {
    const char *name;
    uint64_t count;
    struct bounds own, nested;
};

enum { OUTER, FIRST, SECOND, INNERMOST };
static const char *const names[FUNCTIONS] = {"outer", "first", "second", "innermost"};

static unsigned rounds = 1000;

struct thread {
    pthread_t id;
    struct function functions[FUNCTIONS];
};

/* Clock readings around the two marks of a section. */
struct readings {
    int64_t before, begin, end, behind;
};

static void add(struct thread *thread, int function, int around, const struct readings *at) {
    struct function *own = &thread->functions[function];
    ++own->count;
    add_section(&own->own, at->before, at->begin, at->end, at->behind);
    if (around >= 0) {
        add_section(&thread->functions[around].nested, at->before, at->begin, at->end, at->behind);
    }
}

/* A section of a literal name, with what is done in it. */
#define STAMPED(thread, function, around, layer, phase, name, inside)    \
    do {                                                                 \
        struct readings at_;                                             \
        nntrace_section section_;                                        \
        at_.before = now_ns();                                           \
        section_ = NNTRACE_BEGIN(layer, phase, name);                    \
        at_.begin = now_ns();                                            \
        inside;                                                          \
        at_.end = now_ns();                                              \
        nntrace_end(&section_);                                          \
        at_.behind = now_ns();                                           \
        add(thread, function, around, &at_);                             \
    } while (0)

static void second(struct thread *thread) {
    busy_ns(2000);
    for (int number = 0; number < 3; ++number) {
        STAMPED(thread, INNERMOST, SECOND, NNTRACE_LAYER_CPU, NNTRACE_PHASE_COMPUTATION, "innermost", busy_ns(1500));
    }
}

static void outer(struct thread *thread) {
    busy_ns(3000);
    STAMPED(thread, FIRST, OUTER, NNTRACE_LAYER_RUNTIME, NNTRACE_PHASE_EXECUTION, "first", busy_ns(4000));
    STAMPED(thread, SECOND, OUTER, NNTRACE_LAYER_RUNTIME, NNTRACE_PHASE_EXECUTION, "second", second(thread));
}

static void *run_thread(void *argument) {
    struct thread *thread = argument;
    for (unsigned number = 0; number < rounds; ++number) {
        STAMPED(thread, OUTER, -1, NNTRACE_LAYER_APPLICATION, NNTRACE_PHASE_EXECUTION, "outer", outer(thread));
        if (number == BEFORE_LANES) {
            pthread_barrier_wait(&have_marked);
            pthread_barrier_wait(&have_lanes);
        }
    }
    return NULL;
}

static void add_bounds(struct bounds *sum, struct bounds bounds) {
    sum->least += bounds.least;
    sum->most += bounds.most;
}

static void nothing(void) {}

int main(int count, char **words) {
    struct thread threads[THREADS];
    memset(threads, 0, sizeof threads);
    rounds = count > 1 ? (unsigned)strtoul(words[1], NULL, 10) : rounds;
    pthread_barrier_init(&have_marked, NULL, THREADS + 1);
    pthread_barrier_init(&have_lanes, NULL, THREADS + 1);
    for (int number = 0; number < THREADS; ++number) {
        if (pthread_create(&threads[number].id, NULL, run_thread, &threads[number])) {
            return 1;
        }
    }
    pthread_barrier_wait(&have_marked);
    await_lanes(THREADS, nothing);
    pthread_barrier_wait(&have_lanes);
    for (int number = 0; number < THREADS; ++number) {
        pthread_join(threads[number].id, NULL);
    }
    printf("{");
    for (int function = 0; function < FUNCTIONS; ++function) {
        struct function sum = {names[function], 0, {0, 0}, {0, 0}};
        for (int number = 0; number < THREADS; ++number) {
            sum.count += threads[number].functions[function].count;
            add_bounds(&sum.own, threads[number].functions[function].own);
            add_bounds(&sum.nested, threads[number].functions[function].nested);
        }
        printf("%s\"%s\":{\"count\":%llu,", function ? "," : "", sum.name, (unsigned long long)sum.count);
        print_bounds("own", sum.own, ",");
        print_bounds("nested", sum.nested, "}");
    }
    printf("}\n");
    return 0;
}
