// Opens files in every way that the list of a recording shows, in a folder that it is given; then executes another program,
// and at last a copy of itself, which ends.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void expect(int held, const char *what) {
  if (!held) {
    perror(what);
    exit(1);
  }
}

static int opened(int descriptor, const char *what) {
  expect(descriptor >= 0, what);
  return descriptor;
}

int main(int count, char **arguments) {
  if (count < 2) {
    return 0;
  }
  const char *folder = arguments[1];
  char path[4096];
  expect(chdir(folder) == 0, "chdir");
  close(opened(open("relative.tflite", O_RDONLY), "relative"));
  snprintf(path, sizeof path, "%s/absolute.gguf", folder);
  close(opened(open(path, O_RDONLY | O_CLOEXEC), "absolute"));
  close(opened(open(path, O_RDONLY | O_CLOEXEC), "absolute again"));
  expect(open("sub/../missing.onnx", O_RDONLY) < 0 && errno == ENOENT, "missing");
  int nameless = open(folder, O_TMPFILE | O_RDWR, 0600);
  close(opened(nameless, "O_TMPFILE"));
  close(opened(open("link.tflite", O_RDONLY), "link"));
  // The folder is another one at once: the same name means another file.
  expect(chdir("sub") == 0, "chdir sub");
  close(opened(open("relative.tflite", O_RDONLY), "relative in sub"));
  expect(chdir("..") == 0, "chdir ..");
  int sub = opened(open("sub", O_RDONLY | O_DIRECTORY), "sub");
  close(opened(openat(sub, "by-descriptor.param", O_RDONLY), "openat"));
  struct open_how how = {.flags = O_RDONLY | O_NOFOLLOW, .resolve = RESOLVE_BENEATH};
  close(opened((int)syscall(SYS_openat2, sub, "beneath.bin", &how, sizeof how), "openat2"));
  expect(openat(sub, "not-there", O_RDONLY) < 0 && errno == ENOENT, "openat of nothing");
  close(opened(open("written.txt", O_WRONLY | O_CREAT | O_TRUNC, 0600), "written"));
  expect(syscall(SYS_openat, AT_FDCWD, (void *)8, O_RDONLY) < 0 && errno == EFAULT, "no path");
  close(sub);
  pid_t child = fork();
  expect(child >= 0, "fork");
  if (child == 0) {
    expect(chdir("sub") == 0, "chdir of the child");
    close(opened(open("child.mnn", O_RDONLY), "child"));
    execl("../no-program", "no-program", NULL);
    execl("../program", "program", NULL);
    _exit(1);
  }
  int status = 0;
  expect(waitpid(child, &status, 0) == child && status == 0, "the child");
  printf("%d %d\n", getpid(), child);
  return 0;
}
