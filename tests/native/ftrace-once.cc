// Threads that write their first mark at once. Prints a line for each descriptor of ftrace's file that is open then:
// whether a program that this one starts would have it, 0 or 1.

#include <nntrace.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

int main() {
    const int count = 8;
    std::atomic<int> ready(0);
    std::vector<std::thread> threads;
    for (int number = 0; number < count; ++number) {
        threads.emplace_back([&] {
            ready += 1;
            while (ready < count) {
            }
            NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "first");
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    for (int file = 0; file < 256; ++file) {
        char link[64];
        char target[256];
        std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        const ssize_t length = readlink(link, target, sizeof target - 1);
        if (length > 0) {
            target[length] = '\0';
            if (std::strstr(target, "trace_marker")) {
                std::printf("%d\n", (fcntl(file, F_GETFD) & FD_CLOEXEC) == 0);
            }
        }
    }
    return 0;
}
