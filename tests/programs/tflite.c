/* Marks as TFLite does: through functions of a library that is loaded at run time. What stands between comes from a mark
 * function of its own. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) void tracing_mark_write(const char *text) { __asm__ volatile("" ::"r"(text) : "memory"); }

static void *symbol(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (!found) exit(2);
    return found;
}

/* Deeper on the stack than the call before it. */
__attribute__((noinline)) static void transform(void) {
    char text[256];
    snprintf(text, sizeof text, "B|%d|[NN_LC_PTR]%s", 1, "transform");
    tracing_mark_write(text);
    tracing_mark_write("E|1");
}

int main(int count, char **words) {
    void *library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    if (count < 3 || !library) return 3;
    bool (*is_enabled)(void) = symbol(library, "ATrace_isEnabled");
    void (*begin)(const char *) = symbol(library, "ATrace_beginSection");
    void (*end)(void) = symbol(library, "ATrace_endSection");
    for (int round = atoi(words[2]); is_enabled() && round > 0; round--) {
        begin("[NN_LR_PE]invoke");
        begin("CONV_2D@3"); /* somebody else's: transparent */
        begin("[NN_LC_PE]conv");
        transform();
        begin("[SW][NN_LC_PCO]multiply#round=1"); /* stands for the section that it ends, up to both ends */
        end();
        end();
        end();
        end();
    }
}
