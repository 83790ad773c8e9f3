/* The tracepoint of lttng.c. LTTng includes this file several times. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER nntrace_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng.h"

#if !defined(NNTRACE_BENCH_LTTNG_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define NNTRACE_BENCH_LTTNG_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(nntrace_bench, mark, LTTNG_UST_TP_ARGS(const char *, name),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_string(name, name)))

#endif

#include <lttng/tracepoint-event.h>
