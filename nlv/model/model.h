/*
 * The model: what there is to draw. Logs are read into one trace, a drawing says what it means (given, or inferred from
 * the log), and lifelines are grouped by it. No GTK.
 *
 * A model may be read to its end at once, or bit by bit while a window stays alive; logs that grow go on being read for
 * as long as the model lives.
 */
#ifndef NLV_MODEL_H
#define NLV_MODEL_H

#include "analysis/drawing.h"
#include "analysis/lifelines.h"
#include "analysis/trace.h"
#include "program/program.h"

typedef struct model model;

/* A model without logs. d is what to draw, taken over; NULL: inferred whenever the trace has changed. */
model *model_new(drawing *d, program_reading *reading);
void model_free(model *m);

/* Adds a log; follow: go on reading as it grows. False when it can't be opened, which was said on standard error. */
bool model_add_source(model *m, const char *url, bool follow);

/*
 * Reads on, at most that many records. Returns how many came; *more tells whether any source may have more right now.
 * Call model_update before looking at anything else.
 */
size_t model_read(model *m, size_t most, bool *more);

/* Sorts and groups what was read. Whether anything changed. */
bool model_update(model *m);

const trace *model_trace(const model *m);
const drawing *model_drawing(const model *m);

/* The lifelines of the drawing, one for each definition in it. */
size_t model_lifelines_count(const model *m);
const lifelines *model_lifelines(const model *m, size_t i);

/*
 * What colours stand for, in the order in which they are given: strings of the trace (uint32_t), those of lifelines by
 * name, then the hosts of loadlines and points. It does not depend on what is visible, so that a host keeps its colour.
 */
const GArray *model_colors(const model *m);

/* The first and last record's time; false when there are no records. */
bool model_time_range(const model *m, int64_t *from_ns, int64_t *to_ns);

/* The names of the sources with commas between. */
const char *model_name(const model *m);

/* The place of the first record that is not before a time: trace_count when there is none. */
size_t model_find_time(const model *m, int64_t time_ns);

/* A record as text, "12:00:01.5 HOST PROG Event FIELD=value ..."; to be freed with g_free. */
char *model_describe(const model *m, size_t record);

#endif
