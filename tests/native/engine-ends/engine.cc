// The engine, to be built as a library: nothing but the exported functions has a name in it once it is stripped.

#include "engine.h"

#include "work.h"

#define INNER __attribute__((noinline))
/* What comes behind a call, so that it is none of the last thing that a function does. */
#define AND_MORE __asm__ volatile("" : : : "memory")

static INNER int spend(int number) {
    busy_ns(WORK_NS);
    AND_MORE;
    return number + 1;
}

int ends_load(const char *path) { return spend(path[0] == '/') > 0 ? 0 : 1; }

int ends_run(int64_t length_ns) {
    busy_ns(length_ns);
    AND_MORE;
    return 0;
}

int ends_throw(int number) {
    if (spend(number) != 0) {
        throw Failed{number};
    }
    return 0;
}

int ends_throw_through(int number) {
    const int result = ends_throw(spend(number));
    AND_MORE;
    return result;
}

int ends_catch(int number) {
    try {
        number = ends_throw(number);
    } catch (const Failed &failed) {
        number = failed.number;
    }
    number = spend(number);
    AND_MORE;
    return number;
}

int ends_jump(jmp_buf target) {
    if (spend(0) != 0) {
        longjmp(target, 1);
    }
    return 0;
}

int ends_jump_through(jmp_buf target) {
    const int result = ends_jump(target) + spend(0);
    AND_MORE;
    return result;
}

int ends_cancelled(int (*wait)(void)) {
    const int result = wait() + spend(0);
    AND_MORE;
    return result;
}

int ends_land(int number) {
    const int result = spend(number);
    AND_MORE;
    return result;
}

int ends_hop(int number) { return ends_land(spend(number)); }

int ends_hop_away(int number) { return spend(spend(number)); }

int ends_hop_sometimes(int number) {
    if (number % 2 == 0) {
        number = spend(number);
        AND_MORE;
        return number;
    }
    return spend(spend(number));
}

int ends_recurse(int depth) {
    const int result = depth == 0 ? spend(0) : ends_recurse(depth - 1) + 1;
    AND_MORE;
    return result;
}

int ends_at_many_places(int number) {
    number %= 6;
    if (number == 0) {
        return 17;
    }
    AND_MORE;
    if (number == 1) {
        return 23;
    }
    AND_MORE;
    if (number == 2) {
        return 42;
    }
    AND_MORE;
    if (number == 3) {
        return 5;
    }
    number = spend(number);
    AND_MORE;
    return number;
}

/* Labels are no values in standard C++. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
int ends_unclear(intptr_t distance) {
    const intptr_t start = reinterpret_cast<intptr_t>(&&first);
    goto *reinterpret_cast<void *>(start + distance);
first:
    AND_MORE;
    return 1;
second:
    __asm__ volatile("" : : "r"(&&second) : "memory");
    return 2;
}
#pragma GCC diagnostic pop

int ends_elsewhere(void (*leave)(void *), void *argument) {
    spend(0);
    leave(argument);
    AND_MORE;
    return 0;
}

namespace ends {

struct Stage {
    virtual ~Stage();
    virtual int run(int number) = 0;
    virtual const char *name() const;
    int runs = 0;
};

Stage::~Stage() {}
const char *Stage::name() const { return ""; }

struct Conv : Stage {
    int run(int number) override {
        runs += spend(number);
        return runs;
    }
};

struct Pool : Stage {
    int run(int number) override {
        runs++;
        if (spend(number) != 0) {
            throw Failed{number};
        }
        return 0;
    }
};

struct Depthwise : Conv {
    const char *name() const override { return "depthwise"; }
};

}  // namespace ends

Stage *ends_stage(int number) {
    static ends::Conv conv;
    static ends::Pool pool;
    static ends::Depthwise depthwise;
    ends::Stage *const stages[] = {&conv, &pool, &depthwise};
    return reinterpret_cast<Stage *>(stages[number % 3]);
}

int ends_stage_run(Stage *stage, int number) {
    const int result = reinterpret_cast<ends::Stage *>(stage)->run(number);
    AND_MORE;
    return result;
}
