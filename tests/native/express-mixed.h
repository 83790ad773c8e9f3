/* What express-mixed.c and express-mixed-part.c share. */
#ifndef NNTRACE_TESTS_EXPRESS_MIXED_H
#define NNTRACE_TESTS_EXPRESS_MIXED_H

/* Calls a function in a section of the library. */
void mixed_part(void (*inner)(void));

#endif
