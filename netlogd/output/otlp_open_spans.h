/*
 * Stores the open spans of an OTLP output. A span is open if its start was read from the spool, but its end was not.
 * OTLP sends a span as one item, but its start, its events and its end are several records, which may be in different
 * deliveries.
 *
 * The module owns these records, except the ends, and the file SPOOL/open-spans, which contains them and the place up
 * to which records were delivered. If the open spans have changed, open_spans_save replaces the file after a delivery
 * and before the place in the spool advances. After a kill between these two steps, the place in the file is ahead of
 * the place in the spool, and the output skips the records between the two places. Therefore, a kill loses no record,
 * and a span that is sent again has the same IDs.
 *
 * The module stores at most OPEN_SPANS_MAX spans and OPEN_SPANS_BYTES_MAX bytes, for at most OPEN_SPANS_S seconds.
 * open_spans_take_excess removes spans beyond these limits, oldest first. A span has at most OPEN_SPAN_POINTS_MAX
 * records besides its start, and OPEN_SPAN_BYTES_MAX bytes, because receivers limit the size of requests. Only one
 * thread at a time may use an open_spans.
 */
#ifndef NETLOGD_OUTPUT_OTLP_OPEN_SPANS_H
#define NETLOGD_OUTPUT_OTLP_OPEN_SPANS_H

#include "kind.h"

enum {
    OPEN_SPANS_MAX = 100000,
    OPEN_SPANS_BYTES_MAX = 32 << 20,
    OPEN_SPANS_S = 3600,
    OPEN_SPAN_POINTS_MAX = 1024,
    OPEN_SPAN_BYTES_MAX = 1 << 20,
    OPEN_SPAN_ID_SIZE = 24
};

typedef struct open_spans open_spans;

/* Reads the file in a spool's directory, if it exists. On failure, sets the error and returns NULL. */
open_spans *open_spans_new(const char *spool);
void open_spans_free(open_spans *o); /* NULL is allowed */

/* Returns the place that the file contains. */
output_place open_spans_place(const open_spans *o);

/*
 * Writes the file, unless the spans are unchanged since the latest write. If `sync` is true, waits until the file is on
 * the disk. On failure, sets the error and returns NL_FAILED.
 */
nl_status open_spans_save(open_spans *o, output_place place, bool sync);

/* Adds a span, with the packed record (nl_record_pack) of its start. Returns false if the span is already open. */
bool open_spans_add(open_spans *o, const unsigned char id[OPEN_SPAN_ID_SIZE], int64_t now_ns, nl_string packed);

/* Sets *packed to the record of a span's start, until the next call. Returns false if the span is not open. */
bool open_spans_find(open_spans *o, const unsigned char id[OPEN_SPAN_ID_SIZE], nl_string *packed);

/*
 * Adds a packed record to an open span. If the span would exceed a limit, counts the record as dropped from the span,
 * and returns false.
 */
bool open_spans_append(open_spans *o, const unsigned char id[OPEN_SPAN_ID_SIZE], nl_string packed);

/*
 * Removes an open span. Appends its records, which open_spans_next reads, to `records`. Returns the number of records
 * that were dropped from the span.
 */
uint32_t open_spans_take(open_spans *o, const unsigned char id[OPEN_SPAN_ID_SIZE], nl_buffer *records);

/* Like open_spans_take, for the oldest span if it exceeds a limit. Returns false if no span exceeds a limit. */
bool open_spans_take_excess(open_spans *o, int64_t now_ns, nl_buffer *records);

/* Takes the first packed record from `records`. Returns false at the end. */
bool open_spans_next(nl_string *records, nl_string *packed);

#endif
