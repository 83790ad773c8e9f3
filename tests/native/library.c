/* A library that marks, for programs in other languages. */

#include <nntrace.h>

int work(unsigned number);

/* One section in another; whether they were written. */
int work(unsigned number) {
    nntrace_section outer = NNTRACE_BEGIN_WITH(NNTRACE_LAYER_RUNTIME, NNTRACE_PHASE_EXECUTION, "work", nntrace_iter(number));
    nntrace_section inner = NNTRACE_BEGIN(NNTRACE_LAYER_CPU, NNTRACE_PHASE_COMPUTATION, "part");
    const int is_open = outer.is_open && inner.is_open;
    nntrace_end(&inner);
    nntrace_end(&outer);
    return is_open;
}
