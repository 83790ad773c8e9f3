/* Sections whose names are longer than a mark, each beginning a byte further on, so that the cut meets every byte of a
 * character. */

#include <nntrace.h>

int main(void) {
    char name[1024] = "";
    for (int padding = 0; padding < 5; ++padding) {
        size_t length = (size_t)padding;
        memset(name, 'x', length);
        while (length + 5 < sizeof name) {
            memcpy(name + length, "\xc3\xbc\xe2\x82\xac", 5); /* ü and € */
            length += 5;
        }
        name[length] = '\0';
        {
            NNTRACE_RT_WITH(NNTRACE_PHASE_EXECUTION, name, nntrace_iter(7));
        }
        {
            NNTRACE_RT_WITH(NNTRACE_PHASE_EXECUTION, "short", nntrace_attr("name", name), nntrace_iter(7));
        }
    }
    return 0;
}
