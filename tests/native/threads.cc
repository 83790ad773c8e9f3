// A section of the account "batch" that starts a thread, whose own section belongs to it; then one of the account "crowd"
// that starts and joins many short threads, one after the other, whose numbers the kernel may give out again.
//
// Prints the truth as JSON, a line: threads of each, and the time of their sections, ns.

#include <nntrace.h>

#include <cstdio>
#include <thread>

#include "work.h"

namespace {

const int CROWD = 200;

// One thread with one section in it; returns the section's time.
int64_t run(const char *name, int64_t length) {
    int64_t spent = 0;
    std::thread thread([&] {
        const int64_t begin = now_ns();
        {
            NNTRACE_RT(NNTRACE_PHASE_EXECUTION, name);
            busy_ns(length);
        }
        spent = now_ns() - begin;
    });
    thread.join();
    return spent;
}

}  // namespace

int main() {
    go_first();
    int64_t one = 0;
    int64_t crowd = 0;
    {
        NNTRACE_APP_WITH(NNTRACE_PHASE_EXECUTION, "start_one", nntrace_acct("batch"));
        one = run("created", 20000000);
    }
    {
        NNTRACE_APP_WITH(NNTRACE_PHASE_EXECUTION, "start_many", nntrace_acct("crowd"));
        for (int number = 0; number < CROWD; ++number) {
            crowd += run("short_lived", 200000);
        }
    }
    std::printf("{\"batch_threads\":1,\"batch_ns\":%lld,\"crowd_threads\":%d,\"crowd_ns\":%lld}\n",
                static_cast<long long>(one), CROWD, static_cast<long long>(crowd));
    return 0;
}
