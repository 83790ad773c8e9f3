/* What marks.c and marks-part.c share. */
#ifndef NNTRACE_TESTS_MARKS_H
#define NNTRACE_TESTS_MARKS_H

enum { ROUNDS = 5 };

#ifdef __cplusplus
extern "C"
#endif
int part(int number);

#endif
