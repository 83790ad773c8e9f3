/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Sections of hooked calls: what thunks call before and after a function. They are written to the thread's lane alone. A
 * thread that has none yet waits until the profiler has answered, and one whose ring is full until it has read: for a
 * bounded time, after which sections are left out, and counted.
 */
#include <stdbool.h>
#include <stdint.h>

#include "hooks.h"

/* A thread needs its lane for its first section. */
#define NNTRACE_MARKS_BEFORE_ 1
/* Its sections are calls of functions. */
#define NNTRACE_SECTIONS_ARE_CALLS_ 1
#include <nntrace.h>

/* Calls that can be open on a thread: as many as a lane takes sections. */
#define MOST_OPEN 64
/* Time that a thread waits for the profiler, ns, and after which it waits again: at first, and after it has doubled again and
 * again. */
#define PATIENCE (500 * (uint64_t)NNTRACE_MILLISECOND_)
#define FIRST_PAUSE ((uint64_t)NNTRACE_SECOND_)
#define LAST_PAUSE (64 * (uint64_t)NNTRACE_SECOND_)
/* Time between two looks, ns. */
#define LOOK 50000
/* In place of the file of a lane that is offered: the second argument is a number of sections that are left out in this
 * process, of words that could not be changed, or of files that it has loaded without an answer. */
#define SECTIONS_LEFT_OUT (-2)
#define WORDS_REFUSED (-3)
#define FILES_UNANSWERED (-4)

/* Calls of a thread that have not returned. */
struct calls {
    uint32_t depth;
    /* Calls above those, without a place. */
    uint32_t beyond;
    /* Time before which the thread does not wait, ns. */
    uint64_t impatient_until;
    /* Time from one wait in vain to the next, ns. */
    uint64_t pause;
    /* Frames of their thunks, from the outermost in; the lowest bit is set where the section was begun. */
    uintptr_t frames[MOST_OPEN];
};
static __thread struct calls calls;

/* Sections of this process that were left out. */
static uint64_t left_out;
static int process;

/* glibc's `atexit` is in an archive that is linked into each library; this one links nothing, so that it can be loaded with
 * any C library. */
extern void *__dso_handle __attribute__((visibility("hidden")));
int __cxa_atexit(void (*function)(void *), void *argument, void *library);
__attribute__((visibility("hidden"))) int atexit(void (*function)(void)) {
    return __cxa_atexit((void (*)(void *))(uintptr_t)function, NULL, &__dso_handle);
}

/* Counts a section that is left out. The profiler hears of it each time the number has doubled. */
static void leave_out(void) {
    const int self = getpid();
    uint64_t count;
    if (__atomic_exchange_n(&process, self, __ATOMIC_RELAXED) != self) {
        /* A child counts its own. */
        __atomic_store_n(&left_out, 0, __ATOMIC_RELAXED);
    }
    count = __atomic_add_fetch(&left_out, 1, __ATOMIC_RELAXED);
    if ((count & (count - 1)) == 0) {
        nntrace_lane_offer_(SECTIONS_LEFT_OUT, count);
    }
}

void nntrace_hook_refused(uint32_t words) { nntrace_lane_offer_(WORDS_REFUSED, words); }

void nntrace_hook_unanswered(uint32_t files) { nntrace_lane_offer_(FILES_UNANSWERED, files); }

bool nntrace_hook_is_confined(void) {
    const int saved = errno;
    const bool is_confined = nntrace_is_confined_();
    errno = saved;
    return is_confined;
}

void nntrace_hook_sleep(long ns) {
    const long time[2] = {0, ns};
    nntrace_syscall_(SYS_nanosleep, time, NULL);
}

/* Writes the time that the thread has waited as a section, which is subtracted from the one around it: the program would not
 * have waited without us. `start` has ns and ticks. */
static void write_wait(const uint64_t start[2]) {
    static const char text[] = "B|0|[SUB][NN_LU_PU]waiting for nntrace-bpf";
    struct nntrace_lane_ *lane = nntrace_self_.lane;
    if (lane && !lane->is_busy) {
        nntrace_set_busy_(lane, 1);
        if (nntrace_record_(lane, 1, NNTRACE_TEXT_RECORD_, sizeof text - 1, start[lane->in_ticks], text, sizeof text - 1)) {
            nntrace_record_(lane, -1, NNTRACE_END_RECORD_, 0, nntrace_lane_now_(lane->shared, lane->in_ticks), NULL, 0);
        }
        nntrace_set_busy_(lane, 0);
    }
}

static bool has_ring(void) { return nntrace_self_.lane && nntrace_shared_(nntrace_self_.lane); }

