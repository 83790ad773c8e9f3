/* A dozen frames, each with two parts and a sleep of 10 ms between them that no part covers.
 *
 * Prints the truth as JSON, a line: frames, and the sum of their time and of the time between the parts, ns. */

#include <nntrace.h>
#include <stdio.h>

#include "work.h"

enum { FRAMES = 12 };

int main(void) {
    int64_t frames = 0, between = 0;
    go_first();
    for (uint64_t frame = 0; frame < FRAMES; ++frame) {
        const int64_t begin = now_ns();
        {
            NNTRACE_APP_WITH(NNTRACE_PHASE_EXECUTION, "frame", nntrace_iter(frame));
            int64_t left;
            {
                NNTRACE_RT(NNTRACE_PHASE_INPUTS_AND_OUTPUTS, "track");
                busy_ms(3);
            }
            left = now_ns();
            sleep_ms(10);
            between += now_ns() - left;
            {
                NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "render");
                busy_ms(5);
            }
        }
        frames += now_ns() - begin;
    }
    printf("{\"frames\":%d,\"frame_ns\":%lld,\"between_ns\":%lld}\n", FRAMES, (long long)frames,
           (long long)between);
    return 0;
}
