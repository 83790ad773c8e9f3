/* Every kind of mark on several threads, the same in each run, with the application's phases around them: by the express
 * lane they have to mean what they mean by probes. Arguments: rounds of each thread in each phase; `lanes` if after their
 * first marks all threads are to wait until they have one. */

#define _GNU_SOURCE
#include <pthread.h>

#include "express.h"

enum { THREADS = 4, DEEPEST = 70, BEFORE_LANE = 80, PAUSE_MS = 500 };

/* As other headers have them, and no mark of ours. */
static const char *const payloads[] = {
    "B|1|of somebody else", "E|1",
    "B|1|[NN_LQ_PE]unknown", "E|1",
    "B|1|[NN_LR_PP]by payload#iter=3", "B|1|HIDL::IPreparedModel::execute::client", "E|1", "E|1",
    "C|1|payload level|12", "S|1|slice|7", "F|1|slice|7", "I|1|payload instant",
    "", "X|1|no kind",
};

static pthread_barrier_t barrier;
static unsigned rounds = 10;
static uint64_t handles[THREADS];

/* Longer than what the clock of any machine counts in. */
static void work(void) { busy_ns(300); }

static void nested(unsigned left) {
    NNTRACE_CPU(NNTRACE_PHASE_EXECUTION, "nested");
    work();
    if (left > 1) {
        nested(left - 1);
    }
}

static void switches(unsigned number) {
    NNTRACE_COMP("conv");
    work();
    NNTRACE_COMP_SWITCH("pool");
    work();
    NNTRACE_FULL_SWITCH_WITH(NNTRACE_LAYER_CPU, NNTRACE_PHASE_COMPUTATION, "relu", nntrace_number("size", number % 3));
    work();
    NNTRACE_TRANS_SWITCH("pack");
    work();
}

static void subtracted(unsigned number) {
    NNTRACE_FULL_SUBTRACT(NNTRACE_LAYER_APPLICATION, NNTRACE_PHASE_EXECUTION, "apart");
    work();
    if (number % 2) {
        NNTRACE_FULL_SUBTRACT_WITH(NNTRACE_LAYER_RUNTIME, NNTRACE_PHASE_COMPILATION, "apart with", nntrace_attr("img", "a#b"));
        work();
    }
}

static void by_hand(unsigned number) {
    char name[32], text[400];
    nntrace_section outer, middle, inner;
    snprintf(name, sizeof name, "name %u", number % 5);
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    outer = NNTRACE_BEGIN(NNTRACE_LAYER_DRIVER, NNTRACE_PHASE_PREPARATION, name);
    work();
    middle = NNTRACE_BEGIN_WITH(NNTRACE_LAYER_IPC, NNTRACE_PHASE_INPUTS_AND_OUTPUTS, "with", nntrace_attr("img", "a.jpg"),
                                nntrace_number("size", number));
    work();
    inner = NNTRACE_BEGIN(NNTRACE_LAYER_UTILITY, NNTRACE_PHASE_RESULTS, "hash#img=c.jpg");
    work();
    nntrace_end(&inner);
    inner = NNTRACE_BEGIN(NNTRACE_LAYER_OTHER, NNTRACE_PHASE_UNSPECIFIED, text);
    work();
    /* In another order. */
    nntrace_end(&middle);
    nntrace_end(&outer);
    nntrace_end(&inner);
}

static void execute(unsigned number) {
    NNTRACE_APP_WITH(NNTRACE_PHASE_EXECUTION, "invoke", nntrace_iter(number), nntrace_acct(number % 3 ? "foo" : "bar"));
    {
        NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "compute");
        work();
        switches(number);
        subtracted(number);
    }
    by_hand(number);
    NNTRACE_INSTANT("now");
    NNTRACE_COUNTER("level", (int64_t)number - 5);
    for (size_t at = 0; at < sizeof payloads / sizeof *payloads; ++at) {
        tracing_mark_write(payloads[at]);
        work();
    }
}

static void hand_over(unsigned self) {
    handles[self] = nntrace_handle();
    NNTRACE_SEND(handles[self]);
    pthread_barrier_wait(&barrier);
    {
        NNTRACE_RT_WITH(NNTRACE_PHASE_EXECUTION, "taken", nntrace_takes(handles[(self + 1) % THREADS]));
        work();
    }
    NNTRACE_SEND(handles[self] + (1U << 20));
    pthread_barrier_wait(&barrier);
    NNTRACE_RECV(handles[(self + 1) % THREADS] + (1U << 20));
}

static void phase(unsigned self) {
    for (unsigned number = 0; number < rounds; ++number) {
        execute(number);
        if (number % 4 == 3) {
            nested(number % 8 == 3 ? 7 : DEEPEST);
        }
    }
    hand_over(self);
}

static void get_lane(void) {
    for (int number = 0; number < BEFORE_LANE; ++number) {
        NNTRACE_RT(NNTRACE_PHASE_INITIALIZATION, "before");
        work();
    }
    pthread_barrier_wait(&barrier);
}

static void nothing(void) {}

static void *run_thread(void *argument) {
    const unsigned self = (unsigned)(uintptr_t)argument;
    get_lane();
    tracing_mark_write("E|1"); /* Of nothing. */
    for (int number = 0; number < 3; ++number) {
        pthread_barrier_wait(&barrier);
        phase(self);
        pthread_barrier_wait(&barrier);
    }
    /* Open at the end of the thread, two of each. */
    if (NNTRACE_BEGIN(NNTRACE_LAYER_RUNTIME, NNTRACE_PHASE_TERMINATION, "open").is_open) {
        work();
        (void)NNTRACE_BEGIN_WITH(NNTRACE_LAYER_RUNTIME, NNTRACE_PHASE_TERMINATION, "open with", nntrace_number("size", 1));
    }
    return NULL;
}

/* What the threads do between two waits is in this phase. */
static void let_run(void) {
    pthread_barrier_wait(&barrier);
    phase(0);
    pthread_barrier_wait(&barrier);
}

int main(int count, char **words) {
    pthread_t threads[THREADS];
    rounds = count > 1 ? (unsigned)strtoul(words[1], NULL, 10) : rounds;
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (uintptr_t number = 1; number < THREADS; ++number) {
        if (pthread_create(&threads[number], NULL, run_thread, (void *)number)) {
            return 1;
        }
    }
    get_lane();
    if (count > 2 && strcmp(words[2], "lanes") == 0) {
        await_lanes(THREADS, nothing);
    } else {
        sleep_ms(PAUSE_MS); /* As what was before is not of the accounts that are named later. */
    }
    {
        NNTRACE_APP(NNTRACE_PHASE_OVERALL, "all");
        {
            NNTRACE_APP(NNTRACE_PHASE_WARMUP, "warm up");
            let_run();
        }
        {
            NNTRACE_APP_WITH(NNTRACE_PHASE_BENCHMARK, "benchmark", nntrace_iter(1));
            let_run();
            NNTRACE_APP_SWITCH(NNTRACE_PHASE_TERMINATION, "ends");
        }
    }
    {
        NNTRACE_APP(NNTRACE_PHASE_OVERALL, "again");
        let_run();
    }
    for (int number = 1; number < THREADS; ++number) {
        pthread_join(threads[number], NULL);
    }
    return 0;
}
