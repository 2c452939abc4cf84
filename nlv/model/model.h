/*
 * The model contains the records and their drawing. The loader (loader.h) reads logs into a store, and a drawing states
 * which lifelines, loadlines and points the records form. When the model needs a record's fields, it reads the record
 * again from the log. Does not use GTK.
 *
 * model_load reads the logs to their ends in the calling thread. model_start starts a thread that reads and follows
 * growing logs until the model is freed. After either call, call the other functions between model_lock and
 * model_unlock, with two exceptions. Functions with the remark "Locks" lock the model themselves, so call them without
 * the lock. Call functions with the remark "Needs no lock" with or without the lock.
 */
#ifndef NLV_MODEL_H
#define NLV_MODEL_H

#include "model/feed.h"
#include "model/request_list.h"
#include "model/store.h"
#include "requests/request_filter.h"
#include "requests/drawing.h"

#include "program/program.h"

typedef struct model model;
typedef struct request_lines request_lines; /* request_lines.h */

/* Returns a model without logs. Takes ownership of the drawing `d`. If `d` is NULL, the loader infers the drawing. */
model *model_new(drawing *d, program_reading *reading);
void model_free(model *m);

/* Returns a model with a store and a drawing, and takes ownership of both. For tests. */
model *model_of_store(store *s, drawing *d, program_reading *reading);

typedef struct model_options {
    size_t memory_max;   /* maximum memory for records in bytes; 0: half of the machine's memory, at most 1 GiB for live
                            sources */
    bool no_index;       /* neither read nor write an index */
    bool reads_requests; /* model_load also reads the requests (model_requests), as model_start always does */
    bool fix_clocks;     /* correct the clocks (model_correct_clocks) */
    uint64_t index_size; /* size in bytes of the smallest text log for which nlv writes an index; 0: the default */
} model_options;

/* Sets the options. Call the function before adding the first log. */
void model_set_options(model *m, model_options options);

/* Adds a log, also after model_start. If `follow` is true, continues to read the log as it grows. On failure, prints
 * the reason on standard error and returns false. Locks. */
bool model_add_source(model *m, const char *url, bool follow);

/* Adds the records of a feed as a log called `name`. Takes ownership of the caller's reference. Locks. */
void model_add_feed(model *m, feed *f, const char *name);

/* A request that matches an expression. */
typedef struct request_match {
    int64_t time_ns, duration_ns; /* the time of its first record, and its duration */
    uint64_t place;               /* the place of its first record (batch.h) */
} request_match;

/*
 * Starts to find the requests that match a filter, and takes ownership of the filter. The loader's thread finds the
 * requests, after model_start. If `filter` is NULL, ends the search and forgets its results. The search ignores records
 * that arrive after its end. Locks.
 */
void model_find_requests(model *m, request_filter *filter);

/*
 * Returns the requests (request_match) that model_find_requests has found, by time, or NULL until the search is
 * finished. The array is valid until the next call of model_find_requests.
 */
const GArray *model_found_requests(const model *m);

/* Returns the share of the logs that model_find_requests or model_compare has read, 0 to 1. Needs no lock. */
double model_find_progress(const model *m);

typedef struct comparison comparison; /* comparison.h */

/*
 * model_compare starts to compare two groups of requests, which the texts describe (compare_query.h). model_load or the
 * loader's thread compares them. model_compare returns false and sets the error if a text is invalid; it locks the
 * model itself ("Locks"). model_comparison returns the finished comparison, which is valid until the next call of
 * model_compare, or NULL.
 */
bool model_compare(model *m, const char *first, const char *second);
const comparison *model_comparison(const model *m);

typedef struct thread_list thread_list; /* threads.h */

/*
 * Makes model_load or the loader's thread read the spans and states of threads. Needs no lock. model_threads returns
 * the threads that it has read, which are valid until model_unlock, or NULL. model_threads_progress returns the share
 * of the logs that it has read, 0 to 1 ("Needs no lock").
 */
void model_want_threads(model *m);
const thread_list *model_threads(const model *m);
double model_threads_progress(const model *m);

void model_load(model *m);
void model_start(model *m);

void model_lock(model *m);
void model_unlock(model *m);

/*
 * Returns the next notice, a sentence about an event or anomaly of the logs, or NULL if no notice is left. The caller
 * frees it with g_free. Locks.
 */
char *model_take_notice(model *m);

/* Returns a number that changes whenever nlv must draw the picture again. Needs no lock. */
unsigned model_generation(const model *m);

/* Returns the share of the logs that the loader has read, 0 to 1. Needs no lock. */
double model_progress(const model *m);

/* Returns whether every record in the store is at its final index. Needs no lock. */
bool model_is_settled(const model *m);

/* Returns whether the thread of model_start has read all logs to their present ends at least once. Needs no lock. */
bool model_has_read(const model *m);

