/* Functions of every kind of argument and result. */
#ifndef CALLS_LIBRARY_H
#define CALLS_LIBRARY_H

#include <cstddef>
#include <cstdint>

struct Point {
    std::int32_t x, y;
    double weight;
};

namespace shapes {
int area(int width, int height);
int area(const Point *point);
}

extern "C" {
std::int64_t calls_sum(std::int8_t a, std::uint8_t b, std::int16_t c, std::uint16_t d, std::int32_t e,
                       std::uint32_t f, std::int64_t g, std::uint64_t h, std::int32_t i, std::int8_t j);
std::int8_t calls_i8(std::int64_t value);
std::uint8_t calls_u8(std::int64_t value);
std::int16_t calls_i16(std::int64_t value);
std::uint16_t calls_u16(std::int64_t value);
std::int32_t calls_i32(std::int64_t value);
std::uint32_t calls_u32(std::int64_t value);
std::int64_t calls_i64(std::int64_t value);
std::uint64_t calls_u64(std::int64_t value);
bool calls_bool(std::int64_t value);
char calls_char(std::int64_t value);
const Point *calls_point(const Point *point);
std::size_t calls_text(const char *text);
const char *calls_echo(const char *text);
std::size_t calls_three(const char *one, const char *two, const char *three);
int calls_fill(void *to, int length, std::uint8_t byte);
void calls_scale(const double *from, float *to);
double calls_ninth(double a, double b, double c, double d, double e, double f, double g, double h, double i);
int calls_recurse(int depth);
int calls_tail(int value);
int calls_target(int value);
void calls_throw(int value);
void calls_throw_through(int value);
void calls_jump(int value);
int calls_add(int thread, int value);
void calls_leave_thread(int value);
void calls_stay(int seconds);
void calls_exit(int code);
}

#endif
