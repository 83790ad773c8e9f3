// Loads and unloads a library as often as asked, and prints the number of rounds to a file.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    int rounds = atoi(words[1]);
    for (int round = 0; round < rounds; round++) {
        void *library = dlopen("libutil.so.1", RTLD_NOW);
        if (!library)
            return 1;
        dlclose(library);
        usleep(20000);
    }
    FILE *file = fopen(words[2], "w");
    if (!file)
        return 1;
    fprintf(file, "%d\n", rounds);
    return fclose(file) != 0;
}
