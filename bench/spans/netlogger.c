/* Measures the cost of NetLogger's spans: begin and end with ten fields in total, traceparent, and disabled spans. */
#include "measure_spans.h"

#include <netlogger.h>

static nl_log *bench_log;

static void flush_log(void)
{
    nl_flush(bench_log);
}

int main(void)
{
    const char *sql = "SELECT name FROM t";
    char text[NL_TRACEPARENT_SIZE];
    nl_context parsed;
    bench_log = nl_open("bench", NULL);
    if (bench_log == NULL)
        return 1;
    nl_set_level(bench_log, NL_USAGE);
    MEASURE("event", flush_log, NL_EVENT(bench_log, NL_USAGE, "Row", "A", i, "B", 1.5, "C", sql));
    nl_span root = nl_span_begin(bench_log, NL_USAGE, "Root", NULL);
    MEASURE("begin and end", flush_log, {
        nl_span span =
            nl_span_begin(bench_log, NL_USAGE, "Query", &root.context, "A", i, "B", 2L * i, "C", sql, "D", 1.5, "E", i);
        nl_span_end(&span, "F", i, "G", 2L * i, "H", sql, "I", 1.5, "J", i);
    });
    nl_context_attach(&root.context);
    MEASURE("NL_SPAN", flush_log, {
        NL_SPAN(bench_log, NL_USAGE, "Scope", "A", i, "B", 2L * i, "C", sql, "D", 1.5, "E", i, "F", i, "G", 2L * i, "H", sql,
                "I", 1.5, "J", i) {
            MEASURE_BARRIER();
}
});
MEASURE("event in a span", flush_log, NL_EVENT(bench_log, NL_USAGE, "Row", "A", i, "B", 1.5, "C", sql));
nl_context_attach(NULL);
    MEASURE("off", flush_log, {
        NL_SPAN(bench_log, NL_DEBUG, "Off", "A", i, "B", 2L * i, "C", sql, "D", 1.5, "E", i) {
            MEASURE_BARRIER();
    }
    });
    MEASURE("off, begin", flush_log, {
        nl_span span =
            nl_span_begin(bench_log, NL_DEBUG, "Off", &root.context, "A", i, "B", 2L * i, "C", sql, "D", 1.5, "E", i);
        MEASURE_BARRIER();
        nl_span_end(&span, "F", i, "G", 2L * i, "H", sql, "I", 1.5, "J", i);
    });
    nl_context unsampled = root.context;
    unsampled.flags = 0;
    nl_context_attach(&unsampled);
    MEASURE("not sampled", flush_log, {
        NL_SPAN(bench_log, NL_USAGE, "Unsampled", "A", i, "B", 2L * i, "C", sql, "D", 1.5, "E", i) {
            MEASURE_BARRIER();
    }
    });
    nl_context_attach(NULL);
    MEASURE("format", flush_log, {
        nl_traceparent_format(&root.context, text);
        MEASURE_BARRIER();
    });
    MEASURE("parse", flush_log, {
        nl_traceparent_parse(text, 55, &parsed);
        MEASURE_BARRIER();
    });
    nl_span_end(&root);
    return nl_close(bench_log) == NL_OK ? 0 : 1;
    }