/* Begins a section with its name in the record: a ring has room for the names of 512 sites. */
static __attribute__((noinline)) bool begin_as_text(const char *tag, const char *name) {
    struct nntrace_text_ text = {4, NNTRACE_CAPACITY_ - 1 - 4, {'B', '|', '0', '|'}};
    nntrace_put_string_(&text, tag);
    nntrace_put_string_(&text, name);
    return nntrace_text_in_lane_(&text, 1);
}

/* Begins a section if that is possible at once. */
static bool begin_at_once(const char *tag, const char *name) {
    return nntrace_begin_in_lane_(tag, name) || (has_ring() && begin_as_text(tag, name));
}

/* Begins a section where it could not be begun at once: gets the thread a lane, or a larger one, or waits until there is
 * room. Whether it could. */
static __attribute__((noinline)) bool begin_slowly(const char *tag, const char *name) {
    const int saved = errno;
    const uint64_t start = nntrace_now_(), both[2] = {start, nntrace_ticks_()};
    bool is_begun = false, has_waited = false;
    uint64_t now = start, ready;
    while (nntrace_lanes_wanted_ == 1 && nntrace_self_.depth < MOST_OPEN && (has_ring() || now >= calls.impatient_until)) {
        nntrace_seek_lane_();
        if (has_waited && nntrace_enter_lane_(1, &ready)) {
            nntrace_set_busy_(nntrace_self_.lane, 0);
            write_wait(both);
            has_waited = false;
        }
        is_begun = begin_at_once(tag, name);
        now = nntrace_now_();
        /* Where no lane can be made there is nothing to wait for. */
        if (is_begun || now < calls.impatient_until || now - start > PATIENCE || nntrace_is_confined_()) {
            break;
        }
        if (!has_ring() && nntrace_goes_without_()) {
            calls.impatient_until = now + LAST_PAUSE;
            break;
        }
        nntrace_hook_sleep(LOOK);
        has_waited = true;
    }
    if (is_begun) {
        calls.pause = FIRST_PAUSE;
    } else {
        if (now - start > PATIENCE) {
            calls.pause = calls.pause ? calls.pause : FIRST_PAUSE;
            calls.impatient_until = now + calls.pause;
            calls.pause = calls.pause < LAST_PAUSE ? 2 * calls.pause : LAST_PAUSE;
        }
        leave_out();
    }
    errno = saved;
    return is_begun;
}

static void end_last(void) {
    if (calls.frames[--calls.depth] & 1) {
        nntrace_end_in_lane_();
    }
}

/* Ends the sections of calls whose frames are at or below this one: frames are further down the further in they are. Those
 * below were left without a return, as by longjmp. */
static inline void end_from(uintptr_t frame) {
    while (calls.depth && (calls.frames[calls.depth - 1] & ~(uintptr_t)1) <= frame) {
        end_last();
    }
}

/* Called by a thunk before its function, with the first arguments and the frame of the call; returns the function. */
uintptr_t nntrace_hook_enter(uint32_t number, const uint64_t *registers, uintptr_t frame)
    __attribute__((visibility("hidden")));
uintptr_t nntrace_hook_enter(uint32_t number, const uint64_t *registers, uintptr_t frame) {
    const struct function *function = __atomic_load_n(&nntrace_hook_functions[number], __ATOMIC_ACQUIRE);
    end_from(frame);
    if (calls.depth < MOST_OPEN) {
        const char *name = nntrace_hook_name(number, function, registers);
        const bool is_begun = begin_at_once(function->tag, name) || begin_slowly(function->tag, name);
        calls.beyond = 0;
        calls.frames[calls.depth++] = frame | is_begun;
    } else {
        ++calls.beyond;
        leave_out();
    }
    return nntrace_hook_targets[number];
}

/* Called by a thunk after its function has returned. */
void nntrace_hook_leave(uintptr_t frame) __attribute__((visibility("hidden")));
void nntrace_hook_leave(uintptr_t frame) {
    if (__builtin_expect(calls.beyond != 0, 0) && (calls.frames[MOST_OPEN - 1] & ~(uintptr_t)1) > frame) {
        --calls.beyond;
        return;
    }
    end_from(frame);
}

/* Called by the unwinder for the frame of a thunk that an exception, a panic or the end of a thread passes through
 * (Itanium C++ ABI, exception handling, 1.6.3): in its second phase, the call is over. */
int nntrace_hook_personality(int version, int actions, uint64_t class, void *exception, void *context)
    __attribute__((visibility("hidden")));
int nntrace_hook_personality(int version, int actions, uint64_t class, void *exception, void *context) {
    enum { CLEANUP_PHASE = 2, CONTINUE_UNWIND = 8 };
    (void)version, (void)class, (void)exception, (void)context;
    if (actions & CLEANUP_PHASE) {
        if (calls.beyond) {
            --calls.beyond;
        } else if (calls.depth) {
            end_last();
        }
    }
    return CONTINUE_UNWIND;
}
