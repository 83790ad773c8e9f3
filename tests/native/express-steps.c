/* Marks on request, a line each on stdin, answered by a number each, for profilers that come and go meanwhile:
 *   run N                 writes N sections; answers N
 *   sections N MS         writes sections of two by N threads for so many ms; answers how many pairs
 *   instants N MS         the same with instants
 *   alarm US              interrupts the threads of a flood each so many us, 0 for no more, by a handler that writes a section
 *                         and an instant; answers how often it has so far
 *   cost                  answers the ns that a section takes: the least of several hundred runs
 *   await N               writes sections until N lanes of the process are read; answers how many
 *   listens               answers whether a mark would be heard
 *   mapped                answers the bytes of lanes that the process maps
 * Arguments are commands in place of those on stdin. */

#define _GNU_SOURCE
#include <nntrace.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "express.h"

enum { MOST_THREADS = 16, BETWEEN_LOOKS = 64, BATCHES = 400, IN_BATCH = 500 };

struct flood {
    int64_t until;
    uint64_t (*write)(void);
    uint64_t count;
};

static uint64_t handled = 0;

static void section(void) { NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "work"); }

static void inner(void) { NNTRACE_COMP("inner"); }

static uint64_t write_sections(void) {
    for (int number = 0; number < BETWEEN_LOOKS; ++number) {
        NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "outer");
        inner();
    }
    return BETWEEN_LOOKS;
}

static uint64_t write_instants(void) {
    for (int number = 0; number < BETWEEN_LOOKS; ++number) {
        NNTRACE_INSTANT("tick");
    }
    return BETWEEN_LOOKS;
}

static void mask_alarm(int how) {
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(how, &alarm, NULL);
}

static void *run_flood(void *argument) {
    struct flood *flood = argument;
    mask_alarm(SIG_UNBLOCK);
    while (now_ns() < flood->until) {
        flood->count += flood->write();
    }
    return NULL;
}

static uint64_t flood(uint64_t (*write)(void), unsigned threads, unsigned ms) {
    struct flood floods[MOST_THREADS];
    pthread_t ids[MOST_THREADS];
    uint64_t sum = 0;
    const int64_t until = now_ns() + (int64_t)ms * 1000000;
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    for (unsigned number = 0; number < threads; ++number) {
        floods[number] = (struct flood){until, write, 0};
        if (pthread_create(&ids[number], NULL, run_flood, &floods[number])) {
            exit(2);
        }
    }
    for (unsigned number = 0; number < threads; ++number) {
        pthread_join(ids[number], NULL);
        sum += floods[number].count;
    }
    return sum;
}

static void on_alarm(int number) {
    (void)number;
    NNTRACE_COMP("handler");
    NNTRACE_INSTANT("alarm");
    __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

static uint64_t set_alarm(long us) {
    const struct itimerval timer = {{us / 1000000, us % 1000000}, {us / 1000000, us % 1000000}};
    const struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &timer, NULL)) {
        exit(2);
    }
    return __atomic_load_n(&handled, __ATOMIC_RELAXED);
}

static uint64_t cost(void) {
    int64_t least = INT64_MAX;
    for (int batch = 0; batch < BATCHES; ++batch) {
        const int64_t begin = now_ns();
        for (int number = 0; number < IN_BATCH; ++number) {
            section();
        }
        const int64_t length = now_ns() - begin;
        least = length < least ? length : least;
    }
    return (uint64_t)least / IN_BATCH;
}

static uint64_t obey(const char *line) {
    char command[16] = "";
    unsigned first = 0, second = 0, read;
    if (sscanf(line, "%15s %u %u", command, &first, &second) < 1) {
        exit(2);
    }
    if (strcmp(command, "run") == 0) {
        for (unsigned number = 0; number < first; ++number) {
            section();
        }
        return first;
    }
    if (strcmp(command, "sections") == 0 || strcmp(command, "instants") == 0) {
        return flood(command[0] == 's' ? write_sections : write_instants, first, second);
    }
    if (strcmp(command, "alarm") == 0) {
        return set_alarm((long)first);
    }
    if (strcmp(command, "cost") == 0) {
        return cost();
    }
    if (strcmp(command, "listens") == 0) {
        return (uint64_t)nntrace_listens();
    }
    if (strcmp(command, "mapped") == 0) {
        return mapped_lanes(0, &read);
    }
    if (strcmp(command, "await") == 0) {
        return await_lanes(first, section);
    }
    exit(2);
}

int main(int count, char **words) {
    char line[64];
    mask_alarm(SIG_BLOCK);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int number = 1; number < count; ++number) {
        printf("%llu\n", (unsigned long long)obey(words[number]));
    }
    while (count < 2 && fgets(line, sizeof line, stdin)) {
        printf("%llu\n", (unsigned long long)obey(line));
    }
    return 0;
}
