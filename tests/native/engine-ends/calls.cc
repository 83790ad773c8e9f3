// Calls the functions of the engine, and tells how often it called each and how long that took by its own clock. A
// section that is left without a return ends at the thread's next call, so each of these is followed by one.

#include "calls.h"

#include <pthread.h>
#include <setjmp.h>
#include <unistd.h>

#include <cstring>
#include <initializer_list>

#include "engine.h"

/* How long the calls of a function took. */
struct Took {
    const char *name;
    bounds ns;
};

static Took all[32];

void took(const char *name, int64_t before, int64_t at_least) {
    for (Took &one : all) {
        if (one.name == nullptr || std::strcmp(one.name, name) == 0) {
            one.name = name;
            one.ns.least += at_least;
            one.ns.most += now_ns() - before;
            return;
        }
    }
    CHECK(!"there is room for all names");
}

void next() { CHECK(ends_run(0) == 0); }

static void throws(int) {
    int64_t before = now_ns();
    bool is_caught = false;
    try {
        ends_throw(1);
    } catch (const Failed &failed) {
        is_caught = failed.number == 1;
    }
    next();
    took("ends_throw", before, WORK_NS);
    CHECK(is_caught);

    before = now_ns();
    is_caught = false;
    try {
        ends_throw_through(1);
    } catch (const Failed &failed) {
        is_caught = failed.number == 2;
    }
    next();
    took("ends_throw_through", before, 2 * WORK_NS);
    took("ends_throw", before, WORK_NS);
    CHECK(is_caught);

    before = now_ns();
    CHECK(ends_catch(1) == 2);
    took("ends_catch", before, 2 * WORK_NS);
    took("ends_throw", before, WORK_NS);
}

static void jumps(int) {
    static jmp_buf target;
    volatile int64_t before = now_ns();
    if (setjmp(target) == 0) {
        ends_jump(target);
    }
    next();
    took("ends_jump", before, WORK_NS);
    before = now_ns();
    if (setjmp(target) == 0) {
        ends_jump_through(target);
    }
    next();
    took("ends_jump_through", before, WORK_NS);
    took("ends_jump", before, WORK_NS);
}

static void hops(int round) {
    int64_t before = now_ns();
    CHECK(ends_hop(1) == 3);
    took("ends_hop", before, WORK_NS);
    took("ends_land", before, WORK_NS);
    before = now_ns();
    CHECK(ends_hop_away(1) == 3);
    next();
    took("ends_hop_away", before, 2 * WORK_NS);
    before = now_ns();
    CHECK(ends_hop_sometimes(round) == round + 1 + round % 2);
    next();
    took("ends_hop_sometimes", before, WORK_NS);
}

static void returns(int round) {
    int64_t before = now_ns();
    CHECK(ends_load("/models/net") == 0);
    took("/models/net", before, WORK_NS);
    before = now_ns();
    CHECK(ends_recurse(3) == 4);
    took("ends_recurse", before, WORK_NS);
    before = now_ns();
    CHECK(ends_at_many_places(round) != 0);
    took("ends_at_many_places", before, 0);
    CHECK(ends_unclear(0) == 1);
}

static void stages(int) {
    int64_t before = now_ns();
    CHECK(ends_stage_run(ends_stage(0), 1) > 0);
    took("Conv", before, WORK_NS);
    before = now_ns();
    CHECK(ends_stage_run(ends_stage(2), 1) > 0);
    took("Conv", before, WORK_NS);
    before = now_ns();
    bool is_caught = false;
    try {
        ends_stage_run(ends_stage(1), 1);
    } catch (const Failed &) {
        is_caught = true;
    }
    next();
    took("Pool", before, WORK_NS);
    CHECK(is_caught);
}

/* A call that is left after a failed one, from further down the stack than that was. */
static __attribute__((noinline)) void runs_deeper() {
    volatile char room[4096];
    room[0] = 0;
    CHECK(ends_run(WORK_NS) == 0);
    room[4095] = room[0];
}

static void deeper(int) {
    const int64_t before = now_ns();
    try {
        ends_throw(1);
    } catch (const Failed &) {
        /* Its section is over here, whatever comes. */
        took("ends_throw", before, WORK_NS);
    }
    busy_ms(5);
    runs_deeper();
    next();
}

static pthread_barrier_t is_waiting;

static int waits_for_ever() {
    pthread_barrier_wait(&is_waiting);
    for (;;) {
        pause();
    }
    return 0;
}

static int cancels_itself() {
    pthread_cancel(pthread_self());
    pthread_testcancel();
    return 0;
}

static int ends_thread() {
    pthread_exit(PTHREAD_CANCELED);
    return 0;
}

static void *to_be_cancelled(void *wait) {
    next();
    ends_cancelled(reinterpret_cast<int (*)()>(wait));
    return nullptr;
}

static void *hops_away_at_last(void *) {
    CHECK(ends_hop_away(1) == 3);
    return PTHREAD_CANCELED;
}

static void ended(void *(*routine)(void *), int (*wait)()) {
    pthread_t thread;
    void *result = nullptr;
    CHECK(pthread_create(&thread, nullptr, routine, reinterpret_cast<void *>(wait)) == 0);
    if (wait == waits_for_ever) {
        pthread_barrier_wait(&is_waiting);
        CHECK(pthread_cancel(thread) == 0);
    }
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    next();
}

static void threads(int) {
    CHECK(pthread_barrier_init(&is_waiting, nullptr, 2) == 0);
    for (int (*wait)() : {waits_for_ever, cancels_itself, ends_thread}) {
        const int64_t before = now_ns();
        ended(to_be_cancelled, wait);
        took("ends_cancelled", before, 0);
    }
    const int64_t before = now_ns();
    ended(hops_away_at_last, nullptr);
    took("ends_hop_away", before, 2 * WORK_NS);
    CHECK(pthread_barrier_destroy(&is_waiting) == 0);
}

struct Way {
    const char *name;
    void (*go)(int round);
};

static const Way WAYS[] = {
    {"throws", throws},
    {"jumps", jumps},
    {"hops", hops},
    {"returns", returns},
    {"stages", stages},
    {"deeper", deeper},
    {"threads", threads},
    {"lower", lower},
    {"upper", upper},
    {"abandoned_below", abandoned_below},
    {"abandoned_above", abandoned_above},
};

/* Goes the way that the first argument names; with another one, when it is told to. */
int main(int count, char **arguments) {
    CHECK(count == 2 || count == 3);
    if (count == 3) {
        std::puts("ready");
        std::fflush(stdout);
        CHECK(std::getchar() == '\n');
    }
    int rounds = 0;
    for (const Way &way : WAYS) {
        for (int round = 0; round < ROUNDS && std::strcmp(way.name, arguments[1]) == 0; round++) {
            way.go(round);
            rounds++;
        }
    }
    CHECK(rounds == ROUNDS);
    std::printf("{");
    const char *between = "";
    for (const Took &one : all) {
        if (one.name != nullptr) {
            std::printf("%s", between);
            print_bounds(one.name, one.ns, "");
            between = ",";
        }
    }
    std::printf("}\n");
    return 0;
}
