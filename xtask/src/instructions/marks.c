/* The program whose instructions are counted, with nntrace.h: `marks off N` and `marks express N` write N sections. The part
 * that counts is all in the function `counted`. It is its own collector, which wants a lane and reads nothing of it. */

#include <nntrace.h>
#include <stdio.h>
#include <sys/mman.h>

/* Sections after which a thread has offered a lane, and after which the lane is emptied. */
enum { BEFORE = 64, BATCH = 128 };
/* Words of the lane's header, and its bytes: nntrace-user/docs/express.md. */
enum { HEAD = 8, TAIL = 16, LEASE = 24, HEADER_BYTES = 4096 };

/* A byte in the first eight of the mark function, and what a program that looks at them takes for a probe, but does nothing
 * when it is run: the padding behind it, and `yield` in place of `nop`. */
#ifdef __x86_64__
enum { PROBE_AT = 7, PROBE = 0x90 };
#else
enum { PROBE_AT = 0, PROBE = 0x3f };
#endif

static volatile uint64_t *lane = NULL;

static uint64_t drain(void) {
    const uint64_t head = lane ? lane[HEAD] : 0;
    if (lane) {
        lane[TAIL] = head;
    }
    return head;
}

static inline void sections(unsigned long count) {
    while (count-- > 0) {
        NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "execute");
        __asm__ volatile("");
    }
}

__attribute__((noinline)) void counted(unsigned long count);
void counted(unsigned long count) {
    if (!lane) {
        sections(count);
        return;
    }
    for (; count >= BATCH; count -= BATCH) {
        sections(BATCH);
        drain();
    }
}

/* Accepts the lane that this thread has offered; whether there is one. */
static int accept(void) {
    static const char name[] = "/memfd:nntrace-lane (deleted)";
    for (int file = 3; file < 64 && !lane; ++file) {
        char path[32], target[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        const ssize_t length = readlink(path, target, sizeof target);
        if (length == sizeof name - 1 && memcmp(target, name, sizeof name - 1) == 0) {
            void *memory = mmap(NULL, HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            lane = memory == MAP_FAILED ? NULL : memory;
        }
    }
    if (lane) {
        lane[LEASE] = UINT64_MAX / 2;
    }
    return lane != NULL;
}

static int listen(void) {
    const char probe = (char)PROBE;
    const int code = open("/proc/self/mem", O_WRONLY);
    const int is_probed = pwrite(code, &probe, 1, (off_t)((uintptr_t)&tracing_mark_write + PROBE_AT)) == 1;
    close(code);
    nntrace_lanes_wanted_ = 1;
    sections(BEFORE);
    return is_probed && accept();
}

int main(int count, char **words) {
    const unsigned long number = count == 3 ? strtoul(words[2], NULL, 10) : 0;
    const int is_express = count == 3 && strcmp(words[1], "express") == 0;
    if (number == 0 || (!is_express && strcmp(words[1], "off") != 0)) {
        fprintf(stderr, "expected off or express, and a number of sections\n");
        return 2;
    }
    if (is_express && !listen()) {
        fprintf(stderr, "no lane was offered\n");
        return 1;
    }
    /* The first section of all determines where marks go, the first one in a lane defines its site. */
    sections(1);
    const uint64_t before = drain();
    counted(number);
    const uint64_t bytes = drain() - before, expected = 32 * (number / BATCH * BATCH);
    if (is_express ? bytes < expected : nntrace_listens()) {
        fprintf(stderr, "%llu bytes are in the lane: expected %llu\n", (unsigned long long)bytes,
                (unsigned long long)expected);
        return 1;
    }
    return 0;
}
