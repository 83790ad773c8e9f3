/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * nntrace.h: marks for nntrace-bpf from C (C99) and C++ (C++11), with gcc or clang, on Linux.
 *
 *     NNTRACE_RT(NNTRACE_PHASE_EXECUTION, "compute");          // until the end of the scope
 *     NNTRACE_CPU_WITH(NNTRACE_PHASE_COMPUTATION, "conv2d", nntrace_iter(n), nntrace_acct("foo"));
 *
 * There is nothing to link and nothing to set up. While nobody listens, a section costs two loads and nothing is
 * formatted. How to use it, what it costs and how it works: docs/marking.md. What marks mean: docs/contract.md.
 *
 * Names that end in an underscore are no part of the interface.
 */
#ifndef NNTRACE_H
#define NNTRACE_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Layers and phases ---------------------------------------------------------------------------------------- */

#define NNTRACE_LAYER_APPLICATION "LA"
#define NNTRACE_LAYER_RUNTIME "LR"
#define NNTRACE_LAYER_IPC "LI"
#define NNTRACE_LAYER_DRIVER "LD"
#define NNTRACE_LAYER_CPU "LC"
#define NNTRACE_LAYER_UTILITY "LU"
#define NNTRACE_LAYER_OTHER "LO"

#define NNTRACE_PHASE_OVERALL "PO"
#define NNTRACE_PHASE_WARMUP "PWU"
#define NNTRACE_PHASE_BENCHMARK "PBM"
#define NNTRACE_PHASE_INITIALIZATION "PI"
#define NNTRACE_PHASE_PREPARATION "PP"
#define NNTRACE_PHASE_COMPILATION "PC"
#define NNTRACE_PHASE_EXECUTION "PE"
#define NNTRACE_PHASE_TERMINATION "PT"
#define NNTRACE_PHASE_UNSPECIFIED "PU"
/* Parts of execution. */
#define NNTRACE_PHASE_INPUTS_AND_OUTPUTS "PIO"
#define NNTRACE_PHASE_TRANSFORMATION "PTR"
#define NNTRACE_PHASE_COMPUTATION "PCO"
#define NNTRACE_PHASE_RESULTS "PR"

/* ---- The functions that are probed ---------------------------------------------------------------------------- */

/* One gets the marks as text; the other, which offers lanes, is further below. Each has two places that kernels probe
 * without a single step. On x86-64 the first is the very five bytes that newer kernels replace by a call, the second a
 * `nop` of one byte, which all kernels emulate: some kill forked children by the call. On arm64 the first is the `nop` that
 * newer kernels skip, the second the `ret`, which all simulate. They never cross a page, being aligned. No landing pad
 * (endbr64, bti c) is in front, as they are only ever called directly.
 *
 * The assembler, not the compiler, writes them, so that no optimisation changes them. Each is in a group of its own: of
 * many files that include this one, an executable or a library keeps one copy; and within one run of the assembler, which
 * link-time optimisation makes of many files, only the first is written. They are hidden, so that each library has its own
 * copies and calls them without a detour. What `strip` leaves of them is the notes, in the form of SystemTap's probes
 * (nntrace:mark, nntrace:lane), which nntrace-bpf, perf and bpftrace read. The size is counted from a label of its own, as
 * link-time optimisation takes the function's away where another file's copy is kept. */
#if defined(__x86_64__) && defined(__LP64__)
#define NNTRACE_BYTES_ 0xccc3900000441f0fULL
#define NNTRACE_BODY_ ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x90, 0xc3\n.balign 16, 0xcc\n"
#define NNTRACE_ARGUMENT_ "8@%rdi"
#define NNTRACE_ARGUMENTS_ "-8@%rdi 8@%rsi"
#elif defined(__aarch64__) && defined(__LP64__) && !defined(__AARCH64EB__)
#define NNTRACE_BYTES_ 0xd65f03c0d503201fULL
#define NNTRACE_BODY_ "nop\nret\n.balign 16\n"
#define NNTRACE_ARGUMENT_ "8@x0"
#define NNTRACE_ARGUMENTS_ "-8@x0 8@x1"
#endif

/* A program that is to have no lanes defines NNTRACE_NO_LANES for all of its files. */
#if defined(NNTRACE_BYTES_) && !defined(NNTRACE_NO_LANES)
#define NNTRACE_LANES_
#endif

#ifdef __cplusplus
#define NNTRACE_EXTERN_C_ extern "C"
#define NNTRACE_INLINE_ inline __attribute__((visibility("hidden")))
#define NNTRACE_SLOW_ NNTRACE_INLINE_ __attribute__((noinline))
#define NNTRACE_CAST_(type, value) static_cast<type>(value)
#define NNTRACE_AS_(type, value) reinterpret_cast<type>(value)
#else
#define NNTRACE_EXTERN_C_ extern
#define NNTRACE_INLINE_ static inline __attribute__((unused))
#define NNTRACE_SLOW_ static __attribute__((noinline, unused))
#define NNTRACE_CAST_(type, value) ((type)(value))
#define NNTRACE_AS_(type, value) ((type)(value))
#endif
/* What every mark begins with, and all that it does while nobody listens. */
#define NNTRACE_FAST_ NNTRACE_INLINE_ __attribute__((always_inline))
/* One of each in an executable or library, whichever of its files include this one. */
#define NNTRACE_SHARED_ __attribute__((weak, visibility("hidden")))

#ifdef NNTRACE_BYTES_
#define NNTRACE_PROBED_(function, note, semaphore, arguments)                            \
    ".pushsection .text." function ",\"axG\",%progbits," function ",comdat\n"            \
    ".balign 16\n"                                                                       \
    ".weak " function "\n"                                                               \
    ".hidden " function "\n"                                                             \
    ".type " function ",%function\n" function ":\n"                                      \
    "990: " NNTRACE_BODY_ ".size " function ", . - 990b\n"                               \
    ".popsection\n"                                                                      \
    ".ifndef _.stapsdt.base\n"                                                           \
    ".pushsection .stapsdt.base,\"aG\",%progbits,.stapsdt.base,comdat\n"                 \
    ".weak _.stapsdt.base\n"                                                             \
    ".hidden _.stapsdt.base\n"                                                           \
    "_.stapsdt.base: .space 1\n"                                                         \
    ".size _.stapsdt.base, 1\n"                                                          \
    ".popsection\n"                                                                      \
    ".endif\n" /* Owner, type 3; address, base, semaphore; provider, name, arguments. */ \
    ".pushsection .note.stapsdt,\"G\",%note," function ",comdat\n"                       \
    ".balign 4\n"                                                                        \
    ".4byte 8, 992f - 991f, 3\n"                                                         \
    ".asciz \"stapsdt\"\n"                                                               \
    "991: .8byte " function ", _.stapsdt.base, " semaphore "\n"                          \
    ".asciz \"nntrace\", \"" note "\", \"" arguments "\"\n"                              \
    "992: .balign 4\n"                                                                   \
    ".popsection\n"
__asm__(".ifndef tracing_mark_write\n" NNTRACE_PROBED_("tracing_mark_write", "mark", "0", NNTRACE_ARGUMENT_) ".endif\n");

/* Where the profiler listens: does nothing. Call it for a payload of your own. */
NNTRACE_EXTERN_C_ void tracing_mark_write(const char *payload) __attribute__((visibility("hidden")));
#else
/* An architecture on which nothing is known of nops and probes: an ordinary function. */
NNTRACE_EXTERN_C_ NNTRACE_SHARED_ __attribute__((noinline)) void tracing_mark_write(const char *payload);
void tracing_mark_write(const char *payload) { __asm__ volatile("" : : "r"(payload) : "memory"); }
#endif

/* ---- Whether anybody listens ---------------------------------------------------------------------------------- */

/* The file for ftrace: 0 before anybody asked, 1 for none, else its descriptor + 2. */
NNTRACE_SHARED_ int nntrace_sink_ = 0;
/* Handles given out, twice their number. */
NNTRACE_SHARED_ uint64_t nntrace_handles_ = 0;

/* Whether a probe is on the function. A probe changes its code, at one of the two places: both are in the first eight
 * bytes, which are loaded in one go. Where that is not known to be so, always. */
NNTRACE_FAST_ int nntrace_is_probed_(void) {
#ifdef NNTRACE_BYTES_
    const uintptr_t address = NNTRACE_AS_(uintptr_t, &tracing_mark_write);
    return *NNTRACE_AS_(const volatile uint64_t *, address) != NNTRACE_BYTES_;
#else
    return 1;
#endif
}

/* Whether a mark would be heard: a probe is in place, or marks go to ftrace. Before the first mark it may say so
 * wrongly. */
NNTRACE_FAST_ int nntrace_listens(void) {
    return __builtin_expect(nntrace_is_probed_(), 0) ||
           __builtin_expect(__atomic_load_n(&nntrace_sink_, __ATOMIC_RELAXED) != 1, 0);
}

