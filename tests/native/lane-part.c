/* A part of lane-commands.c, in a file of its own and perhaps in a library. */

#include <nntrace.h>

#include "lane.h"

void lane_part(void) { NNTRACE_RT(NNTRACE_PHASE_PREPARATION, "part"); }
