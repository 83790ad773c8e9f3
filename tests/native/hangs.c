/* A section that ends, and two that last for three seconds or for ever: one of the driver, and one of a thread that has no
 * other. */

#include <nntrace.h>
#include <pthread.h>
#include <unistd.h>

#include "work.h"

static void *never(void *unused) {
    NNTRACE_APP(NNTRACE_PHASE_EXECUTION, "wait_for_camera");
    pause();
    return unused;
}

int main(void) {
    pthread_t thread;
    {
        NNTRACE_RT(NNTRACE_PHASE_COMPILATION, "compile");
        sleep_ms(2);
    }
    if (pthread_create(&thread, NULL, never, NULL) != 0) {
        return 1;
    }
    {
        NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "compute");
        {
            NNTRACE_FULL_SUBTRACT(NNTRACE_LAYER_DRIVER, NNTRACE_PHASE_EXECUTION, "wait_for_npu");
            sleep_ms(3000);
        }
    }
    return 0;
}
