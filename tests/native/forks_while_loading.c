/* Forks children that look for a function while another thread loads and unloads the library that is named; prints how many of them
 * have not ended, or have not found it. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *load(void *path) {
    for (;;) {
        void *library = dlopen(path, RTLD_NOW);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            exit(2);
        }
        (void)dlsym(library, "nothing");
        (void)dlclose(library);
    }
    return NULL;
}

int main(int count, char **words) {
    pthread_t thread;
    int rounds = count == 3 ? atoi(words[2]) : 0, failed = 0;
    void *own = dlopen("libm.so.6", RTLD_NOW);
    if (!own || rounds <= 0 || pthread_create(&thread, NULL, load, words[1]) != 0) {
        return 2;
    }
    for (; rounds > 0; --rounds) {
        const pid_t child = fork();
        int waited = 0, status = 0;
        if (child == 0) {
            _exit(dlsym(RTLD_DEFAULT, "puts") && dlsym(own, "cos") ? 0 : 1);
        }
        while (waitpid(child, &status, WNOHANG) == 0 && ++waited < 5000) {
            usleep(1000);
        }
        if (waited == 5000) {
            kill(child, SIGKILL);
            (void)waitpid(child, &status, 0);
        }
        failed += status != 0;
    }
    printf("failed: %d\n", failed);
    return 0;
}
