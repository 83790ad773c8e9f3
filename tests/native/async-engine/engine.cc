#include "engine.h"

#include "work.h"

void async_operator(int64_t length) { busy_ns(length); }

void async_start(request *request) {
    async_operator(20000);
    if (request->start_fails) {
        request->start_fails = false;
        throw 1;
    }
    request->over = now_ns() + 1000000;
}

void async_wait(request *request) {
    while (now_ns() < request->over) {
        sleep_us(50);
    }
    request->over = 0;
    if (request->wait_fails) {
        request->wait_fails = false;
        throw 2;
    }
}

void async_infer(request *request) {
    async_start(request);
    async_wait(request);
    /* No jump to the other function: that one would return in its place. */
    __asm__ volatile("");
}
