/* Random streams of marks, the same for a seed and a number of a case, and a log of them. Arguments:
 *   FILE      gets a line for each mark: the process by its role, its id, the thread's, the clock before and behind the mark,
 *             ns, and the payload; for a mark in a ring both times are its stamp
 *   SEED      of all cases
 *   FIRST     number of the first case
 *   CASES     number of cases
 *   own, few  whether each section has a name of its own in its case, or one of a few
 *   lanes     if the threads that run the cases are to wait until they have a lane
 * A case is a stream on one of the threads that run them all, or on up to three that end with it, or one in which a child is
 * forked. Each of these may end anywhere. Ends with 0 when all children did. */

/* The time of a mark in a ring is then a reading of our clock_gettime. */
#define NNTRACE_NO_TICKS
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/wait.h>

#include "express.h"

enum { WORKERS = 3, BEFORE_LANE = 100, MOST_OPEN = 100, TAGS = 4, NAMES = 5, CHILD_PART = 4, PAUSE_US = 200 };

static const char *const layers[] = {"LA", "LR", "LI", "LD", "LC", "LU", "LO"};
static const char *const phases[] = {"PO", "PWU", "PBM", "PI", "PP", "PC", "PE", "PT", "PU", "PIO", "PTR", "PCO", "PR"};
static const char *const prefixes[] = {"", "[SW]", "[SUB]"};
static const char *const calls[] = {"HIDL::IDevice::prepareModel::client", "HIDL::IPreparedModel::execute::client"};

/* Tags of this run: few, as each sequence of them is a path. */
static char tags[3][TAGS][24];
static const char *file_name;
static uint64_t seed;
static unsigned first_case, cases;
static int has_own_names, waits_for_lanes;

static __thread int64_t last_reading;

/* In place of libc's: what a ring's record has for a time is the last reading. */
int clock_gettime(clockid_t clock, struct timespec *now) {
    const int result = (int)syscall(SYS_clock_gettime, clock, now);
    last_reading = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec;
    return result;
}

struct stream {
    uint64_t random;
    /* Case, and which of its streams. */
    unsigned number, part;
    pid_t process, thread;
    /* Open sections, and whether each began by a payload of our own. */
    unsigned open;
    char by_payload[MOST_OPEN];
    /* Whether a child was forked in sections of its parent, which are not its to end. */
    int has_inherited;
    unsigned named;
    const char *few[NAMES];
    uint64_t sent;
    char *log;
    size_t length, room;
};

static void fail(const char *what) {
    perror(what);
    _exit(3);
}

/* Xorshift with a multiplication (Vigna). */
static unsigned below(struct stream *stream, unsigned end) {
    stream->random ^= stream->random >> 12;
    stream->random ^= stream->random << 25;
    stream->random ^= stream->random >> 27;
    return (unsigned)((stream->random * 0x2545f4914f6cdd1dULL >> 33) % end);
}

static struct stream stream_of(unsigned number, unsigned part) {
    struct stream stream;
    memset(&stream, 0, sizeof stream);
    stream.random = ((seed << 40) + ((uint64_t)number << 8) + part) * 0x9e3779b97f4a7c15ULL | 1;
    stream.number = number;
    stream.part = part;
    stream.process = getpid();
    stream.thread = (pid_t)syscall(SYS_gettid);
    below(&stream, 2);
    return stream;
}

/* In one piece, as other threads and processes write to the file. */
static void write_log(struct stream *stream) {
    const int file = open(file_name, O_WRONLY | O_APPEND | O_CREAT, 0644);
    if (file < 0 || write(file, stream->log, stream->length) != (ssize_t)stream->length) {
        fail(file_name);
    }
    close(file);
    free(stream->log);
    stream->log = NULL;
    stream->length = stream->room = 0;
}

/* Clock and ring before a mark. */
struct moment {
    int64_t clock;
    const uint64_t *ring;
    uint64_t head;
};

static struct moment now(void) {
    const struct nntrace_lane_ *lane = nntrace_self_.lane;
    const struct moment moment = {now_ns(), lane ? lane->shared : NULL, lane ? lane->head : 0};
    return moment;
}

