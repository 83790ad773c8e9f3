/* An engine for tests of hooks: its operators are virtual functions, as those of real engines, and end in every way. */
#ifndef NNTRACE_TESTS_HOOKED_ENGINE_H
#define NNTRACE_TESTS_HOOKED_ENGINE_H

#include <csetjmp>
#include <cstdint>
#include <string>

#define VISIBLE __attribute__((visibility("default")))
#define EXPORTED extern "C" VISIBLE __attribute__((noinline))

namespace hooked {

/* Thrown by operators. */
struct VISIBLE Failed {
    int64_t number;
};

/* Returned in memory. */
struct Wide {
    int64_t parts[5];
};

class VISIBLE Operator {
public:
    explicit Operator(const char *name) : name_(name) {}
    virtual ~Operator();
    /* Slots 2 to 6: results in each kind of place. */
    virtual int64_t compute(int64_t first, int64_t second) = 0;
    virtual Wide wide(int64_t first);
    virtual double scaled(const double &by);
    virtual long double precise(int64_t first);
    virtual __int128 both(int64_t low, int64_t high);

protected:
    std::string name_;
};

}  // namespace hooked

enum Kind { ADD, MULTIPLY, THROW, JUMP, NEST, WAIT, EXIT, WALK, RECURSE };

/* Makes an operator, of this kind and name. */
EXPORTED hooked::Operator *hooked_make(int kind, const char *name);
EXPORTED void hooked_drop(hooked::Operator *operation);
/* Loads a model: the operator computes a constant. */
EXPORTED int64_t hooked_load(const char *path, hooked::Operator *operation);
/* Runs one operator after the other, from a first number on. */
EXPORTED int64_t hooked_run(hooked::Operator *const *operators, int64_t count, int64_t first);
/* Where JUMP jumps to; what NEST calls; for how many rounds RECURSE calls itself. */
EXPORTED void hooked_set(std::jmp_buf *target, hooked::Operator *inner, int64_t depth);

#endif
