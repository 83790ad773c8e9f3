// Loads engines that are given by their paths, and calls two functions of each: the second one as often as its number.

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>

int main(int count, char **arguments) {
    for (int number = 1; number < count; number++) {
        void *const library = dlopen(arguments[number], RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            std::fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        const auto load = reinterpret_cast<int (*)(const char *)>(dlsym(library, "ends_load"));
        const auto run = reinterpret_cast<int (*)(int64_t)>(dlsym(library, "ends_run"));
        if (load == nullptr || run == nullptr || load(arguments[number]) != 0) {
            return 2;
        }
        for (int times = 0; times < number; times++) {
            run(1000);
        }
    }
    return 0;
}
