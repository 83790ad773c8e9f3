/* Tasks as no library should show them, or few do. Argument: which. */

#include <sys/wait.h>
#include <unistd.h>

#include "itt-part.h"

enum { THREADS = 8, ROUNDS = 20, NAMES = 100, DEEP = 100, MANY = 400000 };

static part own;
static domain *execute, *inference, *app;

static handle *name(const char *text) { return handle_create(&own, text); }

static void run(domain *in, handle *named) {
    task_begin(&own, in, named);
    task_end(&own, in);
}

static int names(void) {
    FUNCTION_OF(&own, TASK_BEGIN_FN, void (*call)(const domain *, id, id, void *), begin_fn);
    FUNCTION_OF(&own, TASK_BEGIN_EX,
                void (*call)(const domain *, void *, unsigned long long, id, id, handle *), begin_ex);
    FUNCTION_OF(&own, TASK_END_EX, void (*call)(const domain *, void *, unsigned long long), end_ex);
    static char text[3001];
    static const char *const odd[] = {"a#b=c", "line\nbreak\ttab\x1b[31m", "[NN_LR_PE", "B|1|[x]|"};
    size_t at;
    for (at = 0; at + 5 < sizeof text; at += 5) {
        memcpy(text + at, "\xc3\xbc\xe2\x82\xac", 5);
    }
    run(execute, name(text));
    run(execute, name(text + 1));
    for (at = 0; at < sizeof odd / sizeof odd[0]; ++at) {
        run(execute, name(odd[at]));
    }
    run(execute, NULL);
    begin_fn.call(execute, no_id, no_id, (void *)(uintptr_t)0x1234);
    task_end(&own, execute);
    begin_ex.call(execute, NULL, 1, no_id, no_id, name("with a time"));
    end_ex.call(execute, NULL, 2);
    begin_ex.call(execute, &own, 1, no_id, no_id, name("with a time of another clock"));
    end_ex.call(execute, &own, 2);
    return name("one") != name("one") || name("one") == name("two") || strcmp(name(text)->strA, text) != 0 ||
           domain_create(&own, NULL) || name(NULL);
}

static int tags(void) {
    static const char *const others[] = {"plain", "[SW][NN_LC_PE]switch", "[NN_LX_PE]", "[NN_LR_PEX]", "[NN_LR_", ""};
    size_t at;
    task_begin(&own, app, name("[NN_LA_PE]classify#iter=3"));
    for (at = 0; at < sizeof others / sizeof others[0]; ++at) {
        task_begin(&own, app, name(others[at]));
        run(inference, name("inside"));
        task_end(&own, app);
    }
    run(app, name("[SUB][NN_LR_PC]late"));
    /* No layer for right inside of the application. */
    run(execute, name("direct"));
    task_end(&own, app);
    return 0;
}

static void *create_all(void *kept) {
    handle **const all = kept;
    int round, number;
    for (round = 0; round < ROUNDS; ++round) {
        for (number = 0; number < NAMES; ++number) {
            char text[32];
            snprintf(text, sizeof text, "name %d", number);
            all[number] = name(text);
            snprintf(text, sizeof text, "ov::op::%d", number);
            run(domain_create(&own, text), all[number]);
        }
    }
    return NULL;
}

static int threads(void) {
    static handle *all[THREADS][NAMES];
    pthread_t started[THREADS];
    int number;
    for (number = 0; number < THREADS; ++number) {
        pthread_create(&started[number], NULL, create_all, all[number]);
    }
    for (number = 0; number < THREADS; ++number) {
        pthread_join(started[number], NULL);
    }
    for (number = 1; number < THREADS; ++number) {
        if (memcmp(all[0], all[number], sizeof all[0]) != 0) {
            return 1;
        }
    }
    return 0;
}

static pthread_barrier_t barrier;

static void *hold(void *unused) {
    (void)unused;
    task_begin(&own, execute, name("primitive"));
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    task_end(&own, execute);
    return NULL;
}

/* In the middle of a task, and while another thread has one that others may help with. */
static int forks(void) {
    pthread_t holder;
    pid_t child;
    int status = 1;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&holder, NULL, hold, NULL);
    pthread_barrier_wait(&barrier);
    task_begin(&own, inference, name("parent"));
    child = fork();
    if (child == 0) {
        run(execute, name("primitive"));
        task_end(&own, inference);
        run(inference, name("child"));
        _exit(0);
    }
    waitpid(child, &status, 0);
    run(execute, name("primitive"));
    task_end(&own, inference);
    pthread_barrier_wait(&barrier);
    pthread_join(holder, NULL);
    return status;
}

