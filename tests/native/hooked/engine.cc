#include "engine.h"

#include <execinfo.h>
#include <pthread.h>
#include <unistd.h>

namespace hooked {

Operator::~Operator() = default;
Wide Operator::wide(int64_t first) { return Wide{{first, first + 1, first + 2, first + 3, first + 4}}; }
double Operator::scaled(const double &by) { return by * 2.5; }
long double Operator::precise(int64_t first) { return static_cast<long double>(first) / 3.0L; }
__int128 Operator::both(int64_t low, int64_t high) { return static_cast<__int128>(high) << 64 | low; }

}  // namespace hooked

namespace {

using hooked::Operator;

thread_local std::jmp_buf *jump_target;
thread_local Operator *inner;
thread_local int64_t depth;

class Add : public Operator {
public:
    using Operator::Operator;
    int64_t compute(int64_t first, int64_t second) override { return first + second; }
};

class Multiply : public Operator {
public:
    using Operator::Operator;
    int64_t compute(int64_t first, int64_t second) override { return first * second % 1000003; }
    hooked::Wide wide(int64_t first) override { return Operator::wide(first * 2); }
};

class Throw : public Operator {
public:
    using Operator::Operator;
    int64_t compute(int64_t first, int64_t) override { throw hooked::Failed{first}; }
};

class Jump : public Operator {
public:
    using Operator::Operator;
    int64_t compute(int64_t, int64_t) override { std::longjmp(*jump_target, 1); }
};

class Nest : public Operator {
public:
    using Operator::Operator;
    int64_t compute(int64_t first, int64_t second) override { return inner->compute(first, second) + 1; }
};

class Wait : public Operator {
public:
    using Operator::Operator;
    int64_t compute(int64_t first, int64_t) override {
        for (;;) {
            usleep(1000); /* Is cancelled here. */
        }
        return first;
    }
};

class Exit : public Operator {
public:
    using Operator::Operator;
    int64_t compute(int64_t, int64_t) override { pthread_exit(nullptr); }
};

/* Returns the number of frames up to the start of the program. */
class Walk : public Operator {
public:
    using Operator::Operator;
    int64_t compute(int64_t, int64_t) override {
        void *frames[64];
        return backtrace(frames, 64);
    }
};

class Recurse : public Operator {
public:
    using Operator::Operator;
    int64_t compute(int64_t first, int64_t second) override {
        return depth-- > 0 ? inner->compute(first, second) + 1 : first;
    }
};

}  // namespace

hooked::Operator *hooked_make(int kind, const char *name) {
    switch (kind) {
    case ADD: return new Add(name);
    case MULTIPLY: return new Multiply(name);
    case THROW: return new Throw(name);
    case JUMP: return new Jump(name);
    case NEST: return new Nest(name);
    case WAIT: return new Wait(name);
    case EXIT: return new Exit(name);
    case WALK: return new Walk(name);
    default: return new Recurse(name);
    }
}

void hooked_drop(hooked::Operator *operation) { delete operation; }

int64_t hooked_load(const char *path, hooked::Operator *operation) { return operation->compute(path[0], 2) + 1; }

int64_t hooked_run(hooked::Operator *const *operators, int64_t count, int64_t first) {
    for (int64_t at = 0; at < count; ++at) {
        first = operators[at]->compute(first, at + 1);
    }
    return first;
}

void hooked_set(std::jmp_buf *target, hooked::Operator *operation, int64_t calls) {
    jump_target = target;
    inner = operation;
    depth = calls;
}
