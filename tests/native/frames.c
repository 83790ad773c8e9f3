/* A dozen frames, each with two parts and a sleep of 10 ms between them that no part covers.
 *
 * Prints the truth as JSON, a line: frames, and bounds of the sums of their time and of what their parts do not cover. */

#include <nntrace.h>
#include <stdio.h>

#include "work.h"

enum { FRAMES = 12 };

static void track(struct bounds *parts) {
    const int64_t before = now_ns();
    int64_t begin, end;
    {
        NNTRACE_RT(NNTRACE_PHASE_INPUTS_AND_OUTPUTS, "track");
        begin = now_ns();
        busy_ms(3);
        end = now_ns();
    }
    add_section(parts, before, begin, end, now_ns());
}

static void render(struct bounds *parts) {
    const int64_t before = now_ns();
    int64_t begin, end;
    {
        NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "render");
        begin = now_ns();
        busy_ms(5);
        end = now_ns();
    }
    add_section(parts, before, begin, end, now_ns());
}

int main(void) {
    struct bounds frames = {0, 0}, parts = {0, 0};
    go_first();
    for (uint64_t frame = 0; frame < FRAMES; ++frame) {
        const int64_t before = now_ns();
        int64_t begin, end;
        {
            NNTRACE_APP_WITH(NNTRACE_PHASE_EXECUTION, "frame", nntrace_iter(frame));
            begin = now_ns();
            track(&parts);
            sleep_ms(10);
            render(&parts);
            end = now_ns();
        }
        add_section(&frames, before, begin, end, now_ns());
    }
    {
        const struct bounds missing = {frames.least - parts.most, frames.most - parts.least};
        printf("{\"frames\":%d,", FRAMES);
        print_bounds("time", frames, ",");
        print_bounds("missing", missing, "}\n");
    }
    return 0;
}
