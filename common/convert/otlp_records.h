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

/* Returns whether to convert the span with these IDs, which are hexadecimal digits. */
typedef bool (*otlp_admit)(void *user, nl_string trace, nl_string span);

typedef struct otlp_limits {
    int64_t now_ns;  /* time of log records and data points that have no time; 0: such items are rejected */
    size_t item_max; /* maximum size of a span, log record or metric in bytes; 0: no limit */
} otlp_limits;

/* Counts of a request: spans, log records or data points. */
typedef struct otlp_outcome {
    uint64_t accepted, rejected;
    const char *error; /* reason of the first rejection, or NULL */
} otlp_outcome;

/* `admit` is called for each span, with `user`; NULL: all spans are converted. */
otlp_records *otlp_records_new(otlp_admit admit, void *user);
void otlp_records_free(otlp_records *r);

/* Passes the records of a request to the sink. If signal is OTLP_SIGNAL_COUNT, JSON may contain any signal. */
otlp_outcome otlp_records_read(otlp_records *r, otlp_signal signal, bool json, nl_string request,
                               const otlp_limits *limits, sink *s);

#endif
