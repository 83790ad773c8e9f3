/* Begins without ends: of no use. */
__attribute__((noinline)) void ATrace_beginSection(const char *name) { __asm__ volatile("" ::"r"(name) : "memory"); }

int main(void) { ATrace_beginSection("[NN_LR_PE]never ends"); }
