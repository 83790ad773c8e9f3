/* Calls the engine's operators in one of the ways, for a number of rounds, and prints what was computed, which is the same with hooks and
 * without. Built with LOADS it loads the engine while it runs, by the folder that this program names (RUNPATH). */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "engine.h"

namespace {

decltype(&hooked_make) make;
decltype(&hooked_drop) drop;
decltype(&hooked_load) load;
decltype(&hooked_run) run;
decltype(&hooked_set) set;

#ifdef LOADS
void *library;

template <typename Function>
void find(Function &function, const char *name) {
    void *found = dlsym(library, name);
    std::memcpy(&function, &found, sizeof found);
}

void open_engine() {
    library = dlopen("libengine.so", RTLD_NOW);
    if (!library) {
        std::fprintf(stderr, "%s\n", dlerror());
        std::exit(2);
    }
    find(make, "hooked_make");
    find(drop, "hooked_drop");
    find(load, "hooked_load");
    find(run, "hooked_run");
    find(set, "hooked_set");
}

void close_engine() { dlclose(library); }
#else
void open_engine() {
    make = hooked_make;
    drop = hooked_drop;
    load = hooked_load;
    run = hooked_run;
    set = hooked_set;
}

void close_engine() {}
#endif

/* Runs three operators a round: two sums and a product. */
int64_t counts(int64_t rounds) {
    hooked::Operator *operators[] = {make(ADD, "first sum"), make(ADD, "second sum"), make(MULTIPLY, "product")};
    int64_t result = 1;
    for (int64_t round = 0; round < rounds; ++round) {
        result = run(operators, 3, result);
    }
    for (hooked::Operator *operation : operators) {
        drop(operation);
    }
    return result;
}

int64_t throws(int64_t rounds) {
    hooked::Operator *operators[] = {make(NEST, "outer"), make(THROW, "thrower"), make(ADD, "after")};
    int64_t result = 0;
    set(nullptr, operators[1], 0);
    for (int64_t round = 0; round < rounds; ++round) {
        try {
            run(operators, 1, round);
        } catch (const hooked::Failed &failed) {
            result += failed.number;
        }
        result = run(operators + 2, 1, result);
    }
    return result;
}

int64_t jumps(int64_t rounds) {
    hooked::Operator *operators[] = {make(NEST, "outer"), make(JUMP, "jumper"), make(ADD, "after")};
    volatile int64_t result = 0;
    std::jmp_buf target;
    set(&target, operators[1], 0);
    for (volatile int64_t round = 0; round < rounds; round = round + 1) {
        if (setjmp(target) == 0) {
            run(operators, 1, round);
        }
        result = run(operators + 2, 1, result);
    }
    return result;
}

/* Eight threads that return, one that is cancelled in an operator, and one that ends there. */
int64_t threads(int64_t rounds) {
    std::vector<int64_t> results(8);
    std::vector<std::thread> all;
    for (int64_t &result : results) {
        all.emplace_back([&result, rounds] { result = counts(rounds); });
    }
    const auto alone = [](void *operation) -> void * {
        hooked::Operator *operators[] = {static_cast<hooked::Operator *>(operation)};
        run(operators, 1, 0);
        return nullptr;
    };
    pthread_t cancelled, ended;
    pthread_create(&cancelled, nullptr, alone, make(WAIT, "waiter"));
    pthread_create(&ended, nullptr, alone, make(EXIT, "leaver"));
    usleep(100000);
    pthread_cancel(cancelled);
    pthread_join(cancelled, nullptr);
    pthread_join(ended, nullptr);
    int64_t sum = 0;
    for (std::thread &thread : all) {
        thread.join();
    }
    for (const int64_t result : results) {
        sum += result;
    }
    return sum;
}

/* Operators that compute constants while a model is loaded. */
int64_t constants(int64_t rounds) {
    hooked::Operator *operation = make(ADD, "sum");
    int64_t result = 0;
    for (int64_t round = 0; round < rounds; ++round) {
        result += load("model", operation);
        result = run(&operation, 1, result);
    }
    return result;
}

/* Objects that end, and others that are made at their addresses. */
int64_t names(int64_t rounds) {
    int64_t result = 0;
    for (int64_t round = 0; round < rounds; ++round) {
        hooked::Operator *operation = make(ADD, round % 2 ? "odd" : "even");
        result = run(&operation, 1, result);
        drop(operation);
    }
    return result;
}

/* More operators than a lane has room for the names of. */
int64_t many(int64_t rounds) {
    std::vector<hooked::Operator *> operators;
    for (int at = 0; at < 700; ++at) {
        operators.push_back(make(ADD, ("operator " + std::to_string(at)).c_str()));
    }
    int64_t result = 0;
    for (int64_t round = 0; round < rounds; ++round) {
        result = run(operators.data(), static_cast<int64_t>(operators.size()), result);
    }
    return result;
}

/* Results in every kind of place. */
int64_t results(int64_t rounds) {
    hooked::Operator *operation = make(MULTIPLY, "product");
    int64_t wrong = 0;
    for (int64_t round = 0; round < rounds; ++round) {
        const double by = static_cast<double>(round) + 0.5;
        const hooked::Wide wide = operation->wide(round);
        const __int128 both = operation->both(round, -round);
        wrong += wide.parts[0] != 2 * round || wide.parts[4] != 2 * round + 4;
        wrong += operation->scaled(by) != by * 2.5;
        wrong += operation->precise(round) != static_cast<long double>(round) / 3.0L;
        wrong += static_cast<int64_t>(both) != round || static_cast<int64_t>(both >> 64) != -round;
    }
    return wrong;
}

/* How many more frames a backtrace has in an operator than here; run's and its own. */
int64_t walks(int64_t rounds) {
    hooked::Operator *operation = make(WALK, "walker");
    void *frames[64];
    int64_t least = 64;
    for (int64_t round = 0; round < rounds; ++round) {
        const int64_t more = run(&operation, 1, 0) - backtrace(frames, 64);
        least = more < least ? more : least;
    }
    return least >= 2;
}

/* Calls inside of each other, more than a thread's sections. */
int64_t recursion(int64_t rounds) {
    hooked::Operator *operation = make(RECURSE, "again");
    int64_t result = 0;
    for (int64_t round = 0; round < rounds; ++round) {
        set(nullptr, operation, 40);
        result += run(&operation, 1, 0);
    }
    return result;
}

/* Children that go on with the parent's objects, and load the engine themselves. */
int64_t forks(int64_t rounds) {
    int64_t result = counts(rounds);
    for (int child = 0; child < 3; ++child) {
        const pid_t pid = fork();
        if (pid == 0) {
            _exit(static_cast<int>(counts(rounds) % 100));
        }
        int status = 0;
        waitpid(pid, &status, 0);
        result += WEXITSTATUS(status);
    }
    return result;
}

/* The engine is unloaded and loaded again. */
int64_t reloads(int64_t rounds) {
    int64_t result = 0;
    for (int again = 0; again < 20; ++again) {
        result += counts(rounds);
        close_engine();
        open_engine();
    }
    return result;
}

/* The same in a program that this one becomes, without the library of the hooks. */
int64_t executes(int64_t rounds) {
    counts(rounds);
    unsetenv("LD_PRELOAD");
    const std::string number = std::to_string(rounds);
    execl("/proc/self/exe", "calls", "counts", number.c_str(), nullptr);
    return -1;
}

/* The same after a line, with the engine loaded before. */
int64_t waits(int64_t rounds) {
    std::puts("ready");
    std::fflush(stdout);
    return std::getchar() == EOF ? -1 : counts(rounds);
}

const struct {
    const char *name;
    int64_t (*function)(int64_t rounds);
} ways[] = {{"counts", counts}, {"throws", throws},       {"jumps", jumps},         {"threads", threads},
            {"names", names},   {"constants", constants}, {"results", results},     {"walks", walks},
            {"forks", forks},   {"reloads", reloads},     {"recursion", recursion},
            {"executes", executes}, {"many", many}, {"waits", waits}};

}  // namespace

int main(int count, char **words) {
    if (count == 3) {
        open_engine();
        for (const auto &way : ways) {
            if (std::strcmp(way.name, words[1]) == 0) {
                std::printf("%s: %" PRId64 "\n", way.name, way.function(std::atoll(words[2])));
                return 0;
            }
        }
    }
    std::fprintf(stderr, "expected a way and a number of rounds\n");
    return 2;
}
