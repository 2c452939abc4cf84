/*
 * Stores the open spans of an OTLP output: their start was read from the spool, but not yet their end. OTLP sends a
 * span as one item, but its start and end are two records, which may be in different deliveries.
 *
 * The module owns the records of these spans' starts, and the file SPOOL/open-spans, which contains them and the place
 * up to which records were delivered. If the open spans have changed, open_spans_save replaces the file after a
 * delivery and before the place in the spool advances. After a kill between these two steps, the place in the file is
 * ahead of the place in the spool, and the output skips the records between the two places. Therefore, a kill loses no
 * start, and a span that is sent again has the same IDs.
 *
 * The module stores at most OPEN_SPANS_MAX starts and OPEN_SPANS_BYTES_MAX bytes, for at most OPEN_SPANS_S seconds.
 * open_spans_take_excess removes starts beyond these limits, oldest first. Only one thread at a time may use an
 * open_spans.
 */
#ifndef NETLOGD_OUTPUT_OTLP_OPEN_SPANS_H
#define NETLOGD_OUTPUT_OTLP_OPEN_SPANS_H

#include "kind.h"

enum { OPEN_SPANS_MAX = 100000, OPEN_SPANS_BYTES_MAX = 32 << 20, OPEN_SPANS_S = 3600, OPEN_SPAN_ID_SIZE = 24 };

typedef struct open_spans open_spans;

/* Reads the file in a spool's directory, if it exists. Returns NULL after setting the error. */
open_spans *open_spans_new(const char *spool);
void open_spans_free(open_spans *o); /* NULL is allowed */

/* Returns the place that the file contains. */
output_place open_spans_place(const open_spans *o);

/*
 * Writes the file, unless the spans are unchanged since the latest write. If `sync` is true, waits until the file is on
 * the disk. Returns NL_FAILED after setting the error.
 */
nl_status open_spans_save(open_spans *o, output_place place, bool sync);

/* Adds the packed record (nl_record_pack) of a span's start. Returns false if a span with this ID is already open. */
bool open_spans_add(open_spans *o, const unsigned char id[OPEN_SPAN_ID_SIZE], int64_t now_ns, nl_string packed);

/* Removes a span, and appends its packed record. Returns false if the span is not open. */
bool open_spans_take(open_spans *o, const unsigned char id[OPEN_SPAN_ID_SIZE], nl_buffer *packed);

/*
 * Removes the oldest span if it exceeds a limit, and appends its packed record. Returns false if no span exceeds a
 * limit.
 */
bool open_spans_take_excess(open_spans *o, int64_t now_ns, nl_buffer *packed);

#endif
