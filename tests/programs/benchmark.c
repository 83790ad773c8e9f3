/* Benchmark cases, two or as many as the second argument says, with warm-up and benchmark phases, the same marks in every run. Begins at a line on stdin. */
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) void tracing_mark_write(const char *text) { __asm__ volatile("" ::"r"(text) : "memory"); }

static void begin(const char *text) { tracing_mark_write(text); }

static void end(void) { tracing_mark_write("E|1"); }

static void execution(int number) {
    char text[96];
    snprintf(text, sizeof text, "B|1|[NN_LA_PE]execution#iter=%d", number);
    begin(text);
    begin("B|1|[NN_LR_PE]compute");
    begin("B|1|[NN_LC_PCO]convolution");
    end();
    begin("B|1|[SUB][NN_LR_PTR]copy");
    end();
    end();
    end();
}

int main(int argc, char **argv) {
    int runs = argc > 1 ? atoi(argv[1]) : 100;
    int cases = argc > 2 ? atoi(argv[2]) : 2;
    puts("ready");
    fflush(stdout);
    char line[16];
    if (!fgets(line, sizeof line, stdin)) return 1;
    for (int number = 0; number < cases; number++) {
        begin(number ? "B|1|[NN_LA_PO]second" : "B|1|[NN_LA_PO]first");
        begin("B|1|[NN_LA_PC]compile");
        begin("B|1|[NN_LR_PC]finish");
        end();
        end();
        begin("B|1|[NN_LA_PWU]warm-up");
        for (int run = 0; run < runs / 10; run++) execution(run);
        end();
        begin("B|1|[NN_LA_PBM]benchmark");
        for (int run = 0; run < runs; run++) execution(run);
        end();
        end();
    }
    /* One section is open at the end. */
    begin("B|1|[NN_LA_PT]end");
    puts("done");
    fflush(stdout);
    return !fgets(line, sizeof line, stdin);
}
