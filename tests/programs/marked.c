/* A library that marks from its first instruction on. */
__attribute__((noinline)) void tracing_mark_write(const char *text) { __asm__ volatile("" ::"r"(text) : "memory"); }

__attribute__((constructor)) static void constructed(void) {
    tracing_mark_write("B|1|[NN_LR_PI]constructed");
    tracing_mark_write("E|1");
}

void work(int rounds) {
    for (; rounds > 0; rounds--) {
        tracing_mark_write("B|1|[NN_LR_PE]work");
        tracing_mark_write("E|1");
    }
}
