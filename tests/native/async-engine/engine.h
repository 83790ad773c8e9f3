/* An engine with asynchronous executions: one call starts an execution, another one waits for its end. */
#ifndef NNTRACE_TESTS_ASYNC_ENGINE_H
#define NNTRACE_TESTS_ASYNC_ENGINE_H

#include <stdint.h>

#define SHOWN extern "C" __attribute__((visibility("default")))

struct request {
    /* When the execution that was started is over, ns; 0 while none is. */
    int64_t over;
    /* The next start, or the next wait, throws. */
    bool start_fails, wait_fails;
};

/* Starts an execution of one millisecond. */
SHOWN void async_start(request *request);
/* Waits for its end; returns at once where nothing was started. */
SHOWN void async_wait(request *request);
/* Does both. */
SHOWN void async_infer(request *request);
/* An operator, which the engine runs where it likes. */
SHOWN void async_operator(int64_t length);

#endif