const store *model_store(const model *m);
const drawing *model_drawing(const model *m);
request_lines *model_request_lines(const model *m);

/* Returns a lifeline of the drawing, or drawing_threads if the index is REQUEST_NO_LIFELINE or too large. */
const drawing_lifeline *model_lifeline(const model *m, size_t lifeline);

/* Returns the requests of all records, including records that a filter hides. Returns NULL if nlv has not read the
 * requests yet. */
const request_list *model_requests(const model *m);

/*
 * Returns the share of the logs whose requests model_requests contains, 0 to 1. Returns 0 if nlv has not begun to read
 * the requests. Needs no lock.
 */
double model_requests_progress(const model *m);

/* Returns whether whole durations without a unit are in nanoseconds (request_duration). Needs no lock. */
bool model_has_nanoseconds(const model *m);

size_t model_count(const model *m);

/*
 * Returns a sentence about the records that nlv does not show because of the memory limit, or NULL if there are no such
 * records. The caller frees it with g_free.
 */
char *model_missing(const model *m);

/* Sets *from_ns and *to_ns to the times of the first and the last record. Includes unread records whose times are known
 * from samples. Returns false if there are no records. */
bool model_time_range(const model *m, int64_t *from_ns, int64_t *to_ns);

struct checks_gap;

/* Like checks_find_gap, but remembers the result until the store changes. */
bool model_find_gap(const model *m, struct checks_gap *gap);

/* Returns the names of the logs, separated by commas. */
const char *model_name(const model *m);

size_t model_log_count(const model *m);

/*
 * Return the number of colors and the meaning of a color. The order is: first the hosts, programs or values of
 * lifelines, sorted by name, and then the hosts of loadlines and points. The order does not depend on the visible part
 * of the log. New names in a growing log come last, so that each host keeps its color.
 */
size_t model_color_count(const model *m);
const char *model_color_text(const model *m, size_t i); /* "" for records without such a field */

/* Returns whether a host has a separate color in the picture. Otherwise, model_host_color returns 0. */
bool model_has_host_color(const model *m, uint16_t host);

/*
 * Return the number of a color: the color of a host, of an object in a lifeline, or of a value of a lifeline's color
 * field.
 */
unsigned model_host_color(const model *m, uint16_t host);
unsigned model_object_color(const model *m, size_t lifeline, uint32_t object);
unsigned model_name_color(const model *m, size_t lifeline, uint16_t name);

/*
 * The following functions store a request, which the loader carries out later. Until then, nlv shows the previous
 * store.
 *
 * model_set_filters sets a filter of two expressions (filters.h): `selects` selects requests, and `shows` selects some
 * of their records. NULL selects everything. Returns false and sets the error if an expression is invalid.
 * model_set_filter is model_set_filters with NULL as `shows`. Both lock the model themselves ("Locks").
 */
bool model_set_filters(model *m, const char *selects, const char *shows);
bool model_set_filter(model *m, const char *selects);
const char *model_filter(const model *m); /* NULL: no filter */

/* Returns the part of the filter that selects requests, as an expression on requests, or NULL. */
const char *model_request_filter(const model *m);

/*
 * Corrects the hosts' clocks by the measurements and messages in the logs (clocks/correction.h), and reports the result
 * as a notice. If `correct` is false, shows times as they were logged. Needs no lock.
 */
void model_correct_clocks(model *m, bool correct);
bool model_corrects_clocks(const model *m); /* returns whether a correction was requested; needs no lock */
bool model_has_right_clocks(const model *m);

/* Returns whether the model corrects the times of records from other time zones (time_zones.h). */
bool model_has_right_zones(const model *m);

/* Returns how often the model has corrected times because of time zones. Needs no lock. */
unsigned model_zone_corrections(const model *m);

/* Changes the drawing to `d`, and takes ownership of `d`. If `d` is NULL, the loader infers the drawing from the logs.
 * Locks. */
void model_set_drawing(model *m, drawing *d);

/* Replaces the additional loadlines and quiet events (inference_set_extra). Takes ownership of `extra`. Locks. */
void model_set_extra(model *m, drawing *extra);

/* Returns the parts of the logs that the loader has read, as jobs (scan_job) without spec, names and filter. The caller
 * frees the array with g_array_free. */
GArray *model_jobs(const model *m);

/*
 * Returns a record as text, "TIME Event HOST PROG FIELD=value ...", without control characters. `time` is the text of
 * its time. The caller frees the result with g_free.
 */
char *model_describe(const model *m, uint32_t record, const char *time);

/* Calls `take` with a record as logged, but with a time that the model has corrected for clocks and time zones. Returns
 * false if the record is no longer available. */
bool model_record(const model *m, uint32_t record, void (*take)(void *user, const nl_record *record), void *user);

/* Like model_record, but for the record at a place (batch.h). */
bool model_record_at(const model *m, uint64_t place, void (*take)(void *user, const nl_record *record), void *user);

#endif
