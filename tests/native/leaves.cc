// Mark functions of every kind, left in every way: by return, exception, longjmp, and the end and the cancellation
// of their thread.
#include <nntrace.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>

#define FUNCTION __attribute__((noinline))
/* What comes behind a call, so that it is none of the last thing that a function does. */
#define AND_MORE __asm__ volatile("" : : : "memory")

enum Way { BY_RETURN, BY_EXCEPTION, BY_JUMP, BY_END_OF_THREAD, BY_CANCELLATION };

struct Left {};

static thread_local Way way = BY_RETURN;
static thread_local jmp_buf back;

static FUNCTION void leave() {
    switch (way) {
        case BY_RETURN: break;
        case BY_EXCEPTION: throw Left();
        case BY_JUMP: longjmp(back, 1);
        case BY_END_OF_THREAD: pthread_exit(nullptr);
        case BY_CANCELLATION:
            pthread_cancel(pthread_self());
            pthread_testcancel();
    }
}

// f(text, length), and methods.
FUNCTION void tracing_mark_write(const char *text, size_t length);
FUNCTION void tracing_mark_write(const char *text, size_t length) {
    __asm__ volatile("" : : "r"(text), "r"(length) : "memory");
    leave();
}

struct Tracer {
    int state = 0;
    FUNCTION void tracing_mark_write(const char *text) {
        __asm__ volatile("" : : "r"(this), "r"(text) : "memory");
        leave();
        AND_MORE;
    }
    FUNCTION void tracing_mark_write(const char *text, size_t length) {
        __asm__ volatile("" : : "r"(this), "r"(text), "r"(length) : "memory");
        leave();
    }
};

static Tracer tracer;

// One mark through three functions: a begin by calls, an end by jumps.
extern "C" {
FUNCTION void atrace_begin_body(const char *name);
FUNCTION void atrace_begin_body(const char *name) {
    char text[64];
    std::snprintf(text, sizeof text, "B|1|%s", name);
    tracing_mark_write(text);
    leave();
    AND_MORE;
}

FUNCTION void atrace_end_body();
FUNCTION void atrace_end_body() {
    tracing_mark_write("E|1");
    leave();
}

FUNCTION void ATrace_beginSection(const char *name);
FUNCTION void ATrace_beginSection(const char *name) {
    atrace_begin_body(name);
    AND_MORE;
}

FUNCTION void ATrace_endSection();
FUNCTION void ATrace_endSection() { atrace_end_body(); }
}

// Ways to write a begin and an end.
static void plain(const char *text) {
    tracing_mark_write(text);
    leave();
}
static void with_length(const char *text) { tracing_mark_write(text, std::strlen(text)); }
static void method(const char *text) { tracer.tracing_mark_write(text); }
static void method_with_length(const char *text) { tracer.tracing_mark_write(text, std::strlen(text)); }
static void body(const char *text) {
    if (text[0] == 'B') {
        atrace_begin_body(text + 4);
    } else {
        atrace_end_body();
    }
}
static void ndk(const char *text) {
    if (text[0] == 'B') {
        ATrace_beginSection(text + 4);
    } else {
        ATrace_endSection();
    }
}

struct Writer {
    void (*write)(const char *text);
    const char *begin;
};

static const Writer WRITERS[] = {
    {plain, "B|1|[NN_LR_PE]plain"},   {with_length, "B|1|[NN_LR_PE]with_length"},
    {method, "B|1|[NN_LR_PE]method"}, {method_with_length, "B|1|[NN_LR_PE]method_with_length"},
    {body, "B|1|[NN_LR_PE]body"},     {ndk, "B|1|[NN_LR_PE]ndk"},
};

static unsigned left = 0;

static FUNCTION void write_and_leave(const Writer *writer, const char *text) {
    // On the stack, where it can be read.
    char copy[64];
    std::strcpy(copy, text);
    if (way == BY_JUMP && setjmp(back) != 0) {
        left++;
        return;
    }
    try {
        writer->write(copy);
    } catch (const Left &) {
        left++;
    }
}

struct Last {
    const Writer *writer;
    Way way;
};

static void *end_within(void *argument) {
    const Last *last = static_cast<const Last *>(argument);
    write_and_leave(last->writer, last->writer->begin);
    way = last->way;
    char end[] = "E|1";
    last->writer->write(end);
    return argument;
}

// Runs a thread whose last section ends in a function that it leaves with its life; returns whether it did.
static bool ends_within(const Writer &writer, Way way, void *expected) {
    Last last = {&writer, way};
    pthread_t thread;
    void *result = &last;
    return pthread_create(&thread, nullptr, end_within, &last) == 0 && pthread_join(thread, &result) == 0 &&
           result == expected;
}

int main() {
    const Way ways[] = {BY_RETURN, BY_EXCEPTION, BY_JUMP};
    for (int round = 0; round < 50; round++) {
        for (const Writer &writer : WRITERS) {
            for (Way next : ways) {
                way = next;
                write_and_leave(&writer, writer.begin);
                write_and_leave(&writer, "E|1");
            }
            way = BY_RETURN;
            if (!ends_within(writer, BY_END_OF_THREAD, nullptr) ||
                !ends_within(writer, BY_CANCELLATION, PTHREAD_CANCELED)) {
                return 2;
            }
        }
        // The loader tells debuggers, and gives up by a jump of its own.
        if (dlopen("/nowhere/libnothing.so", RTLD_NOW) != nullptr) {
            return 3;
        }
    }
    return left == 50 * 6 * 2 * 2 ? 0 : 1;
}
