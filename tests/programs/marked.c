/* A library that marks from its first instruction on. */
#include <stdio.h>

__attribute__((noinline)) void tracing_mark_write(const char *text) { __asm__ volatile("" ::"r"(text) : "memory"); }

static void section(const char *tag, const char *name) {
    char text[64];
    snprintf(text, sizeof text, "B|1|[NN_%s]%s", tag, name);
    tracing_mark_write(text);
    snprintf(text, sizeof text, "E|%d", 1);
    tracing_mark_write(text);
}

__attribute__((constructor)) static void constructed(void) { section("LR_PI", "constructed"); }

void work(int rounds) {
    for (; rounds > 0; rounds--) section("LR_PE", "work");
}
