/* Programs that are killed at any moment, from their first instruction on, and count in shared memory what they have written.
 * Arguments: how many children, and the most ms that one lives. Every other child executes this program again. Prints the
 * process and the count of each child. A child writes a section with an instant in it, over and over. */

#define _GNU_SOURCE
#include <nntrace.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "work.h"

enum { BEFORE_LANE = 30, PAUSE_MS = 20, BETWEEN_PAUSES = 300 };

static __attribute__((noreturn)) void mark(volatile uint64_t *written) {
    for (;;) {
        nntrace_section section = NNTRACE_BEGIN(NNTRACE_LAYER_RUNTIME, NNTRACE_PHASE_EXECUTION, "work");
        ++*written;
        NNTRACE_INSTANT("tick");
        ++*written;
        nntrace_end(&section);
        ++*written;
        if (*written == BEFORE_LANE) {
            sleep_ms(PAUSE_MS); /* An offer that comes before the profiler has seen the child is repeated after a second. */
        } else if (*written % BETWEEN_PAUSES == 0) {
            sleep_us(100); /* So that nothing is lost in the rings of probed marks. */
        }
    }
}

/* The count is at the begin of a file that the child maps as well. */
static volatile uint64_t *map(int file) {
    void *address = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (address == MAP_FAILED) {
        _exit(5);
    }
    return address;
}

int main(int count, char **words) {
    static const char path[] = "/proc/self/exe";
    unsigned random = 12345;
    int children, most_ms;
    if (count == 3 && strcmp(words[1], "child") == 0) {
        mark(map(atoi(words[2])));
    }
    children = count > 2 ? atoi(words[1]) : 10;
    most_ms = count > 2 ? atoi(words[2]) : 50;
    for (int number = 0; number < children; ++number) {
        const int file = memfd_create("written", 0);
        char text[16];
        const char *const arguments[] = {"express-killed", "child", text, NULL};
        pid_t child;
        snprintf(text, sizeof text, "%d", file);
        if (file < 0 || ftruncate(file, 4096)) {
            return 5;
        }
        child = fork();
        if (child == 0) {
            if (number % 2) {
                execv(path, (char *const *)(uintptr_t)arguments);
                _exit(6);
            }
            mark(map(file));
        }
        random = random * 1103515245 + 12345;
        sleep_us((int64_t)(random >> 8) % (most_ms * 1000) + 1);
        if (child < 0 || kill(child, SIGKILL) || waitpid(child, NULL, 0) != child) {
            return 7;
        }
        printf("%d %llu\n", (int)child, (unsigned long long)*map(file));
        close(file);
    }
    return 0;
}
