// Methods of those names: the object comes first.
#include <cstdio>

struct Tracer {
    void ATrace_beginSection(const char *name);
    void ATrace_endSection();
    int sections = 0;
};

__attribute__((noinline)) void Tracer::ATrace_beginSection(const char *name) { sections += name[0] != 0; }
__attribute__((noinline)) void Tracer::ATrace_endSection() { sections += 2; }

int main() {
    Tracer tracer;
    for (int round = 0; round < 7; round++) {
        char name[64];
        std::snprintf(name, sizeof name, "[NN_LR_PE]run %s", "all");
        tracer.ATrace_beginSection(name);
        tracer.ATrace_endSection();
    }
    return tracer.sections == 21 ? 0 : 1;
}
