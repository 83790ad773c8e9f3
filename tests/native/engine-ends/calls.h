/* What the parts of the program have in common that calls the engine. */
#ifndef NNTRACE_TESTS_ENGINE_CALLS_H
#define NNTRACE_TESTS_ENGINE_CALLS_H

#include <cstdio>
#include <cstdlib>

#include "work.h"

#define CHECK(condition) ((condition) ? (void)0 : fail(__FILE__, __LINE__, #condition))

static inline void fail(const char *file, int line, const char *condition) {
    std::fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
    std::exit(2);
}

/* How often each of the ways is taken. */
static const int ROUNDS = 20;

/* Adds a call that began after this time and has ended by now; it took so long at least. */
void took(const char *name, int64_t before, int64_t at_least);
/* Has the next event of the thread, which closes what was left. */
void next();

/* A function is left by a change of the stack, to one below or above the thread's own, and comes back. */
void lower(int round);
void upper(int round);
/* Functions are left so that never come back. */
void abandoned_below(int round);
void abandoned_above(int round);

#endif
