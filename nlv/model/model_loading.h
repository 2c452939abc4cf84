/*
 * The loader's access to the model. The loader alone changes the store; it does so between model_lock and model_unlock,
 * because other threads draw it. Functions that say so lock by themselves.
 */
#ifndef NLV_MODEL_LOADING_H
#define NLV_MODEL_LOADING_H

#include "model/colors.h"
#include "model/inference.h"
#include "model/model.h"

/* The store, to be changed. */
store *model_own_store(model *m);

/* Shows another store and drawing, both taken over. Returns the former store, the caller's. Locks. */
store *model_replace_store(model *m, store *fresh, drawing *d, colors_mode mode);

/* Makes events that the store has found into points of the drawing. */
void model_add_found_points(model *m);

/* Gives colours to new names; often: not again within a fifth of a second. */
void model_assign_colors(model *m, colors_mode mode, bool often);

/* Adds a file and gives it its number. */
void model_add_file(model *m, log_file *f);
const GPtrArray *model_files(const model *m); /* log_file, by number */

/* What other threads have requested since the last call. */
typedef struct model_request {
    bool has_filter, has_drawing, has_extra, has_clocks;
    char *former_filter;      /* with has_filter: the text of the filter until now; NULL: none; freed with g_free */
    drawing *drawing, *extra; /* the caller's */
    bool corrects_clocks;
} model_request;

/* Takes the requests; those for clocks only if clocks is set. The new filter is in effect then. Locks. */
model_request model_take_request(model *m, bool clocks);

/* Whether such a request waits, other than for clocks. Needs no lock. */
bool model_has_request(const model *m);

const nl_filter *model_current_filter(const model *m);
const correction *model_clocks(const model *m);

/* Times are corrected from now on; NULL: as logged. Takes over c. Locks. */
void model_set_clocks(model *m, correction *c);

/* The times of records that were not read yet. Locks. */
void model_set_expected(model *m, time_range range);

void model_set_progress(model *m, uint64_t done_bytes, uint64_t all_bytes);

/* There is something else to draw; settled: all records have their places. */
void model_changed(model *m, bool is_settled);

/* What model_missing says: memory_max bytes are the limit; is_full: reading has ended. */
void model_set_limit(model *m, size_t memory_max, bool is_silent, bool is_full);

/* Adds a notice, unless it was added before; text is taken over. Locks. */
void model_tell(model *m, char *text);

#endif
