// Threads that start threads: main starts two, the first of which starts three, one of them by a bare clone(). Each writes so
// many sections that it has a file of its own in a recording. With an argument it only waits for a line on stdin first.

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nntrace.h"

enum { SECTIONS = 1200, STACK = 256 * 1024 };

static void sections(const char *name) {
    char text[64];
    snprintf(text, sizeof text, "B|0|[NN_LC_PCO]%s", name);
    for (int i = 0; i < SECTIONS; i++) {
        tracing_mark_write(text);
        tracing_mark_write("E");
    }
}

static void *leaf(void *name) {
    sections(name);
    return NULL;
}

static int bare_leaf(void *name) {
    sections(name);
    return 0;
}

static void *first(void *name) {
    sections(name);
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, leaf, "first_0");
    // Without a thread library: nothing in the process knows of it. It shares all but its thread-local storage.
    char *stack = malloc(STACK);
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
    static volatile pid_t alive = 1;
    if (stack == NULL || clone(bare_leaf, stack + STACK, flags, "first_1", NULL, NULL, (pid_t *)&alive) < 0) {
        perror("clone");
        exit(1);
    }
    while (alive != 0) usleep(1000);
    pthread_create(&threads[1], NULL, leaf, "first_2");
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return NULL;
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1 && getchar() == EOF) return 1;
    pthread_t threads[2];
    sections("main");
    pthread_create(&threads[0], NULL, first, "first");
    pthread_create(&threads[1], NULL, leaf, "second");
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
