// Calls of the engine from coroutines, which have stacks of their own.

#include <pthread.h>
#include <ucontext.h>

#include "calls.h"
#include "engine.h"

/* Coroutines that stay in a function for ever: more than the functions of a thread that the profiler follows. */
static const int SUSPENDED = 24;
static const size_t STACK = 256 * 1024;

struct Coroutine {
    ucontext_t own, caller;
};

static void back_to_caller(void *coroutine) {
    Coroutine *const self = static_cast<Coroutine *>(coroutine);
    CHECK(swapcontext(&self->own, &self->caller) == 0);
}

static Coroutine *begun;

static void body() {
    Coroutine *const self = begun;
    ends_elsewhere(back_to_caller, self);
    back_to_caller(self);
}

static void begin(Coroutine *coroutine, char *stack) {
    CHECK(getcontext(&coroutine->own) == 0);
    coroutine->own.uc_stack.ss_sp = stack;
    coroutine->own.uc_stack.ss_size = STACK;
    coroutine->own.uc_link = nullptr;
    makecontext(&coroutine->own, body, 0);
    begun = coroutine;
}

static void go_on(void *coroutine) {
    Coroutine *const other = static_cast<Coroutine *>(coroutine);
    CHECK(swapcontext(&other->caller, &other->own) == 0);
}

/* A function on the thread's own stack lets a coroutine enter one, which comes back before either has returned. */
static void both_on(char *stack) {
    Coroutine coroutine;
    const int64_t before = now_ns();
    begin(&coroutine, stack);
    ends_elsewhere(go_on, &coroutine);
    go_on(&coroutine);
    next();
    took("ends_elsewhere", before, WORK_NS);
    took("ends_elsewhere", before, WORK_NS);
}

/* Coroutines that never come back, and a function that is called then. */
static void many_on(char *their_stacks) {
    static Coroutine coroutines[SUSPENDED];
    for (int number = SUSPENDED; number-- > 0;) {
        begin(&coroutines[number], their_stacks + number * STACK);
        go_on(&coroutines[number]);
    }
    for (int times = 0; times < SUSPENDED; times++) {
        CHECK(ends_land(1) == 2);
    }
}

/* Stacks of coroutines, and between them that of a thread. */
static char stacks[SUSPENDED + 1 + SUSPENDED][STACK];
static char *const OWN = stacks[SUSPENDED];
static char *const ABOVE = stacks[SUSPENDED + 1];

static void *with_one(void *stack) {
    both_on(static_cast<char *>(stack));
    return stack;
}

static void *with_many(void *stack) {
    many_on(static_cast<char *>(stack));
    return stack;
}

static void on_thread(void *(*routine)(void *), char *stack) {
    pthread_attr_t attributes;
    pthread_t thread;
    void *result = nullptr;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstack(&attributes, OWN, STACK) == 0);
    CHECK(pthread_create(&thread, &attributes, routine, stack) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == stack);
    CHECK(pthread_attr_destroy(&attributes) == 0);
}

void lower(int) { on_thread(with_one, stacks[0]); }
void upper(int) { on_thread(with_one, ABOVE); }
void abandoned_below(int) { on_thread(with_many, stacks[0]); }
void abandoned_above(int) { on_thread(with_many, ABOVE); }
