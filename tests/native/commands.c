/* Marks on request, a line each on stdin; answers each with a line:
 *   code    the first eight bytes of the mark function, in hexadecimal
 *   run N   writes N sections; how many of their begins were written
 *   open    begins a section that stays open; 1 if that was written
 *   close   ends it; 1 if that was written */

#include <nntrace.h>
#include <stdio.h>

int main(void) {
    char line[64];
    nntrace_section section = {0};
    while (fgets(line, sizeof line, stdin)) {
        unsigned count = 0;
        if (strcmp(line, "code\n") == 0) {
            unsigned char code[8];
            memcpy(code, (const void *)(uintptr_t)&tracing_mark_write, sizeof code);
            for (size_t at = 0; at < sizeof code; ++at) {
                printf("%02x", code[at]);
            }
            printf("\n");
        } else if (sscanf(line, "run %u", &count) == 1) {
            unsigned written = 0;
            for (unsigned number = 0; number < count; ++number) {
                nntrace_section work = NNTRACE_BEGIN(NNTRACE_LAYER_RUNTIME, NNTRACE_PHASE_EXECUTION, "work");
                written += (unsigned)work.is_open;
                nntrace_end(&work);
            }
            printf("%u\n", written);
        } else if (strcmp(line, "open\n") == 0) {
            section = NNTRACE_BEGIN(NNTRACE_LAYER_APPLICATION, NNTRACE_PHASE_EXECUTION, "held");
            printf("%d\n", section.is_open);
        } else {
            printf("%d\n", section.is_open);
            nntrace_end(&section);
        }
        fflush(stdout);
    }
    return 0;
}
