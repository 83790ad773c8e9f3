/* The part of express-mixed.c that is a library. */

#include <nntrace.h>

#include "express-mixed.h"

__attribute__((visibility("default"))) void mixed_part(void (*inner)(void)) {
    NNTRACE_RT_WITH(NNTRACE_PHASE_EXECUTION, "part", nntrace_number("size", 3));
    {
        NNTRACE_TRANS("part leaf");
    }
    inner();
}
