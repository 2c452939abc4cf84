/*
 * Converts records to the events of requests. Finds the request, the span, the duration and the thread of a record by
 * the names of its fields.
 *
 * The trace ID names the request. If a record has no trace ID, the values of the ID fields name the request. If there
 * are no ID fields, the thread or process of the record names the request. The reader uses the following fields, whose
 * names may have any case and any separators. TRACE.ID, SPAN.ID and PARENT.ID (or PARENT.SPAN.ID) are identifiers. DUR
 * or DURATION, and nginx's request_time, is the duration in seconds; DUR.MS, DURATION.NS and so on are in the named
 * unit. A value with units, such as "12.3ms", has these units. A whole number without a unit is in nanoseconds if it
 * exceeds 86,400 (a day in seconds), because Go programs write such durations. All later whole numbers without a unit
 * are then also in nanoseconds. A record with a duration but without an event has the name "request". If the record has
 * the field ph of Chrome's traces, the duration is in microseconds. START is the start of a span whose record has the
 * time of its end. TID, THREAD or THREAD.ID is the thread, PID is the process, and STATUS shows failures. Records of
 * sensors and NetLogger's own events (NetLogger.*) belong to no request. Times farther from 1970 than REQUEST_TIME_MAX
 * are limited to that value. Only one thread at a time may use a reader.
 */
#ifndef NETLOGGER_REQUESTS_REQUEST_READER_H
#define NETLOGGER_REQUESTS_REQUEST_READER_H

#include "requests/request_graph.h"

enum { REQUEST_READER_IDS_MAX = 32 };

typedef struct request_reader request_reader;

/*
 * Creates a reader, which the caller frees. `ids` are the ID fields (drawing.h), ended by NULL, of which the reader
 * uses the first REQUEST_READER_IDS_MAX; the caller keeps them. If `ids` is NULL or empty, threads name requests.
 */
request_reader *request_reader_new(const char *const *ids, nl_fraction fraction);
void request_reader_free(request_reader *r); /* NULL is allowed */

/*
 * Converts a record to *event. Returns a hash of the request's name, which is not 0. Returns 0 if the record belongs to
 * no request. event->order is the number of earlier events. Events with the same time are in this order.
 */
uint64_t request_reader_take(request_reader *r, const nl_record *record, request_event *event);

/* Learns about the hosts' clocks from a record. Call it for each record, including records of sensors. */
void request_reader_learn(request_reader *r, const nl_record *record);
const clock_bounds *request_reader_clocks(const request_reader *r);

/*
 * Returns the name of the request to which the latest record of request_reader_take belongs: the trace ID, or the
 * values of the ID fields, or "" if the thread names the request. Truncates long values. The caller frees the name with
 * g_free. Call the function while the record is valid.
 */
char *request_reader_name_request(const request_reader *r);

/*
 * Returns the thread, or without a thread the process, that the latest record of request_reader_take names. If the
 * record names neither, the data of the result is NULL. The result may point into `scratch`. Call the function while
 * the record is valid.
 */
nl_string request_reader_find_thread(const request_reader *r, char scratch[NL_FIELD_TEXT_SIZE]);

/*
 * Sets *bytes to the number of bytes (NBYTES or BYTES) in the latest record of request_reader_take, and *what to the
 * value of the record's field FILE. Without this field, the data of *what is NULL. *what may point into `scratch`.
 * Returns false if the number of bytes is missing or invalid. Call the function while the record is valid.
 */
bool request_reader_find_bytes(const request_reader *r, double *bytes, nl_string *what,
                               char scratch[NL_FIELD_TEXT_SIZE]);

/*
 * Finds the duration of a span in a record. Sets *duration_ns. Sets *begins to true if the record's time is the span's
 * start, or to false if it is the span's end. *has_nanoseconds states whether an earlier duration without a unit was in
 * nanoseconds; the function sets it to true if this duration is. Returns false if the record has no duration.
 */
bool request_duration(const nl_record *record, nl_fraction fraction, bool *has_nanoseconds, int64_t *duration_ns,
                      bool *begins);

/*
 * The name of the event of a record that has a duration but no event, such as a record of an access log. A reader does
 * not store this name in the record.
 */
#define REQUEST_UNNAMED "request"

/*
 * If the drawing has a step for each program (drawing_splits_unnamed), the name of such an event is "request of PROG".
 */
#define REQUEST_UNNAMED_OF REQUEST_UNNAMED " of "

/* Gives the records without an event the names "request of PROG". Call it before the first record. */
void request_reader_split_unnamed(request_reader *r);

/* Returns the name "request of PROG", or "request" without a program. Uses `buffer`, and truncates long names. */
enum { REQUEST_UNNAMED_SIZE = 256 };
nl_string request_unnamed(nl_string program, char buffer[REQUEST_UNNAMED_SIZE]);

/*
 * Returns whether a record reports a failure by its level, by its field STATUS, or as a warning with the code of a
 * timeout.
 */
bool request_is_failure(const nl_record *record);

/* Tells the reader that whole durations without a unit are in nanoseconds, from the first record. */
void request_reader_expect_nanoseconds(request_reader *r);

/* Returns an expression that matches the records that report a failure, such as "STATUS < 0". Returns "" if no record
 * does. The text belongs to the reader. */
const char *request_reader_failure_test(const request_reader *r);

/* Returns whether a duration without a unit was in nanoseconds. */
bool request_reader_has_nanoseconds(const request_reader *r);

/* The message about durations in nanoseconds. */
#define REQUEST_NANOSECONDS                                                                                            \
    "whole numbers without a unit are read as nanoseconds, because some are too large for seconds; name a field with " \
    "its unit, such as DURATION.MS, if this is wrong"

/*
 * Return the names of events, and the name of the host or program with this number in request_event. The reader owns
 * the results.
 */
const event_names *request_reader_names(const request_reader *r);
const char *request_reader_host(const request_reader *r, uint32_t host);
const char *request_reader_program(const request_reader *r, uint32_t program);

#endif
