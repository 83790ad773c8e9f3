/* What programs of the express lane's tests share. */
#ifndef NNTRACE_TESTS_EXPRESS_H
#define NNTRACE_TESTS_EXPRESS_H

#include <nntrace.h>
#include <stdio.h>
#include <sys/uio.h>

#include "work.h"

/* A lease is for so long from its last renewal on. */
#define LEASE_NS 2000000000

/* Bytes of lanes that this process maps, and how many of these had a reader since a time: who has promised since then to read
 * on. By what docs/express.md says of their memory, not by the header's own. */
static inline uint64_t mapped_lanes(int64_t since, unsigned *read) {
    char line[512];
    unsigned long begin, end;
    uint64_t bytes = 0, lease = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    *read = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        if (strstr(line, "/memfd:nntrace-lane") && sscanf(line, "%lx-%lx", &begin, &end) == 2) {
            /* Another thread may unmap it meanwhile, so it is not just loaded. */
            const struct iovec to = {&lease, sizeof lease}, from = {(char *)begin + 192, sizeof lease};
            bytes += end - begin;
            *read += process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof lease && (int64_t)lease >= since + LEASE_NS;
        }
    }
    if (maps) {
        fclose(maps);
    }
    return bytes;
}

/* Writes marks, by a function, until so many lanes of this process have had a reader since then; returns how often it was
 * called. Gives up after a minute, and ends the program. */
static inline unsigned await_lanes(unsigned count, void (*mark)(void)) {
    const int64_t since = now_ns();
    unsigned read = 0;
    for (unsigned calls = 0; calls < 12000; ++calls) {
        mapped_lanes(since, &read);
        if (read >= count) {
            return calls;
        }
        mark();
        sleep_ms(5);
    }
    fprintf(stderr, "only %u of %u lanes are read\n", read, count);
    _exit(9);
}

#endif
