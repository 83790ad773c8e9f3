// Calls the functions of the library: program WAY [FILE].
#include "library.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

extern "C" jmp_buf calls_back;

static void integers()
{
    calls_sum(-1, 255, -300, 65535, -70000, 4000000000U, INT64_MIN, UINT64_MAX, -9, -10);
    calls_sum(127, 0, 32767, 1, 2147400000, 2, 9000000000000000000, 3, 4, 5);
    const std::int64_t value = static_cast<std::int64_t>(0x8182838485868788);
    calls_i8(value);
    calls_u8(value);
    calls_i16(value);
    calls_u16(value);
    calls_i32(value);
    calls_u32(value);
    calls_i64(value);
    calls_u64(value);
    calls_bool(value);
    calls_bool(0);
    calls_char('k');
    shapes::area(6, 7);
}

static void texts(const char *file)
{
    for (std::size_t length : {0, 1, 511, 512, 612}) {
        calls_text(std::string(length, 'a').c_str());
    }
    calls_echo("caf\xc3\xa9 \xff\x01\"\\");
    const std::string long_one(600, 'b');
    calls_three(long_one.c_str(), long_one.c_str(), long_one.c_str());
    calls_text(nullptr);
    calls_text(reinterpret_cast<const char *>(16));
    // A page that nobody has touched, and a text over the border of two.
    const int descriptor = open(file, O_RDONLY);
    const std::size_t size = 2 * 4096;
    void *mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    calls_text(static_cast<const char *>(mapped) + 4096 - 3);
    munmap(mapped, size);
    close(descriptor);
}

static void memory()
{
    Point point = {1, -2, 0.5};
    calls_point(&point);
    calls_point(nullptr);
    shapes::area(&point);
    char block[1500];
    std::memset(block, 0, sizeof block);
    for (int length : {0, 1, 4, -4, 512, 600}) {
        calls_fill(block, length, 0xab);
    }
    const double from = 1.25;
    float to = 0;
    calls_scale(&from, &to);
    calls_ninth(1, 2, 3, 4, 5, 6, 7, 8, 0.375);
}

static void ends()
{
    calls_recurse(3);
    calls_tail(4);
    try {
        calls_throw_through(5);
    } catch (const std::runtime_error &) {
        calls_add(1, 1);
    }
    if (setjmp(calls_back) == 0) {
        calls_jump(6);
    }
    calls_add(2, 2);
}

static void *work(void *number)
{
    const int thread = *static_cast<int *>(number);
    for (int value = 0; value < 200; value++) {
        calls_add(thread, value);
    }
    calls_leave_thread(thread);
    return nullptr;
}

static void threads()
{
    pthread_t all[4];
    int numbers[4] = {1000, 2000, 3000, 4000};
    for (int place = 0; place < 4; place++) {
        pthread_create(&all[place], nullptr, work, &numbers[place]);
    }
    for (pthread_t thread : all) {
        pthread_join(thread, nullptr);
    }
}

int main(int count, char **words)
{
    const std::string way = count > 1 ? words[1] : "";
    if (way == "integers") {
        integers();
    } else if (way == "texts") {
        texts(words[2]);
    } else if (way == "memory") {
        memory();
    } else if (way == "ends") {
        ends();
        calls_exit(0);
    } else if (way == "deep") {
        calls_recurse(19);
    } else if (way == "threads") {
        threads();
    } else if (way == "stay") {
        calls_stay(20);
    }
    return 0;
}
