/*
 * The LTTng-UST tracepoint, with the same three fields as the events of the other sides. LTTng's headers include this
 * file repeatedly.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_provider.h"

#if !defined(BENCH_LOG_LTTNG_PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_LOG_LTTNG_PROVIDER_H

#include <lttng/tracepoint.h>

/* clang-format off */
LTTNG_UST_TRACEPOINT_EVENT(
    bench,
    WriteData,
    LTTNG_UST_TP_ARGS(long, offset, int, size, const char *, name),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(long, OFFSET, offset)
        lttng_ust_field_integer(int, SIZE, size)
        lttng_ust_field_string(NAME, name)
    )
)
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