/* ---- Payloads ------------------------------------------------------------------------------------------------- */

/* Bytes of the longest payload, its NUL included: what the profiler reads. */
#define NNTRACE_CAPACITY_ 256

struct nntrace_text_ {
    size_t length;
    size_t room;
    char bytes[NNTRACE_CAPACITY_];
};

/* Appends as many whole characters as fit; behind a text that was cut nothing more does. */
NNTRACE_INLINE_ void nntrace_put_(struct nntrace_text_ *text, const char *piece, size_t length) {
    if (length > text->room) {
        length = text->room;
        while (length > 0 && (NNTRACE_CAST_(unsigned char, piece[length]) & 0xc0) == 0x80) {
            --length;
        }
        text->room = length;
    }
    memcpy(text->bytes + text->length, piece, length);
    text->length += length;
    text->room -= length;
}

NNTRACE_INLINE_ void nntrace_put_string_(struct nntrace_text_ *text, const char *piece) {
    if (piece) {
        nntrace_put_(text, piece, strlen(piece));
    }
}

NNTRACE_INLINE_ void nntrace_put_number_(struct nntrace_text_ *text, uint64_t number) {
    char digits[20];
    size_t first = sizeof digits;
    do {
        digits[--first] = NNTRACE_CAST_(char, '0' + NNTRACE_CAST_(int, number % 10));
        number /= 10;
    } while (number);
    nntrace_put_(text, digits + first, sizeof digits - first);
}

/* Asks the environment once whether marks go to ftrace, and opens the file. */
NNTRACE_SLOW_ int nntrace_open_sink_(void) {
    static const char path[] = "/sys/kernel/tracing/trace_marker";
    const char *asked = getenv("NNTRACE_TO_FTRACE");
    const int saved = errno;
    int wanted = asked && strcmp(asked, "1") == 0;
    int expected = 0;
    int sink = 1;
    int reason = 0;
    if (wanted) {
#ifdef O_CLOEXEC
        const int file = open(path, O_WRONLY | O_CLOEXEC);
#else
        /* Strict C99 hides the name. */
        const int file = open(path, O_WRONLY | 02000000);
#endif
        reason = errno;
        sink = file < 0 ? 1 : file + 2;
    }
    if (!__atomic_compare_exchange_n(&nntrace_sink_, &expected, sink, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        /* Another thread was faster. */
        if (sink != 1) {
            close(sink - 2);
        }
        sink = expected;
    } else if (wanted && sink == 1) {
        struct nntrace_text_ text = {0, NNTRACE_CAPACITY_ - 1, {0}};
        nntrace_put_string_(&text, "nntrace: NNTRACE_TO_FTRACE=1, but no marks go to ftrace: ");
        nntrace_put_string_(&text, path);
        nntrace_put_string_(&text, ": ");
        nntrace_put_string_(&text, strerror(reason));
        nntrace_put_string_(&text, "; mount tracefs there and run as root\n");
        if (write(STDERR_FILENO, text.bytes, text.length) < 0) {
            reason = 0; /* There is nobody left to tell. */
        }
    }
    errno = saved;
    return sink;
}

/* Starts a payload with its kind and the process; whether anybody wants it. */
NNTRACE_INLINE_ int nntrace_start_(struct nntrace_text_ *text, char kind) {
    int sink = __atomic_load_n(&nntrace_sink_, __ATOMIC_ACQUIRE);
    if (sink == 0) {
        sink = nntrace_open_sink_();
    }
    if (sink == 1 && !nntrace_is_probed_()) {
        return 0;
    }
    text->bytes[0] = kind;
    text->bytes[1] = '|';
    text->length = 2;
    text->room = NNTRACE_CAPACITY_ - 1 - 2;
    /* ftrace's readers know the process by this text alone. A profiler knows it, and a program that confines itself may be
     * killed for the question. */
    nntrace_put_number_(text, sink == 1 ? 0 : NNTRACE_CAST_(uint64_t, getpid()));
    return 1;
}

/* ---- What a section tells beside its name --------------------------------------------------------------------- */

/* A key with a text, or with a number where there is no text. */
typedef struct nntrace_pair {
    const char *key;
    const char *text;
    uint64_t number;
} nntrace_pair;

/* An attribute. A `#` or a control character in the text is written as `_`: it would end the text. */
NNTRACE_INLINE_ nntrace_pair nntrace_attr(const char *key, const char *text) {
    nntrace_pair pair = {key, text ? text : "", 0};
    return pair;
}

/* An attribute that is a number. */
NNTRACE_INLINE_ nntrace_pair nntrace_number(const char *key, uint64_t number) {
    nntrace_pair pair = {key, NULL, number};
    return pair;
}

/* The iteration of the program's loop that the section is a part of. */
NNTRACE_INLINE_ nntrace_pair nntrace_iter(uint64_t iteration) { return nntrace_number("iter", iteration); }

/* For whom the section and all that is in it works. */
NNTRACE_INLINE_ nntrace_pair nntrace_acct(const char *account) { return nntrace_attr("acct", account); }

/* The section does the work that was handed over by NNTRACE_SEND with this handle. */
NNTRACE_INLINE_ nntrace_pair nntrace_takes(uint64_t handle) { return nntrace_number("h", handle); }

/* A new handle for work that is handed over: no other is the same in this process, whichever library makes it. Its
 * upper part is the page of this library's counter. Its lower 28 bits count by even numbers: those of Rust's guards,
 * whose counter may be in the same page, are odd. */
NNTRACE_INLINE_ uint64_t nntrace_handle(void) {
    const uint64_t page = NNTRACE_AS_(uintptr_t, &nntrace_handles_) >> 12;
    const uint64_t count = __atomic_add_fetch(&nntrace_handles_, 2, __ATOMIC_RELAXED);
    return page << 28 | (count & ((1ULL << 28) - 1));
}

NNTRACE_INLINE_ void nntrace_put_pair_(struct nntrace_text_ *text, const nntrace_pair *pair) {
    nntrace_put_(text, "#", 1);
    nntrace_put_string_(text, pair->key);
    nntrace_put_(text, "=", 1);
    if (pair->text) {
        size_t at = text->length;
        nntrace_put_string_(text, pair->text);
        for (; at < text->length; ++at) {
            const unsigned char byte = NNTRACE_CAST_(unsigned char, text->bytes[at]);
            if (byte == '#' || byte < ' ') {
                text->bytes[at] = '_';
            }
        }
    } else {
        nntrace_put_number_(text, pair->number);
    }
}

/* ---- The express lane ----------------------------------------------------------------------------------------- */

#ifdef NNTRACE_LANES_
/* While the profiler wants it, a thread does not enter the kernel for its marks, but writes them to a lane: a ring in
 * memory that it shares with the profiler. It makes the memory and offers it, and goes on with the probe until the profiler
 * has answered by a lease, which is the time until which it will read. All of this is done by the functions that are called
 * only while somebody listens. The format and the rules of both sides: nntrace-user/docs/express.md.
 *
 * Nothing here allocates on the heap, takes a lock or changes errno, so a mark may stand in a signal handler and in an
 * allocator. A handler that interrupts the thread in here finds the lane busy, and takes the probe. */

/* Offers the lane with this key in a file; with -1 for a file, calls its reader. Does nothing, as the one above. */
NNTRACE_EXTERN_C_ void nntrace_lane_offer_(int64_t file, uint64_t key) __attribute__((visibility("hidden")));
/* Number of profilers that want lanes, which the kernel counts by the note. Several could not share one: they get none. The
 * assembler writes it, since link-time optimisation does not see the note, and renames what only others refer to. */
NNTRACE_EXTERN_C_ volatile unsigned short nntrace_lanes_wanted_ __attribute__((visibility("hidden")));
__asm__(".ifndef nntrace_lane_offer_\n" NNTRACE_PROBED_("nntrace_lane_offer_", "lane", "nntrace_lanes_wanted_",
                                                       NNTRACE_ARGUMENTS_) ".endif\n"
        ".ifndef nntrace_lanes_wanted_\n"
        ".pushsection .probes,\"awG\",%progbits,nntrace_lane_offer_,comdat\n"
        ".balign 2\n"
        ".weak nntrace_lanes_wanted_\n"
        ".hidden nntrace_lanes_wanted_\n"
        ".type nntrace_lanes_wanted_,%object\n"
        "nntrace_lanes_wanted_: .2byte 0\n"
        ".size nntrace_lanes_wanted_, 2\n"
        ".popsection\n"
        ".endif\n");

/* Libc's, which strict C99 hides. The calls are made by number, as libc's functions for them may end a thread that is
 * cancelled, and be replaced by others that write marks. */
NNTRACE_EXTERN_C_ long nntrace_syscall_(long number, ...) __asm__("syscall");
NNTRACE_EXTERN_C_ int nntrace_clock_(int number, void *reading) __asm__("clock_gettime");

#if defined(SYS_memfd_create)
#define NNTRACE_MEMFD_CREATE_ SYS_memfd_create
#elif defined(__x86_64__)
#define NNTRACE_MEMFD_CREATE_ 319
#else
#define NNTRACE_MEMFD_CREATE_ 279
#endif

/* Bytes of the header in front of the ring, and the words in it of which others than the first change. */
#define NNTRACE_HEADER_BYTES_ 4096
#define NNTRACE_CLOCK_ 3
#define NNTRACE_SECTIONS_ 4
/* Whether times may be in ticks of the processor's counter. A program whose clock_gettime is not libc's defines NNTRACE_NO_TICKS. */
#if defined(NNTRACE_NO_TICKS)
#define NNTRACE_KNOWS_TICKS_ 0
#else
#define NNTRACE_KNOWS_TICKS_ 1
#endif
#define NNTRACE_HEAD_ 8
#define NNTRACE_CLOSED_ 9
#define NNTRACE_TAIL_ 16
#define NNTRACE_LEASE_ 24
#define NNTRACE_TICK_LEASE_ 25
#define NNTRACE_DISTINCT_ 26
#define NNTRACE_GRANT_ 27
/* Bytes of the first ring and of the largest; of all lanes of a library at most, and before a profiler has granted any. */
#define NNTRACE_MIN_RING_ (16U << 10)
#define NNTRACE_MAX_RING_ (4U << 20)
#define NNTRACE_ALL_LANES_ (64U << 20)
#define NNTRACE_FIRST_LANES_ (256U << 10)
/* Multiple of the size of all pages that a kernel may use. */
#if defined(__x86_64__)
#define NNTRACE_PAGES_ 4096U
#else
#define NNTRACE_PAGES_ (64U << 10)
#endif
/* Owner of a lane that nobody has. */
#define NNTRACE_NOBODY_ (-1)
/* Readings of the clock at most, until it is another one than before: more only where it stands still. */
#define NNTRACE_MOST_READINGS_ 1000
/* Distance from a record to the line that is prefetched. */
#define NNTRACE_AHEAD_ 512
/* Kinds of records. */
#define NNTRACE_END_RECORD_ 1
#define NNTRACE_SITE_RECORD_ 2
#define NNTRACE_TEXT_RECORD_ 3
#define NNTRACE_DEFINITION_ 4
#define NNTRACE_SKIP_ 5
/* Places in the table of sites, of which half at most are taken. */
#define NNTRACE_SITES_ 1024U
/* Marks by the probe after which a thread tries to get a lane. */
#ifndef NNTRACE_MARKS_BEFORE_
#define NNTRACE_MARKS_BEFORE_ 64
#endif
/* Whether the sections are calls of functions, which engines may make while they prepare a model. */
#ifndef NNTRACE_SECTIONS_ARE_CALLS_
#define NNTRACE_SECTIONS_ARE_CALLS_ 0
#endif
#define NNTRACE_MILLISECOND_ 1000000U
#define NNTRACE_SECOND_ 1000000000U

/* A thread's side of its lane. A forked child finds zeros in it, and so has no lane. The fork may have been in a signal handler,
 * from which the child returns into the middle of a mark: what a mark has loaded once it does not load again, and whatever
 * it goes on with is its own memory, see nntrace_map_lane_. */
struct nntrace_lane_ {
    struct nntrace_lane_ *next;
    /* Thread that it belongs to; when that is dead another may take it. */
    int owner;
    /* The owner is at work here. */
    int is_busy;
    /* The shared memory, once there is some; bytes of the ring, written to it so far, and read so far as last seen. */
    uint64_t *shared;
    uint64_t size;
    uint64_t head;
    uint64_t tail;
    /* Sections begun in this ring that are open: there is room for their ends. How many others were open before. */
    uint64_t open;
    unsigned depth;
    /* No mark was written yet. */
    int is_new;
    /* A mark found no room, and a larger ring is possible. */
    int is_full;
    /* The reader was called, and has not caught up since. */
    int is_rung;
    /* Times are in ticks of the processor's counter, which the reader can convert. */
    int in_ticks;
    /* The thread may not read the counter: it goes without a lane. */
    int is_barred;
    /* Descriptor of the memory, -1 once it was closed, and the device and inode that it was opened as. */
    int file;
    uint64_t identity[2];
    uint64_t key;
    /* Time before which no other ring is made, and how long the last failure made the thread wait. */
    uint64_t retry;
    uint64_t wait;
    /* Literal names that are defined in this ring: the place in the table is the number of the site. */
    unsigned sites_taken;
    struct {
        const char *tag;
        const char *name;
    } sites[NNTRACE_SITES_];
};

/* All lanes of a library. A forked child finds zeros in it, too. */
struct nntrace_lanes_ {
    /* This process. One that borrows its memory, after vfork, is another. */
    int process;
    struct nntrace_lane_ *first;
    /* Where the search for a dead thread's goes on. */
    struct nntrace_lane_ *next_checked;
    uint64_t bytes;
    /* Bytes that a profiler has granted; 0 before. */
    uint64_t granted;
};

/* NULL until the first thread tries to get a lane. */
NNTRACE_SHARED_ struct nntrace_lanes_ *nntrace_all_lanes_ = NULL;

/* What becomes of this library, or executable. */
NNTRACE_SHARED_ int nntrace_stage_ = 0;
#define NNTRACE_LOADED_ 1
#define NNTRACE_LEAVING_ 2
#define NNTRACE_ENDING_ 3
#define NNTRACE_UNLOADED_ 4

/* What each thread has, also after a fork. */
struct nntrace_thread_ {
    struct nntrace_lane_ *lane;
    /* Marks by the probe while there is no lane. */
    int marks;
    /* Open sections, and a bit for each of the first 64: whether it began in a ring, so that its end is the same way. The
     * sections themselves do not know it: that would take a register at each of them while nobody listens. */
    unsigned depth;
    uint64_t in_ring;
};
NNTRACE_SHARED_ __thread struct nntrace_thread_ nntrace_self_ = {NULL, 0, 0, 0};

NNTRACE_INLINE_ uint64_t nntrace_now_(void) {
    uint64_t reading[2] = {0, 0};
    nntrace_clock_(1 /* CLOCK_MONOTONIC */, reading);
    return reading[0] * NNTRACE_SECOND_ + reading[1];
}

/* The processor's counter, of which the kernel makes its clock where the profiler allows this. */
NNTRACE_INLINE_ uint64_t nntrace_ticks_(void) {
#if defined(__x86_64__)
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return NNTRACE_CAST_(uint64_t, high) << 32 | low;
#else
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks) : : "memory");
    return ticks;
