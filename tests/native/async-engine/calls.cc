// Asynchronous executions in the way that is the argument, some rounds of it.
//
// Prints between which bounds is the time from the begin of each start to the end of the wait for it, as JSON.

#include <nntrace.h>

#include <cstdio>
#include <cstring>
#include <thread>

#include "engine.h"
#include "work.h"

namespace {

const int ROUNDS = 25;

bounds runs = {0, 0};

// Adds an execution, which was started after the first instant and is over: it takes a millisecond at least.
void add_run(int64_t before) { add_section(&runs, before, before, before + 1000000, now_ns()); }

// Starts an execution, does something else, and waits for it.
void run(request *request) {
    const int64_t before = now_ns();
    async_start(request);
    busy_ns(200000);
    async_wait(request);
    add_run(before);
}

void waited() {
    static request one;
    run(&one);
}

// Two at once.
void crossed() {
    static request one, other;
    const int64_t before = now_ns();
    async_start(&one);
    async_start(&other);
    async_wait(&one);
    async_wait(&other);
    add_run(before);
    add_run(before);
}

// Another thread waits.
void elsewhere() {
    static request one;
    const int64_t before = now_ns();
    async_start(&one);
    std::thread([] { async_wait(&one); }).join();
    add_run(before);
}

void twice() {
    static request one;
    run(&one);
    async_wait(&one);
}

// Nobody waits: a callback would show the end.
void unseen() {
    static request requests[2];
    for (request &each : requests) {
        async_start(&each);
        sleep_us(200);
    }
}

void failing() {
    static request one;
    const int64_t before = now_ns();
    one.wait_fails = true;
    async_start(&one);
    try {
        async_wait(&one);
    } catch (int) {
    }
    add_run(before);
}

void unstarted() {
    static request one;
    one.start_fails = true;
    try {
        async_start(&one);
    } catch (int) {
    }
    async_wait(&one);
}

// The engine itself waits.
void inferred() {
    static request one;
    const int64_t before = now_ns();
    async_infer(&one);
    add_run(before);
}

// In a section of the application's own.
void marked() {
    static request one;
    NNTRACE_APP(NNTRACE_PHASE_EXECUTION, "classify");
    run(&one);
}

const struct {
    const char *name;
    void (*round)();
} ways[] = {{"waited", waited}, {"crossed", crossed}, {"elsewhere", elsewhere}, {"twice", twice},   {"unseen", unseen},
            {"failing", failing}, {"unstarted", unstarted}, {"inferred", inferred}, {"marked", marked}};

}  // namespace

int main(int count, char **words) {
    for (const auto &way : ways) {
        if (count > 1 && std::strcmp(words[1], way.name) == 0) {
            for (int round = 0; round < ROUNDS; ++round) {
                way.round();
            }
            std::printf("{");
            print_bounds("runs", runs, "}\n");
            return 0;
        }
    }
    return 2;
}
