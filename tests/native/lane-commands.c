/* Marks on request, a line each on stdin; answers each with a line: which of the probed functions were called (see
 * lane-hooks.c), and if errno was changed.
 *   run N          writes N sections
 *   begin WORD     begins a section: plain, other, pairs, named, long, hash, overall, warmup, benchmark, switched, apart
 *   end            ends the innermost of these
 *   sites N        writes a section at each of 100 places, which are others for each N up to 6
 *   part           writes a section from another file
 *   instant, counter
 *   nothing
 *   interrupt      writes a section by the handler of a signal, while the next mark reads the clock
 *   stress N       writes N sections while a timer's handler writes others; how many others, and how many marks took the probe
 *   churn N        lets eight threads at a time write sections, N times
 *   ftrace         sends marks to a file as well
 *   wanted N       sets the number of profilers that want lanes
 *   fork, thread   goes on in a child or in a new thread, until it exits; the answer is its process
 *   exit           ends that, or the program
 *   replace FILE   puts another file in place of a descriptor
 *   close FILE     closes a descriptor
 *   bytes N        the lanes of the process take so many bytes
 *   threads        how many control blocks there are
 *   size N         sets the longest size of files
 *   confine        forbids all system calls but those that are needed here, on pain of death */

#include <nntrace.h>
#include <pthread.h>
#include <signal.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "lane.h"

enum { UNTOUCHED = 77, DEEPEST = 2000 };

static nntrace_section opened[DEEPEST];
static unsigned depth = 0;

static nntrace_section begin(const char *word) {
    char name[16] = "a name";
    char text[400];
    const nntrace_section none = {0};
    if (strcmp(word, "plain") == 0) {
        return NNTRACE_BEGIN(NNTRACE_LAYER_RUNTIME, NNTRACE_PHASE_EXECUTION, "plain");
    }
    if (strcmp(word, "other") == 0) {
        return NNTRACE_BEGIN(NNTRACE_LAYER_CPU, NNTRACE_PHASE_COMPUTATION, "other");
    }
    if (strcmp(word, "pairs") == 0) {
        return NNTRACE_BEGIN_WITH(NNTRACE_LAYER_RUNTIME, NNTRACE_PHASE_EXECUTION, "pairs", nntrace_iter(7),
                                  nntrace_acct("foo"));
    }
    if (strcmp(word, "named") == 0) {
        return NNTRACE_BEGIN(NNTRACE_LAYER_RUNTIME, NNTRACE_PHASE_EXECUTION, name);
    }
    if (strcmp(word, "long") == 0) {
        memset(text, 'x', sizeof text);
        text[sizeof text - 1] = '\0';
        return NNTRACE_BEGIN(NNTRACE_LAYER_RUNTIME, NNTRACE_PHASE_EXECUTION, text);
    }
    if (strcmp(word, "hash") == 0) {
        return NNTRACE_BEGIN(NNTRACE_LAYER_RUNTIME, NNTRACE_PHASE_EXECUTION, "hash#h=9");
    }
    if (strcmp(word, "overall") == 0) {
        return NNTRACE_BEGIN(NNTRACE_LAYER_APPLICATION, NNTRACE_PHASE_OVERALL, "overall");
    }
    if (strcmp(word, "warmup") == 0) {
        return NNTRACE_BEGIN_WITH(NNTRACE_LAYER_APPLICATION, NNTRACE_PHASE_WARMUP, "warmup", nntrace_iter(1));
    }
    if (strcmp(word, "benchmark") == 0) {
        return nntrace_opened_(
            NNTRACE_OPEN_(NNTRACE_TAG_("[SW]", NNTRACE_LAYER_APPLICATION, NNTRACE_PHASE_BENCHMARK), "benchmark"));
    }
    if (strcmp(word, "switched") == 0) {
        return nntrace_opened_(
            NNTRACE_OPEN_(NNTRACE_TAG_("[SW]", NNTRACE_LAYER_CPU, NNTRACE_PHASE_COMPUTATION), "switched"));
    }
    if (strcmp(word, "apart") == 0) {
        return nntrace_opened_(
            NNTRACE_OPEN_(NNTRACE_TAG_("[SUB]", NNTRACE_LAYER_APPLICATION, NNTRACE_PHASE_EXECUTION), "apart"));
    }
    return none;
}

static void run(unsigned count) {
    for (unsigned number = 0; number < count; ++number) {
        NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "work");
    }
}

/* As a place of the program each: by the function that is behind the macros, of names that never change. */
static void sites(unsigned hundred) {
    static char names[700][16];
    for (unsigned number = 0; hundred < 7 && number < 100; ++number) {
        char *name = names[100 * hundred + number];
        if (!*name) {
            snprintf(name, sizeof names[0], "site %u", 100 * hundred + number);
        }
        if (nntrace_begin_("[NN_LR_PE]", 10, name, 1, NULL, 0)) {
            nntrace_write_end_();
        }
    }
}

static volatile sig_atomic_t handled = 0;

static void handle(int number) {
    (void)number;
    ++handled;
    NNTRACE_CPU(NNTRACE_PHASE_EXECUTION, "handler");
}