#endif
}

/* The time by the clock of the lane, behind everything that the thread did before, and later than any reading before. */
NNTRACE_SLOW_ uint64_t nntrace_distinct_now_(int in_ticks) {
    uint64_t now = 0, first = 0;
    int readings;
    for (readings = 0; now == first && readings < NNTRACE_MOST_READINGS_; ++readings) {
#if defined(__x86_64__)
        __asm__ volatile("lfence" : : : "memory");
#else
        __asm__ volatile("isb" : : : "memory");
#endif
        now = in_ticks ? nntrace_ticks_() : nntrace_now_();
        first = readings ? first : now;
    }
    return now;
}

/* The time, by the clock of a lane and its memory. */
NNTRACE_INLINE_ uint64_t nntrace_lane_now_(const uint64_t *shared, int in_ticks) {
    if (__builtin_expect(__atomic_load_n(&shared[NNTRACE_DISTINCT_], __ATOMIC_RELAXED) != 0, 0)) {
        return nntrace_distinct_now_(in_ticks);
    }
    return __builtin_expect(in_ticks, 1) ? nntrace_ticks_() : nntrace_now_();
}

/* The memory that a lane shares, to be loaded once: NULL where there is none. */
NNTRACE_INLINE_ uint64_t *nntrace_shared_(struct nntrace_lane_ *lane) {
    return __atomic_load_n(&lane->shared, __ATOMIC_RELAXED);
}

/* Bytes of its ring, to be loaded once, behind the memory: where they are not 0 there was one. */
NNTRACE_INLINE_ uint64_t nntrace_size_(struct nntrace_lane_ *lane) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return __atomic_load_n(&lane->size, __ATOMIC_RELAXED);
}

/* For signal handlers on this thread, which see all that was done before, and nothing of what comes after. */
NNTRACE_INLINE_ void nntrace_set_busy_(struct nntrace_lane_ *lane, int is_busy) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&lane->is_busy, is_busy, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Whether this thread's system calls may be refused, or deadly. A kernel without seccomp does not know the question. */
NNTRACE_INLINE_ int nntrace_is_confined_(void) {
    const long mode = nntrace_syscall_(SYS_prctl, 21L /* PR_GET_SECCOMP */, 0L, 0L, 0L, 0L);
    return mode > 0 || (mode < 0 && errno != EINVAL);
}

