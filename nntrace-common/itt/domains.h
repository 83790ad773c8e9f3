/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Meaning of the domains of libraries: the layer and phase of their tasks.
 */
#ifndef NNTRACE_ITT_DOMAINS_H
#define NNTRACE_ITT_DOMAINS_H

#include "abi.h"
#include "tags.h"

/* Meaning of a domain's tasks. */
struct meaning {
    /* Name of the domain, or what it begins with if a `*` is at the end. */
    const char *domain;
    /* Layer and phase; NO_TAG: by name, or none. */
    itt_tag tag;
    /* Layer and phase of a task without another one around it, if other than `tag`. */
    itt_tag outermost;
    /* Not marked at all. */
    bool is_left_out;
    /* Layer and phase depend on the task's name. */
    bool is_by_name;
    /* One operator of a model, in contrast to a phase of it. */
    bool is_operator;
    /* Threads that help with such a task have one of the same name meanwhile. */
    bool has_helpers;
    /* Nothing is known of it. */
    bool is_unknown;
};

/* Asks the environment, once, which tasks are wanted: NNTRACE_ITT=run leaves out operators. */
void nntrace_itt_read_level(void);

/* Enables a domain or, if its tasks are left out, disables it. */
void nntrace_itt_set_up(struct itt_domain *domain);

/* Returns the meaning of a domain. */
const struct meaning *nntrace_itt_meaning(const struct itt_domain *domain);

/* Returns the layer and phase of a task by its domain and name; NO_TAG: not to be marked. */
itt_tag nntrace_itt_tag(const struct meaning *meaning, const char *name);

#endif
