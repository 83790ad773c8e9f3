// A section of the account "batch" that starts a thread, whose own section belongs to it; then one of the account "crowd"
// that starts and joins many short threads, one after the other, whose numbers the kernel may give out again.
//
// Prints the truth as JSON, a line: threads of each, and bounds of the time of their sections.

#include <nntrace.h>

#include <cstdint>
#include <cstdio>
#include <thread>

#include "work.h"

namespace {

const int CROWD = 200;

// One thread with one section in it, whose time is added to the sum.
void run(const char *name, int64_t length, bounds *sum) {
    std::thread thread([&] {
        const int64_t before = now_ns();
        int64_t begin, end;
        {
            NNTRACE_RT(NNTRACE_PHASE_EXECUTION, name);
            begin = now_ns();
            busy_ns(length);
            end = now_ns();
        }
        add_section(sum, before, begin, end, now_ns());
    });
    thread.join();
}

}  // namespace

int main() {
    go_first();
    bounds batch = {0, 0};
    bounds crowd = {0, 0};
    {
        NNTRACE_APP_WITH(NNTRACE_PHASE_EXECUTION, "start_one", nntrace_acct("batch"));
        run("created", 20000000, &batch);
    }
    {
        NNTRACE_APP_WITH(NNTRACE_PHASE_EXECUTION, "start_many", nntrace_acct("crowd"));
        for (int number = 0; number < CROWD; ++number) {
            run("short_lived", 200000, &crowd);
        }
    }
    std::printf("{\"crowd_threads\":%d,", CROWD);
    print_bounds("batch", batch, ",");
    print_bounds("crowd", crowd, "}\n");
    return 0;
}
