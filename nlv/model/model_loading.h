/*
 * The loader's access to the model. Only the loader changes the store, and only between model_lock and model_unlock,
 * because other threads draw the store. Functions with the remark "Locks" acquire the lock themselves.
 */
#ifndef NLV_MODEL_LOADING_H
#define NLV_MODEL_LOADING_H

#include "model/colors.h"
#include "model/compare_query.h"
#include "model/filters.h"
#include "model/inference.h"
#include "model/model.h"

/* Returns the store, which the loader may change. */
store *model_own_store(model *m);

/*
 * Replaces the store and the drawing, and takes ownership of the new store and drawing. Returns the previous store,
 * which the caller frees. Locks.
 */
store *model_replace_store(model *m, store *fresh, drawing *d, colors_mode mode);

/* Adds the events that the store has found to the drawing's points. */
void model_add_found_points(model *m);

/* Assigns colors to names. If `often` is true, does nothing in the 200 ms after the previous assignment. */
void model_assign_colors(model *m, colors_mode mode, bool often);

/* Adds a file and sets its number. */
void model_add_file(model *m, log_file *f);
const GPtrArray *model_files(const model *m); /* log_file, by number */

/* The requests of other threads since the last call of model_take_request. */
typedef struct model_request {
    bool has_filter, has_drawing, has_extra, has_clocks;
    char *former_filter;      /* if has_filter: the text of the previous filter, freed with g_free; NULL: no filter */
    drawing *drawing, *extra; /* owned by the caller */
    bool corrects_clocks;
} model_request;

/* Returns and clears the requests, and sets the new filter. If `clocks` is false, does not clear the request to correct
 * clocks. Locks. */
model_request model_take_request(model *m, bool clocks);

/* Returns whether model_find_requests was called since the last call of this function. If so, sets *filter, which is
 * valid until model_take_find returns true again. Locks. */
bool model_take_find(model *m, const request_filter **filter);

/* Sets the result of the search. Discards `found` if model_find_requests was called again. Takes ownership of `found`.
 * Locks. */
void model_set_found(model *m, GArray *found);
void model_set_find_progress(model *m, double share);
void model_set_requests_progress(model *m, double share);

/* Removes the query of the latest model_compare from the model and returns it, or returns NULL. The caller frees the
 * query. Locks. */
compare_query *model_take_compare(model *m);

/* Sets the finished comparison. Discards `c` if model_compare was called again. Takes ownership of `c`. Locks. */
void model_set_comparison(model *m, comparison *c);

/* Returns the flag that all extractors share (extractor.has_nanoseconds). */
atomic_bool *model_nanosecond_flag(model *m);

/* Returns whether model_want_threads was called. Needs no lock. */
bool model_wants_threads(const model *m);

/* Replaces the threads, takes ownership of `threads`, and frees the previous list. Locks. */
void model_set_threads(model *m, thread_list *threads);
void model_set_threads_progress(model *m, double share);

/* Returns whether a request for a filter, a drawing or additional loadlines is waiting. Needs no lock. */
bool model_has_request(const model *m);

const filters *model_current_filters(const model *m); /* NULL: no filter */
const correction *model_clocks(const model *m);

/* Sets the correction of times, or NULL for no correction. Takes ownership of `c`. Locks. */
void model_set_clocks(model *m, correction *c);

/* Returns the records whose times are in another time zone, or NULL. */
const time_zones *model_zones(const model *m);

/* Sets the records whose times are in another time zone. Takes ownership of `z`. Locks. */
void model_set_zones(model *m, time_zones *z);

/* Replaces the list of requests, takes ownership of the new list, and frees the previous list. Locks. */
void model_set_requests(model *m, request_list *requests);

/* Sets the range of times of the unread records. Locks. */
void model_set_expected(model *m, time_range range);

void model_set_progress(model *m, uint64_t done_bytes, uint64_t all_bytes);

/* Makes nlv draw the picture again. `is_settled` is true if all records are at their final indices in the store. */
void model_changed(model *m, bool is_settled);

/* Stores that the loader has read all logs to their current ends. */
void model_set_read(model *m);

/* Sets the values for model_missing: the memory limit in bytes, whether model_missing ignores dropped records
 * (is_silent), and whether reading has ended because of the limit (is_full). */
void model_set_limit(model *m, size_t memory_max, bool is_silent, bool is_full);

/* Adds a notice, unless the model has had the same notice before. Takes ownership of `text`. Locks. */
void model_tell(model *m, char *text);

#endif
