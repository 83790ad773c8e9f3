/* Marks that pass several functions, or none, wherever the stack stands. Each way writes a hundred sections of its name. */

#include <nntrace.h>
#include <alloca.h>
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>

#define FUNCTION __attribute__((noinline))
#define AND_MORE __asm__ volatile("" : : : "memory")

enum { ROUNDS = 100 };

FUNCTION void atrace_begin_body(const char *name);
FUNCTION void atrace_begin_body(const char *name) {
    char text[64];
    snprintf(text, sizeof text, "B|1|%s", name);
    tracing_mark_write(text);
    AND_MORE;
}

FUNCTION void atrace_end_body(void);
FUNCTION void atrace_end_body(void) {
    tracing_mark_write("E|1");
    AND_MORE;
}

/* Whether `ATrace_..` goes through a function between. */
static int is_between = 0;

static FUNCTION void between(const char *name) {
    char copy[48];
    AND_MORE;
    if (name) {
        strcpy(copy, name);
        atrace_begin_body(copy);
    } else {
        atrace_end_body();
    }
    AND_MORE;
}

static void pass_on(const char *name) {
    if (is_between) {
        between(name);
        AND_MORE;
    } else if (name) {
        atrace_begin_body(name);
    } else {
        atrace_end_body();
    }
}

FUNCTION void ATrace_beginSection(const char *name);
FUNCTION void ATrace_beginSection(const char *name) { pass_on(name); }

FUNCTION void ATrace_endSection(void);
FUNCTION void ATrace_endSection(void) { pass_on(NULL); }

static void begin(char *text, const char *name) { sprintf(text, "[NN_LR_PE]%s", name); }

/* With a frame that covers where those before have been, and nothing written there. */
static FUNCTION void deeper(const char *name) {
    volatile char *room = alloca(4096);
    room[0] = 0;
    atrace_begin_body(name);
    room[1] = 0;
    atrace_end_body();
    room[2] = 0;
}

static FUNCTION void recursive(const char *name, int depth) {
    volatile int left = depth;
    if (depth == 0) {
        ATrace_beginSection(name);
        AND_MORE;
        ATrace_endSection();
    } else {
        recursive(name, depth - 1);
    }
    left--;
}

static char text[64];

static void on_signal(int number) {
    (void)number;
    atrace_begin_body(text);
    AND_MORE;
    atrace_end_body();
}

static ucontext_t outer, inner;

static void coroutine(void) {
    for (;;) {
        ATrace_beginSection(text);
        swapcontext(&inner, &outer);
        atrace_end_body();
        swapcontext(&inner, &outer);
    }
}

int main(void) {
    static char signal_stack[65536], coroutine_stack[65536];
    const stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    void (*const begins[])(const char *) = {atrace_begin_body, ATrace_beginSection};
    void (*const ends[])(void) = {atrace_end_body, ATrace_endSection};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    getcontext(&inner);
    inner.uc_stack.ss_sp = coroutine_stack;
    inner.uc_stack.ss_size = sizeof coroutine_stack;
    makecontext(&inner, coroutine, 0);
    for (int round = 0; round < ROUNDS; round++) {
        begin(text, "called");
        atrace_begin_body(text);
        atrace_end_body();

        /* Whether these jump or call is the compiler's choice. */
        begin(text, "jumped");
        ATrace_beginSection(text);
        ATrace_endSection();

        is_between = 1;
        begin(text, "between");
        ATrace_beginSection(text);
        ATrace_endSection();
        is_between = 0;

        /* Of another kind, right behind. */
        begin(text, "sibling");
        ATrace_beginSection(text);
        atrace_end_body();

        begin(text, "deeper");
        deeper(text);

        /* One call in the code, of several functions. */
        for (int number = 0; number < 1; number++) {
            begin(text, "same place");
            begins[round % 2](text);
            ends[round / 2 % 2]();
        }

        begin(text, "recursive");
        recursive(text, round % 7);

        begin(text, "signal");
        raise(SIGUSR1);

        begin(text, "coroutine");
        swapcontext(&outer, &inner);
        swapcontext(&outer, &inner);
    }
    return 0;
}
