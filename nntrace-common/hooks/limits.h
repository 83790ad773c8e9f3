/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Sizes that the thunks and the rest of the library share.
 */
#ifndef NNTRACE_HOOKS_LIMITS_H
#define NNTRACE_HOOKS_LIMITS_H

/* Functions that can be hooked in a process. */
#define HOOKS 4096
/* Distance from one thunk to the next, bytes. */
#if defined(__x86_64__)
#define THUNK_BYTES 32
#else
#define THUNK_BYTES 64
#endif

#endif
