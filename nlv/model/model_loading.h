/*
 * The loader's access to the model. The loader alone changes the store; it does so between model_lock and model_unlock,
 * because other threads draw it. Functions that say so lock by themselves.
 */
#ifndef NLV_MODEL_LOADING_H
#define NLV_MODEL_LOADING_H

#include "model/colors.h"
#include "model/inference.h"
#include "model/model.h"

/* Returns the store, which the loader may change. */
store *model_own_store(model *m);

/* Shows another store and drawing, and then owns both. Returns the former store, which the caller frees. Locks. */
store *model_replace_store(model *m, store *fresh, drawing *d, colors_mode mode);

/* Makes events that the store has found into points of the drawing. */
void model_add_found_points(model *m);

/* Gives colours to new names; often: not again within a fifth of a second. */
void model_assign_colors(model *m, colors_mode mode, bool often);

/* Adds a file and gives it its number. */
void model_add_file(model *m, log_file *f);
const GPtrArray *model_files(const model *m); /* log_file, by number */

/* The requests of other threads since the last call. */
typedef struct model_request {
    bool has_filter, has_drawing, has_extra, has_clocks;
    char *former_filter;      /* with has_filter: the text of the filter until now; NULL: none; freed with g_free */
    drawing *drawing, *extra; /* the caller's */
    bool corrects_clocks;
} model_request;

/* Takes the requests; those for clocks only if clocks is set. The new filter is in effect then. Locks. */
model_request model_take_request(model *m, bool clocks);

/* Returns whether such a request waits, other than for clocks. Needs no lock. */
bool model_has_request(const model *m);

const nl_filter *model_current_filter(const model *m);
const correction *model_clocks(const model *m);

/* Corrects times from now on with c, which the model then owns; NULL: shows them as logged. Locks. */
void model_set_clocks(model *m, correction *c);

/* Sets the times of records that were not read yet. Locks. */
void model_set_expected(model *m, time_range range);

void model_set_progress(model *m, uint64_t done_bytes, uint64_t all_bytes);

/* The picture must be drawn again; is_settled: all records have their places. */
void model_changed(model *m, bool is_settled);

/* Sets the facts for model_missing: memory_max bytes are the limit; is_full: reading has ended. */
void model_set_limit(model *m, size_t memory_max, bool is_silent, bool is_full);

/* Adds a notice, unless it was added before. The model then owns text. Locks. */
void model_tell(model *m, char *text);

#endif
