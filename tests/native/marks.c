/* Every kind of mark, in C or in C++, and in two files that may be linked in any way. */

#include <nntrace.h>

#include "marks.h"

int main(void) {
    int total = 0;
    NNTRACE_APP(NNTRACE_PHASE_OVERALL, "all");
    for (int number = 0; number < ROUNDS; ++number) {
        total += part(number);
    }
    for (int number = 0; number < ROUNDS; ++number) {
        nntrace_section section = NNTRACE_BEGIN(NNTRACE_LAYER_RUNTIME, NNTRACE_PHASE_TERMINATION, "by_hand");
        nntrace_section other = NNTRACE_BEGIN_WITH(NNTRACE_LAYER_RUNTIME, NNTRACE_PHASE_TERMINATION, "with",
                                                   nntrace_attr("img", "a#b.jpg"), nntrace_number("size", 12));
        NNTRACE_INSTANT("now");
        NNTRACE_COUNTER("level", -3);
        nntrace_end(&other);
        nntrace_end(&section);
        nntrace_end(&section); /* Ended already. */
    }
    {
        const uint64_t handle = nntrace_handle();
        NNTRACE_SEND(handle);
        NNTRACE_RECV(handle);
        if (handle == nntrace_handle()) {
            return 1;
        }
    }
    return total == ROUNDS * (ROUNDS - 1) / 2 ? 0 : 1;
}
