/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What a process may do to find out about the profiler, and what the profiler does. All by system calls by number: libc's
 * functions may end a thread that is cancelled.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loading.h"

/* Longest path of a file in the folder of the plans. */
#define PATH_BYTES 4096

/* Reads the beginning of a file as text; returns its length, or the negative number of an error. */
static long read_text(const char *path, char *text, size_t bytes) {
    const long file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    long length;
    if (file < 0) {
        return -errno;
    }
    length = syscall(SYS_read, file, text, bytes - 1);
    syscall(SYS_close, file);
    text[length > 0 ? length : 0] = '\0';
    return length;
}

/* Makes the path of a file in a folder; whether there is room for it. */
static bool join(char path[PATH_BYTES], const char *folder, const char *name) {
    const size_t length = strlen(folder);
    if (length + strlen(name) + 2 > PATH_BYTES) {
        return false;
    }
    memcpy(path, folder, length);
    path[length] = '/';
    memcpy(path + length + 1, name, strlen(name) + 1);
    return true;
}

bool nntrace_hook_is_free(void) {
    static const char none[] = "\nSeccomp:\t0\n";
    char text[8192];
    const long length = read_text("/proc/thread-self/status", text, sizeof text);
    const char *mode = length > 0 ? strstr(text, "\nSeccomp:") : NULL;
    if (mode) {
        return strncmp(mode, none, sizeof none - 1) == 0;
    }
    /* Without /proc nothing else can be found out either. A kernel without seccomp has no such line. */
    return length == -ENOENT || (length > 0 && (size_t)length < sizeof text - 1);
}

/* Whether the process with the number in a file is stopped, as far as it is seen from here. */
static bool is_stopped(const char *path) {
    char stat[64 + 32] = "/proc/", text[512];
    const size_t start = strlen(stat);
    const char *state;
    size_t length;
    if (read_text(path, stat + start, 32) <= 0) {
        return false;
    }
    length = strspn(stat + start, "0123456789");
    memcpy(stat + start + length, "/stat", sizeof "/stat");
    if (length == 0 || read_text(stat, text, sizeof text) <= 0) {
        return false;
    }
    state = strrchr(text, ')');
    return state && state[1] == ' ' && (state[2] == 'T' || state[2] == 't');
}

bool nntrace_hook_is_at_work(const char *folder) {
    char path[PATH_BYTES];
    const long file = syscall(SYS_openat, AT_FDCWD, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_locked;
    if (file < 0) {
        return false;
    }
    is_locked = syscall(SYS_flock, file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    syscall(SYS_close, file);
    return is_locked && !(join(path, folder, "profiler") && is_stopped(path));
}

bool nntrace_hook_is_busy(const char *folder) {
    char path[PATH_BYTES];
    return join(path, folder, "busy") && syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0;
}
