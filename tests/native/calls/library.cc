// Functions of every kind of argument and result.
#include "library.h"

#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <stdexcept>
#include <unistd.h>

extern "C" jmp_buf calls_back;
jmp_buf calls_back;

namespace shapes {
int area(int width, int height) { return width * height; }
int area(const Point *point) { return point->x * point->y; }
}

extern "C" {
std::int64_t calls_sum(std::int8_t a, std::uint8_t b, std::int16_t c, std::uint16_t d, std::int32_t e,
                       std::uint32_t f, std::int64_t g, std::uint64_t h, std::int32_t i, std::int8_t j)
{
    return a + b + c + d + e + static_cast<std::int64_t>(f) + g + static_cast<std::int64_t>(h) + i + j;
}

std::int8_t calls_i8(std::int64_t value) { return static_cast<std::int8_t>(value); }
std::uint8_t calls_u8(std::int64_t value) { return static_cast<std::uint8_t>(value); }
std::int16_t calls_i16(std::int64_t value) { return static_cast<std::int16_t>(value); }
std::uint16_t calls_u16(std::int64_t value) { return static_cast<std::uint16_t>(value); }
std::int32_t calls_i32(std::int64_t value) { return static_cast<std::int32_t>(value); }
std::uint32_t calls_u32(std::int64_t value) { return static_cast<std::uint32_t>(value); }
std::int64_t calls_i64(std::int64_t value) { return value; }
std::uint64_t calls_u64(std::int64_t value) { return static_cast<std::uint64_t>(value); }
bool calls_bool(std::int64_t value) { return value != 0; }
char calls_char(std::int64_t value) { return static_cast<char>(value); }
const Point *calls_point(const Point *point) { return point; }

std::size_t calls_text(const char *text) { return reinterpret_cast<std::uintptr_t>(text) < 4096 ? 0 : std::strlen(text) + 1; }
const char *calls_echo(const char *text) { return text; }

std::size_t calls_three(const char *one, const char *two, const char *three)
{
    return static_cast<std::size_t>(one[0]) + static_cast<std::size_t>(two[0]) + static_cast<std::size_t>(three[0]);
}

int calls_fill(void *to, int length, std::uint8_t byte)
{
    if (length > 0) {
        std::memset(to, byte, static_cast<std::size_t>(length));
    }
    return length / 2;
}

void calls_scale(const double *from, float *to) { *to = static_cast<float>(*from * 2); }

double calls_ninth(double a, double b, double c, double d, double e, double f, double g, double h, double i)
{
    return a + b + c + d + e + f + g + h + i;
}

int calls_recurse(int depth)
{
    // By a pointer that the compiler does not know, or it is a loop.
    int (*volatile again)(int) = calls_recurse;
    return depth == 0 ? 0 : 3 * again(depth - 1) + depth;
}

int calls_target(int value) { return value * 10; }
int calls_tail(int value) { return calls_target(value + 1); }

void calls_throw(int value)
{
    if (value >= 0) {
        throw std::runtime_error("thrown");
    }
    calls_add(0, value);
}

void calls_throw_through(int value)
{
    calls_throw(value + 1);
    calls_add(0, value);
}

void calls_jump(int value) { longjmp(calls_back, value); }

int calls_add(int thread, int value) { return thread + value; }

void calls_leave_thread(int) { pthread_exit(nullptr); }

void calls_stay(int seconds)
{
    sleep(static_cast<unsigned>(seconds));
    calls_add(0, seconds);
}

void calls_exit(int code) { std::exit(code); }
}
