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

/* ---- The function that is probed ------------------------------------------------------------------------------ */

/* It has two places that kernels probe without a single step. On x86-64 the first is the very five bytes that newer
 * kernels replace by a call, the second a `nop` of one byte, which all kernels emulate: some kill forked children by the
 * call. On arm64 the first is the `nop` that newer kernels skip, the second the `ret`, which all simulate. It never crosses
 * a page, being aligned. No landing pad (endbr64, bti c) is in front, as it is only ever called directly.
 *
 * The assembler, not the compiler, writes it, so that no optimisation changes it. It is in a group of its own: of many
 * files that include this one, an executable or a library keeps one copy; and within one run of the assembler, which
 * link-time optimisation makes of many files, only the first is written. It is hidden, so that each library has its own
 * copy and calls it without a detour. What `strip` leaves of it is the note, in the form of SystemTap's probes
 * (nntrace:mark), which nntrace-bpf, perf and bpftrace read. */
#if defined(__x86_64__) && defined(__LP64__)
#define NNTRACE_BYTES_ 0xccc3900000441f0fULL
#define NNTRACE_BODY_ ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x90, 0xc3\n.balign 16, 0xcc\n"
#define NNTRACE_ARGUMENT_ "8@%rdi"
#elif defined(__aarch64__) && defined(__LP64__) && !defined(__AARCH64EB__)
#define NNTRACE_BYTES_ 0xd65f03c0d503201fULL
#define NNTRACE_BODY_ "nop\nret\n.balign 16\n"
#define NNTRACE_ARGUMENT_ "8@x0"
#endif

#ifdef __cplusplus
#define NNTRACE_EXTERN_C_ extern "C"
#define NNTRACE_INLINE_ inline __attribute__((visibility("hidden")))
#define NNTRACE_SLOW_ NNTRACE_INLINE_ __attribute__((noinline))
#define NNTRACE_CAST_(type, value) static_cast<type>(value)
#else
#define NNTRACE_EXTERN_C_ extern
#define NNTRACE_INLINE_ static inline __attribute__((unused))
#define NNTRACE_SLOW_ static __attribute__((noinline, unused))
#define NNTRACE_CAST_(type, value) ((type)(value))
#endif
/* What every mark begins with, and all that it does while nobody listens. */
#define NNTRACE_FAST_ NNTRACE_INLINE_ __attribute__((always_inline))
/* One of each in an executable or library, whichever of its files include this one. */
#define NNTRACE_SHARED_ __attribute__((weak, visibility("hidden")))

#ifdef NNTRACE_BYTES_
__asm__(".ifndef tracing_mark_write\n"
        ".pushsection .text.tracing_mark_write,\"axG\",%progbits,tracing_mark_write,comdat\n"
        ".balign 16\n"
        ".weak tracing_mark_write\n"
        ".hidden tracing_mark_write\n"
        ".type tracing_mark_write,%function\n"
        "tracing_mark_write:\n" NNTRACE_BODY_ ".size tracing_mark_write, . - tracing_mark_write\n"
        ".popsection\n"
        ".ifndef _.stapsdt.base\n"
        ".pushsection .stapsdt.base,\"aG\",%progbits,.stapsdt.base,comdat\n"
        ".weak _.stapsdt.base\n"
        ".hidden _.stapsdt.base\n"
        "_.stapsdt.base: .space 1\n"
        ".size _.stapsdt.base, 1\n"
        ".popsection\n"
        ".endif\n"
        /* Owner, type 3; address, base, semaphore (none); provider, name, argument. */
        ".pushsection .note.stapsdt,\"G\",%note,tracing_mark_write,comdat\n"
        ".balign 4\n"
        ".4byte 8, 992f - 991f, 3\n"
        ".asciz \"stapsdt\"\n"
        "991: .8byte tracing_mark_write, _.stapsdt.base, 0\n"
        ".asciz \"nntrace\", \"mark\", \"" NNTRACE_ARGUMENT_ "\"\n"
        "992: .balign 4\n"
        ".popsection\n"
        ".endif\n");

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
/* This process's id once it was needed; it is for readers of payloads. */
NNTRACE_SHARED_ int nntrace_pid_ = 0;
/* Handles given out, twice their number. */
NNTRACE_SHARED_ uint64_t nntrace_handles_ = 0;

