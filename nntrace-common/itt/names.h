/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Domains and names of tasks: one object for each text, for as long as the process lives.
 */
#ifndef NNTRACE_ITT_NAMES_H
#define NNTRACE_ITT_NAMES_H

#include "abi.h"

/* Returns the domain of this name, which is created if there is none; null for no name. When there is no room for
 * another one, a domain whose tasks are left out. */
struct itt_domain *nntrace_itt_domain(const char *name);

/* Returns the object of this text, which is created if there is none; null for no text. When there is no room for
 * another one, a common object named `(others)`. */
struct itt_string *nntrace_itt_string(const char *text);

/* Forgets which names are in use on threads that a forked child does not have. */
void nntrace_itt_forget_uses(void);

#endif