/* Logs a mark that was written since then. */
static void note(struct stream *stream, struct moment begin, int opens, const char *payload) {
    const int64_t stamp = last_reading, end = now_ns();
    const struct nntrace_lane_ *lane = nntrace_self_.lane;
    const unsigned at = nntrace_self_.depth - 1;
    const int has_written = lane && lane->shared && lane->shared == begin.ring && lane->head != begin.head;
    /* A definition may have found room, and the begin none. */
    const int in_ring = has_written && (!opens || (at < 64 && (nntrace_self_.in_ring >> at & 1)));
    char role[16] = "main";
    if (stream->room - stream->length < 512) {
        stream->room = 2 * stream->room + 4096;
        stream->log = realloc(stream->log, stream->room);
        if (!stream->log) {
            fail("the log");
        }
    }
    if (stream->part >= CHILD_PART) {
        snprintf(role, sizeof role, "c%u", stream->number);
    }
    stream->length += (size_t)snprintf(stream->log + stream->length, 512, "%s %d %d %lld %lld %.255s\n", role,
                                       (int)stream->process, (int)stream->thread,
                                       (long long)(in_ring ? stamp : begin.clock),
                                       (long long)(in_ring ? stamp : end), payload);
}

static void write_payload(struct stream *stream, const char *payload) {
    const struct moment begin = now();
    tracing_mark_write(payload);
    note(stream, begin, 0, payload);
}

/* A name that stays, as a literal does. */
static const char *name_of(struct stream *stream) {
    const char **name = &stream->few[below(stream, NAMES)];
    char text[48];
    if (has_own_names || !*name) {
        snprintf(text, sizeof text, "c%u.%u %s%u", stream->number, stream->part, has_own_names ? "" : "f", stream->named++);
        *name = strdup(text);
        if (!*name) {
            fail("a name");
        }
    }
    return *name;
}

static void begin(struct stream *stream, const char *tag) {
    const char *name = name_of(stream);
    const unsigned way = below(stream, 10);
    struct moment begin;
    nntrace_pair pairs[2];
    char payload[512], long_name[400];
    size_t count = 0, length = (size_t)snprintf(payload, sizeof payload, "B|0|%s%s", tag, name);
    if (way == 9) {
        begin = now();
        tracing_mark_write(payload);
        note(stream, begin, 0, payload);
        stream->by_payload[stream->open++] = 1;
        return;
    }
    if (way == 8) { /* Too long to be written whole. */
        memset(long_name, 'x', sizeof long_name);
        memcpy(long_name, name, strlen(name));
        long_name[240 + below(stream, 40)] = '\0';
        name = long_name;
        snprintf(payload, sizeof payload, "B|0|%s%s", tag, name);
    }
    if (way == 6 || way == 7) {
        switch (below(stream, 4)) {
            case 0:
                pairs[count++] = nntrace_attr("img", "a.jpg");
                break;
            case 1:
                pairs[count++] = nntrace_acct(below(stream, 2) ? "foo" : "bar");
                break;
            case 2:
                pairs[count++] = nntrace_number("size", below(stream, 1000));
                break;
            default:
                if (stream->sent) {
                    pairs[count++] = nntrace_takes(stream->sent);
                    stream->sent = 0;
                }
        }
        pairs[count++] = nntrace_iter(below(stream, 4));
        for (size_t at = 0; at < count; ++at) {
            const nntrace_pair *pair = &pairs[at];
            length += (size_t)(pair->text ? snprintf(payload + length, 64, "#%s=%s", pair->key, pair->text)
                                          : snprintf(payload + length, 64, "#%s=%llu", pair->key,
                                                     (unsigned long long)pair->number));
        }
    }
    begin = now();
    if (!nntrace_listens() || !nntrace_begin_(tag, strlen(tag), name, way < 5, pairs, count)) {
        fputs("nobody listens\n", stderr);
        _exit(4);
    }
    note(stream, begin, 1, payload);
    stream->by_payload[stream->open++] = 0;
}

static void begin_any(struct stream *stream) {
    const unsigned prefix = below(stream, 10);
    begin(stream, tags[prefix < 3 ? prefix : 0][below(stream, TAGS)]);
}

/* Ends the innermost section, or none. */
static void end(struct stream *stream, int by_payload) {
    struct moment begin;
    if (by_payload) {
        write_payload(stream, below(stream, 2) ? "E|0" : "E");
        return;
    }
    begin = now();
    nntrace_write_end_();
    note(stream, begin, 0, "E|0");
}

