/* Library with marks, which is loaded and unloaded again and again. */

#include <nntrace.h>

unsigned work(void);

unsigned work(void) {
    unsigned number;
    for (number = 0; number < 100; ++number) {
        NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "work");
    }
    return number;
}
