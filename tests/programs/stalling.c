/* A process whose mark has its text in a file of a file system that does not answer: a FUSE file system of this program's
 * own, in a mount namespace of its own, on the folder that is named. Prints `ready PID`, the process; then obeys lines:
 *   mark     that process writes a whole section, and then the mark
 *   answer   the file system answers
 * and prints `marked` when the process is through. It ends with its stdin. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 4096
#define FILE_NODE 2

__attribute__((noinline)) void tracing_mark_write(const char *text) { __asm__ volatile("" ::"r"(text) : "memory"); }

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int device;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int answers;

static void reply(const struct fuse_in_header *request, int error, const void *body, size_t size) {
    struct fuse_out_header head = {(uint32_t)(sizeof head + size), -error, request->unique};
    struct iovec parts[] = {{&head, sizeof head}, {(void *)(uintptr_t)body, size}};
    /* Who asked may have gone. */
    if (writev(device, parts, 2) < 0 && errno != ENOENT) fail("reply");
}

static struct fuse_attr attributes(uint64_t node) {
    struct fuse_attr found = {0};
    found.ino = node;
    found.mode = node == FILE_NODE ? S_IFREG | 0444 : S_IFDIR | 0555;
    found.size = node == FILE_NODE ? SIZE : 0;
    found.nlink = 1;
    found.blksize = SIZE;
    return found;
}

/* The content, once it may. */
static void answer_read(const struct fuse_in_header *request) {
    static const char content[SIZE] = "B|1|[NN_LR_PE]stalled";
    pthread_mutex_lock(&lock);
    while (!answers) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    reply(request, 0, content, sizeof content);
}

static void *serve(void *unused) {
    static char buffer[1 << 20] __attribute__((aligned(8)));
    const struct fuse_in_header *request = (const void *)buffer;
    while (read(device, buffer, sizeof buffer) > 0) {
        struct fuse_init_out begun = {.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION};
        struct fuse_entry_out entry = {.nodeid = FILE_NODE, .attr = attributes(FILE_NODE)};
        struct fuse_attr_out found = {.attr = attributes(request->nodeid)};
        struct fuse_open_out opened = {0};
        begun.max_write = SIZE;
        switch (request->opcode) {
        case FUSE_INIT: reply(request, 0, &begun, sizeof begun); break;
        case FUSE_LOOKUP: reply(request, 0, &entry, sizeof entry); break;
        case FUSE_GETATTR: reply(request, 0, &found, sizeof found); break;
        case FUSE_OPEN: reply(request, 0, &opened, sizeof opened); break;
        case FUSE_READ: answer_read(request); break;
        case FUSE_RELEASE:
        case FUSE_FLUSH: reply(request, 0, 0, 0); break;
        case FUSE_FORGET:
        case FUSE_BATCH_FORGET:
        case FUSE_INTERRUPT: break;
        default: reply(request, ENOSYS, 0, 0);
        }
    }
    return unused;
}

static void mount_at(const char *folder) {
    char options[128];
    device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (device < 0) fail("/dev/fuse");
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
    if (unshare(CLONE_NEWNS) != 0 || mount(0, "/", 0, MS_REC | MS_PRIVATE, 0) != 0) fail("mount namespace");
    if (mount("stalling", folder, "fuse", 0, options) != 0) fail("mount");
}

/* Waits for a byte, marks, and tells so by a byte. */
static void target(const char *folder, int orders, int done) {
    char path[4096], begin[] = "B|1|[NN_LR_PE]good", end[] = "E|1", order;
    snprintf(path, sizeof path, "%s/text", folder);
    int file = open(path, O_RDONLY);
    const char *text = file < 0 ? MAP_FAILED : mmap(0, SIZE, PROT_READ, MAP_PRIVATE, file, 0);
    if (text == MAP_FAILED || write(done, "r", 1) != 1) fail(path);
    while (read(orders, &order, 1) == 1) {
        tracing_mark_write(begin);
        tracing_mark_write(end);
        tracing_mark_write(text);
        tracing_mark_write(end);
        if (write(done, "m", 1) != 1) fail("done");
    }
}

static void *tell(void *done) {
    char what;
    while (read(*(int *)done, &what, 1) == 1) {
        puts("marked");
        fflush(stdout);
    }
    return 0;
}

int main(int count, char **words) {
    int orders[2], done[2];
    char line[64], byte;
    pthread_t thread;
    if (count != 2) return 3;
    mount_at(words[1]);
    if (pipe(orders) != 0 || pipe(done) != 0) fail("pipe");
    pid_t pid = fork();
    if (pid < 0) fail("fork");
    if (pid == 0) {
        close(device);
        close(orders[1]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        target(words[1], orders[0], done[1]);
        _exit(0);
    }
    if (pthread_create(&thread, 0, serve, 0) != 0) fail("thread");
    if (read(done[0], &byte, 1) != 1 || pthread_create(&thread, 0, tell, &done[0]) != 0) fail("target");
    printf("ready %d\n", (int)pid);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (strcmp(line, "mark\n") == 0 && write(orders[1], "m", 1) != 1) fail("order");
        if (strcmp(line, "answer\n") == 0) {
            pthread_mutex_lock(&lock);
            answers = 1;
            pthread_cond_broadcast(&changed);
            pthread_mutex_unlock(&lock);
        }
    }
    return 0;
}