/* Whether a new mapping is locked, as after mlockall(MCL_FUTURE): it would count as what the program may lock. Locked memory
 * cannot be thrown away. */
NNTRACE_SLOW_ int nntrace_locks_memory_(void) {
    const long none = nntrace_syscall_(SYS_mmap, NULL, 4096L, 0L /* PROT_NONE */, 2L | 0x20L, -1L, 0L);
    int locks = 1;
    if (none != -1) {
        locks = nntrace_syscall_(SYS_madvise, none, 4096L, 4L /* MADV_DONTNEED */) != 0;
        nntrace_syscall_(SYS_munmap, none, 4096L);
    }
    return locks;
}

/* Whether this thread would die of a reading of the counter, which clock_gettime is as well. Kernels and processors on which
 * no thread can be forbidden that do not know the question. */
NNTRACE_SLOW_ int nntrace_is_barred_(void) {
    int mode = 0;
    return nntrace_syscall_(SYS_prctl, 25L /* PR_GET_TSC */, &mode, 0L, 0L, 0L) == 0 && mode == 2 /* PR_TSC_SIGSEGV */;
}

/* Whether this thread may have no lane, or no new one. */
NNTRACE_SLOW_ int nntrace_goes_without_(void) {
    return nntrace_is_confined_() || nntrace_is_barred_() || nntrace_locks_memory_();
}

/* A limit of this process. */
NNTRACE_SLOW_ uint64_t nntrace_limit_(long which) {
    uint64_t limit[2] = {0, 0};
    return nntrace_syscall_(SYS_prlimit64, 0L, which, NULL, limit) == 0 ? limit[0] : 0;
}

/* Whether a lane's descriptor still is one of its memory: the program may have closed it, and perhaps opened another file. */
NNTRACE_SLOW_ int nntrace_has_file_(const struct nntrace_lane_ *lane) {
    uint64_t status[32] = {0}; /* struct stat begins with device and inode where there are lanes. */
    const long file = lane->file;
    return file >= 0 && !nntrace_is_confined_() && nntrace_syscall_(SYS_fstat, file, status) == 0 &&
           status[0] == lane->identity[0] && status[1] == lane->identity[1];
}

/* Closes a lane's descriptor, if it still is one. */
NNTRACE_SLOW_ void nntrace_close_lane_(struct nntrace_lane_ *lane) {
    const long file = lane->file;
    if (nntrace_has_file_(lane)) {
        nntrace_syscall_(SYS_close, file);
    }
    lane->file = -1;
}

/* Bytes from the first page of a lane's mappings to the last, which both are in addition. */
NNTRACE_INLINE_ uint64_t nntrace_span_(uint64_t bytes) {
    return (bytes + NNTRACE_PAGES_ - 1) / NNTRACE_PAGES_ * NNTRACE_PAGES_ + 2 * NNTRACE_PAGES_;
}

NNTRACE_SLOW_ void nntrace_unmap_lane_(uint64_t *shared, uint64_t bytes) {
    nntrace_syscall_(SYS_munmap, NNTRACE_AS_(uintptr_t, shared) - NNTRACE_PAGES_, nntrace_span_(bytes));
}

/* Maps the memory of a lane, not for forked children (MADV_DONTFORK). A child that goes on with a mark of its parent, as it was
 * forked by a signal handler and returns from that, writes to empty memory of its own: behind the lane is a mapping that grows
 * down like a stack (MAP_GROWSDOWN) where the lane is missing, as far as RLIMIT_STACK lets it. In front of the lane there is
 * one without access, as memory of others there would keep it from growing. The address, or NULL. */
NNTRACE_SLOW_ uint64_t *nntrace_map_lane_(uint64_t bytes, long file) {
    const uint64_t all = nntrace_span_(bytes), length = all - 2 * NNTRACE_PAGES_;
    const long front = nntrace_limit_(3L) < all
                           ? -1
                           : nntrace_syscall_(SYS_mmap, NULL, all, 0L, 2L | 0x20L | 0x4000L /* MAP_NORESERVE */, -1L, 0L);
    const long lane = front + NNTRACE_CAST_(long, NNTRACE_PAGES_), behind = lane + NNTRACE_CAST_(long, length);
    if (front == -1) {
        return NULL;
    }
    /* MAP_FIXED, and MAP_SHARED or MAP_PRIVATE, MAP_ANONYMOUS and MAP_GROWSDOWN. */
    if (nntrace_syscall_(SYS_mmap, behind, NNTRACE_PAGES_ + 0UL, 1L | 2L, 0x10L | 2L | 0x20L | 0x100L, -1L, 0L) == -1 ||
        nntrace_syscall_(SYS_mmap, lane, length, 1L | 2L, 0x10L | 1L, file, 0L) == -1 ||
        nntrace_syscall_(SYS_madvise, lane, length, 10L) != 0) {
        nntrace_syscall_(SYS_munmap, front, all);
        return NULL;
    }
    return NNTRACE_AS_(uint64_t *, NNTRACE_CAST_(uintptr_t, lane));
}

/* Gives up the memory that is shared. The profiler has a mapping of its own, and reads what is in it. */
NNTRACE_SLOW_ void nntrace_drop_ring_(struct nntrace_lanes_ *lanes, struct nntrace_lane_ *lane) {
    uint64_t *shared = nntrace_shared_(lane);
    const uint64_t bytes = NNTRACE_HEADER_BYTES_ + lane->size;
    if (shared) {
        nntrace_close_lane_(lane);
        __atomic_store_n(&shared[NNTRACE_CLOSED_], 1, __ATOMIC_RELEASE);
        lane->shared = NULL;
        nntrace_unmap_lane_(shared, bytes);
        __atomic_sub_fetch(&lanes->bytes, bytes, __ATOMIC_RELAXED);
    }
}

/* Makes a file of so many bytes that stays as it is, with all of its memory, so that no write can fail later; or -1. */
NNTRACE_SLOW_ long nntrace_lane_file_(uint64_t bytes) {
    static const char name[] = "nntrace-lane";
    long file = -1, other;
    /* A signal would end the program for a file that is too long. */
    if (nntrace_limit_(1L /* RLIMIT_FSIZE */) >= bytes) {
        /* MFD_CLOEXEC, MFD_ALLOW_SEALING, and MFD_NOEXEC_SEAL, which kernels before 6.3 do not know. */
        file = nntrace_syscall_(NNTRACE_MEMFD_CREATE_, name, 1L | 2L | 8L);
        if (file < 0 && errno == EINVAL) {
            file = nntrace_syscall_(NNTRACE_MEMFD_CREATE_, name, 1L | 2L);
        }
    }
    if (file >= 0 && file <= 2) {
        /* Whoever closed a standard stream must not read or print here. F_DUPFD_CLOEXEC. */
        other = nntrace_syscall_(SYS_fcntl, file, 1030L, 3L);
        nntrace_syscall_(SYS_close, file);
        file = other;
    }
    /* The program is not to run out of descriptors: it has half of them, RLIMIT_NOFILE, for itself. */
    if (file >= 0 && (nntrace_limit_(7L) / 2 <= NNTRACE_CAST_(uint64_t, file) ||
                      nntrace_syscall_(SYS_fallocate, file, 0L, 0L, bytes) != 0 ||
                      /* F_ADD_SEALS: F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW. */
                      nntrace_syscall_(SYS_fcntl, file, 1033L, 1L | 2L | 4L) != 0)) {
        nntrace_syscall_(SYS_close, file);
        file = -1;
    }
    return file;
}

/* Maps memory of no file, in which forked children find zeros (MADV_WIPEONFORK, which kernels before 4.14 do not know). Its
 * address, or 0. */
NNTRACE_SLOW_ uintptr_t nntrace_map_wiped_(uint64_t bytes) {
    const long address = nntrace_syscall_(SYS_mmap, NULL, bytes, 1L | 2L /* PROT_READ, PROT_WRITE */, 2L | 0x20L, -1L, 0L);
    if (address != -1 && nntrace_syscall_(SYS_madvise, address, bytes, 18L) != 0) {
        nntrace_syscall_(SYS_munmap, address, bytes);
        return 0;
    }
    return address == -1 ? 0 : NNTRACE_CAST_(uintptr_t, address);
}

/* Notes what the profiler grants, by one of the lanes, to all of this library. */
NNTRACE_SLOW_ void nntrace_note_grant_(struct nntrace_lanes_ *lanes, const uint64_t *shared) {
    const uint64_t granted = shared ? __atomic_load_n(&shared[NNTRACE_GRANT_], __ATOMIC_RELAXED) : 0;
    if (granted) {
        lanes->granted = granted < NNTRACE_ALL_LANES_ ? granted : NNTRACE_ALL_LANES_;
    }
}

