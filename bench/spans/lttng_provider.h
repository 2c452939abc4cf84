/*
 * Two LTTng-UST tracepoints for the start and the end of a span, with the same IDs and fields as the spans of the other
 * sides. LTTng's headers include this file repeatedly.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_provider.h"

#if !defined(BENCH_SPANS_LTTNG_PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_SPANS_LTTNG_PROVIDER_H

#include <lttng/tracepoint.h>
#include <stdint.h>

/* clang-format off */
LTTNG_UST_TRACEPOINT_EVENT_CLASS(
    bench, half,
    LTTNG_UST_TP_ARGS(uint64_t, trace_high, uint64_t, trace_low, uint64_t, span, uint64_t, parent, int, a, long, b,
                      const char *, c, double, d, int, e),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer_hex(uint64_t, trace_high, trace_high)
        lttng_ust_field_integer_hex(uint64_t, trace_low, trace_low)
        lttng_ust_field_integer_hex(uint64_t, span, span)
        lttng_ust_field_integer_hex(uint64_t, parent, parent)
        lttng_ust_field_integer(int, A, a)
        lttng_ust_field_integer(long, B, b)
        lttng_ust_field_string(C, c)
        lttng_ust_field_float(double, D, d)
        lttng_ust_field_integer(int, E, e)
    )
)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(
    bench, half, bench, Query_start,
    LTTNG_UST_TP_ARGS(uint64_t, trace_high, uint64_t, trace_low, uint64_t, span, uint64_t, parent, int, a, long, b,
                      const char *, c, double, d, int, e)
)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(
    bench, half, bench, Query_end,
    LTTNG_UST_TP_ARGS(uint64_t, trace_high, uint64_t, trace_low, uint64_t, span, uint64_t, parent, int, a, long, b,
                      const char *, c, double, d, int, e)
)
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
