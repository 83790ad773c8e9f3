/* What the parts of lane-commands.c share. */
#ifndef NNTRACE_TESTS_LANE_H
#define NNTRACE_TESTS_LANE_H

#include <stddef.h>

#ifdef __cplusplus
#define LANE_C extern "C"
#else
#define LANE_C
#endif

/* Keeps a call as text. */
LANE_C void lane_keep(const char *call);
/* Forgets what this thread has called. */
LANE_C void lane_forget(void);
/* Returns what was called since: `KIND ARGUMENTS;` each. */
LANE_C const char *lane_calls(void);
/* Returns how many of the calls were marks, also if they are too many to be kept. */
LANE_C size_t lane_probes(void);
/* The next reading of the clock is interrupted by SIGUSR1. */
LANE_C void lane_interrupt(void);
/* Writes a section from another file. */
LANE_C void lane_part(void);

#endif