/* All that a thread needs that only has marks; anything else is deadly. */
static int confine(void) {
#define ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(read),
        ALLOW(write),
        ALLOW(prctl),
        ALLOW(clock_gettime),
        ALLOW(exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
#undef ALLOW
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

/* Reads a line without its end, byte by byte, as the child and the threads read from the same pipe. */
static int read_line(char *line, size_t room) {
    size_t at = 0;
    while (at + 1 < room && read(STDIN_FILENO, line + at, 1) == 1) {
        if (line[at] == '\n') {
            line[at] = '\0';
            return 1;
        }
        ++at;
    }
    return 0;
}

static void answer(const char *text) {
    char end = '\n';
    if (write(STDOUT_FILENO, text, strlen(text)) < 0 || write(STDOUT_FILENO, &end, 1) != 1) {
        _exit(3);
    }
}

static void answer_number(long number) {
    char text[32];
    snprintf(text, sizeof text, "%ld", number);
    answer(text);
}

static void *serve(void *nothing);

/* Does what must not change errno; whether it is such a command. */
static int mark(const char *command, const char *word, unsigned number) {
    if (strcmp(command, "run") == 0) {
        run(number);
    } else if (strcmp(command, "begin") == 0 && depth < DEEPEST) {
        opened[depth++] = begin(word);
    } else if (strcmp(command, "end") == 0 && depth > 0) {
        nntrace_end(&opened[--depth]);
    } else if (strcmp(command, "sites") == 0) {
        sites(number);
    } else if (strcmp(command, "part") == 0) {
        lane_part();
    } else if (strcmp(command, "instant") == 0) {
        NNTRACE_INSTANT("now");
    } else if (strcmp(command, "counter") == 0) {
        NNTRACE_COUNTER("level", -3);
    } else {
        return strcmp(command, "nothing") == 0;
    }
    return 1;
}

static void stress(unsigned count) {
    const struct itimerval often = {{0, 50}, {0, 50}};
    const struct itimerval never = {{0, 0}, {0, 0}};
    char text[64];
    handled = 0;
    signal(SIGALRM, handle);
    setitimer(ITIMER_REAL, &often, NULL);
    run(count);
    setitimer(ITIMER_REAL, &never, NULL);
    snprintf(text, sizeof text, "%d %zu", (int)handled, lane_probes());
    answer(text);
}

static void *work(void *nothing) {
    run(100);
    return nothing;
}

static void churn(unsigned rounds) {
    pthread_t threads[8];
    while (rounds-- > 0) {
        for (size_t at = 0; at < sizeof threads / sizeof *threads; ++at) {
            if (pthread_create(&threads[at], NULL, work, NULL)) {
                _exit(4);
            }
        }
        for (size_t at = 0; at < sizeof threads / sizeof *threads; ++at) {
            pthread_join(threads[at], NULL);
        }
    }
    answer("0");
}

static void set(const char *command, const char *word, unsigned long number) {
    if (strcmp(command, "interrupt") == 0) {
        signal(SIGUSR1, handle);
        lane_interrupt();
    } else if (strcmp(command, "wanted") == 0) {
        nntrace_lanes_wanted_ = (unsigned short)number;
    } else if (strcmp(command, "replace") == 0) {
        const int file = open("/dev/null", O_RDONLY);
        number = (unsigned long)dup2(file, (int)number);
        close(file);
    } else if (strcmp(command, "ftrace") == 0) {
        nntrace_sink_ = 2 + open("/dev/null", O_WRONLY);
    } else if (strcmp(command, "close") == 0) {
        close((int)number);
    } else if (strcmp(command, "bytes") == 0) {
        nntrace_all_lanes_->bytes = number;
    } else if (strcmp(command, "size") == 0) {
        const struct rlimit limit = {number, RLIM_INFINITY};
        number = (unsigned long)setrlimit(RLIMIT_FSIZE, &limit);
    } else if (strcmp(command, "confine") == 0) {
        number = (unsigned long)confine();
    } else if (strcmp(command, "threads") == 0) {
        number = 0;
        for (struct nntrace_lane_ *lane = nntrace_all_lanes_->first; lane; lane = lane->next) {
            ++number;
        }
    } else {
        answer(word);
        return;
    }
    answer_number((long)number);
}

/* Serves until it is told to exit. */
static void *serve(void *nothing) {
    char line[64], command[32], word[32];
    while (read_line(line, sizeof line)) {
        if (sscanf(line, "%31s %31s", command, word) < 2) {
            strcpy(word, "0");
        }
        if (strcmp(command, "exit") == 0) {
            break;
        }
        if (strcmp(command, "fork") == 0) {
            const pid_t child = fork();
            int status = 1;
            if (child == 0) {
                answer_number(getpid());
            } else {
                answer_number(waitpid(child, &status, 0) == child ? status : -1);
            }
        } else if (strcmp(command, "thread") == 0) {
            pthread_t thread;
            answer_number(getpid());
            if (pthread_create(&thread, NULL, serve, &depth) || pthread_join(thread, NULL)) {
                _exit(4);
            }
            answer("0");
        } else {
            const unsigned number = (unsigned)strtoul(word, NULL, 10);
            lane_forget();
            errno = UNTOUCHED;
            if (strcmp(command, "stress") == 0) {
                stress(number);
            } else if (strcmp(command, "churn") == 0) {
                churn(number);
            } else if (mark(command, word, number)) {
                answer(errno == UNTOUCHED ? lane_calls() : "errno was changed");
            } else {
                set(command, word, strtoul(word, NULL, 10));
            }
        }
    }
    if (nothing) {
        return NULL;
    }
    _exit(0);
}

int main(void) {
    serve(NULL);
    return 0;
}
