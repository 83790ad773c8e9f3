// Maps the first page of each file as code, one every two milliseconds, and marks 500 sections.
#include "nntrace.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static void section(void)
{
    const struct timespec pause = { 0, 2000000 };
    NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "step");
    nanosleep(&pause, NULL);
}

int main(int count, char **files)
{
    for (int at = 1; at <= 500; at++) {
        if (at < count) {
            int file = open(files[at], O_RDONLY);
            if (file < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED) {
                perror(files[at]);
                return 1;
            }
            close(file);
        }
        section();
    }
    return 0;
}