/* Whether a probe is on the function. A probe changes its code, at one of the two places: both are in the first eight
 * bytes, which are loaded in one go. Where that is not known to be so, always. */
NNTRACE_FAST_ int nntrace_is_probed_(void) {
#ifdef NNTRACE_BYTES_
#ifdef __cplusplus
    const uintptr_t address = reinterpret_cast<uintptr_t>(&tracing_mark_write);
    return *reinterpret_cast<const volatile uint64_t *>(address) != NNTRACE_BYTES_;
#else
    const uintptr_t address = (uintptr_t)&tracing_mark_write;
    return *(const volatile uint64_t *)address != NNTRACE_BYTES_;
#endif
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
    int pid = __atomic_load_n(&nntrace_pid_, __ATOMIC_RELAXED);
    if (sink == 0) {
        sink = nntrace_open_sink_();
    }
    if (sink == 1 && !nntrace_is_probed_()) {
        return 0;
    }
    /* ftrace's readers know the process by this text alone, so a forked child's must be right there. A probe knows. */
    if (pid == 0 || sink != 1) {
        pid = NNTRACE_CAST_(int, getpid());
        __atomic_store_n(&nntrace_pid_, pid, __ATOMIC_RELAXED);
    }
    text->bytes[0] = kind;
    text->bytes[1] = '|';
    text->length = 2;
    text->room = NNTRACE_CAPACITY_ - 1 - 2;
    nntrace_put_number_(text, NNTRACE_CAST_(uint64_t, pid));
    return 1;
}

/* Hands a payload to the probe, and to ftrace if that was asked for. */
NNTRACE_INLINE_ void nntrace_write_(struct nntrace_text_ *text) {
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
#ifdef __cplusplus
    const uint64_t page = reinterpret_cast<uintptr_t>(&nntrace_handles_) >> 12;
#else
    const uint64_t page = (uint64_t)(uintptr_t)&nntrace_handles_ >> 12;
#endif
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

/* ---- Writing marks -------------------------------------------------------------------------------------------- */

/* Writes a begin; whether it did. */
NNTRACE_SLOW_ int nntrace_begin_(const char *tag, size_t tag_length, const char *name, const nntrace_pair *pairs,
                                 size_t count) {
    struct nntrace_text_ text;
    size_t at;
    if (!nntrace_start_(&text, 'B')) {
        return 0;
    }
    nntrace_put_(&text, "|", 1);
    nntrace_put_(&text, tag, tag_length);
    nntrace_put_string_(&text, name);
    for (at = 0; at < count; ++at) {
        nntrace_put_pair_(&text, &pairs[at]);
    }
    nntrace_write_(&text);
    return 1;
}

/* Writes an end. */
NNTRACE_SLOW_ void nntrace_write_end_(void) {
    struct nntrace_text_ text;
    if (nntrace_start_(&text, 'E')) {
        nntrace_write_(&text);
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
        nntrace_write_(&text);
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
        nntrace_write_(&text);
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
#define NNTRACE_OPEN_(tag, name) (nntrace_listens() && nntrace_begin_(tag, sizeof(tag) - 1, name, NULL, 0))

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
    return nntrace_begin_(tag, tag_length, name, all, sizeof...(pairs));
}

}  // namespace nntrace
#define NNTRACE_OPEN_WITH_(tag, name, ...) \
    (nntrace_listens() && nntrace::begin_with_(tag, sizeof(tag) - 1, name, __VA_ARGS__))
#define NNTRACE_SCOPE_(variable, is_open) nntrace::Section variable(nntrace_opened_(is_open))
#define NNTRACE_IS_OPEN_(variable) variable.is_open()
#else
#define NNTRACE_OPEN_WITH_(tag, name, ...)                                                        \
    (nntrace_listens() && nntrace_begin_(tag, sizeof(tag) - 1, name, (nntrace_pair[]){__VA_ARGS__}, \
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
