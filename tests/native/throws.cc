// Sections that are left by an exception, an early return and a break.

#include <nntrace.h>

#include <stdexcept>

namespace {

void fails(int depth) {
    NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "fails");
    if (depth == 0) {
        NNTRACE_TRANS("layout");
        NNTRACE_COMP_SWITCH("conv2d");
        throw std::runtime_error("out of memory");
    }
    fails(depth - 1);
}

bool returns_early(int number) {
    NNTRACE_RT(NNTRACE_PHASE_COMPILATION, "returns_early");
    if (number % 2 == 0) {
        return true;
    }
    NNTRACE_RT_SWITCH(NNTRACE_PHASE_COMPILATION, "goes_on");
    return false;
}

}  // namespace

int main() {
    NNTRACE_APP(NNTRACE_PHASE_OVERALL, "all");
    int caught = 0;
    for (int number = 0; number < 4; ++number) {
        try {
            fails(2);
        } catch (const std::runtime_error &) {
            ++caught;
        }
        caught += returns_early(number) ? 1 : 0;
    }
    for (;;) {
        NNTRACE_RT(NNTRACE_PHASE_PREPARATION, "breaks");
        break;
    }
    return caught == 6 ? 0 : 1;
}
