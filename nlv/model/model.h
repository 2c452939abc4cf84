/*
 * The model: what there is to draw. Logs are read into a store, a drawing says what it means (given, or inferred from
 * the logs), and more of a record is read again from its log when it is asked for. No GTK.
 *
 * Either all is read at once (model_load), or a thread reads on for as long as the model lives (model_start), also what
 * growing logs get. Then whatever is asked of a model is asked between model_lock and model_unlock. A large log's store
 * is kept in a file and found there when the log is opened again (index.h).
 */
#ifndef NLV_MODEL_H
#define NLV_MODEL_H

#include "requests/drawing.h"
#include "model/store.h"

#include "program/program.h"

typedef struct model model;

/* A model without logs. d is what to draw, taken over; NULL: inferred. */
model *model_new(drawing *d, program_reading *reading);
void model_free(model *m);

/* A model of a store that is there; both are taken over. For tests. */
model *model_of_store(store *s, drawing *d, program_reading *reading);

typedef struct model_options {
    uint32_t records_max; /* the oldest records beyond this number are forgotten; 0: all are kept */
    size_t memory_max;    /* bytes; the oldest records are forgotten beyond it; 0: half of the machine's memory */
    bool no_index;        /* neither read one nor write one */
    bool fix_clocks;      /* as model_correct_clocks */
    uint64_t index_least; /* bytes of a log that is worth one; 0: as many as take longer to be read again */
} model_options;
void model_set_options(model *m, model_options options);

/*
 * How many records are kept at most, the latest; 0: all. Where nobody said, all are kept of files, and MODEL_LIVE_MAX
 * of what comes over the network or a pipe. It can be changed at any time: those that are forgotten already stay so.
 * Needs no lock.
 */
enum { MODEL_LIVE_MAX = 20000000 };
uint32_t model_records_max(const model *m);
void model_set_records_max(model *m, uint32_t records);

/*
 * Adds a log; follow: go on reading as it grows. False when it can't be opened, which was said on standard error. Once
 * the model was started too.
 */
bool model_add_source(model *m, const char *url, bool follow);

/* Reads all logs to their ends. */
void model_load(model *m);

/* Begins to read in a thread of its own. */
void model_start(model *m);

void model_lock(model *m);
void model_unlock(model *m);

/* What has happened to the logs, or is odd about them, that was not told yet: a sentence, to be freed with g_free; NULL
 * when there is none. Needs no lock. */
char *model_take_notice(model *m);

/* Another number whenever there is something else to be drawn. Needs no lock. */
unsigned model_generation(const model *m);

/* How far the logs have been read, 0 to 1; 1 when what there is was read. Needs no lock. */
double model_progress(const model *m);

/* Whether what was read has its place, as long as nothing new comes. Needs no lock. */
bool model_is_settled(const model *m);

const store *model_store(const model *m);
const drawing *model_drawing(const model *m);

/* How many records there are. */
size_t model_count(const model *m);

/*
 * How many records are not shown because of the memory limit, as a sentence, to be freed with g_free; NULL when all are
 * shown.
 */
char *model_missing(const model *m);

/*
 * The time of the logs, from the first record to the last, also of what was not read yet as far as it can be told;
 * false when there are no records.
 */
bool model_time_range(const model *m, int64_t *from_ns, int64_t *to_ns);

/* The names of the sources with commas between. */
const char *model_name(const model *m);

/*
 * What colours stand for, in the order in which they are given: the hosts, programs or values that lifelines are told
 * apart by, by name, then the hosts of loadlines and points. It does not depend on what is visible, and what comes
 * later in a growing log is put behind, so that a host keeps its colour.
 */
size_t model_color_count(const model *m);
const char *model_color_text(const model *m, size_t i); /* "" of those that have none */

/* The number of a host's colour, or of an object's of a lifeline. */
unsigned model_host_color(const model *m, uint16_t host);
unsigned model_object_color(const model *m, size_t lifeline, uint32_t object);

/* The number of the colour of a name that lifelines' objects are coloured by. */
unsigned model_name_color(const model *m, size_t lifeline, uint16_t name);

/*
 * Shows only what an expression matches; NULL: all. The logs are read again for it, the drawing stays. False when it is
 * none: nl_error_message() says why.
 */
bool model_set_filter(model *m, const char *expression);

/* The expression, NULL when there is none. */
const char *model_filter(const model *m);

/*
 * Sets the hosts' clocks right: by what the logs hold of measurements and messages (timekeeping/correction.h) all
 * records get the times that they had by one clock, and what was found of each host is told; false: times are as they
 * were logged. It is done once what there is was read; then all is read again.
 */
void model_correct_clocks(model *m, bool correct);

/* Whether that is wanted. Needs no lock. And whether it is done. */
bool model_corrects_clocks(const model *m);
bool model_has_right_clocks(const model *m);

/*
 * Draws something else: d, taken over; NULL: what is found out from the logs, which are read again for it. Nobody
 * waits: until all is read again the former drawing, or a part of the new one, is there.
 */
void model_set_drawing(model *m, drawing *d);

/*
 * Draws loadlines beside all else, whether that is given or found out: extra, taken over, is all there is of the kind.
 * Its quiet events are not looked at in finding out. Otherwise as model_set_drawing.
 */
void model_set_extra(model *m, drawing *extra);

/* What of the logs was read, as jobs (scan_job, spec, names and filter unset); the caller's, for g_array_free. */
GArray *model_jobs(const model *m);

/* A record as text, "12:00:01.5 Event HOST PROG FIELD=value ..."; to be freed with g_free. */
char *model_describe(const model *m, uint32_t record);

/* Calls take with a record as it is in the log. False when it is there no more. */
bool model_record(const model *m, uint32_t record, void (*take)(void *user, const nl_record *record), void *user);

/* The same of the record at a place (batch.h). */
bool model_record_at(const model *m, uint64_t place, void (*take)(void *user, const nl_record *record), void *user);

#endif