static void end_innermost(struct stream *stream) {
    --stream->open;
    end(stream, stream->by_payload[stream->open]);
}

/* Deeper than what is accounted. */
static void nest(struct stream *stream) {
    const char *tag = tags[0][below(stream, TAGS)];
    const unsigned outer = stream->open, deepest = 60 + below(stream, 30);
    while (stream->open < deepest) {
        begin(stream, tag);
    }
    while (stream->open > outer) {
        end_innermost(stream);
    }
}

/* A mark that is no section. */
static void write_other(struct stream *stream) {
    char payload[96];
    struct moment begin = now();
    const int64_t value = (int64_t)below(stream, 9) - 4;
    const unsigned number = stream->number;
    switch (below(stream, 6)) {
        case 0:
            nntrace_instant_("now", NULL, 0);
            note(stream, begin, 0, "I|0|now");
            break;
        case 1:
            snprintf(payload, sizeof payload, "C|0|level %u.%u|%lld", number, stream->part, (long long)value);
            payload[strrchr(payload, '|') - payload] = '\0';
            nntrace_counter_(payload + 4, value);
            payload[strlen(payload)] = '|';
            note(stream, begin, 0, payload);
            break;
        case 2:
            snprintf(payload, sizeof payload, "%c|0|slice|%u", below(stream, 2) ? 'S' : 'F',
                     8 * number + stream->part);
            write_payload(stream, payload);
            break;
        case 3:
            stream->sent = ((uint64_t)number << 24) + (stream->part << 16) + ++stream->named;
            snprintf(payload, sizeof payload, "I|0|nn.send#h=%llu", (unsigned long long)stream->sent);
            NNTRACE_SEND(stream->sent);
            note(stream, begin, 0, payload);
            break;
        case 4:
            if (stream->sent) {
                snprintf(payload, sizeof payload, "I|0|nn.recv#h=%llu", (unsigned long long)stream->sent);
                NNTRACE_RECV(stream->sent);
                note(stream, begin, 0, payload);
                stream->sent = 0;
            }
            break;
        default:
            write_payload(stream, below(stream, 2) ? "X|0|no kind" : "I|0|by payload");
    }
}

/* A section of somebody else, of an unknown tag, or of the interfaces' table. */
static void begin_foreign(struct stream *stream) {
    char payload[96] = "B|0|of somebody else";
    if (!has_own_names && below(stream, 2)) {
        snprintf(payload, sizeof payload, "B|0|%s", calls[below(stream, 2)]);
    } else if (below(stream, 2)) {
        strcpy(payload, "B|0|[NN_LQ_PE]unknown");
    }
    write_payload(stream, payload);
    stream->by_payload[stream->open++] = 1;
}

static void write_mark(struct stream *stream) {
    const unsigned what = below(stream, 100);
    if (what < 45 && stream->open > 0) {
        end_innermost(stream);
    } else if (what < 80 && stream->open < 8) {
        begin_any(stream);
    } else if (what < 84 && stream->open < 8) {
        begin_foreign(stream);
    } else if (what < 97) {
        write_other(stream);
    } else if (what == 97 && stream->open == 0 && !stream->has_inherited) {
        end(stream, below(stream, 2)); /* Of nothing. */
    } else if (what == 98 && below(stream, 8) == 0) {
        nest(stream);
    } else if (what == 99) {
        sleep_us(PAUSE_US);
    }
}

static void write_marks(struct stream *stream) {
    const unsigned count = below(stream, 4) ? below(stream, 60) : below(stream, 300);
    for (unsigned at = 0; at < count; ++at) {
        write_mark(stream);
    }
}

static void *run_thread(void *argument) {
    const struct stream *of = argument;
    struct stream stream = stream_of(of->number, of->part);
    write_marks(&stream);
    write_log(&stream);
    if (below(&stream, 2)) {
        pthread_exit(NULL);
    }
    return NULL;
}

/* Has threads run streams of a case, and waits for them. */
static void run_threads(unsigned number, unsigned first, unsigned count) {
    pthread_t threads[4];
    struct stream streams[4];
    for (unsigned at = 0; at < count; ++at) {
        streams[at].number = number;
        streams[at].part = first + at;
        if (pthread_create(&threads[at], NULL, run_thread, &streams[at])) {
            fail("a thread");
        }
    }
    for (unsigned at = 0; at < count; ++at) {
        pthread_join(threads[at], NULL);
    }
}

