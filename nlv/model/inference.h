/*
 * The drawing: a given one, or one that is inferred from samples of the logs, with additional loadlines. The module
 * owns these drawings and knows how much of the logs the inference has seen. Caller: the loader.
 */
#ifndef NLV_INFERENCE_H
#define NLV_INFERENCE_H

#include "model/source.h"
#include "requests/drawing.h"

typedef struct inference inference;

/* Copies given, the drawing; NULL: the module infers it. */
inference *inference_new(const drawing *given);
void inference_free(inference *f);

/* Changes the drawing to d, which the module then owns; NULL: the module infers it. */
void inference_set_given(inference *f, drawing *d);

/* Replaces the additional loadlines by extra, which the module then owns. The inference ignores its quiet events. */
void inference_set_extra(inference *f, drawing *extra);

bool inference_is_active(const inference *f);

/* Returns the given drawing, or an empty one, with the additional loadlines. The caller frees it. */
drawing *inference_first_drawing(const inference *f);

/* The drawing is known from an index, which covers some bytes of the logs, or from an earlier reading (0). */
void inference_settle(inference *f, uint64_t bytes);

/* The logs and their samples are read again. */
void inference_restart(inference *f);

typedef struct time_range {
    bool is_known;
    int64_t from_ns, to_ns;
} time_range;

/*
 * Takes samples of the logs (source *) if these have grown enough since the last time. Sets *range to the times of the
 * samples. Returns whether it took any; *d is then the inferred drawing, which the caller frees, or NULL if it has not
 * changed.
 */
bool inference_sample(inference *f, const GPtrArray *sources, time_range *range, drawing **d);

#endif
