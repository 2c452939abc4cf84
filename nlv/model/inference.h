/*
 * Provides the drawing: the supplied drawing, or a drawing that the module infers from samples of the logs. Adds the
 * additional loadlines. The module owns these drawings, and stores the size of the logs at the last inference. The
 * loader calls this module.
 */
#ifndef NLV_INFERENCE_H
#define NLV_INFERENCE_H

#include "model/source.h"
#include "requests/drawing.h"

typedef struct inference inference;

/* Returns an inference. Copies `given`, the supplied drawing, or NULL to infer the drawing. */
inference *inference_new(const drawing *given);
void inference_free(inference *f);

/* Changes the drawing to d, and takes ownership of it. If `d` is NULL, the module infers the drawing. */
void inference_set_given(inference *f, drawing *d);

/*
 * Replaces the additional loadlines with `extra`, and takes ownership of extra. The module does not infer a drawing
 * from the quiet events of `extra`, and adds them to the drawing's quiet events.
 */
void inference_set_extra(inference *f, drawing *extra);

bool inference_is_active(const inference *f);

/* Returns the supplied drawing with the additional loadlines, or an empty drawing. The caller frees it. */
drawing *inference_first_drawing(const inference *f);

/*
 * Marks the drawing as known, from an index or from an earlier reading of the logs. `bytes` is the number of bytes that
 * the index covers, or 0.
 */
void inference_settle(inference *f, uint64_t bytes);

/* Discards the results of earlier samples. Call the function before the loader reads the logs again. */
void inference_restart(inference *f);

typedef struct time_range {
    bool is_known;
    int64_t from_ns, to_ns;
} time_range;

/*
 * Returns false if the logs (source *) have not grown enough since the latest samples. Otherwise, takes samples, and
 * sets *range to the times of the samples, and *d to the inferred drawing, or to NULL if the drawing has not changed.
 * The caller frees *d.
 */
bool inference_sample(inference *f, const GPtrArray *sources, time_range *range, drawing **d);

#endif