/* Makes a ring in place of the one that there is, if possible, and offers it. */
NNTRACE_SLOW_ void nntrace_make_ring_(struct nntrace_lanes_ *lanes, struct nntrace_lane_ *lane, uint64_t size) {
    const uint64_t bytes = NNTRACE_HEADER_BYTES_ + size;
    uint64_t status[32] = {0};
    uint64_t *shared = NULL;
    long file = -1;
    if (nntrace_goes_without_()) {
        return;
    }
    nntrace_note_grant_(lanes, nntrace_shared_(lane));
    if (__atomic_add_fetch(&lanes->bytes, bytes, __ATOMIC_RELAXED) <=
        (lanes->granted ? lanes->granted : NNTRACE_FIRST_LANES_)) {
        file = nntrace_lane_file_(bytes);
    }
    if (file >= 0 && nntrace_syscall_(SYS_fstat, file, status) == 0) {
        shared = nntrace_map_lane_(bytes, file);
    }
    if (shared && lane->owner) {
        nntrace_drop_ring_(lanes, lane);
        memcpy(shared, "nnlane\0\1", 8);
        shared[1] = nntrace_handle();
        shared[2] = size;
        shared[NNTRACE_CLOCK_] = NNTRACE_KNOWS_TICKS_;
        shared[NNTRACE_SECTIONS_] = NNTRACE_SECTIONS_ARE_CALLS_;
        memset(lane->sites, 0, sizeof lane->sites);
        lane->sites_taken = 0;
        lane->size = size;
        lane->head = lane->tail = lane->open = 0;
        lane->depth = nntrace_self_.depth;
        lane->is_new = 1;
        lane->is_full = lane->is_rung = lane->in_ticks = 0;
        lane->file = NNTRACE_CAST_(int, file);
        memcpy(lane->identity, status, sizeof lane->identity);
        lane->key = shared[1];
        lane->shared = shared;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (__atomic_load_n(&lane->owner, __ATOMIC_RELAXED)) {
            nntrace_lane_offer_(file, lane->key);
            return;
        }
        lane->shared = NULL;
    }
    /* It could not be made, or this is a child now, forked in a signal handler, and the lane its parent's. */
    if (shared) {
        nntrace_unmap_lane_(shared, bytes);
    }
    if (file >= 0) {
        nntrace_syscall_(SYS_close, file);
    }
    if (lane->owner) {
        __atomic_sub_fetch(&lanes->bytes, bytes, __ATOMIC_RELAXED);
    }
}

