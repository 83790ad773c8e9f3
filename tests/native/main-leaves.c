// The main thread leaves by pthread_exit while others go on: one starts a worker at a time, each writes 100 sections.
//
// Usage: main-leaves WORKERS. It prints `leaves` when the main thread is about to.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <nntrace.h>

static void *work(void *unused) {
    (void)unused;
    for (int section = 0; section < 100; section++) {
        NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "job");
    }
    return NULL;
}

static void *serve(void *workers) {
    for (long left = (long)workers; left > 0; left--) {
        pthread_t worker;
        pthread_create(&worker, NULL, work, NULL);
        pthread_join(worker, NULL);
        nanosleep(&(struct timespec){0, 100000000}, NULL);
    }
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t server;
    long workers = count > 1 ? atol(arguments[1]) : 1;
    pthread_create(&server, NULL, serve, (void *)workers);
    puts("leaves");
    fflush(stdout);
    pthread_exit(NULL);
}
