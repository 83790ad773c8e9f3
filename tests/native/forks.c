/* Forks many children, of which every other one executes this program again. Each marks, and so has the parent before.
 * Argument: how many children. Ends with the number of children that did not end well, at most 100. */

#include <nntrace.h>
#include <stdio.h>
#include <sys/wait.h>

enum { SECTIONS = 3 };

/* As they are in the file: nobody puts them together, and nobody but the profiler reads them. What is around them keeps the
 * kernel from mapping them with what is read. */
#define AROUND 0x20000
static const struct {
    char before[AROUND], begin[24], end[8], behind[AROUND];
} texts = {{1}, "B|1|[NN_LR_PE]literal", "E|1", {1}};

static void mark(void) {
    for (int number = 0; number < SECTIONS; ++number) {
        NNTRACE_CPU(NNTRACE_PHASE_EXECUTION, "section");
    }
    tracing_mark_write(texts.begin);
    tracing_mark_write(texts.end);
}

int main(int count, char **words) {
    const char *const self[] = {words[0], "child", NULL};
    const int children = count > 1 ? atoi(words[1]) : 0;
    int failed = 0;
    if (count > 1 && strcmp(words[1], "child") == 0) {
        mark();
        return 0;
    }
    mark();
    for (int number = 0; number < children; ++number) {
        const pid_t child = fork();
        int status = 1;
        if (child == 0) {
            if (number % 2) {
                execv("/proc/self/exe", (char *const *)(uintptr_t)self);
                _exit(3);
            }
            mark();
            _exit(0);
        }
        failed += child < 0 || waitpid(child, &status, 0) != child || status != 0;
    }
    return failed > 100 ? 100 : failed;
}
