/* An engine for tests: its functions end in every way that there is. */
#ifndef NNTRACE_TESTS_ENGINE_ENDS_H
#define NNTRACE_TESTS_ENGINE_ENDS_H

#include <setjmp.h>

#include <cstdint>

#define EXPORTED extern "C" __attribute__((visibility("default"), noinline))

/* What a call does at least, ns. */
static const int64_t WORK_NS = 20000;

/* Thrown by the engine. */
struct Failed {
    int number;
};

/* A part of a model. */
struct Stage;

/* Returns; named by the path. */
EXPORTED int ends_load(const char *path);
/* Returns, after so long. */
EXPORTED int ends_run(int64_t length_ns);
/* Throws. */
EXPORTED int ends_throw(int number);
/* Is left by an exception that it lets through. */
EXPORTED int ends_throw_through(int number);
/* Catches an exception of another function. */
EXPORTED int ends_catch(int number);
/* Jumps over its own frame. */
EXPORTED int ends_jump(jmp_buf target);
/* Is jumped over. */
EXPORTED int ends_jump_through(jmp_buf target);
/* Is cancelled. */
EXPORTED int ends_cancelled(int (*wait)(void));
/* Jumps to ends_land, which returns. */
EXPORTED int ends_hop(int number);
EXPORTED int ends_land(int number);
/* Jumps to a function that nobody probes. */
EXPORTED int ends_hop_away(int number);
/* Jumps to a function that nobody probes for odd numbers, and returns for even ones. */
EXPORTED int ends_hop_sometimes(int number);
/* Calls itself. */
EXPORTED int ends_recurse(int depth);
/* Returns at many places. */
EXPORTED int ends_at_many_places(int number);
/* Jumps, by a distance that its caller chooses, into itself or out of it. */
EXPORTED int ends_unclear(intptr_t distance);
/* Leaves its stack and comes back, if ever. */
EXPORTED int ends_elsewhere(void (*leave)(void *), void *argument);
/* Stages: one that returns, one that throws, and one that inherits from the first. */
EXPORTED Stage *ends_stage(int number);
EXPORTED int ends_stage_run(Stage *stage, int number);

#endif
