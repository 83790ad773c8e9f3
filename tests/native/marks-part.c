/* A part of marks.c that may be in a library of its own. */

#include "marks.h"

#include <nntrace.h>

static void compile_late(void) {
    NNTRACE_FULL_SUBTRACT(NNTRACE_LAYER_RUNTIME, NNTRACE_PHASE_COMPILATION, "late");
    return; /* Leaves the section by the way. */
}

int part(int number) {
    NNTRACE_RT_WITH(NNTRACE_PHASE_EXECUTION, "part", nntrace_iter(7), nntrace_acct("foo"));
    {
        NNTRACE_TRANS("layout");
        NNTRACE_COMP_SWITCH("conv2d");
        NNTRACE_FULL_SWITCH_WITH(NNTRACE_LAYER_CPU, NNTRACE_PHASE_COMPUTATION, "relu", nntrace_takes(9));
    }
    compile_late();
    return number;
}
