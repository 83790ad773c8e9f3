/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef NNTRACE_HOOKS_RELOCATED_H
#define NNTRACE_HOOKS_RELOCATED_H

#include <link.h>
#include <stdbool.h>

/* Whether an object with these program headers is relocated, and what is read-only from then on is. For one without a page of
 * such memory it is whether its words lead where they should. */
bool nntrace_hook_is_relocated(uintptr_t base, const ElfW(Phdr) *headers, int count, bool leads_there)
    __attribute__((visibility("hidden")));

#endif
