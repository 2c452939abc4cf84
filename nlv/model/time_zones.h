/*
 * Corrects the times of spans whose start and end were logged in different time zones (request_graph_build). The end
 * record contains the span's duration, which proves the difference. The corrected end is the corrected start plus this
 * duration.
 *
 * request_reading.c fills a time_zones object from the graphs of requests. After time_zones_settle, the object is
 * constant, and any thread may read it.
 */
#ifndef NLV_TIME_ZONES_H
#define NLV_TIME_ZONES_H

#include "clocks/correction.h"
#include "requests/request_graph.h"

typedef struct time_zones time_zones;

/* Creates an empty object for at most `records_max` records. */
time_zones *time_zones_new(size_t records_max);

/* Adds a reference to z, and returns z. Any thread may call the function. */
const time_zones *time_zones_ref(const time_zones *z);

/* Drops a reference. Dropping the last reference frees z. NULL is allowed. Any thread may call the function. */
void time_zones_unref(const time_zones *z);

/*
 * Adds the start and the end of a span whose start is in another time zone. The places (batch.h) identify the two
 * records. The shifts are the nanoseconds to add to the times of these records. `event` and `host` are names for
 * time_zones_describe, and zone_ns is the difference of the zones. Ignores the span if the maximum number of records is
 * reached.
 */
typedef struct time_zones_span {
    uint64_t begin_place, end_place;
    int64_t zone_ns, end_shift_ns;
    const char *event, *host;
} time_zones_span;
void time_zones_add(time_zones *z, const time_zones_span *span);

/*
 * Adds a record that belongs to no such span, but is in the time zone of such spans. time_zones_shift_single
 * returns the nanoseconds to add to the time of such a record, or 0. time_zones_zone returns the difference of the
 * zones of a span, or 0 without spans.
 */
void time_zones_add_single(time_zones *z, uint64_t place, int64_t zone_ns, const char *event, const char *host);
int64_t time_zones_shift_single(const time_zones *z, uint64_t place);
int64_t time_zones_zone(const time_zones *z);

/* Sorts the records for the functions below. Call the function after each series of time_zones_add calls. */
void time_zones_settle(time_zones *z);

/* Returns the corrected time of the record at a place, whose time is time_ns. NULL for `z` is allowed. */
int64_t time_zones_time(const time_zones *z, uint64_t place, int64_t time_ns);

/* Returns the time of the record at a place, corrected by `clocks` and by `z`. NULL for either is allowed. */
int64_t time_zones_record_time(const time_zones *z, const correction *clocks, const nl_record *record, uint64_t place);

/* Returns whether `z` corrects a record that `former` does not correct. NULL stands for an object that corrects no
 * record. */
bool time_zones_has_more(const time_zones *z, const time_zones *former);

/* Appends a sentence for each event, host and difference of zones. The caller frees the sentences with g_free. */
void time_zones_describe(const time_zones *z, GPtrArray *sentences);

#endif
