/*
 * Makes events of requests from records: finds the request, the span, the duration and the thread of each record by the
 * names of its fields.
 *
 * The trace ID names a request. If the record has no trace ID, the values of the ID fields name the request. If there
 * are no ID fields, the thread of the record names it. The fields are found by their letters, in any case and with any
 * separators: TRACE.ID, SPAN.ID and PARENT.ID (also PARENT.SPAN.ID), the duration DUR or DURATION in seconds (DUR.MS,
 * DURATION.NS and so on in these units; microseconds if the record has the field ph of Chrome's traces), START (the
 * start of a span whose record has the time of its end), the thread TID, THREAD or THREAD.ID, the process PID, and
 * STATUS. Records of sensors belong to no request. Times far from 1970 count as REQUEST_TIME_MAX. Only one thread at a
 * time may use a reader.
 */
#ifndef NETLOGGER_REQUESTS_REQUEST_READER_H
#define NETLOGGER_REQUESTS_REQUEST_READER_H

#include "requests/request_graph.h"

enum { REQUEST_READER_IDS_MAX = 32 };

typedef struct request_reader request_reader;

/*
 * `ids` are the ID fields (drawing.h), ended by NULL; the caller keeps them. If ids is NULL or empty, threads name
 * requests.
 */
request_reader *request_reader_new(const char *const *ids, nl_fraction fraction);
void request_reader_free(request_reader *r); /* NULL is allowed */

/*
 * Makes *event from a record. Returns a hash of the request's name that is not 0, or 0 if the record belongs to no
 * request. Numbers the events in the order of the calls (event->order); this number decides between events with the
 * same time.
 */
uint64_t request_reader_take(request_reader *r, const nl_record *record, request_event *event);

/* Learns about the hosts' clocks from a record. Call it for each record, also of sensors. */
void request_reader_learn(request_reader *r, const nl_record *record);
const clock_bounds *request_reader_clocks(const request_reader *r);

/*
 * Returns the name of the request to which the latest record belongs: the values of the ID fields, or the trace ID. The
 * caller frees the name with g_free. Call the function after request_reader_take, while the record is valid.
 */
char *request_reader_name_request(const request_reader *r);

/*
 * Finds the number of bytes (NBYTES or BYTES) that the latest record carries, and the name of a file (FILE; otherwise
 * no data). Returns false if the record carries no number of bytes. Call it while the record is valid.
 */
bool request_reader_find_bytes(const request_reader *r, double *bytes, nl_string *what,
                               char scratch[NL_FIELD_TEXT_SIZE]);

/*
 * If a record carries the duration of a span, sets *duration_ns and returns true. If *begins is then true, the record's
 * time is the span's start; otherwise, it is the span's end.
 */
bool request_duration(const nl_record *record, nl_fraction fraction, int64_t *duration_ns, bool *begins);

/* Returns whether a record reports a failure by its level or by its field STATUS. */
bool request_is_failure(const nl_record *record);

/*
 * request_reader_names returns the names of events. The other two functions return the name of the host or program that
 * has this number in request_event.
 */
const event_names *request_reader_names(const request_reader *r);
const char *request_reader_host(const request_reader *r, uint32_t host);
const char *request_reader_program(const request_reader *r, uint32_t program);

#endif
