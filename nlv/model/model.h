/*
 * The model: the records and their drawing. The loader (loader.h) reads logs into a store, a drawing gives the records
 * their meaning, and the model reads a record again from its log when its fields are needed. No GTK.
 *
 * model_load reads the logs to their ends in the calling thread. model_start begins a thread that reads on for as long
 * as the model lives, also when logs grow. From then on, call the other functions between model_lock and model_unlock,
 * except those that need no lock.
 */
#ifndef NLV_MODEL_H
#define NLV_MODEL_H

#include "model/feed.h"
#include "model/store.h"
#include "requests/drawing.h"

#include "program/program.h"

typedef struct model model;

/* Returns a model without logs. The model then owns d, the drawing; NULL: the loader infers it. */
model *model_new(drawing *d, program_reading *reading);
void model_free(model *m);

/* Returns a model of a store and a drawing, and then owns both. For tests. */
model *model_of_store(store *s, drawing *d, program_reading *reading);

typedef struct model_options {
    size_t memory_max;   /* bytes for records; 0: half of the machine's memory, and at most 1 GiB for live sources */
    bool no_index;       /* neither read nor write an index */
    bool fix_clocks;     /* as model_correct_clocks */
    uint64_t index_size; /* bytes of the smallest text log that gets an index; 0: the default */
} model_options;

/* Call it before the first log is added. */
void model_set_options(model *m, model_options options);

/*
 * Adds a log, also to a model that was started. follow: go on reading as it grows. Returns false after printing the
 * reason on standard error. Needs no lock.
 */
bool model_add_source(model *m, const char *url, bool follow);

/* Adds the records of a feed as a log with a name. The caller gives up its reference. Needs no lock. */
void model_add_feed(model *m, feed *f, const char *name);

void model_load(model *m);
void model_start(model *m);

void model_lock(model *m);
void model_unlock(model *m);

/* Returns the next sentence about an event or an oddity of the logs, to be freed with g_free; NULL if none is left.
 * Needs no lock. */
char *model_take_notice(model *m);

/* Returns a number that changes whenever the picture must be drawn again. Needs no lock. */
unsigned model_generation(const model *m);

/* Returns the share of the logs that was read, 0 to 1. Needs no lock. */
double model_progress(const model *m);

/* Returns whether every record that was read has its place in the store. Needs no lock. */
bool model_is_settled(const model *m);

const store *model_store(const model *m);
const drawing *model_drawing(const model *m);

size_t model_count(const model *m);

/* Returns a sentence that tells how many records the memory limit hides, to be freed with g_free; NULL if it hides
 * none. */
char *model_missing(const model *m);

/*
 * Sets the times of the first and the last record, including unread records whose times are known. Returns false if
 * there are no records.
 */
bool model_time_range(const model *m, int64_t *from_ns, int64_t *to_ns);

/* Returns the names of the logs, separated by commas. */
const char *model_name(const model *m);

/*
 * The meaning of colours: the hosts, programs or values of lifelines, by name, then the hosts of loadlines and points.
 * The order does not depend on what is visible. New names of a growing log come last, so that a host keeps its colour.
 */
size_t model_color_count(const model *m);
const char *model_color_text(const model *m, size_t i); /* "" for records without such a field */

/* Return the number of the colour of a host, of an object of a lifeline, and of a name of a lifeline's colour field. */
unsigned model_host_color(const model *m, uint16_t host);
unsigned model_object_color(const model *m, size_t lifeline, uint32_t object);
unsigned model_name_color(const model *m, size_t lifeline, uint16_t name);

/*
 * The loader carries out the requests below some time later; nlv shows the former store until then.
 *
 * Shows only the records that match an expression; NULL: all. Returns false and sets the error if it is invalid.
 */
bool model_set_filter(model *m, const char *expression);
const char *model_filter(const model *m); /* NULL: none */

/*
 * Corrects the hosts' clocks by the measurements and messages in the logs (clocks/correction.h), and reports the result
 * as a notice; false: shows times as they were logged.
 */
void model_correct_clocks(model *m, bool correct);
bool model_corrects_clocks(const model *m); /* whether it was requested; needs no lock */
bool model_has_right_clocks(const model *m);

/* Changes the drawing to d, which the model then owns; NULL: the loader infers it from the logs. */
void model_set_drawing(model *m, drawing *d);

/* Replaces the additional loadlines by extra, which the model then owns. The inference ignores its quiet events.
 */
void model_set_extra(model *m, drawing *extra);

/*
 * Returns the parts of the logs that have been read, as jobs (scan_job) without spec, names and filter. The caller
 * frees them with g_array_free.
 */
GArray *model_jobs(const model *m);

/* Returns a record as text, "12:00:01.5 Event HOST PROG FIELD=value ...", without control characters; to be freed with
 * g_free.
 */
char *model_describe(const model *m, uint32_t record);

/* Calls take with a record as it is in the log. Returns false if it is no longer there. */
bool model_record(const model *m, uint32_t record, void (*take)(void *user, const nl_record *record), void *user);

/* As model_record, for the record at a place (batch.h). */
bool model_record_at(const model *m, uint64_t place, void (*take)(void *user, const nl_record *record), void *user);

#endif
