/*
 * Converts OTLP requests in protobuf or JSON to records. The importers of files (otlp_read.c) and netlogd's
 * listener use this module.
 *
 *   request -> resource -> scope -> span, log record or data point -> records -> sink
 *
 * doc/formats.md defines the records. If an item is invalid, such as a span without a start time, the module rejects
 * the item and reads the other items of the request. Only one thread at a time may use an otlp_records.
 */
#ifndef NETLOGGER_CONVERT_OTLP_RECORDS_H
#define NETLOGGER_CONVERT_OTLP_RECORDS_H

#include "convert/convert.h"

typedef enum otlp_signal { OTLP_TRACES, OTLP_LOGS, OTLP_METRICS, OTLP_SIGNAL_COUNT } otlp_signal;

typedef struct otlp_records otlp_records;

/* Recognizes spans that a converter has already converted. The IDs are hexadecimal digits. */
typedef struct otlp_known_spans {
    void (*expect)(nl_string trace, nl_string span); /* called some time before `has` */
    bool (*has)(nl_string trace, nl_string span);
    void (*add)(nl_string trace, nl_string span); /* called after the conversion of a whole span */
} otlp_known_spans;

typedef struct otlp_limits {
    int64_t now_ns;  /* time for log records and data points without a time; 0: the module rejects such items */
    size_t item_max; /* maximum size in bytes of a span, log record or metric, and of the resource and scope together;
                        0: no limit */
    size_t text_max; /* maximum size in bytes of the names and values of a request's records, which all repeat the
                        attributes of the resource; 0: no limit */
} otlp_limits;

/* Counts of a request: spans, log records or data points. */
typedef struct otlp_outcome {
    uint64_t accepted, rejected;
    const char *error; /* reason of the first rejection, or NULL */
} otlp_outcome;

/*
 * Creates a converter, which the caller frees. The converter does not convert spans in `known` again, but counts them
 * as accepted. If `known` is NULL, converts all spans.
 */
otlp_records *otlp_records_new(const otlp_known_spans *known);
void otlp_records_free(otlp_records *r);

/*
 * Passes the records of a request to the sink. If `signal` is OTLP_SIGNAL_COUNT, a JSON request may contain any signal.
 * Returns the counts of the request's items.
 */
otlp_outcome otlp_records_read(otlp_records *r, otlp_signal signal, bool json, nl_string request,
                               const otlp_limits *limits, sink *s);

#endif
