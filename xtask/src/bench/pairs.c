/* The program whose sections are measured. Answers each line on stdin with a line of numbers:
 *   pairs N    ns per section, and how many there were
 *   halves N   ns per begin, ns per end, and how many of each there were
 *   calls N    the same of calls of an ordinary function, for tools that trace those
 *   clocks N   the same of two readings of the clock, which a section takes at least
 *   listens    whether marks are heard, 0 or 1 */

#include <nntrace.h>
#include <stdio.h>
#include <time.h>

/* Parts of a round. A round counts with its median part: in another one something else may have run. */
enum { PARTS = 20 };
/* Sections within each other whose begins are timed together, and then their ends. */
enum { DEPTH = 32 };

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void section(void) {
    NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "execute");
    __asm__ volatile("");
}

__attribute__((noinline)) void called(void);
void called(void) { __asm__ volatile(""); }

static void write_sections(unsigned count) {
    for (unsigned number = 0; number < count; ++number) {
        section();
    }
}

static void call(unsigned count) {
    for (unsigned number = 0; number < count; ++number) {
        called();
    }
}

static void read_clock(unsigned count) {
    for (unsigned number = 0; number < 2 * count; ++number) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
}

static int by_size(const void *a, const void *b) {
    const double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

static double median(double parts[PARTS]) {
    qsort(parts, PARTS, sizeof *parts, by_size);
    return (parts[PARTS / 2 - 1] + parts[PARTS / 2]) / 2;
}

static void measure(void (*run)(unsigned), unsigned count) {
    double parts[PARTS];
    for (int part = 0; part < PARTS; ++part) {
        const double begin = now_ns();
        run(count / PARTS);
        parts[part] = (now_ns() - begin) / (count / PARTS);
    }
    printf("%.3f %u\n", median(parts), count / PARTS * PARTS);
}

static void measure_halves(unsigned count) {
    const unsigned batches = count / PARTS / DEPTH;
    double begins[PARTS], ends[PARTS];
    for (int part = 0; part < PARTS; ++part) {
        begins[part] = ends[part] = 0;
        for (unsigned batch = 0; batch < batches; ++batch) {
            nntrace_section sections[DEPTH];
            const double begin = now_ns();
            for (int at = 0; at < DEPTH; ++at) {
                sections[at] = NNTRACE_BEGIN(NNTRACE_LAYER_RUNTIME, NNTRACE_PHASE_EXECUTION, "execute");
            }
            const double middle = now_ns();
            for (int at = DEPTH; at-- > 0;) {
                nntrace_end(&sections[at]);
            }
            ends[part] += now_ns() - middle;
            begins[part] += middle - begin;
        }
        begins[part] /= batches * DEPTH;
        ends[part] /= batches * DEPTH;
    }
    printf("%.3f %.3f %u\n", median(begins), median(ends), batches * DEPTH * PARTS);
}

int main(void) {
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        unsigned count = 0;
        if (sscanf(line, "pairs %u", &count) == 1 && count >= PARTS) {
            measure(write_sections, count);
        } else if (sscanf(line, "halves %u", &count) == 1 && count >= PARTS * DEPTH) {
            measure_halves(count);
        } else if (sscanf(line, "calls %u", &count) == 1 && count >= PARTS) {
            measure(call, count);
        } else if (sscanf(line, "clocks %u", &count) == 1 && count >= PARTS) {
            measure(read_clock, count);
        } else {
            printf("%d\n", nntrace_listens());
        }
        fflush(stdout);
    }
    return 0;
}
