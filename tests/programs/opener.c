/* Loads the library that it is told, and has it work at once; `wait`: each time when it is told to; `for-ever`: unloads
 * it, and begins anew. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int waits;

static void pause_for(const char *what) {
    if (!waits) return;
    puts(what);
    fflush(stdout);
    char line[64];
    if (!fgets(line, sizeof line, stdin)) exit(4);
}

int main(int count, char **words) {
    if (count < 3) return 2;
    waits = count > 3 && strcmp(words[3], "wait") == 0;
    if (!waits) {
        /* Our number as whoever mounted /proc sees it. */
        char number[16] = {0};
        if (readlink("/proc/self", number, sizeof number - 1) > 0) printf("pid %s\n", number);
    }
    fflush(stdout);
    while (count > 3 && strcmp(words[3], "for-ever") == 0) {
        void *library = dlopen(words[1], RTLD_NOW);
        if (!library || dlclose(library)) return 5;
    }
    pause_for("ready");
    void *library = dlopen(words[1], RTLD_NOW);
    void (*work)(int) = library ? (void (*)(int))dlsym(library, "work") : 0;
    if (!work) return 3;
    work(atoi(words[2]));
    pause_for("loaded");
    if (waits) work(atoi(words[2]));
}