static int deep(void) {
    int depth;
    for (depth = 0; depth < DEEP; ++depth) {
        task_begin(&own, execute, name("deep"));
    }
    for (depth = 0; depth < DEEP; ++depth) {
        task_end(&own, execute);
    }
    run(execute, name("after"));
    return 0;
}

/* Ends without begins, and a region that ends before the task in it. */
static int crossed(void) {
    domain *const phases = domain_create(&own, "ov::phases");
    int round;
    task_end(&own, execute);
    region_end(&own, phases);
    for (round = 0; round < ROUNDS; ++round) {
        region_begin(&own, phases, name("Compile model"));
        task_end(&own, execute);
        task_begin(&own, execute, name("inside"));
        region_begin(&own, phases, name("Other"));
        region_end(&own, phases);
        region_end(&own, phases);
        region_end(&own, phases);
        task_end(&own, execute);
        region_begin(&own, app, name("not marked"));
        run(inference, name("outside"));
        region_end(&own, app);
    }
    return 0;
}

static int slices(void) {
    FUNCTION_OF(&own, OVERLAPPED_BEGIN, void (*call)(const domain *, id, id, handle *), begin);
    FUNCTION_OF(&own, OVERLAPPED_END, void (*call)(const domain *, id), end);
    static char text[2001];
    unsigned long long number;
    memset(text, 'x', sizeof text - 1);
    for (number = 0; number < ROUNDS; ++number) {
        const id first = {1, number, 0}, second = {number, 1, 7};
        domain *const longest = domain_create(&own, text);
        begin.call(app, first, no_id, name("load|it"));
        begin.call(app, second, no_id, name("store"));
        end.call(app, first);
        begin.call(longest, first, no_id, name(text));
        end.call(longest, first);
        end.call(app, second);
    }
    return 0;
}

/* More names and domains than there is memory for. */
static int flood(void) {
    domain *last = NULL;
    handle *before = NULL, *others = NULL;
    int number;
    for (number = 0; number < MANY; ++number) {
        char text[32];
        snprintf(text, sizeof text, "flood %d", number);
        before = others;
        others = name(text);
        last = domain_create(&own, text);
        if (!others || !last) {
            return 1;
        }
    }
    run(last, others);
    printf("%s\n", others->strA);
    return others != before || last->flags != 0 || name("flood 0") == others || name("flood 0") != name("flood 0");
}

/* A static part of another version is left as it is. */
static int unfit(void) {
    part other;
    int at;
    part_init(&other, 4);
    if (!part_load(&other)) {
        return 1;
    }
    for (at = 0; at < FUNCTIONS && other.functions[at] == &initial; ++at) {
    }
    /* Of one that fits, what is not collected has no function. */
    return at != FUNCTIONS || own.functions[METADATA_ADD] || own.functions[THREAD_SET_NAME];
}

/* A line each on stdin; answers each with a line. */
static int commands(void) {
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        unsigned count = 0;
        if (strcmp(line, "open\n") == 0) {
            task_begin(&own, inference, name("open"));
        } else if (strcmp(line, "close\n") == 0) {
            task_end(&own, inference);
        } else if (sscanf(line, "run %u", &count) == 1) {
            for (; count > 0; --count) {
                run(inference, name("work"));
            }
        }
        printf("done\n");
        fflush(stdout);
    }
    return 0;
}

static const struct {
    const char *name;
    int (*run)(void);
} all[] = {{"names", names}, {"tags", tags},   {"threads", threads}, {"forks", forks}, {"deep", deep},
           {"crossed", crossed}, {"slices", slices}, {"flood", flood}, {"unfit", unfit}, {"commands", commands}};

int main(int count, char **words) {
    size_t at;
    part_init(&own, 3);
    if (count < 2 || !part_load(&own)) {
        return 3;
    }
    execute = domain_create(&own, "dnnl::primitive::execute");
    inference = domain_create(&own, "ov::phases::cpu::inference");
    app = domain_create(&own, "my.app");
    for (at = 0; at < sizeof all / sizeof all[0]; ++at) {
        if (strcmp(words[1], all[at].name) == 0) {
            return all[at].run();
        }
    }
    return 4;
}