/* A child that marks, in whatever sections of its parent. */
static void run_fork(struct stream *parent) {
    int status = 1;
    const pid_t child = fork();
    if (child == 0) {
        struct stream stream = stream_of(parent->number, CHILD_PART);
        stream.has_inherited = parent->open > 0;
        write_marks(&stream);
        run_threads(stream.number, CHILD_PART + 1, below(&stream, 2));
        write_marks(&stream);
        write_log(&stream);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "case %u: the child's status is %d\n", parent->number, status);
        _exit(5);
    }
}

static void run_case(unsigned number) {
    struct stream stream = stream_of(number, 0);
    const unsigned kind = below(&stream, 20);
    write_marks(&stream);
    if (kind == 0) {
        run_fork(&stream);
        write_marks(&stream);
    } else if (kind < 4) {
        run_threads(number, 1, kind);
        write_marks(&stream);
    }
    while (stream.open > 0) {
        end_innermost(&stream);
    }
    write_log(&stream);
}

/* Waits for so many milliseconds at most until this thread has a lane that is read; whether it has one. */
static int await_lane(unsigned most_ms) {
    for (unsigned waits = 0; waits_for_lanes && waits <= most_ms; ++waits) {
        const struct nntrace_lane_ *lane = nntrace_self_.lane;
        if (lane && lane->shared && __atomic_load_n(&lane->shared[NNTRACE_LEASE_], __ATOMIC_ACQUIRE) &&
            lane->head - __atomic_load_n(&lane->shared[NNTRACE_TAIL_], __ATOMIC_ACQUIRE) < lane->size / 2) {
            return 1;
        }
        sleep_ms(1);
    }
    return 0;
}

/* Writes marks enough to be offered a lane, and waits for it. */
static void get_lane(unsigned worker) {
    struct stream stream = stream_of(first_case + cases + worker, 0);
    for (unsigned at = 0; at < BEFORE_LANE; ++at) {
        begin(&stream, tags[0][0]);
        end_innermost(&stream);
    }
    write_log(&stream);
    if (waits_for_lanes && !await_lane(10000)) {
        fputs("there is no lane\n", stderr);
        _exit(6);
    }
}

static void *work(void *argument) {
    const unsigned worker = (unsigned)(uintptr_t)argument;
    get_lane(worker);
    for (unsigned at = worker; at < cases; at += WORKERS) {
        run_case(first_case + at);
        await_lane(50); /* On a slow machine most would take the probe. */
    }
    return NULL;
}

static void *leave(void *nothing) {
    pthread_exit(nothing);
}

/* The first pthread_exit of a process loads libgcc_s. A child that is forked meanwhile has it without its relocations, and
 * its own pthread_exit jumps to nowhere. */
static void load_unwinder(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, leave, NULL)) {
        fail("a thread");
    }
    pthread_join(thread, NULL);
}

static void choose_tags(void) {
    struct stream stream = stream_of(first_case, 255);
    for (unsigned at = 0; at < TAGS; ++at) {
        const char *layer = layers[below(&stream, 7)], *phase = phases[below(&stream, 13)];
        for (unsigned prefix = 0; prefix < 3; ++prefix) {
            snprintf(tags[prefix][at], sizeof tags[prefix][at], "%s[NN_%s_%s]", prefixes[prefix], layer, phase);
        }
    }
}

int main(int count, char **words) {
    pthread_t threads[WORKERS];
    if (count < 6) {
        return 2;
    }
    file_name = words[1];
    seed = strtoull(words[2], NULL, 10);
    first_case = (unsigned)strtoul(words[3], NULL, 10);
    cases = (unsigned)strtoul(words[4], NULL, 10);
    has_own_names = strcmp(words[5], "own") == 0;
    waits_for_lanes = count > 6 && strcmp(words[6], "lanes") == 0;
    choose_tags();
    load_unwinder();
    for (uintptr_t worker = 0; worker < WORKERS; ++worker) {
        if (pthread_create(&threads[worker], NULL, work, (void *)worker)) {
            fail("a thread");
        }
    }
    for (unsigned worker = 0; worker < WORKERS; ++worker) {
        pthread_join(threads[worker], NULL);
    }
    return 0;
}
