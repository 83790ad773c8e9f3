/* Calls a driver in marked sections: driver-calls DEVICE ROUNDS [waiting].
 *
 * Each round of its two threads is an execution with three calls of one request and one of another; between them the
 * thread makes other system calls, and calls on a file that is no device. `waiting`: opens the device, prints `open`,
 * waits for a line before the rounds, closes the device, prints `closed` and waits for another line. Prints the
 * nanoseconds that the threads spent in the calls. */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <nntrace.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static int device, file, rounds;

static long long now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static long long call(unsigned long request)
{
    long long begin = now();
    ioctl(device, request, 0);
    return now() - begin;
}

static void *work(void *result)
{
    long long inside = 0;
    for (int round = 0; round < rounds; round++) {
        NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "run");
        for (int number = 0; number < 3; number++) {
            inside += call(0x40106440);
            ioctl(file, 0x40106440, 0);
            getppid();
        }
        inside += call(0xc0046401);
    }
    *(long long *)result = inside;
    return NULL;
}

static void wait_for_line(const char *state)
{
    char line[16];
    puts(state);
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        exit(3);
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    long long inside[2];
    int is_waiting = argc == 4 && strcmp(argv[3], "waiting") == 0;
    if (argc < 3)
        return 2;
    rounds = atoi(argv[2]);
    device = open(argv[1], O_RDWR | O_CLOEXEC);
    file = open(argv[0], O_RDONLY | O_CLOEXEC);
    if (device < 0 || file < 0)
        return 1;
    if (is_waiting)
        wait_for_line("open");
    for (int number = 0; number < 2; number++)
        pthread_create(&threads[number], NULL, work, &inside[number]);
    for (int number = 0; number < 2; number++)
        pthread_join(threads[number], NULL);
    close(device);
    if (is_waiting)
        wait_for_line("closed");
    printf("%lld\n", inside[0] + inside[1]);
    return 0;
}
