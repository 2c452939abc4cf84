/* Measures pairs of LTTng-UST tracepoints. LTTng-UST has no spans, so the program makes span IDs from a counter. */
#include "measure_spans.h"

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_provider.h"

static void nothing(void)
{
}

int main(int argc, char **argv)
{
    const char *sql = "SELECT name FROM t";
    (void)argv;
    MEASURE(argc > 1 ? "off" : "begin and end", nothing, {
        uint64_t id = (uint64_t)i + 1;
        lttng_ust_tracepoint(bench, Query_start, id, id, id, 1, i, 2L * i, sql, 1.5, i);
        lttng_ust_tracepoint(bench, Query_end, id, id, id, 1, i, 2L * i, sql, 1.5, i);
    });
    return 0;
}