/* The lanes of this library; NULL where there can be none. */
NNTRACE_SLOW_ struct nntrace_lanes_ *nntrace_find_lanes_(void) {
    struct nntrace_lanes_ *lanes = __atomic_load_n(&nntrace_all_lanes_, __ATOMIC_ACQUIRE);
    const int process = NNTRACE_CAST_(int, getpid());
    int found = 0;
    if (!lanes && nntrace_stage_ != NNTRACE_UNLOADED_) {
        struct nntrace_lanes_ *made = NNTRACE_AS_(struct nntrace_lanes_ *, nntrace_map_wiped_(sizeof *lanes));
        if (!made) {
            return NULL;
        }
        if (__atomic_compare_exchange_n(&nntrace_all_lanes_, &lanes, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            lanes = made;
        } else {
            nntrace_syscall_(SYS_munmap, made, sizeof *made); /* Another thread was faster. */
        }
    }
    if (!lanes) {
        return NULL;
    }
    __atomic_compare_exchange_n(&lanes->process, &found, process, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return found == 0 || found == process ? lanes : NULL;
}

/* Takes over what a dead thread has left, if there is such a lane among the next few, and gives up the rings of other ones. */
NNTRACE_SLOW_ struct nntrace_lane_ *nntrace_inherit_lane_(struct nntrace_lanes_ *lanes, int self) {
    struct nntrace_lane_ *first = __atomic_load_n(&lanes->first, __ATOMIC_ACQUIRE);
    struct nntrace_lane_ *next = __atomic_load_n(&lanes->next_checked, __ATOMIC_ACQUIRE);
    struct nntrace_lane_ *begun = next ? next : first;
    struct nntrace_lane_ *lane = begun;
    struct nntrace_lane_ *found = NULL;
    const long process = lanes->process;
    int checks;
    for (checks = 0; lane && checks < 16 && (lane != begun || checks == 0); ++checks, lane = next) {
        int owner = __atomic_load_n(&lane->owner, __ATOMIC_RELAXED);
        const long thread = owner;
        next = lane->next ? lane->next : first;
        /* A dead thread may have had this one's id. */
        if (owner == NNTRACE_NOBODY_ ? !found
                                     : owner == self || (nntrace_syscall_(SYS_tgkill, process, thread, 0L) != 0 && errno == ESRCH)) {
            if (__atomic_compare_exchange_n(&lane->owner, &owner, self, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
                nntrace_drop_ring_(lanes, lane);
                if (found) {
                    __atomic_store_n(&lane->owner, NNTRACE_NOBODY_, __ATOMIC_RELEASE);
                } else {
                    found = lane;
                    found->retry = found->wait = 0;
                    found->is_barred = 0;
                    nntrace_set_busy_(found, 0);
                }
            }
        }
    }
    __atomic_store_n(&lanes->next_checked, lane, __ATOMIC_RELEASE);
    return found;
}

/* Finds this thread a lane, still without a ring: a dead thread's, its own, wiped by a fork, or a new one. */
NNTRACE_SLOW_ struct nntrace_lane_ *nntrace_find_lane_(void) {
    struct nntrace_lanes_ *lanes = nntrace_goes_without_() ? NULL : nntrace_find_lanes_();
    struct nntrace_lane_ *lane = nntrace_self_.lane;
    if (lanes) {
        const int self = NNTRACE_CAST_(int, nntrace_syscall_(SYS_gettid));
        struct nntrace_lane_ *inherited = lane ? NULL : nntrace_inherit_lane_(lanes, self);
        struct nntrace_lane_ *first;
        if (inherited) {
            return inherited;
        }
        lane = lane ? lane : NNTRACE_AS_(struct nntrace_lane_ *, nntrace_map_wiped_(sizeof *lane));
        if (lane) {
            lane->owner = self;
            do {
                first = __atomic_load_n(&lanes->first, __ATOMIC_RELAXED);
                lane->next = first;
            } while (!__atomic_compare_exchange_n(&lanes->first, &first, lane, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
        }
    }
    return lane;
}

/* Gets this thread a lane, or a better one. */
NNTRACE_SLOW_ void nntrace_seek_lane_(void) {
    struct nntrace_lane_ *lane = nntrace_self_.lane;
    struct nntrace_lanes_ *lanes;
    const int saved = errno;
    uint64_t *shared;
    uint64_t now, lease = 0, size = NNTRACE_MIN_RING_;
    if (!lane || !lane->owner) {
        if (++nntrace_self_.marks < NNTRACE_MARKS_BEFORE_) {
            return;
        }
        nntrace_self_.marks = -1000000; /* A signal handler does not get here meanwhile. */
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        nntrace_self_.lane = lane = nntrace_find_lane_();
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        nntrace_self_.marks = 0;
    }
    lanes = __atomic_load_n(&nntrace_all_lanes_, __ATOMIC_RELAXED);
    if (lanes && lane && lane->owner && !lane->is_barred && !lane->is_busy) {
        nntrace_set_busy_(lane, 1);
        now = nntrace_now_();
        shared = nntrace_shared_(lane);
        if (shared) {
            lease = __atomic_load_n(&shared[NNTRACE_LEASE_], __ATOMIC_ACQUIRE);
            size = lane->size;
            if (lease > now && lane->is_full && !lane->open) {
                size *= 16;
                lane->is_full = 0; /* If there can be none, the ring that there is has to do. */
            } else if (lease > now || (lease && lane->open && now - lease < NNTRACE_SECOND_)) {
                size = 0; /* It is in use, or the profiler may still come back to it. */
            }
        }
        if (size && now >= lane->retry) {
            if (shared && lane->is_new && lease == 0 && nntrace_has_file_(lane)) {
                nntrace_lane_offer_(lane->file, lane->key); /* Another one would come too late as well for a slow reader. */
            } else {
                nntrace_make_ring_(lanes, lane, size);
            }
            /* If it could not be made, or nobody has seen the offer: a forked child may be early. */
            lane->wait = lane->wait ? 2 * lane->wait : 10 * NNTRACE_MILLISECOND_;
            lane->wait = lane->wait < NNTRACE_SECOND_ ? lane->wait : NNTRACE_SECOND_;
            lane->retry = now + lane->wait;
        }
        nntrace_set_busy_(lane, 0);
    }
    errno = saved;
}

/* Gives up all lanes, as the library is unloaded: it is used by no other thread any more. */
NNTRACE_SLOW_ void nntrace_release_lanes_(void) {
    struct nntrace_lanes_ *lanes = __atomic_exchange_n(&nntrace_all_lanes_, NULL, __ATOMIC_ACQ_REL);
    struct nntrace_lane_ *lane = lanes ? lanes->first : NULL;
    struct nntrace_lane_ *next;
    nntrace_self_.lane = NULL;
    for (; lane; lane = next) {
        next = lane->next;
        nntrace_drop_ring_(lanes, lane);
        nntrace_syscall_(SYS_munmap, lane, sizeof *lane);
    }
    if (lanes) {
        nntrace_syscall_(SYS_munmap, lanes, sizeof *lanes);
    }
}

/* At the end of the process, in which other threads may go on with marks, or of the library; the order shows which:
 * what is registered by atexit() comes before all destructors in the former case, and last in the latter. */
NNTRACE_SLOW_ void nntrace_leave_(void) {
    const int saved = errno;
    const int is_unloaded = nntrace_stage_ == NNTRACE_LEAVING_;
    nntrace_stage_ = is_unloaded ? NNTRACE_UNLOADED_ : NNTRACE_ENDING_;
    if (is_unloaded) {
        nntrace_release_lanes_();
    }
    errno = saved;
}

/* Has the loader find libc's functions now, not at their first call, which takes kilobytes of the stack: that may be in a
 * signal handler on a small one. */
NNTRACE_SLOW_ void nntrace_bind_(void) {
    char bytes[64];
    size_t length = sizeof bytes;
    void *stored = &nntrace_self_;
    uint64_t reading[2];
    __asm__ volatile("" : "+r"(length), "+r"(stored) : : "memory");
    memset(bytes, 0, length);
    memcpy(bytes + length / 2, bytes, length / 2);
    length = strlen(bytes) + NNTRACE_CAST_(size_t, strcmp(bytes, bytes + 1) != 0) + !strchr(bytes, 'x') + !memchr(bytes, 0, length);
    length += !getenv("NNTRACE_TO_FTRACE");
    nntrace_clock_(1, reading);
    length += NNTRACE_CAST_(size_t, nntrace_syscall_(SYS_getpid) == getpid()) + NNTRACE_CAST_(size_t, errno);
    __asm__ volatile("" : : "r"(length), "r"(stored) : "memory");
}

/* The first of all constructors, so that what it registers comes last. */
__attribute__((constructor(101), unused)) static void nntrace_load_(void) {
    const int saved = errno;
    if (nntrace_stage_ == 0) {
        nntrace_stage_ = atexit(nntrace_leave_) ? NNTRACE_ENDING_ : NNTRACE_LOADED_;
        nntrace_bind_();
    }
    errno = saved;
}

__attribute__((destructor, unused)) static void nntrace_unload_(void) {
    if (nntrace_stage_ == NNTRACE_LOADED_) {
        nntrace_stage_ = NNTRACE_LEAVING_;
    }
}

/* Counts a section that begins, for its end. */
NNTRACE_INLINE_ void nntrace_push_(uint64_t in_ring) {
    struct nntrace_thread_ *self;
    unsigned at;
    if (__atomic_load_n(&nntrace_all_lanes_, __ATOMIC_RELAXED)) {
        self = &nntrace_self_;
        at = self->depth++;
        __atomic_signal_fence(__ATOMIC_SEQ_CST); /* The sections of a signal handler are counted above it. */
        if (at < 64) {
            self->in_ring = (self->in_ring & ~(1ULL << at)) | in_ring << at;
        }
        if (in_ring && self->lane->depth > at) {
            self->lane->depth = at;
        }
    }
}

/* Behind a mark that took the probe. */
NNTRACE_INLINE_ void nntrace_took_probe_(int opens) {
    if (opens) {
        nntrace_push_(0);
    }
    /* ftrace has to see all marks. */
    if (nntrace_lanes_wanted_ == 1 && __atomic_load_n(&nntrace_sink_, __ATOMIC_RELAXED) == 1) {
        nntrace_seek_lane_();
    }
}

/* Before a mark in a ring that is new or was full: whether the mark may be written there if it is read. */
NNTRACE_SLOW_ int nntrace_settle_(struct nntrace_lane_ *lane, uint64_t *shared) {
    struct nntrace_lanes_ *lanes = __atomic_load_n(&nntrace_all_lanes_, __ATOMIC_RELAXED);
    const int saved = errno;
    /* Before it has a lease the clock is not read either. */
    int may = !lane->is_new || __atomic_load_n(&shared[NNTRACE_LEASE_], __ATOMIC_ACQUIRE) > 1;
    if (may && lane->is_new) {
        nntrace_close_lane_(lane); /* The profiler has opened it. */
        if (!nntrace_is_confined_() && nntrace_is_barred_()) {
            lane->is_barred = 1;
            nntrace_drop_ring_(lanes, lane);
            may = 0;
        } else {
            if (__atomic_load_n(&shared[NNTRACE_TICK_LEASE_], __ATOMIC_ACQUIRE)) {
                shared[NNTRACE_CLOCK_] = 2;
                lane->in_ticks = 1;
            }
            nntrace_note_grant_(lanes, shared);
            lane->is_new = 0;
            lane->retry = lane->wait = 0;
        }
    }
    errno = saved;
    return may && (!lane->is_full || lane->open); /* Behind a mark by the probe a larger one is made. */
}

/* Whether a lane is read by now, the time by its clock. */
NNTRACE_INLINE_ int nntrace_is_read_(const uint64_t *shared, int in_ticks, uint64_t *now) {
    const uint64_t *leases = shared + NNTRACE_LEASE_;
    const uint64_t lease = __atomic_load_n(leases + !!in_ticks, __ATOMIC_ACQUIRE);
    *now = nntrace_lane_now_(shared, in_ticks); /* No mark is older than the lease. */
    return lease > *now;
}

/* The lane of this thread, busy, and the time, if a mark may be written there; a section has to be one of the first 64. */
NNTRACE_INLINE_ struct nntrace_lane_ *nntrace_enter_lane_(int opens, uint64_t *now) {
    struct nntrace_thread_ *self = nntrace_lanes_wanted_ == 1 ? &nntrace_self_ : NULL;
    struct nntrace_lane_ *lane = self ? self->lane : NULL;
    uint64_t *shared = lane ? nntrace_shared_(lane) : NULL;
    if (!shared || lane->is_busy || (opens && self->depth >= 64)) {
        return NULL;
    }
    nntrace_set_busy_(lane, 1);
    if ((__builtin_expect(!(lane->is_new | lane->is_full), 1) || nntrace_settle_(lane, shared)) &&
        nntrace_is_read_(shared, lane->in_ticks, now)) {
        return lane;
    }
    nntrace_set_busy_(lane, 0);
    return NULL;
}

/* Has the processor take a line of its cache from the one that has read it, before it is written. Waiting for that takes longer
 * than the mark. */
NNTRACE_INLINE_ void nntrace_prefetch_(const uint64_t *record) {
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*record)); /* Does nothing where a processor does not know it. */
#else
    __builtin_prefetch(record, 1);
#endif
}

/* Writes a record, by which a section begins (1) or ends (-1), or none, if there is room left for the ends of all that are
 * open then; whether it did. */
NNTRACE_SLOW_ int nntrace_record_(struct nntrace_lane_ *lane, int opens, uint64_t kind, uint64_t value, uint64_t second,
                                  const char *text, size_t length) {
    const uint64_t bytes = 16 + ((length + 15) & ~15ULL);
    uint64_t *shared = nntrace_shared_(lane);
    const uint64_t head = __atomic_load_n(&lane->head, __ATOMIC_RELAXED);
    const uint64_t size = nntrace_size_(lane);
    const uint64_t at = head & (size - 1);
    const uint64_t skipped = at + bytes > size ? size - at : 0;
    const uint64_t open = opens < 0 && !lane->open ? 0 : lane->open + NNTRACE_CAST_(uint64_t, opens);
    const uint64_t needed = skipped + bytes + 16 * open;
    uint64_t *record = shared + (NNTRACE_HEADER_BYTES_ + at) / 8;
    uint64_t used = head - lane->tail;
    int is_late;
    if (__builtin_expect(used >= size / 2 || used + needed > size, 0)) {
        if (!size) {
            return 0; /* This is a child now. */
        }
        lane->tail = __atomic_load_n(&shared[NNTRACE_TAIL_], __ATOMIC_ACQUIRE);
        used = head - lane->tail;
        if (used > size || used + needed > size) {
            lane->is_full = size < NNTRACE_MAX_RING_;
            return 0;
        }
    }
    nntrace_prefetch_(shared + (NNTRACE_HEADER_BYTES_ + ((at + NNTRACE_AHEAD_) & (size - 1))) / 8);
    if (skipped) {
        *record = NNTRACE_SKIP_ | skipped << 8;
        record = shared + NNTRACE_HEADER_BYTES_ / 8;
    }
    record[0] = kind | bytes << 8 | value << 32;
    record[1] = second;
    if (length) {
        record[bytes / 8 - 2] = record[bytes / 8 - 1] = 0;
        memcpy(record + 2, text, length);
    }
    lane->open = open;
    lane->head = head + skipped + bytes;
    __atomic_store_n(&shared[NNTRACE_HEAD_], head + skipped + bytes, __ATOMIC_RELEASE);
    is_late = used >= size / 2;
    if (__builtin_expect(is_late && !lane->is_rung, 0)) {
        nntrace_lane_offer_(-1, lane->key);
    }
    lane->is_rung = is_late;
    return 1;
}

/* Whether a section is of a phase of the application, which matters to other threads, and so always takes the probe. */
NNTRACE_INLINE_ int nntrace_is_application_(const char *tag) {
    const char *bare = tag[1] == 'S' ? strchr(tag, ']') + 1 : tag; /* Behind [SW] or [SUB]. */
    return strcmp(bare, "[NN_LA_PO]") == 0 || strcmp(bare, "[NN_LA_PWU]") == 0 || strcmp(bare, "[NN_LA_PBM]") == 0;
}

/* Defines a site at a place of the table that is free; whether it can be one. */
NNTRACE_SLOW_ int nntrace_define_site_(struct nntrace_lane_ *lane, unsigned at, const char *tag, const char *name) {
    struct nntrace_text_ text = {0, NNTRACE_CAPACITY_ - 1, {0}};
    nntrace_put_string_(&text, tag);
    nntrace_put_string_(&text, name);
    /* A name may have attributes in it. */
    if (lane->sites_taken == NNTRACE_SITES_ / 2 || nntrace_is_application_(tag) || memchr(text.bytes, '#', text.length) ||
        !nntrace_record_(lane, 0, NNTRACE_DEFINITION_, at, text.length, text.bytes, text.length)) {
        return 0;
    }
    ++lane->sites_taken;
    lane->sites[at].tag = tag;
    lane->sites[at].name = name;
    return 1;
}

/* Begins a section with a literal name in the thread's lane; whether it could. */
NNTRACE_INLINE_ int nntrace_begin_in_lane_(const char *tag, const char *name) {
    uint64_t now;
    struct nntrace_lane_ *lane = nntrace_enter_lane_(1, &now);
    const uint64_t hash = NNTRACE_AS_(uintptr_t, tag) * 31 + NNTRACE_AS_(uintptr_t, name);
    unsigned at = NNTRACE_CAST_(unsigned, hash * 0x9e3779b97f4a7c15ULL >> 54);
    int is_written = 0;
    if (lane) {
        while (lane->sites[at].tag && (lane->sites[at].tag != tag || lane->sites[at].name != name)) {
            at = (at + 1) % NNTRACE_SITES_;
        }
        if ((lane->sites[at].tag || nntrace_define_site_(lane, at, tag, name)) &&
            nntrace_record_(lane, 1, NNTRACE_SITE_RECORD_, at, now, NULL, 0)) {
            nntrace_push_(1);
            is_written = 1;
        }
        nntrace_set_busy_(lane, 0);
    }
    return is_written;
}

/* Writes a payload to the thread's lane, by which a section may begin (1); whether it could. */
NNTRACE_INLINE_ int nntrace_text_in_lane_(const struct nntrace_text_ *text, int opens) {
    uint64_t now;
    struct nntrace_lane_ *lane = nntrace_enter_lane_(opens, &now);
    int is_written = 0;
    if (lane) {
        is_written =
            nntrace_record_(lane, opens, NNTRACE_TEXT_RECORD_, text->length, now, text->bytes, text->length);
        if (is_written && opens) {
            nntrace_push_(1);
        }
        nntrace_set_busy_(lane, 0);
    }
    return is_written;
}

/* Ends the innermost section if it began in a ring: there, or nowhere if that was replaced. Whether it did. */
NNTRACE_INLINE_ int nntrace_end_in_lane_(void) {
    struct nntrace_thread_ *self = __atomic_load_n(&nntrace_all_lanes_, __ATOMIC_RELAXED) ? &nntrace_self_ : NULL;
    struct nntrace_lane_ *lane = self ? self->lane : NULL;
    uint64_t *shared = lane ? nntrace_shared_(lane) : NULL;
    const unsigned at = self ? self->depth - 1 : ~0U;
    const int in_ring = at < 64 && (self->in_ring >> at & 1);
    if (at == ~0U) {
        return 0; /* Nothing is open, or was counted. */
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* From now on a signal handler uses this bit. */
    self->depth = at;
    if (!in_ring || (lane && lane->is_busy)) {
        return 0;
    }
    if (shared && at >= lane->depth) {
        nntrace_set_busy_(lane, 1);
        nntrace_record_(lane, -1, NNTRACE_END_RECORD_, 0, nntrace_lane_now_(shared, lane->in_ticks), NULL, 0);
        nntrace_set_busy_(lane, 0);
    }
    return 1;
}
#else
NNTRACE_INLINE_ int nntrace_begin_in_lane_(const char *tag, const char *name) { return (void)tag, (void)name, 0; }
NNTRACE_INLINE_ int nntrace_text_in_lane_(struct nntrace_text_ *text, int opens) { return (void)text, (void)opens, 0; }
NNTRACE_INLINE_ int nntrace_end_in_lane_(void) { return 0; }
NNTRACE_INLINE_ int nntrace_is_application_(const char *tag) { return (void)tag, 0; }
NNTRACE_INLINE_ void nntrace_took_probe_(int opens) { (void)opens; }
#endif

/* ---- Writing marks -------------------------------------------------------------------------------------------- */

/* Hands a payload, by which a section may begin (1), to the probe, and to ftrace if that was asked for. */
NNTRACE_INLINE_ void nntrace_write_(struct nntrace_text_ *text, int opens) {
    const int sink = __atomic_load_n(&nntrace_sink_, __ATOMIC_RELAXED);
    text->bytes[text->length] = '\0';
    tracing_mark_write(text->bytes);
    if (sink > 1) {
        const int saved = errno;
        if (write(sink - 2, text->bytes, text->length) < 0) {
            errno = 0; /* ftrace may be switched off, and its file taken away: the program goes on. */
        }
        errno = saved;
    }
    nntrace_took_probe_(opens);
}

/* Writes a begin; whether it did. */
NNTRACE_SLOW_ int nntrace_begin_(const char *tag, size_t tag_length, const char *name, int is_literal,
                                 const nntrace_pair *pairs, size_t count) {
    struct nntrace_text_ text;
    size_t at;
    if (is_literal && nntrace_begin_in_lane_(tag, name)) {
        return 1;
    }
    if (!nntrace_start_(&text, 'B')) {
        return 0;
    }
    nntrace_put_(&text, "|", 1);
    nntrace_put_(&text, tag, tag_length);
    nntrace_put_string_(&text, name);
    for (at = 0; at < count; ++at) {
        nntrace_put_pair_(&text, &pairs[at]);
    }
    if (nntrace_is_application_(tag) || !nntrace_text_in_lane_(&text, 1)) {
        nntrace_write_(&text, 1);
    }
    return 1;
}

/* Writes an end. */
NNTRACE_SLOW_ void nntrace_write_end_(void) {
    struct nntrace_text_ text;
    if (!nntrace_end_in_lane_() && nntrace_start_(&text, 'E')) {
        nntrace_write_(&text, 0);
    }
}

/* Writes an instant, with a handle or another number if it has a key. */
NNTRACE_SLOW_ void nntrace_instant_(const char *name, const char *key, uint64_t number) {
    struct nntrace_text_ text;
    const nntrace_pair pair = nntrace_number(key, number);
    if (nntrace_start_(&text, 'I')) {
        nntrace_put_(&text, "|", 1);
        nntrace_put_string_(&text, name);
        if (key) {
            nntrace_put_pair_(&text, &pair);
        }
        if (!nntrace_text_in_lane_(&text, 0)) {
            nntrace_write_(&text, 0);
        }
    }
}

/* Writes a counter's value. */
NNTRACE_SLOW_ void nntrace_counter_(const char *name, int64_t value) {
    struct nntrace_text_ text;
    const uint64_t bits = NNTRACE_CAST_(uint64_t, value);
    if (nntrace_start_(&text, 'C')) {
        nntrace_put_(&text, "|", 1);
        nntrace_put_string_(&text, name);
        nntrace_put_(&text, "|-", value < 0 ? 2 : 1);
        nntrace_put_number_(&text, value < 0 ? 0 - bits : bits);
        if (!nntrace_text_in_lane_(&text, 0)) {
            nntrace_write_(&text, 0);
        }
    }
}

/* Something happened on this thread. */
#define NNTRACE_INSTANT(name) (nntrace_listens() ? nntrace_instant_(name, NULL, 0) : NNTRACE_CAST_(void, 0))
/* A quantity has this value from now on. */
#define NNTRACE_COUNTER(name, value) (nntrace_listens() ? nntrace_counter_(name, value) : NNTRACE_CAST_(void, 0))
/* This thread hands work over, under a handle from nntrace_handle(). */
#define NNTRACE_SEND(handle) (nntrace_listens() ? nntrace_instant_("nn.send", "h", handle) : NNTRACE_CAST_(void, 0))
/* This thread goes on with it. A section that is all about it says so itself: nntrace_takes(). */
#define NNTRACE_RECV(handle) (nntrace_listens() ? nntrace_instant_("nn.recv", "h", handle) : NNTRACE_CAST_(void, 0))

/* ---- Sections ------------------------------------------------------------------------------------------------- */

/* A section that may be open. It ends on the thread that began it, in the reverse order of beginning. */
typedef struct nntrace_section {
    /* Whether its begin was written: only then its end is, so that nobody who comes between sees half of it. */
    int is_open;
} nntrace_section;

NNTRACE_FAST_ nntrace_section nntrace_opened_(int is_open) {
    nntrace_section section = {is_open};
    return section;
}

/* Ends a section, once. */
NNTRACE_FAST_ void nntrace_end(nntrace_section *section) {
    if (__builtin_expect(section->is_open, 0)) {
        section->is_open = 0;
        nntrace_write_end_();
    }
}

#define NNTRACE_TAG_(prefix, layer, phase) prefix "[NN_" layer "_" phase "]"
/* Only a literal is the same text each time, so that its address can stand for it. */
#define NNTRACE_OPEN_(tag, name) \
    (nntrace_listens() && nntrace_begin_(tag, sizeof(tag) - 1, name, __builtin_constant_p(name), NULL, 0))

#ifdef __cplusplus
namespace nntrace {

/* A section that ends with its scope, also when an exception leaves it. */
class Section {
public:
    explicit Section(nntrace_section begun) noexcept : section_(begun) {}
    Section(const Section &) = delete;
    Section &operator=(const Section &) = delete;
    ~Section() { end(); }

    /* Whether its begin was written. */
    bool is_open() const noexcept { return section_.is_open != 0; }

    /* Ends it before its scope does. */
    void end() noexcept { nntrace_end(&section_); }

private:
    nntrace_section section_;
};

template <typename... Pairs>
NNTRACE_INLINE_ int begin_with_(const char *tag, size_t tag_length, const char *name, Pairs... pairs) {
    const nntrace_pair all[] = {pairs...};
    return nntrace_begin_(tag, tag_length, name, 0, all, sizeof...(pairs));
}

}  // namespace nntrace
#define NNTRACE_OPEN_WITH_(tag, name, ...) \
    (nntrace_listens() && nntrace::begin_with_(tag, sizeof(tag) - 1, name, __VA_ARGS__))
#define NNTRACE_SCOPE_(variable, is_open) nntrace::Section variable(nntrace_opened_(is_open))
#define NNTRACE_IS_OPEN_(variable) variable.is_open()
#else
#define NNTRACE_OPEN_WITH_(tag, name, ...)                                                        \
    (nntrace_listens() && nntrace_begin_(tag, sizeof(tag) - 1, name, 0, (nntrace_pair[]){__VA_ARGS__}, \
                                         sizeof((nntrace_pair[]){__VA_ARGS__}) / sizeof(nntrace_pair)))
#define NNTRACE_SCOPE_(variable, is_open) \
    __attribute__((cleanup(nntrace_end), unused)) nntrace_section variable = nntrace_opened_(is_open)
#define NNTRACE_IS_OPEN_(variable) variable.is_open
#endif

/* A section to be ended by hand: nntrace_section s = NNTRACE_BEGIN(..); .. nntrace_end(&s); */
#define NNTRACE_BEGIN(layer, phase, name) nntrace_opened_(NNTRACE_OPEN_(NNTRACE_TAG_("", layer, phase), name))
#define NNTRACE_BEGIN_WITH(layer, phase, name, ...) \
    nntrace_opened_(NNTRACE_OPEN_WITH_(NNTRACE_TAG_("", layer, phase), name, __VA_ARGS__))

/* The fixed name allows one section in a scope, and lets a switch refer to it. */
#define NNTRACE_PLAIN_(is_open) NNTRACE_SCOPE_(nntrace_of_this_scope_, is_open)
#define NNTRACE_NAMED_(line) nntrace_switch_##line##_
#define NNTRACE_ON_LINE_(line) NNTRACE_NAMED_(line)
/* A switch of a section whose begin nobody saw is not written either: its second end would have no begin. */
#define NNTRACE_SWITCHED_(is_open) \
    NNTRACE_SCOPE_(NNTRACE_ON_LINE_(__LINE__), NNTRACE_IS_OPEN_(nntrace_of_this_scope_) && (is_open))

/* A section of this scope; one in a scope. */
#define NNTRACE_FULL(layer, phase, name) NNTRACE_PLAIN_(NNTRACE_OPEN_(NNTRACE_TAG_("", layer, phase), name))
/* Ends the section of this scope and begins another in its place; there may be several. */
#define NNTRACE_FULL_SWITCH(layer, phase, name) \
    NNTRACE_SWITCHED_(NNTRACE_OPEN_(NNTRACE_TAG_("[SW]", layer, phase), name))
/* A section of this scope that is accounted apart from what is around it. */
#define NNTRACE_FULL_SUBTRACT(layer, phase, name) \
    NNTRACE_PLAIN_(NNTRACE_OPEN_(NNTRACE_TAG_("[SUB]", layer, phase), name))

/* The same with what else they tell: any number of nntrace_iter, _acct, _takes, _attr and _number, which are evaluated
 * only when somebody listens. */
#define NNTRACE_FULL_WITH(layer, phase, name, ...) \
    NNTRACE_PLAIN_(NNTRACE_OPEN_WITH_(NNTRACE_TAG_("", layer, phase), name, __VA_ARGS__))
#define NNTRACE_FULL_SWITCH_WITH(layer, phase, name, ...) \
    NNTRACE_SWITCHED_(NNTRACE_OPEN_WITH_(NNTRACE_TAG_("[SW]", layer, phase), name, __VA_ARGS__))
#define NNTRACE_FULL_SUBTRACT_WITH(layer, phase, name, ...) \
    NNTRACE_PLAIN_(NNTRACE_OPEN_WITH_(NNTRACE_TAG_("[SUB]", layer, phase), name, __VA_ARGS__))

/* Application. */
#define NNTRACE_APP(phase, name) NNTRACE_FULL(NNTRACE_LAYER_APPLICATION, phase, name)
#define NNTRACE_APP_SWITCH(phase, name) NNTRACE_FULL_SWITCH(NNTRACE_LAYER_APPLICATION, phase, name)
#define NNTRACE_APP_WITH(phase, name, ...) NNTRACE_FULL_WITH(NNTRACE_LAYER_APPLICATION, phase, name, __VA_ARGS__)
/* Runtime. */
#define NNTRACE_RT(phase, name) NNTRACE_FULL(NNTRACE_LAYER_RUNTIME, phase, name)
#define NNTRACE_RT_SWITCH(phase, name) NNTRACE_FULL_SWITCH(NNTRACE_LAYER_RUNTIME, phase, name)
#define NNTRACE_RT_WITH(phase, name, ...) NNTRACE_FULL_WITH(NNTRACE_LAYER_RUNTIME, phase, name, __VA_ARGS__)
/* CPU executor. */
#define NNTRACE_CPU(phase, name) NNTRACE_FULL(NNTRACE_LAYER_CPU, phase, name)
#define NNTRACE_CPU_SWITCH(phase, name) NNTRACE_FULL_SWITCH(NNTRACE_LAYER_CPU, phase, name)
#define NNTRACE_CPU_WITH(phase, name, ...) NNTRACE_FULL_WITH(NNTRACE_LAYER_CPU, phase, name, __VA_ARGS__)
/* Computation by the CPU executor. */
#define NNTRACE_COMP(name) NNTRACE_CPU(NNTRACE_PHASE_COMPUTATION, name)
#define NNTRACE_COMP_SWITCH(name) NNTRACE_CPU_SWITCH(NNTRACE_PHASE_COMPUTATION, name)
#define NNTRACE_COMP_WITH(name, ...) NNTRACE_CPU_WITH(NNTRACE_PHASE_COMPUTATION, name, __VA_ARGS__)
/* Transformation by the CPU executor. */
#define NNTRACE_TRANS(name) NNTRACE_CPU(NNTRACE_PHASE_TRANSFORMATION, name)
#define NNTRACE_TRANS_SWITCH(name) NNTRACE_CPU_SWITCH(NNTRACE_PHASE_TRANSFORMATION, name)
#define NNTRACE_TRANS_WITH(name, ...) NNTRACE_CPU_WITH(NNTRACE_PHASE_TRANSFORMATION, name, __VA_ARGS__)

#endif /* NNTRACE_H */
