/* Marks whose texts nobody has read before: the mark function does not look at them either.
 *
 * `forked CHILDREN ROUNDS`: each child writes so many sections of literals that are in pages of their own.
 * `waiting ROUNDS`: this process writes so many sections once there is a line on stdin.
 * `edges FILE`: texts at the edges of pages of a file, which this writes, and of memory that was never used. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* The kernel brings in the pages around one that is read, in groups of 64 KiB; and a page has no more than that. */
#define GROUP 65536

struct literal {
    char text[GROUP];
} __attribute__((aligned(GROUP)));

static const struct literal BEGIN = {"B|1|[NN_LR_PE]literal"}, END = {"E|1"};

__attribute__((noinline)) void tracing_mark_write(const char *text, size_t length) {
    __asm__ volatile("" ::"r"(text), "r"(length) : "memory");
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void sections(int rounds) {
    for (int round = 0; round < rounds; round++) {
        tracing_mark_write(BEGIN.text, sizeof "B|1|[NN_LR_PE]literal" - 1);
        tracing_mark_write(END.text, sizeof "E|1" - 1);
    }
}

static void forked(int children, int rounds) {
    for (int child = 0; child < children; child++) {
        pid_t pid = fork();
        if (pid < 0) fail("fork");
        if (pid == 0) {
            sections(rounds);
            _exit(0);
        }
    }
    int status;
    while (wait(&status) > 0) {
        if (status != 0) exit(2);
    }
}

/* Maps a new copy of the file: three groups, of which no page was touched in this process. */
static char *map(const char *path) {
    int file = open(path, O_RDONLY);
    char *at = file < 0 ? MAP_FAILED : mmap(0, 3 * GROUP, PROT_READ, MAP_PRIVATE, file, 0);
    if (at == MAP_FAILED) fail(path);
    close(file);
    return at;
}

static void edges(const char *path) {
    static const char begin[] = "B|1|[NN_LR_PE]edge";
    const size_t length = sizeof begin - 1;
    char *content = calloc(3, GROUP);
    memcpy(content, begin, sizeof begin);                         /* at the begin of a page */
    memcpy(content + GROUP - 7, begin, sizeof begin);             /* over the end of one */
    memcpy(content + 2 * GROUP - sizeof begin, begin, sizeof begin); /* its NUL is the last byte of one */
    int file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (!content || file < 0 || write(file, content, 3 * GROUP) != 3 * GROUP || close(file) != 0) fail(path);
    char end[] = "E|1";

    char *whole = map(path);
    tracing_mark_write(whole, length);
    tracing_mark_write(end, 3);
    tracing_mark_write(map(path) + GROUP - 7, length);
    tracing_mark_write(end, 3);
    char *last = map(path);
    munmap(last + 2 * GROUP, GROUP);
    tracing_mark_write(last + 2 * GROUP - sizeof begin, length);
    tracing_mark_write(end, 3);

    /* What goes on in a page that is not there cannot be read, nor what begins in one. */
    char *cut = map(path);
    munmap(cut + GROUP, 2 * GROUP);
    tracing_mark_write(cut + GROUP - 7, length);
    char *gone = map(path);
    munmap(gone, 3 * GROUP);
    tracing_mark_write(gone, length);

    /* Memory that was never used is zeros. */
    char *unused = mmap(0, GROUP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (unused == MAP_FAILED) fail("mmap");
    tracing_mark_write(unused, 0);
}

int main(int count, char **words) {
    if (count == 4 && strcmp(words[1], "forked") == 0) {
        forked(atoi(words[2]), atoi(words[3]));
    } else if (count == 3 && strcmp(words[1], "waiting") == 0) {
        char line[8];
        if (fgets(line, sizeof line, stdin)) sections(atoi(words[2]));
    } else if (count == 3 && strcmp(words[1], "edges") == 0) {
        edges(words[2]);
    } else {
        return 3;
    }
    return 0;
}
