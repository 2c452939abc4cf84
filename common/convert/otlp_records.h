/*
 * Converts requests of OTLP, in protobuf or JSON, to records. The importers of files (otlp_read.c) and netlogd's
 * listener use it.
 *
 *   request -> resource -> scope -> span, log record or data point -> records -> sink
 *
 * doc/formats.md defines the records. An invalid item, such as a span without a start time, is rejected; the other
 * items of its request are read. Only one thread at a time may use an otlp_records.
 */
#ifndef NETLOGGER_CONVERT_OTLP_RECORDS_H
#define NETLOGGER_CONVERT_OTLP_RECORDS_H

#include "convert/convert.h"

typedef enum otlp_signal { OTLP_TRACES, OTLP_LOGS, OTLP_METRICS, OTLP_SIGNAL_COUNT } otlp_signal;

typedef struct otlp_records otlp_records;

/* All members may be zero. */
typedef struct otlp_options {
    /* Returns whether to convert the span with these IDs, which are hexadecimal digits. NULL: convert all spans. */
    bool (*admit)(void *user, nl_string trace, nl_string span);
    void *user;
    size_t item_max; /* maximum size of a span, log record or metric in bytes; 0: no limit */
} otlp_options;

/* Counts of a request: spans, log records or data points. */
typedef struct otlp_outcome {
    uint64_t accepted, rejected;
    const char *error; /* reason of the first rejection, or NULL */
} otlp_outcome;

otlp_records *otlp_records_new(const otlp_options *options);
void otlp_records_free(otlp_records *r);

/*
 * Passes the records of a request to the sink. now_ns is the time of log records and data points that have no time; 0:
 * such items are rejected. If signal is OTLP_SIGNAL_COUNT, JSON may contain any signal.
 */
otlp_outcome otlp_records_read(otlp_records *r, otlp_signal signal, bool json, nl_string request, int64_t now_ns,
                               sink *s);

#endif
