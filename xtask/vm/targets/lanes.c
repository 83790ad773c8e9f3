/* Writes sections with nntrace.h from two threads, and from a child in the middle of it: as many as its argument says
 * in each thread, which the checks expect by this number. Pauses now and then, so that lanes are read on one CPU too. */

#include <nntrace.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned long rounds;

static void write_sections(unsigned long count) {
    for (unsigned long number = 0; number < count; ++number) {
        NNTRACE_RT_WITH(NNTRACE_PHASE_EXECUTION, "outer", nntrace_iter(number));
        {
            NNTRACE_COMP("inner");
        }
        if (number % 64 == 0) {
            const struct timespec pause = {0, 1000000};
            nanosleep(&pause, NULL);
        }
    }
}

static void *of_thread(void *unused) {
    write_sections(rounds);
    return unused;
}

int main(int count, char **words) {
    pthread_t thread;
    int status = 1;
    rounds = count > 1 ? strtoul(words[1], NULL, 10) : 1000;
    if (pthread_create(&thread, NULL, of_thread, NULL)) {
        return 1;
    }
    write_sections(rounds / 2);
    const pid_t child = fork();
    if (child == 0) {
        write_sections(rounds);
        _exit(0);
    }
    write_sections(rounds - rounds / 2);
    pthread_join(thread, NULL);
    return child < 0 || waitpid(child, &status, 0) < 0 || status != 0;
}
