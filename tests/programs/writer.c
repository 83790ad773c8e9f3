/* Writes one stream of marks, by one of three ways: `function`, `marker` (trace_marker, by descriptors that it came to in
 * every way there is), `both`. A forked child and another program that that executes go on with it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int descriptors[8], ways, next, by_function;

__attribute__((noinline)) void tracing_mark_write(const char *text) { __asm__ volatile("" ::"r"(text) : "memory"); }

static void put(const char *literal) {
    /* In memory that has been written: a page of literals that nobody has read yet cannot be read by a probe. */
    char text[256];
    snprintf(text, sizeof text, "%s", literal);
    if (by_function) tracing_mark_write(text);
    if (ways > 0 && write(descriptors[next++ % ways], text, strlen(text)) < 0) {
        perror("trace_marker");
        exit(4);
    }
}

static void stream(int rounds, const char *name) {
    char text[256];
    for (int round = 0; round < rounds; round++) {
        snprintf(text, sizeof text, "B|%d|[NN_LR_PE]%s#iter=%d", (int)getpid(), name, round);
        put(text);
        put("B|1|somebody else's\n");
        put("B|1|[NN_LC_PTR]transform\n");
        put("B|1|[SW][NN_LC_PCO]compute");
        put("E|1\n");
        put("E");
        put("E|1");
        put("E|1");
        put("C|1|rounds|1");
        put("no mark at all");
    }
    put("E|1"); /* one too many */
}

static void add(int descriptor) {
    if (descriptor < 0) exit(5);
    descriptors[ways++] = descriptor;
}

static void open_markers(const char *path) {
    const int first = open(path, O_WRONLY | O_CLOEXEC);
    add(first);
    add(dup(first));
    add(dup2(first, 57));
    add(dup3(first, 58, O_CLOEXEC));
    add(fcntl(first, F_DUPFD, 100));
    add(open(path, O_WRONLY));
    /* A number that was one of trace_marker's, and is another file's. */
    const int closed = open(path, O_WRONLY);
    close(closed);
    if (open("/dev/null", O_WRONLY) != closed) exit(6);
    if (write(closed, "B|1|[NN_LU_PU]to nobody", 23) < 0) exit(7);
    int pipes[2];
    if (pipe(pipes) || write(pipes[1], "B|1|[NN_LU_PU]to nobody", 23) < 0) exit(8);
}

int main(int count, char **words) {
    if (count < 3) return 2;
    const char *way = words[1], *path = words[2];
    by_function = strcmp(way, "marker") != 0;
    if (count > 3 && strcmp(words[3], "inherited") == 0) {
        if (strcmp(way, "function") != 0) add(57);
        stream(5, "executed");
        return 0;
    }
    if (strcmp(way, "function") != 0) open_markers(path);
    if (count > 3) { /* "wait": everything is open before anybody looks */
        puts("ready");
        fflush(stdout);
        char line[64];
        if (!fgets(line, sizeof line, stdin)) return 9;
    }
    stream(20, "run");
    const pid_t child = fork();
    if (child == 0) {
        stream(10, "forked");
        execl("/proc/self/exe", words[0], way, path, "inherited", (char *)0);
        _exit(10);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status != 0;
}
