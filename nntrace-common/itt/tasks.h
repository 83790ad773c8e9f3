/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Tasks and regions as marks.
 */
#ifndef NNTRACE_ITT_TASKS_H
#define NNTRACE_ITT_TASKS_H

#include "abi.h"

/* Begins a task on this thread. Without a name it has the domain's. */
void nntrace_itt_begin_task(const struct itt_domain *domain, struct itt_string *name);

/* Ends the innermost task of this thread. */
void nntrace_itt_end_task(const struct itt_domain *domain);

/* Begins a region. One that begins where a region of its layer and phase is open on this thread is a part of that one,
 * and the first end ends both: OpenVINO 2026.4 ends one of two that are nested. */
void nntrace_itt_begin_region(const struct itt_domain *domain, struct itt_string *name);

/* Ends the innermost region of this thread, after the tasks that are open in it. */
void nntrace_itt_end_region(const struct itt_domain *domain);

/* Begins a task that ends on any thread: a slice on a track with the domain's name. */
void nntrace_itt_begin_slice(const struct itt_domain *domain, const struct itt_id *id, const struct itt_string *name);

/* Ends it. */
void nntrace_itt_end_slice(const struct itt_domain *domain, const struct itt_id *id);

/* Forgets what is open in the process that this one was forked from. */
void nntrace_itt_forget_tasks(void);

#endif
